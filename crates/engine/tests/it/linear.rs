//! Linear crawls: numbered pages, kept as runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use telusur_engine::control::{Control, ExplainUrl, ReadCoverage, ReadPage};
use telusur_engine::json::{CoverageView, ExplanationView, RunView};
use telusur_engine::{RequestError, ResumeNote, accept_run, check_can_resume};
use telusur_ledger::{CrawlRecord, CrawlStore, FrontierStore, KeptState, Store};
use telusur_model::{
    Crawl, CrawlNo, CrawlState, Direction, FinishReason, IdCounts, IdState, LinearSeeds,
    MissingRules, PauseReason, Progress, Rates, Reason, Resume, RobotsRules, ScopeKind, Seeds,
    Template, Walk, WalkRules,
};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{
    Bench, accept, assert_verified, crawl, export, finished, in_process, page, run, until,
};

fn rules(template: &str) -> WalkRules {
    WalkRules { cooldown_ms: 1_000, ..WalkRules::new(Template::parse(template).unwrap()) }
}

fn range(first: u64, last: u64) -> WalkRules {
    WalkRules { min: Some(first), max: Some(last), ..rules("http://site.test/{id}") }
}

fn seeds(walks: Vec<WalkRules>, resume: Resume) -> LinearSeeds {
    let walks = walks.into_iter().map(|rules| Walk::new(rules).unwrap()).collect();
    LinearSeeds { walks, resume, follow: false }
}

fn linear(walks: Vec<WalkRules>) -> Crawl {
    let mut crawl = crawl(Vec::new());
    crawl.seeds = Seeds::Linear(seeds(walks, Resume::All));
    crawl.keep_tracking = true;
    crawl
}

/// One at a time, so that the order of requests is that of decisions.
fn one_by_one(walks: Vec<WalkRules>) -> Crawl {
    let mut crawl = linear(walks);
    crawl.politeness.workers = 1;
    crawl
}

fn id_of(path: &str) -> u64 {
    path.trim_start_matches('/').parse().unwrap()
}

/// The walk of the last crawl, and its runs as `first-last state`.
fn coverage(store: &Arc<EmbeddedStore>) -> (CoverageView, Vec<String>) {
    let walk = walks(store).into_iter().next().unwrap();
    let runs = walk.runs.iter().map(run_text).collect();
    (walk, runs)
}

fn walks(store: &Arc<EmbeddedStore>) -> Vec<CoverageView> {
    let read = ReadCoverage { crawl: "last".into(), ..ReadCoverage::default() };
    let mut walks = Vec::new();
    run(store, &read).0.into_iter().for_each(|item| CoverageView::join(&mut walks, item));
    walks
}

fn run_text(run: &RunView) -> String {
    let why = run.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{}-{} {}{why}", run.first, run.last, run.state)
}

/// Another run of crawl 1, to its end.
async fn run_again(bench: &Bench, seeds: LinearSeeds) -> (Arc<EmbeddedStore>, Vec<ResumeNote>) {
    let store = bench.open();
    let mut crawl = store.crawl(CrawlNo(1)).unwrap().unwrap().crawl;
    crawl.seeds = Seeds::Linear(seeds);
    let notes = accept_run(&*store, &crawl, &*bench.clock).unwrap().remove(0);
    let engine = bench.engine(&store);
    engine.handle().run(CrawlNo(1)).await.unwrap();
    finished(&engine, CrawlNo(1)).await;
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    (store, notes)
}

#[tokio::test]
async fn known_bounds_are_asked_from_end_to_end() {
    let bench = Bench::of_site(|path| match id_of(path) {
        4 | 5 | 9 => FakeAnswer::not_found(),
        _ => page(&["/elsewhere"]),
    });
    let (store, record) = bench.crawl(linear(vec![range(3, 9)])).await;
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    assert_eq!(record.stats.ids, IdCounts { content: 4, missing: 3, holes: 0, waiting: 0 });
    assert_eq!((record.stats.pages, record.stats.discovered, record.stats.errors()), (4, 4, 0));
    assert_eq!(record.stats.statuses[&404], 3);
    let (walk, runs) = coverage(&store);
    assert_eq!(runs, ["3-3 content", "4-5 missing", "6-8 content", "9-9 missing"]);
    assert_eq!(walk.legs[0].state, "complete");
    assert_eq!(bench.asked().len(), 7, "links are not followed");
}

