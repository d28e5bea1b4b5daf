//! Queries and pages that want to do harm.

use proptest::prelude::*;
use telusur_index::{FacetBy, IndexDoc, OfCrawls, Query, escape_html};

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

/// Texts full of what could do harm: markup, controls, escapes, marks of direction, invisible
/// characters.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,12}",
        "[<>&\"'\\u{0}-\\u{1f}\\u{7f}-\\u{9f}]{0,6}",
        "[\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{feff}]{0,4}",
        Just("<script>alert(1)</script>".to_owned()),
        Just("\u{1b}]0;pwned\u{7}".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Whether nothing in a text can command a terminal or turn the text around it.
fn is_inert(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control()
            || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}')
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_from_a_page_does_harm(
        title in hostile_text(),
        text in hostile_text(),
        path in hostile_text(),
        language in hostile_text(),
    ) {
        let url = format!("https://a.example/{path}");
        let doc = IndexDoc {
            language: Some(language),
            kind: title.clone(),
            description: text.clone(),
            ..page(&url, &title, &format!("{text} needle {text}"))
        };
        let web = Web::of(&[doc]);
        let mut query = Query::new("needle");
        query.facets = vec![FacetBy::Site, FacetBy::Language, FacetBy::Kind];
        let results = web.index.search(&query).unwrap();
        let hit = &results.hits[0];
        for shown in [&hit.title, &hit.url, &hit.snippet.text, &hit.kind] {
            prop_assert!(is_inert(shown), "{shown:?}");
        }
        for shown in [&hit.site, &hit.language].into_iter().flatten() {
            prop_assert!(is_inert(shown), "{shown:?}");
        }
        for count in results.facets.values().flatten() {
            prop_assert!(is_inert(&count.value), "{:?}", count.value);
        }
        let html = hit.snippet.html().replace("<mark>", "").replace("</mark>", "");
        prop_assert!(!html.contains(['<', '>', '"', '\'']), "{html}");
        web.index.digest_links().unwrap();
        let top = web.index.top_pages(&OfCrawls::default(), 1).unwrap();
        prop_assert!(top.iter().all(|page| is_inert(&page.url) && is_inert(&page.title)));
    }

    #[test]
    fn any_page_and_any_query(title in any::<String>(), text in any::<String>(), query in any::<String>()) {
        let web = Web::of(&[page("https://a.example/x", &title, &text), page("https://b.example/y", "y", "y")]);
        let results = web.index.search(&Query::new(&query)).unwrap();
        prop_assert!(results.hits.len() <= 2);
        // A page is found by every word that it has.
        if let Some(word) = text.split_whitespace().find(|word| word.chars().all(char::is_alphanumeric)) {
            let found = web.paths(&format!("+{word}"));
            prop_assert!(found.contains(&"x".to_owned()), "{:?}", word);
        }
    }
}
