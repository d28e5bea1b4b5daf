//! Budgets of host, site and URL shape: what uses them up, what gives them back, what is said.

use std::sync::Arc;

use telusur_engine::CrawlChange;
use telusur_index::{IndexLimits, SearchIndex};
use telusur_ledger::{CrawlStore, FrontierStore};
use telusur_model::{CrawlState, FinishReason, Limits, Reason, ScopeKind};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, assert_verified, finished, known, polite_crawl, until};

fn robots(text: &'static str) -> FakeAnswer {
    FakeAnswer::ok("text/plain", text)
}

/// A page of its own words with these links.
fn page(name: &str, links: impl Iterator<Item = String>) -> FakeAnswer {
    let links: String = links.map(|link| format!("<a href=\"{link}\">x</a>\n")).collect();
    let words: String = name.bytes().map(|byte| format!("w{byte}{name} ")).collect();
    FakeAnswer::html(format!("<!doctype html><title>{name}</title><p>{words}</p>{links}"))
}

fn forbidden(numbers: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    numbers.map(|number| format!("/filter/{number}?sort=price"))
}

/// 12,000 links that robots.txt forbids stand before a hundred that it allows.
#[tokio::test(start_paused = true)]
async fn forbidden_links_use_up_no_budget() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => robots("User-agent: *\nDisallow: /filter/\n"),
        "/" => page("home", forbidden(0..6000).chain(["/list".to_owned()])),
        "/list" => {
            page("list", forbidden(6000..12_000).chain((0..100).map(|n| format!("/page/{n}"))))
        }
        "/sitemap.xml" => FakeAnswer::not_found(),
        path if path.starts_with("/filter/") => panic!("{path} is forbidden"),
        path => page(&path.replace('/', "-"), std::iter::empty()),
    });
    let mut crawl = polite_crawl();
    crawl.limits = Limits::default();
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 102);
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 12_000);
    assert_eq!(record.stats.skips.get(&Reason::HostBudget), None);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    let rule = format!("{:?}", known(&store, "http://site.test/filter/7?sort=price").state);
    assert!(rule.contains("robots.txt line 2: Disallow: /filter/"), "{rule}");
}

/// The same on another host, whose robots.txt is not known when the links are found: what was left
/// out because the budget was full gets its chance when the rules give the units back.
#[tokio::test(start_paused = true)]
async fn units_given_back_go_to_those_that_were_left_out() {
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        ("www.site.test", "/robots.txt") => robots("User-agent: *\nDisallow: /filter/\n"),
        ("site.test", "/") => page(
            "home",
            forbidden(0..60)
                .chain((0..30).map(|n| format!("/page/{n}")))
                .map(|path| format!("http://www.site.test{path}")),
        ),
        ("www.site.test", path) if path.starts_with("/filter/") => panic!("{path} is forbidden"),
        ("www.site.test", path) if path.starts_with("/page/") => {
            page(&path.replace('/', "-"), std::iter::empty())
        }
        _ => FakeAnswer::not_found(),
    });
    let mut crawl = polite_crawl();
    crawl.scope.kind = ScopeKind::Domain;
    crawl.limits = Limits { urls_per_host_max: 40, urls_per_site_max: 45, ..Limits::default() };
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 31);
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 60);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
}

/// A full budget is the reason why the crawl is over, not "nothing left".
#[tokio::test(start_paused = true)]
async fn a_crawl_that_left_links_out_says_so() {
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", (0..30).map(|n| format!("/page/{n}"))),
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        path => page(&path.replace('/', "-"), std::iter::empty()),
    });
    let mut crawl = polite_crawl();
    crawl.limits.urls_per_host_max = 20;
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::HostBudget]), (20, 11));
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Budget });
}

fn thirty_pages(path: &str) -> FakeAnswer {
    match path {
        "/" => page("home", (0..30).map(|n| format!("/page/{n}"))),
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        path => page(&path.replace('/', "-"), std::iter::empty()),
    }
}