#[tokio::test]
async fn an_unknown_end_is_found_by_the_margin() {
    // The picture of the margin: gaps of one and two are survived, the third miss in a row stops.
    let bench = Bench::of_site(|path| match id_of(path) {
        1 | 3 | 6 | 7 => page(&[]),
        _ => FakeAnswer::not_found(),
    });
    let walk = WalkRules {
        start: Some(1),
        margin: 3,
        direction: Some(Direction::Ascending),
        ..range(1, 9)
    };
    let walk = WalkRules { min: None, max: None, ..walk };
    let mut crawl = linear(vec![walk]);
    crawl.politeness.per_host = 4;
    let (store, record) = bench.crawl(crawl).await;
    let (walk, _) = coverage(&store);
    let leg = &walk.legs[0];
    assert_eq!((leg.stop, leg.next, leg.misses_in_row), (Some(10), Some(11), 3));
    assert_eq!(leg.state, "stopped");
    assert_eq!((walk.counts.content, walk.counts.missing), (4, 6));
    assert_eq!(record.stats.pages, 4);
}

#[tokio::test]
async fn both_ways_take_turns_by_their_rates() {
    let bench = Bench::of_site(|_| page(&[]));
    let rates = Rates { ascending: 1, descending: 2 };
    let both = WalkRules { start: Some(5), rates, ..range(1, 7) };
    bench.crawl(one_by_one(vec![both])).await;
    let ids: Vec<String> =
        bench.asked().iter().map(|url| url.trim_start_matches("site.test/").to_owned()).collect();
    assert_eq!(ids, ["5", "4", "3", "6", "2", "1", "7"]);
}

#[tokio::test]
async fn several_hosts_take_turns() {
    let bench = Bench::of_hosts(|_, _| page(&[]));
    let walk = |host: &str| WalkRules {
        min: Some(1),
        max: Some(3),
        ..rules(&format!("http://{host}/{{id}}"))
    };
    let (store, record) = bench.crawl(linear(vec![walk("a.test"), walk("b.test")])).await;
    assert_eq!(record.stats.ids.content, 6);
    assert_eq!(walks(&store).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_asked_again_later_and_are_no_misses() {
    let bench = Bench::of_site(|path| match id_of(path) {
        2 => FakeAnswer::plain(500, "broken"),
        3 => FakeAnswer::plain(403, "no"),
        4 => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let walk = WalkRules { attempts: 3, cooldown_ms: 24 * 3600 * 1000, ..range(1, 5) };
    let (store, record) = bench.crawl(one_by_one(vec![walk])).await;
    assert_eq!(record.stats.ids, IdCounts { content: 2, missing: 1, holes: 2, waiting: 0 });
    let mut targets: Vec<u64> = bench.asked().iter().map(|url| id_of(&url[9..])).collect();
    // Which of the two failures was written down first decides which is asked first.
    targets[5..].chunks_mut(2).for_each(<[u64]>::sort_unstable);
    assert_eq!(targets, [1, 2, 3, 4, 5, 2, 3, 2, 3], "the first pass is not held up");
    assert_eq!(coverage(&store).1[1], "2-3 hole (http_error)");
    assert_eq!(record.stats.errors(), 2);
}

#[tokio::test]
async fn an_id_that_robots_txt_forbids_is_a_hole_with_its_reason() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nDisallow: /3\n"),
        _ => page(&[]),
    });
    let mut crawl = linear(vec![WalkRules { attempts: 3, ..range(1, 5) }]);
    crawl.politeness.robots = RobotsRules::Obey;
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ids, IdCounts { content: 4, missing: 0, holes: 1, waiting: 0 });
    assert_eq!(coverage(&store).1[1], "3-3 hole (robots_disallowed)");
    let asked = bench.asked();
    assert_eq!((asked.len(), asked[0].as_str()), (5, "site.test/robots.txt"));
    assert_eq!(
        explained(&store, "http://site.test/3").id.unwrap().reason.as_deref(),
        Some("robots_disallowed")
    );
}

