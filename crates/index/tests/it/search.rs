//! The query language, facets, order, paging, folding, suggestions.

use telusur_index::{Column, FacetBy, Filter, HITS_MAX, IndexDoc, Query, Ranks, Sort};
use telusur_model::{CrawlNo, Timestamp, UrlKey};

use crate::web::{Web, key, link, page, paths};

fn animals() -> Web {
    Web::of(&[
        page(
            "https://cats.example/cats",
            "Cats",
            "The cat sleeps all day. Cats are running at night.",
        ),
        page("https://dogs.example/dogs", "Dogs", "The dog barks at the cat that runs away."),
        page("https://birds.example/birds", "Birds", "Birds sing in the morning. Big birds hunt."),
        IndexDoc {
            language: Some("id".to_owned()),
            ..page(
                "https://satwa.example/kucing",
                "Kucing",
                "Kucing adalah hewan pembangunan rumah yang pintar.",
            )
        },
    ])
}

#[test]
fn words_are_found_in_all_their_forms() {
    let web = animals();
    web.check_set("cat", &["cats", "dogs"]);
    web.check_set("run", &["cats", "dogs"]);
    web.check("bangun", &["kucing"]);
    web.check("PEMBANGUNAN", &["kucing"]);
    web.check("elephant", &[]);
}

#[test]
fn the_title_counts_most() {
    animals().check("cats", &["cats", "dogs"]);
}

#[test]
fn phrases_need_their_words_side_by_side_and_as_written() {
    let web = animals();
    web.check("\"the cat\"", &["cats", "dogs"]);
    web.check("\"cats are running\"", &["cats"]);
    web.check("\"big birds\"", &["birds"]);
    web.check("\"birds big\" sing", &["birds"]);
    assert_eq!(web.search("\"birds big\" sing").ignored.len(), 1);
    web.check("\"big bird\" -sing -hunt", &[]);
}

#[test]
fn excluded_and_required_words() {
    let web = animals();
    web.check("cat -dog", &["cats"]);
    web.check("cat +barks", &["dogs"]);
    web.check_set("barks OR sing", &["birds", "dogs"]);
    web.check("cat AND barks", &["dogs"]);
    web.check_set("-cat", &["birds", "kucing"]);
}

#[test]
fn conditions() {
    let web = Web::of(&[
        IndexDoc {
            has: vec!["table".to_owned()],
            rights: vec!["ai-train=no".to_owned()],
            links: vec![link("https://b.example/two", "two")],
            published_at: Some(Timestamp(1_600_000_000_000)),
            ..page("https://www.a.example/one", "First page", "shared words here")
        },
        IndexDoc {
            kind: "pdf".to_owned(),
            status: 404,
            language: Some("id".to_owned()),
            key: telusur_index::DocKey { crawl: CrawlNo(7), ..key("two") },
            ..page("https://b.example/two", "Second", "shared words there")
        },
    ]);
    web.check_set("shared", &["one", "two"]);
    for (condition, expect) in [
        ("site:a.example", "one"),
        ("site:www.a.example", "one"),
        ("-site:a.example", "two"),
        ("intitle:first", "one"),
        ("intitle:\"page first\"", "one"),
        ("inurl:two", "two"),
        ("lang:id", "two"),
        ("filetype:pdf", "two"),
        ("before:2021", "one"),
        ("after:2021-01-01", "two"),
        ("year:2020", "one"),
        ("has:table", "one"),
        ("crawl:7", "two"),
        ("crawl:crawl_1", "one"),
        ("status:404", "two"),
        ("status:2xx", "one"),
        ("link:https://b.example/two", "one"),
        ("rights:ai-train=no", "one"),
    ] {
        web.check(&format!("shared {condition}"), &[expect]);
        web.check(condition, &[expect]);
    }
    web.check("shared site:example.org", &[]);
    let mut query = Query::new("shared");
    query.filters = vec![Filter::Not(Box::new(Filter::Kind("pdf".to_owned())))];
    assert_eq!(paths(&web.index.search(&query).unwrap()), ["one"]);
}