/// Whoever raises a budget while the crawl runs gets the links that it left out, without a new crawl.
#[tokio::test(start_paused = true)]
async fn a_budget_raised_on_the_way_lets_in_what_it_left_out() {
    let bench = Bench::of_site(thirty_pages);
    let mut crawl = polite_crawl();
    crawl.limits.urls_per_host_max = 20;
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, crawl.clone());
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| !progress.stats.left_out().is_empty()).await;
    let limits = Some(Limits { urls_per_host_max: 25, ..crawl.limits.clone() });
    engine.handle().change(no, CrawlChange { limits, ..CrawlChange::default() }).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::HostBudget]), (25, 6));
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Budget });
    assert_verified(&store);
}

/// So does whoever raises it when the crawl is over, and goes on with it.
#[tokio::test(start_paused = true)]
async fn a_budget_raised_at_the_end_lets_in_what_it_left_out() {
    let bench = Bench::of_site(thirty_pages);
    let mut crawl = polite_crawl();
    crawl.limits.urls_per_host_max = 20;
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 20);
    let mut crawl = record.crawl;
    crawl.limits.urls_per_host_max = 100;
    store.change(&crawl).unwrap();
    let engine = bench.engine(&store);
    engine.handle().run(crawl.no).await.unwrap();
    finished(&engine, crawl.no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(crawl.no).unwrap().unwrap();
    assert_eq!((record.stats.ok, record.stats.skips.get(&Reason::HostBudget)), (31, None));
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    assert_verified(&store);
}

/// Ten doors in every room, and every room says the same.
fn room(path: &str) -> FakeAnswer {
    let number: u64 = path.strip_prefix("/room/").unwrap().parse().unwrap();
    let doors: String =
        (1..=10).map(|door| format!("<a href=/room/{}>door</a> ", number * 10 + door)).collect();
    FakeAnswer::html(format!(
        "<!doctype html><title>Room {number}</title><p>You have come to a room with ten doors, all \
         of which look the same. Choose one of them and go on. This is room {number}.</p>{doors}"
    ))
}

#[tokio::test(start_paused = true)]
async fn endless_look_alikes_end_after_some_dozens() {
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", ["/room/1".to_owned(), "/a".to_owned()].into_iter()),
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        path if path.starts_with("/room/") => room(path),
        path => page(&path.replace('/', "-"), std::iter::empty()),
    });
    let mut crawl = polite_crawl();
    crawl.limits = Limits::default();
    let store = bench.open();
    let index = bench.dir.path().join("index");
    let index = Arc::new(SearchIndex::open(&index, IndexLimits::default()).unwrap());
    let engine = bench.engine_with_index(&store, &index);
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    // How many are under way when the trap is found out is for the machine to say.
    assert!((62..400).contains(&record.stats.ok), "{:?}", record.stats);
    assert!(record.stats.skips[&Reason::TrapSuspected] > 100, "{:?}", record.stats.skips);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Budget });
    // Stored some dozens of times, and to be found a few times.
    assert!(index.doc_count() < 60, "{}", index.doc_count());
    assert!(bench.asked().len() < 1500, "{}", bench.asked().len());
    assert_verified(&store);
}

/// Stopped in the middle of a trap, a crawl does not begin to count again: nothing of the pages that
/// still wait was found on one that this process has seen.
#[tokio::test(start_paused = true)]
async fn a_trap_does_not_begin_again_after_a_restart() {
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", ["/room/1".to_owned()].into_iter()),
        path if path.starts_with("/room/") => room(path),
        _ => FakeAnswer::not_found(),
    });
    let mut crawl = polite_crawl();
    crawl.limits = Limits { pages_max: Some(40), ..Limits::default() };
    // One after the other: the first run ends where it is told to.
    crawl.politeness.workers = 1;
    // With an index the texts are known from the first page on.
    let index = bench.dir.path().join("index");
    let index = Arc::new(SearchIndex::open(&index, IndexLimits::default()).unwrap());
    let store = bench.open();
    let no = accept(&store, crawl.clone());
    let engine = bench.engine_with_index(&store, &index);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let marks = store.traps(no).unwrap();
    assert!(marks.iter().any(|mark| mark.run >= 20), "{marks:?}");
    assert!(marks.iter().all(|mark| mark.rule.is_none()), "{marks:?}");
    drop(store);
    let store = bench.open();
    let mut crawl = store.crawl(no).unwrap().unwrap().crawl;
    crawl.limits.pages_max = None;
    store.change(&crawl).unwrap();
    let engine = bench.engine_with_index(&store, &index);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert!(record.stats.ok < 150, "{:?}", record.stats);
    assert!(store.traps(no).unwrap().iter().any(|mark| mark.rule.is_some()));
    assert_verified(&store);
}