#[tokio::test(start_paused = true)]
async fn ids_wait_for_a_robots_txt_that_is_in_trouble() {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" if TRIES.fetch_add(1, Ordering::Relaxed) < 2 => {
            FakeAnswer::plain(503, "later")
        }
        "/robots.txt" => FakeAnswer::not_found(),
        _ if id_of(path) > 30 => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let walk = WalkRules { start: Some(1), min: Some(1), max: None, margin: 3, ..range(1, 1) };
    let mut crawl = linear(vec![walk]);
    crawl.politeness.robots = RobotsRules::Obey;
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(TRIES.load(Ordering::Relaxed), 3);
    assert_eq!((record.stats.ids.content, record.stats.ids.waiting), (30, 0));
    assert!(bench.asked()[..3].iter().all(|url| url == "site.test/robots.txt"));
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_out_of_reach_stops_at_the_margin() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(503, "never"),
        _ => panic!("asked for {path}"),
    });
    let walk = WalkRules { start: Some(1), min: Some(1), max: None, margin: 3, ..range(1, 1) };
    let mut crawl = linear(vec![walk]);
    crawl.politeness.robots = RobotsRules::Obey;
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::NoStart });
    assert_eq!(coverage(&store).1, ["1-3 hole (robots_unreachable)"]);
}

#[tokio::test]
async fn a_range_that_may_not_be_asked_does_not_run_for_ever() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nDisallow: /\n"),
        _ => panic!("asked for {path}"),
    });
    let mut crawl = linear(vec![range(0, u64::MAX)]);
    crawl.politeness.robots = RobotsRules::Obey;
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    let paused = CrawlState::Paused { why: PauseReason::Refused };
    until(&engine, no, |progress| progress.state == paused).await;
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    let record = CrawlStore::crawl(&*store, no).unwrap().unwrap();
    assert!(record.stats.ids.holes >= 10_000, "{:?}", record.stats.ids);
}

fn explained(store: &Arc<EmbeddedStore>, url: &str) -> ExplanationView {
    let (explanations, ()) = run(store, &ExplainUrl { url: url.into(), crawl: None });
    explanations.into_iter().next().unwrap()
}