#[test]
fn columns_restrict_words() {
    let web = Web::of(&[
        page("https://a.example/in-title", "walrus", "nothing"),
        page("https://a.example/in-text", "nothing", "walrus"),
        IndexDoc {
            description: "walrus".to_owned(),
            ..page("https://a.example/in-description", "nothing", "nothing")
        },
        page("https://a.example/walrus", "nothing", "nothing"),
    ]);
    for (column, expect) in [
        (Column::Title, "in-title"),
        (Column::Text, "in-text"),
        (Column::Description, "in-description"),
        (Column::Url, "walrus"),
    ] {
        let mut query = Query::new("walrus");
        query.columns = vec![column];
        assert_eq!(paths(&web.index.search(&query).unwrap()), [expect], "{column:?}");
    }
    assert_eq!(web.paths("walrus").len(), 4);
}

#[test]
fn patterns_search_the_stored_columns() {
    let web = animals();
    let mut query = Query::new(r"B[aeiou]rks\s+at");
    query.pattern = true;
    let results = web.index.search(&query).unwrap();
    assert_eq!(paths(&results), ["dogs"]);
    assert_eq!(
        results.hits[0].snippet.html(),
        "The dog <mark>barks at</mark> the cat that runs away."
    );
    query.columns = vec![Column::Title];
    assert!(web.index.search(&query).unwrap().hits.is_empty());
    query.text = "(unclosed".to_owned();
    assert!(web.index.search(&query).is_err());
    query.text = "((a{100}){100}){100}".to_owned();
    assert!(web.index.search(&query).is_err());
}

#[test]
fn other_scripts_are_found_by_pieces() {
    let web = Web::of(&[
        page("https://a.example/tokyo", "東京都の天気", "明日の東京は晴れです。"),
        page("https://a.example/kyoto", "京都の寺", "京都には多くの寺がある。"),
        page("https://a.example/thai", "ภาษาไทย", "ภาษาไทยเป็นภาษาราชการ"),
    ]);
    web.check("東京", &["tokyo"]);
    web.check("寺", &["kyoto"]);
    web.check("\"京都には\"", &["kyoto"]);
    web.check("ราชการ", &["thai"]);
}

#[test]
fn facets_count_all_matching_pages() {
    let mut query = Query::new("cat OR birds OR kucing");
    query.facets = vec![FacetBy::Site, FacetBy::Language, FacetBy::Year];
    query.limit = 1;
    let results = animals().index.search(&query).unwrap();
    assert_eq!(results.estimated_total, 4);
    assert_eq!(results.hits.len(), 1);
    assert_eq!(results.facets[&FacetBy::Site].len(), 4);
    let languages = &results.facets[&FacetBy::Language];
    assert_eq!((languages[0].value.as_str(), languages[0].count), ("en", 3));
    assert_eq!(results.facets[&FacetBy::Year][0].value, "2023");
}