/// A list of pages that say the same has an end: it is no trap.
#[tokio::test(start_paused = true)]
async fn a_list_of_look_alikes_is_read_to_its_end() {
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", (1..=300).map(|n| format!("/room/{n}00000000000"))),
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        path if path.ends_with("00000000000") => {
            FakeAnswer::html("<!doctype html><title>Room</title><p>It is the same room.</p>")
        }
        _ => FakeAnswer::not_found(),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.ok, 301);
}

/// A dictionary whose entries are not written yet: entries, and the list that names them, say the same,
/// and each entry leads to its neighbours. All of them are to be found.
#[tokio::test(start_paused = true)]
async fn stubs_that_their_list_looks_like_are_all_indexed() {
    const STUBS: u32 = 130;
    fn stub(links: impl Iterator<Item = u32>) -> FakeAnswer {
        let name = |n: u32| n.to_string().bytes().map(|digit| (digit + 49) as char).collect();
        let name = |n: u32| -> String { name(n) };
        let links: String =
            links.map(|n| format!("<a href=/words/{}><img src=/x.png></a> ", name(n))).collect();
        FakeAnswer::html(format!(
            "<!doctype html><title>Dictionary</title><main><p>Nobody has written about this word \
             yet. If you know what it means, where it comes from and how people use it, then \
             please write the first lines of this page.</p></main><nav>{links}</nav>"
        ))
    }
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", ["/words/".to_owned()].into_iter()),
        "/words/" => stub(0..STUBS),
        path if path.starts_with("/words/") => {
            let digits = path["/words/".len()..].bytes().map(|letter| (letter - 49) as char);
            let n: u32 = digits.collect::<String>().parse().unwrap();
            stub([(n + STUBS - 1) % STUBS, (n + 1) % STUBS].into_iter())
        }
        _ => FakeAnswer::not_found(),
    });
    let index = bench.dir.path().join("index");
    let index = Arc::new(SearchIndex::open(&index, IndexLimits::default()).unwrap());
    let store = bench.open();
    let no = accept(&store, polite_crawl());
    let engine = bench.engine_with_index(&store, &index);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.stats.skips.get(&Reason::TrapSuspected), None);
    assert_eq!(record.stats.ok, u64::from(STUBS) + 2);
    assert_eq!(index.doc_count(), u64::from(STUBS) + 2);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
}

/// A host that says Retry-After for hours does not hold its crawl for hours.
#[tokio::test(start_paused = true)]
async fn a_crawl_waits_for_retry_after_as_long_as_it_has_patience() {
    let bench = Bench::of_site(|path| match path {
        "/" => page("home", (0..30).map(|n| format!("/page/{n}"))),
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        _ => {
            let mut busy = FakeAnswer::plain(503, "busy");
            busy.headers.push(("retry-after", "3600".into()));
            busy
        }
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, polite_crawl());
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.retry_after_ms.is_some()).await;
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!((record.stats.ok, record.stats.failures[&Reason::RetryAfter]), (1, 30));
    assert!(record.stats.active_ms >= 600_000, "{:?}", record.stats);
    let why = format!("{:?}", known(&store, "http://site.test/page/7").state);
    assert!(why.contains("Retry-After"), "{why}");
    assert_verified(&store);
}