#[tokio::test]
async fn a_url_is_explained_by_its_id() {
    let bench = Bench::of_site(|path| match id_of(path) {
        2 => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let (store, _) = bench.crawl(linear(vec![range(1, 3)])).await;
    let id = |url: &str| explained(&store, url).id.unwrap();
    assert_eq!(id("http://site.test/1").state.as_deref(), Some("content"));
    assert_eq!(id("http://site.test/2").state.as_deref(), Some("missing"));
    let beyond = id("http://site.test/4");
    assert_eq!((beyond.state, beyond.is_within), (None, false));
    assert_eq!(explained(&store, "http://site.test/x").id, None);
}

#[tokio::test]
async fn the_user_says_what_does_not_exist() {
    let bench = Bench::of_site(|path| match id_of(path) {
        1 => FakeAnswer::html("<p>Data tidak ditemukan</p>"),
        2 => FakeAnswer::html("  "),
        3 => FakeAnswer::redirect(302, "/none"),
        4 => FakeAnswer::plain(410, "gone"),
        5 => FakeAnswer::ok("application/json", "{\"error\": \"Data tidak ada\"}"),
        _ => page(&[]),
    });
    let missing = r#"410,empty,redirect:/none,RX:"Data tidak""#;
    let missing = MissingRules::parse(missing).unwrap();
    let (store, record) = bench.crawl(linear(vec![WalkRules { missing, ..range(1, 6) }])).await;
    assert_eq!(record.stats.ids, IdCounts { content: 1, missing: 5, holes: 0, waiting: 0 });
    assert_eq!(coverage(&store).1, ["1-5 missing", "6-6 content"]);
}

#[tokio::test]
async fn a_redirect_is_followed_to_its_end() {
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        ("site.test", "/1") => FakeAnswer::redirect(301, "/one-by-name"),
        ("site.test", "/2") => FakeAnswer::redirect(302, "http://other.test/two"),
        ("site.test", "/3") => FakeAnswer::redirect(302, "/gone"),
        ("site.test", "/4") => FakeAnswer::redirect(302, "/4"),
        ("site.test", "/5") => FakeAnswer::redirect(302, "/one-by-name"),
        (_, "/gone") => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let (store, record) = bench.crawl(linear(vec![range(1, 5)])).await;
    assert_eq!(record.stats.ids, IdCounts { content: 3, missing: 1, holes: 1, waiting: 0 });
    let (_, runs) = coverage(&store);
    assert_eq!(runs[1..3], ["3-3 missing", "4-4 hole (redirect_loop)"]);
    let one = explained(&store, "http://site.test/1").page.unwrap();
    assert_eq!(one.url, "http://site.test/one-by-name");
    let read = ReadPage { url: "http://site.test/1".into(), crawl: None, with_body: false };
    assert_eq!(run(&store, &read).1.unwrap().redirects, ["http://site.test/1"]);
    let two = explained(&store, "http://site.test/2").page.unwrap();
    assert_eq!(two.url, "http://other.test/two");
    let mut lines: Vec<_> =
        export(&store).into_iter().map(|line| (line.url, line.final_url)).collect();
    lines.sort();
    let line = |url: &str, end: &str| (format!("http://site.test/{url}"), format!("http://{end}"));
    assert_eq!(
        lines,
        [
            line("1", "site.test/one-by-name"),
            line("2", "other.test/two"),
            line("5", "site.test/one-by-name"),
        ]
    );
    // Where an id ended is what a list of pages and a search hit name: it once opened nothing.
    for url in ["http://site.test/2", "http://other.test/two"] {
        let read = ReadPage { url: url.into(), crawl: None, with_body: false };
        let (_, opened) = run(&store, &read);
        assert_eq!(opened.map(|page| page.page).as_ref(), Some(&two), "{url}");
        assert_eq!(explained(&store, url).page.as_ref(), Some(&two));
        assert_eq!(explained(&store, url).known.unwrap().redirects, ["http://site.test/2"]);
    }
    let at =
        Control::of_store(store.clone(), in_process()).page_at(record.crawl.no, two.seq).unwrap();
    assert_eq!(at.unwrap().page, two);
}

/// A walk whose pages' links are followed on its host.
fn following(walk: WalkRules) -> Crawl {
    let mut crawl = linear(vec![walk]);
    let Seeds::Linear(seeds) = &mut crawl.seeds else { unreachable!() };
    seeds.follow = true;
    crawl.scope.kind = ScopeKind::Host;
    crawl
}

#[tokio::test]
async fn links_are_followed_if_the_user_says_so() {
    let bench = Bench::of_site(|path| match path {
        "/1" => page(&["/about", "/2", "/99"]),
        "/about" => page(&["/team"]),
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(following(range(1, 3))).await;
    assert_eq!((record.stats.ids.content, record.stats.pages), (3, 6));
    let counts = bench.fetcher.log().counts();
    assert!(counts.values().all(|times| *times == 1), "{counts:?}");
}

/// Links to ids in another spelling are in the step of the id's own page, or of another id. They once
/// stayed with the frontier, which waited for their end.
#[tokio::test]
async fn links_to_ids_in_another_spelling_are_not_asked_again() {
    let bench = Bench::of_site(|path| match path {
        "/1" => page(&["http://site.test//1", "http://site.test//2", "http://site.test//3"]),
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(following(range(1, 3))).await;
    assert_eq!((record.stats.ids.content, record.stats.queued), (3, 0));
    let asked = bench.asked();
    assert!(!asked.contains(&"site.test//1".to_owned()), "{asked:?}");
}

#[tokio::test]
async fn tracking_parameters_can_hold_the_id() {
    let bench = Bench::of_site(|_| page(&[]));
    let walk = WalkRules { min: Some(1), max: Some(4), ..rules("http://site.test/?utm_id={id}") };
    let (_, record) = bench.crawl(linear(vec![walk])).await;
    assert_eq!((record.stats.ids.content, record.stats.pages), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_second_run_asks_only_what_is_left() {
    static IS_WELL: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_site(|path| match (id_of(path), IS_WELL.load(Ordering::Relaxed)) {
        (2, false) => FakeAnswer::plain(500, "broken"),
        (4, _) => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    bench.crawl(linear(vec![range(1, 5)])).await;
    let asked = || -> Vec<String> {
        let all = bench.asked();
        all.into_iter().map(|url| url.trim_start_matches("site.test/").to_owned()).collect()
    };
    assert_eq!(asked().len(), 5);
    IS_WELL.store(true, Ordering::Relaxed);
    // New bounds only: the hole stays.
    let (store, notes) = run_again(&bench, seeds(vec![range(1, 7)], Resume::New)).await;
    assert_eq!(asked()[5..], ["6", "7"]);
    assert!(matches!(notes[0], ResumeNote::Bounds { .. }), "{notes:?}");
    assert_eq!(coverage(&store).1[1], "2-2 hole (http_error)");
    drop(store);
    // Only holes: the new bound is left alone.
    let (store, notes) = run_again(&bench, seeds(vec![range(1, 9)], Resume::Holes)).await;
    assert_eq!(asked()[7..], ["2"]);
    assert!(notes.contains(&ResumeNote::HolesRetried { ids: 1 }), "{notes:?}");
    assert_eq!(coverage(&store).1, ["1-3 content", "4-4 missing", "5-7 content"]);
    drop(store);
    // Both.
    let (store, _) = run_again(&bench, seeds(vec![range(1, 9)], Resume::All)).await;
    assert_eq!(asked()[8..], ["8", "9"]);
    drop(store);
    // The same again asks nobody.
    run_again(&bench, seeds(vec![range(1, 9)], Resume::All)).await;
    assert_eq!(asked().len(), 10);
}

#[tokio::test]
async fn a_walk_whose_engine_vanished_goes_on_where_it_was() {
    let bench = Bench::of_site(|path| match id_of(path) {
        601.. => FakeAnswer::not_found(),
        id if id % 7 < 2 => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let mut crawl = linear(vec![WalkRules { start: Some(300), ..range(1, 600) }]);
    crawl.politeness.per_host = 8;
    for stop_at in [50, 150, 350] {
        let store = bench.open();
        let no = CrawlNo(1);
        if store.crawls().unwrap().is_empty() {
            accept(&store, crawl.clone());
        }
        assert_verified(&store);
        let engine = bench.engine(&store);
        engine.handle().run(no).await.unwrap();
        until(&engine, no, |progress| progress.stats.pages > stop_at).await;
        engine.vanish().await;
        // Visits that are still under way hold the store until they have ended.
        while Arc::strong_count(&store) > 1 {
            tokio::task::yield_now().await;
        }
    }
    let record = finish(&bench).await;
    let missing = (1..=600).filter(|id| id % 7 < 2).count() as u64;
    let content = 600 - missing;
    assert_eq!(record.stats.ids, IdCounts { content, missing, holes: 0, waiting: 0 });
    assert_eq!(record.stats.pages, content);
    let counts = bench.fetcher.log().counts();
    // At most those under way at each of three kills were asked twice.
    let again: usize = counts.values().map(|times| times - 1).sum();
    assert!(again <= 3 * 300, "{again} asked again");
}

async fn finish(bench: &Bench) -> CrawlRecord {
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(CrawlNo(1)).await.unwrap();
    finished(&engine, CrawlNo(1)).await;
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    let record = CrawlStore::crawl(&*store, CrawlNo(1)).unwrap().unwrap();
    drop(store as Arc<dyn Store>);
    record
}

#[tokio::test]
async fn the_picture_shows_the_walk() {
    let bench = Bench::of_site(item);
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, linear(vec![range(1, 40)]));
    engine.handle().run(no).await.unwrap();
    let progress = finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let walk = &progress.walks[0];
    assert_eq!(walk.template, "http://site.test/{id}");
    assert_eq!(walk.coverage.counts.content, 40);
    assert_eq!(walk.strip.as_ref().map(|strip| (strip.first, strip.last)), Some((1, 40)));
}

/// What a site says that has a page for every number.
fn blank(path: &str) -> FakeAnswer {
    FakeAnswer::html(format!(
        "<!doctype html><title>Catalogue</title><p>There is no item {} in our catalogue. Please look \
         for another one, or call us on any day of the week.</p>",
        id_of(path)
    ))
}

/// A page with words of its own.
fn item(path: &str) -> FakeAnswer {
    FakeAnswer::page_about(id_of(path), &[])
}

/// A site that says 200 to every number once had 14,022 pages of one text stored, and no end.
#[tokio::test]
async fn a_site_that_has_a_page_for_every_number_ends() {
    let bench = Bench::of_site(|path| match id_of(path) {
        1..=30 => item(path),
        _ => blank(path),
    });
    let walk = WalkRules {
        start: Some(1),
        margin: 20,
        direction: Some(Direction::Ascending),
        ..rules("http://site.test/{id}")
    };
    let (store, record) = bench.crawl(one_by_one(vec![walk])).await;
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    let ids = record.stats.ids;
    // How far ids are ahead of what is stored is for the machine to say.
    assert!((30..500).contains(&ids.content) && (20..500).contains(&ids.missing), "{ids:?}");
    let (walk, runs) = coverage(&store);
    assert_eq!(walk.counts.missing_by_look, ids.missing);
    assert!(runs.last().unwrap().ends_with("missing (soft_404)"), "{runs:?}");
    let probes =
        bench.asked().iter().filter(|asked| asked.len() > "site.test/100000".len()).count();
    assert_eq!(probes, 1, "{:?}", bench.asked());
}

/// Equal pages of a site that says what does not exist are believed.
#[tokio::test]
async fn equal_pages_of_an_honest_site_are_content() {
    let bench = Bench::of_site(|path| match id_of(path) {
        1..=60 => FakeAnswer::html("<!doctype html><title>Item</title><p>It is there.</p>"),
        _ => FakeAnswer::not_found(),
    });
    let (_, record) = bench.crawl(linear(vec![range(1, 70)])).await;
    assert_eq!((record.stats.ids.content, record.stats.ids.missing), (60, 10));
}

/// Where the probe says nothing, a row of equal answers is enough.
#[tokio::test]
async fn a_row_of_equal_answers_is_missing_where_the_probe_fails() {
    let bench = Bench::of_site(|path| match id_of(path) {
        id @ 1..=100 if id % 10 == 0 => item(path),
        1..=100 => FakeAnswer::html("<!doctype html><title>Item</title><p>Sold out.</p>"),
        _ => FakeAnswer::redirect(302, "/1"),
    });
    let (_, record) = bench.crawl(one_by_one(vec![range(1, 100)])).await;
    let ids = record.stats.ids;
    assert!(ids.content < 30 && ids.content >= 10 && ids.missing > 70, "{ids:?}");
}

#[tokio::test]
async fn the_budget_of_a_host_holds_for_ids() {
    let bench = Bench::of_site(item);
    let mut crawl = one_by_one(vec![range(1, 100)]);
    crawl.limits.ids_per_host_max = Some(12);
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Budget });
    assert_eq!((record.stats.ids.content, bench.asked().len()), (12, 12));
    assert_eq!(coverage(&store).0.counts.unknown, Some(88));
}

/// Ids that an exclusion refuses cost nothing, in the next run either.
#[tokio::test]
async fn refused_ids_use_up_no_budget_after_a_restart() {
    let bench = Bench::of_site(item);
    let mut crawl = one_by_one(vec![range(1, 100)]);
    crawl.limits.ids_per_host_max = Some(12);
    crawl.scope.exclude = vec!["/([1-9]|1[0-9]|20)$".to_owned()];
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!((record.stats.ids.content, record.stats.ids.holes), (12, 20));
    assert_budget_spent(store.as_ref(), &record);
    let mut record = record;
    record.crawl.limits.ids_per_host_max = Some(15);
    check_can_resume(store.as_ref(), &record).unwrap();
    let crawl = record.crawl;
    store.change(&crawl).unwrap();
    drop(store);
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(crawl.no).await.unwrap();
    finished(&engine, crawl.no).await;
    engine.shutdown().await.unwrap();
    let ids = store.crawl(crawl.no).unwrap().unwrap().stats.ids;
    assert_eq!((ids.content, ids.holes), (15, 20));
}

/// One host is through, another has used up its budget: there is room only for more of the latter.
#[tokio::test]
async fn the_room_of_a_budget_is_judged_host_by_host() {
    let bench = Bench::of_hosts(|_, path| item(path));
    let short = WalkRules { max: Some(3), ..range(1, 3) };
    let long = WalkRules { template: rules("http://b.test/{id}").template, ..range(1, 100) };
    let mut crawl = one_by_one(vec![short, long]);
    crawl.limits.ids_per_host_max = Some(12);
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ids.content, 15);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Budget });
    assert_budget_spent(store.as_ref(), &record);
}

#[track_caller]
fn assert_budget_spent(store: &dyn Store, record: &CrawlRecord) {
    let refused = check_can_resume(store, record);
    assert!(
        matches!(&refused, Err(RequestError::CannotResume { what, .. }) if what.contains("as many as it may")),
        "{refused:?}"
    );
}

/// An item as an API sends it.
fn json_item(path: &str) -> FakeAnswer {
    let html = String::from_utf8(item(path).body.to_vec()).unwrap();
    let words = html.split("<p>").nth(1).unwrap().split("</p>").next().unwrap();
    FakeAnswer::ok("application/json", format!("{{\"name\": \"{words}\"}}"))
}

/// What is not read as text, as JSON is not, has a look all the same.
#[tokio::test]
async fn items_of_an_api_that_says_200_to_everything_are_content() {
    let bench = Bench::of_site(|path| match id_of(path) {
        1..=60 => json_item(path),
        _ => FakeAnswer::ok("application/json", "{\"error\": \"there is no such item here\"}"),
    });
    let (_, record) = bench.crawl(one_by_one(vec![range(1, 150)])).await;
    let ids = record.stats.ids;
    assert!((60..120).contains(&ids.content) && ids.missing > 30, "{ids:?}");
}

/// The rules of the user hold for the probe of an API, too.
#[tokio::test]
async fn a_probe_is_judged_by_the_text_that_ids_are_judged_by() {
    let bench = Bench::of_site(|path| match id_of(path) {
        1..=60 => FakeAnswer::ok("application/json", "{\"state\": \"sold out\"}"),
        _ => FakeAnswer::ok("application/json", "{\"error\": \"Data tidak ada\"}"),
    });
    let missing = MissingRules::parse(r#"404,RX:"Data tidak""#).unwrap();
    let (_, record) = bench.crawl(linear(vec![WalkRules { missing, ..range(1, 70) }])).await;
    assert_eq!((record.stats.ids.content, record.stats.ids.missing), (60, 10));
}

/// Where the probe cannot be asked, equal answers are missing as they are where it fails.
#[tokio::test]
async fn a_row_of_equal_answers_is_missing_where_the_probe_is_forbidden() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nDisallow: /2\n"),
        _ => FakeAnswer::html("<!doctype html><title>Item</title><p>Sold out.</p>"),
    });
    let mut crawl = one_by_one(vec![range(300, 500)]);
    crawl.politeness.robots = RobotsRules::Obey;
    let (_, record) = bench.crawl(crawl).await;
    assert!(record.stats.ids.missing > 100, "{:?}", record.stats.ids);
}

#[tokio::test]
async fn a_row_of_equal_answers_is_missing_where_no_id_is_impossible() {
    let bench = Bench::of_site(|_| FakeAnswer::html("<!doctype html><p>Sold out.</p>"));
    let first = 20_000_000_000_000_000;
    let (_, record) = bench.crawl(one_by_one(vec![range(first, first + 200)])).await;
    assert!(record.stats.ids.missing > 100, "{:?}", record.stats.ids);
}

/// Items that were deleted say 404 where numbers beyond the last item do not.
#[tokio::test]
async fn a_site_that_is_honest_about_a_few_ids_only_ends() {
    let bench = Bench::of_site(|path| match id_of(path) {
        5 | 8 | 11 => FakeAnswer::not_found(),
        1..=30 => item(path),
        _ => blank(path),
    });
    let walk = WalkRules {
        start: Some(1),
        margin: 20,
        direction: Some(Direction::Ascending),
        ..rules("http://site.test/{id}")
    };
    let mut crawl = one_by_one(vec![walk]);
    crawl.limits.ids_per_host_max = Some(2_000);
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    assert!(record.stats.ids.missing > 20, "{:?}", record.stats.ids);
}

/// A walk whose host says Retry-After for days ends when its patience does, and says so. What it gave up,
/// and what it never asked, is asked when the user resumes it.
#[tokio::test(start_paused = true)]
async fn a_walk_out_of_patience_ends_and_can_be_resumed() {
    static IS_BUSY: AtomicBool = AtomicBool::new(true);
    let bench = Bench::of_site(|path| match id_of(path) {
        3.. if IS_BUSY.load(Ordering::Relaxed) => {
            let mut busy = FakeAnswer::plain(503, "busy");
            busy.headers.push(("retry-after", "360000".into()));
            busy
        }
        1..=40 => item(path),
        _ => FakeAnswer::not_found(),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    // A margin of one: whatever was given up says nothing about the end.
    let walk = WalkRules {
        start: Some(1),
        margin: 1,
        attempts: 3,
        direction: Some(Direction::Ascending),
        ..rules("http://site.test/{id}")
    };
    let no = accept(&store, linear(vec![walk]));
    engine.handle().run(no).await.unwrap();
    let ended = finished(&engine, no).await;
    let waiting = |progress: &Progress| progress.walks[0].coverage.counts.waiting;
    assert_eq!((ended.walks[0].coverage.counts.content, waiting(&ended)), (2, 0));
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::RetryAfter });
    assert!(record.stats.active_ms >= 600_000, "{:?}", record.stats);
    let holes = record.stats.ids.holes;
    assert!(holes >= 1 && record.stats.ids.waiting == 0, "{:?}", record.stats.ids);
    assert_eq!(record.stats.failures[&Reason::RetryAfter], holes);
    let hole = store.runs(no, 0).unwrap().into_iter().find(|run| run.first == 3).unwrap();
    assert_eq!(hole.state, KeptState { state: IdState::Hole, why: Some(Reason::RetryAfter) });
    assert_verified(&store);

    IS_BUSY.store(false, Ordering::Relaxed);
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    assert_eq!((record.stats.ids.content, record.stats.ids.holes), (40, 0));
    assert_verified(&store);
}