fn numbered(count: u64, site: impl Fn(u64) -> u64) -> Vec<IndexDoc> {
    let one = |number: u64| IndexDoc {
        fetched_at: Timestamp(number * 1000),
        ..page(
            &format!("https://s{}.example/{number:04}", site(number)),
            "",
            &format!("common word w{number}"),
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn orders() {
    let web = Web::of(&numbered(5, |_| 1));
    let mut query = Query::new("common");
    query.sort = Sort::Newest;
    assert_eq!(paths(&web.index.search(&query).unwrap()), ["0004", "0003", "0002", "0001", "0000"]);
    query.sort = Sort::Url;
    assert_eq!(paths(&web.index.search(&query).unwrap()), ["0000", "0001", "0002", "0003", "0004"]);
    query.text = "crawl:1".to_owned();
    query.sort = Sort::Relevance;
    assert_eq!(paths(&web.index.search(&query).unwrap())[0], "0004");
}

#[test]
fn pages_of_hits_do_not_overlap_and_have_an_end() {
    let web = Web::of(&numbered(1200, |number| number % 3));
    let mut seen = Vec::new();
    let mut query = Query::new("common");
    query.limit = 300;
    for start in 0..5 {
        query.offset = start * 300;
        seen.extend(paths(&web.index.search(&query).unwrap()));
    }
    assert_eq!(seen.len(), HITS_MAX);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), HITS_MAX);
    query.offset = usize::MAX;
    query.limit = usize::MAX;
    let beyond = web.index.search(&query).unwrap();
    assert!(beyond.hits.is_empty());
    assert_eq!(beyond.estimated_total, 1200);
}

#[test]
fn a_site_shows_two_hits_while_others_have_some() {
    let web = Web::of(&numbered(10, |number| u64::from(number == 9)));
    let results = web.search("common");
    let sites: Vec<_> = results.hits.iter().take(3).map(|hit| hit.site.clone().unwrap()).collect();
    assert_eq!(sites, ["s0.example", "s0.example", "s1.example"]);
    assert_eq!(results.hits[1].more_from_site, 7);
    assert_eq!(results.hits.len(), 10);
    assert_eq!(web.search("common site:s0.example").hits[1].more_from_site, 0);
}

#[test]
fn pages_that_say_the_same_are_one_hit() {
    let text: String = (0..80).map(|number| format!("word{} ", number * 7 % 61)).collect();
    let web = Web::of(&[
        page("https://a.example/original", "One", &text),
        page("https://b.example/copy", "Two", &format!("{text} footer")),
        page(
            "https://c.example/other",
            "Three",
            &text.replace("word", "term").replace("term7 ", "word7 "),
        ),
    ]);
    let results = web.search("word7");
    assert_eq!(results.hits.len(), 2);
    assert_eq!(results.hits[0].similar_count, 1);
    assert_eq!(results.hits[0].similar.len(), 1);
    assert_eq!(results.estimated_total, 3);
    let mut query = Query::new("word7");
    query.fold_similar = false;
    assert_eq!(web.index.search(&query).unwrap().hits.len(), 3);
}

#[test]
fn typing_is_helped() {
    let web = animals();
    assert_eq!(web.index.suggest("big bir", 5).unwrap(), ["big birds"]);
    assert_eq!(web.index.suggest("site:x", 5).unwrap(), Vec::<String>::new());
    assert_eq!(web.search("mornig birds").did_you_mean.as_deref(), Some("morning birds"));
    assert_eq!(web.search("morning birds").did_you_mean, None);
    web.check("mornig", &["birds"]);
}

#[test]
fn well_linked_pages_come_first_among_equals() {
    let web = Web::of(&numbered(6, |number| number));
    let target = key("https://s3.example/0003").url;
    let pages: Vec<UrlKey> = (0..100).map(UrlKey).chain([target]).collect();
    let ranks: Vec<f64> = (0..100).map(|_| 0.005).chain([0.5]).collect();
    web.index.set_link_ranks(Ranks::of(&pages, &ranks)).unwrap();
    assert_eq!(web.paths("common")[0], "0003");
}

#[test]
fn every_number_of_a_score_can_be_read() {
    let web = animals();
    let query = Query::new("cat runs");
    let explanation = web.index.explain(&query, "https://dogs.example/dogs").unwrap().unwrap();
    assert!(explanation.what.starts_with("hit "), "{}", explanation.what);
    let hit =
        web.search("cat runs").hits.into_iter().find(|hit| hit.url.ends_with("dogs")).unwrap();
    assert_eq!(explanation.value, hit.score);
    let sum: f32 = explanation.parts[..5].iter().map(|part| part.value).sum();
    let factors = explanation.parts[5].value * explanation.parts[6].value;
    assert!((sum * factors - hit.score).abs() < 1e-4);
    assert!(serde_json::to_string(&explanation).unwrap().contains("TF-IDF"));
    assert_eq!(web.index.explain(&query, "https://nowhere.example/").unwrap(), None);
}
