use std::collections::{BTreeSet, HashMap, HashSet};

use super::*;
use crate::html_check::{hrefs, is_well_formed};
use crate::test_client::Client;

const ORIGIN: &str = "http://demo.test";

fn site() -> DemoSite {
    DemoSite::new(ORIGIN)
}

fn text(answer: &FakeAnswer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

fn is_html(answer: &FakeAnswer) -> bool {
    answer.header("content-type").is_some_and(|it| it.starts_with("text/html"))
}

/// Follows all links from the home page, but the calendar only to its first month. Gives every
/// answer by path.
fn crawl(site: &DemoSite) -> HashMap<String, FakeAnswer> {
    let home = PageUrl::parse(ORIGIN).unwrap();
    let mut answers = HashMap::new();
    let mut queue = vec![home];
    while let Some(url) = queue.pop() {
        let path = url.as_str()[ORIGIN.len()..].to_owned();
        let is_later_month = path.starts_with("/calendar") && path != oddities::CALENDAR;
        if url.host_str() != "demo.test" || is_later_month || answers.contains_key(&path) {
            continue;
        }
        let answer = site.answer(&path);
        queue.extend(answer.header("location").map(|it| url.join(it).unwrap()));
        if is_html(&answer) && path != "/legacy" {
            queue.extend(hrefs(&text(&answer)).iter().filter_map(|href| url.join(href).ok()));
        }
        answers.insert(path, answer);
    }
    answers
}

#[test]
fn there_are_about_two_hundred_pages() {
    let count = pages().iter().filter(|page| page.kind == DemoKind::Page).count();
    assert!((170..=230).contains(&count), "{count}");
}

#[test]
fn everything_listed_is_answered_as_listed() {
    for DemoPage { path, kind } in pages() {
        let status = site().answer(&path).status;
        match kind.status() {
            Some(expect) => assert_eq!(status, expect, "{path}"),
            None => assert!((300..400).contains(&status), "{path}"),
        }
    }
}

#[test]
fn what_is_linked_is_what_is_listed() {
    let listed = pages().into_iter().filter(|page| page.kind != DemoKind::ForCrawlers);
    let mut expect: BTreeSet<String> = listed.map(|page| page.path).collect();
    expect.extend(["/newsletter?utm_source=mail&utm_campaign=november".to_owned()]);
    expect.extend(["/newsletter?fbclid=Iw4R2x".to_owned()]);
    let found: BTreeSet<String> = crawl(&site()).into_keys().collect();
    assert_eq!(found, expect);
}

#[test]
fn every_page_is_well_formed_and_no_two_are_alike() {
    let site = site();
    let mut bodies = HashSet::new();
    for page in pages().iter().filter(|page| page.kind == DemoKind::Page && page.path != "/legacy")
    {
        let html = text(&site.answer(&page.path));
        assert!(is_well_formed(&html), "{}: {html}", page.path);
        assert!(bodies.insert(html), "{} is a copy", page.path);
    }
}

#[test]
fn copies_are_exact() {
    let [first, second, third] = COPIES.map(|path| site().answer(path).body);
    assert_eq!((&first, &second), (&second, &third));
}

#[test]
fn tracking_parameters_change_nothing() {
    let plain = site().answer("/newsletter");
    assert_eq!(site().answer("/newsletter?utm_source=mail"), plain);
}

#[test]
fn the_chain_ends_and_the_loop_does_not() {
    let site = site();
    let follow = |mut path: String| {
        let mut hops = 0;
        while let Some(location) = site.answer(&path).header("location") {
            (path, hops) = (location.to_owned(), hops + 1);
            if hops == 20 {
                break;
            }
        }
        (path, hops)
    };
    assert_eq!(follow("/moved/1".to_owned()), ("/en/rivers".to_owned(), 3));
    assert_eq!(follow("/loop/a".to_owned()).1, 20);
}

#[test]
fn the_calendar_goes_on() {
    let month = |query: &str| site().answer(&format!("/calendar?month={query}"));
    let november = text(&month("2026-11"));
    assert!(november.contains("month=2026-10") && november.contains("month=2026-12"));
    assert!(text(&month("2026-12")).contains("month=2027-01"));
    assert!(text(&month("2026-01")).contains("month=2025-12"));
    assert!(text(&month("2028-02")).contains("<td>29</td>"));
    assert_eq!(month("99999-12").status, 200);
    for nonsense in ["2026-13", "2026-00", "2026", "", "x-1"] {
        assert_eq!(month(nonsense).status, 404, "{nonsense}");
    }
}

#[test]
fn robots_and_sitemap_agree_with_the_site() {
    let robots = text(&site().answer("/robots.txt"));
    assert!(robots.contains("Disallow: /private/\n"));
    assert!(robots.contains("Sitemap: http://demo.test/sitemap.xml\n"));
    assert!(FORBIDDEN.iter().all(|path| path.starts_with("/private/")));
    let sitemap = text(&site().answer("/sitemap.xml"));
    let count = pages().iter().filter(|page| page.kind == DemoKind::Page).count();
    assert_eq!(sitemap.matches("<loc>http://demo.test/").count(), count);
    assert!(is_well_formed(sitemap.split_once("?>").unwrap().1));
}

#[test]
fn the_slow_page_is_slow() {
    assert_eq!(site().answer("/slow").delay, SLOW_PAGE_DELAY);
    assert_eq!(site().answer("/").delay, Duration::ZERO);
}

#[test]
fn the_old_encoding_is_not_utf8() {
    let body = site().answer("/legacy").body;
    assert!(std::str::from_utf8(&body).is_err());
    assert!(body.windows(4).any(|it| it == b"caf\xe9"));
}

#[test]
fn articles_are_translated() {
    let english = text(&site().answer("/en/coffee/kopi-tubruk"));
    assert!(english.contains("<html lang=\"en\">") && english.contains("/id/kopi/kopi-tubruk"));
    let indonesian = text(&site().answer("/id/kopi/kopi-tubruk"));
    assert!(
        indonesian.contains("<html lang=\"id\">") && indonesian.contains("/en/coffee/kopi-tubruk")
    );
}

#[test]
fn near_misses_are_missing() {
    for path in ["/en", "/en/", "/en/rivers/", "/en/rivers/musi/x", "/fr/rivers", "/id", "//"] {
        assert_eq!(site().answer(path).status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_served_site_is_the_site_in_memory() {
    let served = serve_demo(None).await.unwrap();
    let site = DemoSite::new(served.origin());
    let authority = served.home().authority().to_owned();
    let mut client = Client::connect(&authority).await;
    for DemoPage { path, .. } in pages() {
        let reply = client.get(&authority, &path).await.unwrap();
        let expect = site.answer(&path);
        assert_eq!((reply.status, &reply.body[..]), (expect.status, &expect.body[..]), "{path}");
    }
    assert_eq!(client.get("localhost", "/").await.unwrap().status, 421);
    served.stop().await;
}
