//! Queries and pages that want to do harm.

use proptest::prelude::*;
use telusur_index::{Query, escape_html};

use crate::web::{Web, page};

#[test]
fn hostile_queries_are_answered() {
    let web = Web::of(&[page("https://a.example/x", "x", "some words")]);
    let queries = [
        "x".repeat(100_000),
        "word ".repeat(20_000),
        "(".repeat(10_000),
        "\"".repeat(1001),
        "*".repeat(1000),
        "a* ".repeat(1000),
        "-".repeat(5000),
        "site:".repeat(5000),
        "OR ".repeat(5000),
        "\u{202e}\u{0}\u{1b}[31m".repeat(100),
        "fuzzy~99 field:\" OR 1=1 --".to_owned(),
        String::new(),
    ];
    for query in queries {
        web.search(&query);
    }
}

#[test]
fn hostile_pages_come_out_inert() {
    let evil = "\u{202e}<img src=x onerror=alert(1)>\u{1b}]0;pwned\u{7} needle </mark><script>";
    let results = Web::of(&[page("https://a.example/%3Cscript%3E", evil, evil)]).search("needle");
    let hit = &results.hits[0];
    for text in [&hit.title, &hit.snippet.text, &hit.url] {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\n']), "{text:?}");
    }
    let html = hit.snippet.html();
    assert!(html.contains("<mark>needle</mark> &lt;/mark&gt;&lt;script&gt;"), "{html}");
    let mut title = String::new();
    escape_html(&hit.title, &mut title);
    assert!(!title.contains('<'));
}

#[test]
fn a_page_of_megabytes_is_taken() {
    let web = Web::of(&[page("https://a.example/big", "big", &"lorem ipsum ".repeat(500_000))]);
    assert_eq!(web.search("ipsum").hits.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_page_and_any_query(title in any::<String>(), text in any::<String>(), query in any::<String>()) {
        let web = Web::of(&[page("https://a.example/x", &title, &text), page("https://b.example/y", "y", "y")]);
        let results = web.index.search(&Query::new(&query)).unwrap();
        prop_assert!(results.hits.len() <= 2);
        // Whatever word a page has, it is found by it.
        if let Some(word) = text.split_whitespace().find(|word| word.chars().all(char::is_alphanumeric)) {
            let found = web.paths(&format!("+{word}"));
            prop_assert!(found.contains(&"x".to_owned()), "{:?}", word);
        }
    }
}
