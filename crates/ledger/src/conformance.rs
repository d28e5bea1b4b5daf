//! The suite that every back end passes before it does anything else.
//!
//! It panics where a promise is broken, so it unwraps freely. A back end calls [`check_all`] with a way to make an empty store and a way to open it again.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test suite")]

mod ids;
mod order;
mod rows;
mod verifying;

use std::sync::Arc;

use telusur_model::{
    Crawl, CrawlId, CrawlNo, CrawlState, Digest, Discovery, EngineFault, FetchRules, FinishReason,
    Keep, Lane, Limits, NotFoundLook, OriginRow, PageRecord, PageUrl, ParsedPage, Politeness,
    Purpose, RawPage, Reason, RobotsAnswer, Scope, ScopeRules, Seeds, Site, SitemapRules,
    Timestamp, UrlKeyer, Via, Visit,
};

use crate::{
    Asking, CrawlRecord, Ending, Event, GiveUp, LinkSource, NewCrawl, PageToStore, QueueRange,
    Step, Store, Stored, TrapMark, UrlState, VisitOutcome,
};

pub use self::rows::check_rows;

/// An open store, and how to open it again after it was dropped.
pub trait Bench {
    /// Opens the store: empty at first, and later with everything that was committed.
    fn open(&self) -> Arc<dyn Store>;
}

/// A promise in words, and what checks it.
type Promise = (&'static str, fn(&dyn Bench));

/// Every promise, one after the other, each on a bench of its own.
pub fn check_all<B: Bench>(new_bench: impl Fn() -> B) {
    let checks: &[Promise] = &[
        ("a crawl is accepted with its seeds", accepts_a_crawl),
        ("numbers count up and are never used twice", numbers_count_up),
        ("a step stores the page and its links together", stores_page_and_links),
        ("a link is queued once", queues_a_link_once),
        ("a known link is not new again, however alike the keys", tells_like_keys_apart),
        ("refused links keep their reason", keeps_reasons),
        ("the queue is breadth first", is_breadth_first),
        ("an ending counts once", counts_an_ending_once),
        ("a visit that is in no queue is dropped, and no other", drops_what_is_in_no_queue),
        ("a failed visit waits in the lane Later", retries_later),
        ("budgets end endless hosts", ends_endless_hosts),
        ("units given back go to links that were left out", lets_in_what_was_left_out),
        ("a URL that was asked for keeps its unit", keeps_units_of_what_was_asked),
        ("a raised budget lets in what it left out", lets_in_when_budgets_are_raised),
        ("what was found out about traps is kept, crawl by crawl", keeps_traps),
        ("the queued URLs of a host can be given up", gives_up_hosts),
        ("a link marked nofollow waits for one that is not", follows_unmarked_links),
        ("a sitemap is a URL of its own and brings its entries", reads_sitemaps),
        ("what is known of an origin is kept for all crawls", keeps_origins),
        ("ids are kept as runs, in the step of their page", ids::keeps_runs),
        ("an id counts once, and its content is stored once", ids::counts_an_id_once),
        ("a page that a link led to first is not stored twice", ids::makes_way_for_ids),
        (
            "a link to an id in the step of its page is no second page",
            ids::takes_links_to_ids_in_their_step,
        ),
        (
            "an id that was redirected is found where it ended",
            ids::finds_redirected_ids_where_they_ended,
        ),
        ("that a crawl ended the engine is kept until it ends in order", keeps_faults),
        ("everything survives opening again", survives_reopening),
        ("a removed crawl leaves nothing", removes_everything),
        ("a removal that was cut short goes on", goes_on_with_removals),
        ("requests that may not be written down are remembered", remembers_who_asks),
        ("bodies come back as they were", returns_bodies),
        ("of documents with one key the last is kept", keeps_the_last_import),
        ("pages have one order over all crawls", order::gives_pages_in_one_order),
        ("a removal has its place in the order, once", order::tells_of_removals_in_order),
        ("a crawl is found by id, alias or name", order::finds_crawls_by_name),
        ("a page that was read again keeps its body and gets a new place", rereads_pages),
        ("steps are committed while everything is verified", verifying::commits_go_through),
        ("a crawl removed meanwhile is not damaged", verifying::removals_are_no_damage),
    ];
    for (promise, check) in checks {
        println!("store: {promise}");
        check(&new_bench());
    }
}

fn accepts_a_crawl(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://b.test/", "http://a.test/#again"]);
    assert_eq!(record.crawl.no, CrawlNo(1));
    assert_eq!(record.state, CrawlState::Running);
    assert_eq!((record.stats.discovered, record.stats.queued), (2, 2));
    let seed = url("http://a.test/");
    let known = store.url(CrawlNo(1), &seed).unwrap().expect("a seed is known");
    assert!(matches!(known.state, UrlState::Queued { attempt: 1, .. }));
    assert_eq!(known.via, Via::Seed);
    assert_eq!(store.hosts(CrawlNo(1)).unwrap().len(), 2);
    assert!(store.hosts_asked_since(CrawlNo(1), Timestamp(0)).unwrap().is_empty());
    assert_verified(&*store);
}

fn numbers_count_up(bench: &dyn Bench) {
    let store = bench.open();
    create(&*store, &["http://a.test/"]);
    let second = create(&*store, &["http://a.test/"]);
    store.remove(second.crawl.no).unwrap();
    let third = create(&*store, &["http://a.test/"]);
    assert_eq!(third.crawl.no, CrawlNo(3));
    assert_eq!(store.crawls().unwrap().len(), 2);
}

fn stores_page_and_links(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    let committed =
        store.commit(step(&*store, &record, visit, 200, &["http://a.test/1", "http://a.test/2"]));
    let committed = committed.unwrap();
    assert_eq!(committed.queued.len(), 2);
    assert_eq!(committed.dequeued.len(), 1);
    let stats = &committed.stats[0].1;
    assert_eq!((stats.discovered, stats.queued, stats.pages, stats.ok), (3, 2, 1, 1));
    let known = store.url(CrawlNo(1), &url("http://a.test/1")).unwrap().unwrap();
    assert_eq!(known.referrer.as_deref(), Some("http://a.test/"));
    assert_eq!(known.depth, 1);
    let pages = store.pages_after(CrawlNo(1), 0, 10).unwrap();
    assert_eq!(pages.len(), 1);
    assert_eq!(pages[0].url.as_str(), "http://a.test/");
    assert_eq!(committed.stored, [Stored { seq: pages[0].seq, url: pages[0].url.clone() }]);
    assert_verified(&*store);
}

fn queues_a_link_once(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://b.test/"]);
    let links =
        ["http://a.test/x", "http://a.test/x", "http://a.test/x?utm_source=y", "http://b.test/"];
    let one = first(&*store, &record, "a.test");
    let two = first(&*store, &record, "b.test");
    let both = [one, two].map(|visit| ended(&*store, &record, visit, 200, &links));
    let committed = store.commit(step_of(both)).unwrap();
    assert_eq!(committed.queued.len(), 1);
    assert_verified(&*store);
}

/// A crawl of 20,000 pages once stored five of them several times: their keys fell into one bucket
/// of a cache of known keys, and new keys pushed known ones out in the middle of a step.
fn tells_like_keys_apart(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://b.test/"]);
    let alike = |numbers: std::ops::Range<u128>| {
        numbers.map(|number| {
            let key = telusur_model::UrlKey(number << 64);
            Discovery::page(url(&format!("http://a.test/{number}")), key, Via::Link)
        })
    };
    let visit = first(&*store, &record, "a.test");
    let mut old = ended(&*store, &record, visit, 200, &[]);
    old.links = alike(1..5).collect();
    store.commit(step_of([old])).unwrap();
    let visit = first(&*store, &record, "b.test");
    let mut both = ended(&*store, &record, visit, 200, &[]);
    both.links = alike(1..20).chain(alike(1..5)).collect();
    assert_eq!(store.commit(step_of([both])).unwrap().queued.len(), 15);
    assert_verified(&*store);
}

fn keeps_reasons(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    let committed = store.commit(step(&*store, &record, visit, 200, &["http://elsewhere.test/"]));
    assert!(committed.unwrap().queued.is_empty());
    let mut seen = Vec::new();
    store
        .settled_urls(CrawlNo(1), &mut |url| {
            seen.push(url);
            true
        })
        .unwrap();
    assert_eq!(seen.len(), 1);
    let UrlState::Skipped { reason, rule } = &seen[0].state else { panic!("{:?}", seen[0]) };
    assert_eq!((*reason, rule.as_str()), (Reason::OutOfScope, "scope domain"));
    assert_verified(&*store);
}

fn is_breadth_first(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let root = first(&*store, &record, "a.test");
    store
        .commit(step(&*store, &record, root, 200, &["http://a.test/1", "http://a.test/2"]))
        .unwrap();
    let one = first(&*store, &record, "a.test");
    assert_eq!(one.url.as_str(), "http://a.test/1");
    store.commit(step(&*store, &record, one, 200, &["http://a.test/1/1"])).unwrap();
    let order: Vec<String> =
        queued(&*store, &record, "a.test").iter().map(|visit| visit.url.to_string()).collect();
    assert_eq!(order, ["http://a.test/2", "http://a.test/1/1"]);
    let host = url("http://a.test/").host();
    let two = queued(&*store, &record, "a.test")[0].place;
    let ask = QueueRange { crawl: CrawlNo(1), host: &host, later: false, after: Some(two), max: 9 };
    assert_eq!(store.queued(ask).unwrap().len(), 1);
}

fn counts_an_ending_once(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    let once = ended(&*store, &record, visit, 200, &[]);
    store.commit(step_of([once.clone(), once.clone()])).unwrap();
    store.commit(step_of([once])).unwrap();
    let stats = store.crawl(CrawlNo(1)).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.queued, stats.visits), (1, 0, 1));
    assert_verified(&*store);
}

/// It once ended the writer, and with it everybody's crawls.
fn drops_what_is_in_no_queue(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://a.test/b"]);
    let visits = queued(&*store, &record, "a.test");
    let mut both = vec![ended(&*store, &record, visits[1].clone(), 200, &[])];
    for lane in [Lane::Prerequisite, Lane::Linear] {
        let mut unqueued = ended(&*store, &record, visits[0].clone(), 200, &[]);
        unqueued.ending.visit.place.lane = lane;
        let rule = "exclude x".to_owned();
        unqueued.ending.how = VisitOutcome::Skipped { reason: Reason::Excluded, rule };
        both.push(unqueued);
    }
    let committed = store.commit(step_of(both)).unwrap();
    assert_eq!(committed.dequeued.len(), 3, "the frontier is told of all");
    let stats = store.crawl(CrawlNo(1)).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.queued, stats.skipped), (1, 1, 0));
    assert_verified(&*store);
}

fn retries_later(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    let mut failed = ended(&*store, &record, visit, 200, &[]);
    failed.ending.how = VisitOutcome::Later {
        due: Timestamp(5_000),
        counted: true,
        reason: Reason::ConnectionReset,
        status: None,
        detail: "reset".into(),
    };
    let committed = store.commit(step_of([failed])).unwrap();
    assert_eq!(committed.queued[0].due, Some(Timestamp(5_000)));
    assert_eq!(committed.queued[0].visit.attempt, 2);
    assert!(queued(&*store, &record, "a.test").is_empty());
    let host = url("http://a.test/").host();
    let ask = QueueRange { crawl: CrawlNo(1), host: &host, later: true, after: None, max: 9 };
    let later = store.queued(ask).unwrap();
    assert_eq!(later, committed.queued);
    assert_eq!(later[0].visit.place.lane, Lane::Later);
    assert_verified(&*store);
    store.commit(step(&*store, &record, later[0].visit.clone(), 200, &[])).unwrap();
    assert_eq!(store.pages_after(CrawlNo(1), 0, 9).unwrap()[0].attempts, 2);
    assert_verified(&*store);
}

fn ends_endless_hosts(bench: &dyn Bench) {
    let store = bench.open();
    let mut crawl = crawl(&["http://a.test/"]);
    crawl.limits.urls_per_host_max = 3;
    let record = store.create(NewCrawl { crawl, random: 1 }).unwrap();
    let visit = first(&*store, &record, "a.test");
    let links: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let committed = store.commit(step(&*store, &record, visit, 200, &links)).unwrap();
    assert_eq!(committed.queued.len(), 2);
    assert_eq!(committed.stats[0].1.skips[&Reason::HostBudget], 8);
    assert_verified(&*store);
}

fn lets_in_what_was_left_out(bench: &dyn Bench) {
    let store = bench.open();
    let mut crawl = crawl(&["http://a.test/"]);
    crawl.limits.urls_per_host_max = 3;
    let record = store.create(NewCrawl { crawl, random: 1 }).unwrap();
    let links: Vec<String> = (0..6).map(|n| format!("http://a.test/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let root = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, root, 200, &links)).unwrap();
    drop(store);
    let store = bench.open();
    let mut forbidden = {
        let visit = first(&*store, &record, "a.test");
        ended(&*store, &record, visit, 200, &[])
    };
    let rule = "robots.txt line 2".to_owned();
    forbidden.ending.how = VisitOutcome::Skipped { reason: Reason::RobotsDisallowed, rule };
    forbidden.ending.requested_at = None;
    let committed = store.commit(step_of([forbidden])).unwrap();
    let let_in: Vec<&str> = committed.queued.iter().map(|it| it.visit.url.as_str()).collect();
    assert_eq!(let_in, ["http://a.test/2"], "the first that was left out");
    let stats = &committed.stats[0].1;
    assert_eq!((stats.queued, stats.skipped, stats.skips[&Reason::HostBudget]), (2, 4, 3));
    // One that was asked for has used its unit.
    let asked = first(&*store, &record, "a.test");
    let mut asked = ended(&*store, &record, asked, 200, &[]);
    asked.ending.requested_at = Some(Timestamp(9));
    asked.ending.how =
        VisitOutcome::Skipped { reason: Reason::TrapSuspected, rule: "look-alikes".to_owned() };
    assert!(store.commit(step_of([asked])).unwrap().queued.is_empty());
    // So has one that waited for another attempt when the user excluded it.
    let visit = Visit { attempt: 2, ..first(&*store, &record, "a.test") };
    let mut excluded = ended(&*store, &record, visit, 200, &[]);
    excluded.ending.requested_at = None;
    excluded.ending.how =
        VisitOutcome::Skipped { reason: Reason::Excluded, rule: "a pattern".to_owned() };
    assert!(store.commit(step_of([excluded])).unwrap().queued.is_empty());
    assert_verified(&*store);
}

/// A busy server's 429 counts as no attempt, and is an answer all the same; so is a failure that the
/// user has asked again.
fn keeps_units_of_what_was_asked(bench: &dyn Bench) {
    let store = bench.open();
    let mut crawl = crawl(&["http://a.test/"]);
    crawl.limits.urls_per_host_max = 3;
    let record = store.create(NewCrawl { crawl, random: 1 }).unwrap();
    let links: Vec<String> = (0..6).map(|n| format!("http://a.test/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let root = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, root, 200, &links)).unwrap();
    let exclude = |visit: Visit| {
        let mut excluded = ended(&*store, &record, visit, 200, &[]);
        excluded.ending.requested_at = None;
        excluded.ending.how =
            VisitOutcome::Skipped { reason: Reason::Excluded, rule: "a pattern".to_owned() };
        store.commit(step_of([excluded])).unwrap().queued.len()
    };
    let mut busy = ended(&*store, &record, first(&*store, &record, "a.test"), 200, &[]);
    busy.ending.how = VisitOutcome::Later {
        due: Timestamp(5),
        counted: false,
        reason: Reason::HttpError,
        status: Some(429),
        detail: "status 429".to_owned(),
    };
    let waiting = store.commit(step_of([busy])).unwrap().queued.remove(0).visit;
    assert_eq!((waiting.attempt, exclude(waiting)), (1, 0));
    let mut failed = ended(&*store, &record, first(&*store, &record, "a.test"), 200, &[]);
    failed.ending.how =
        VisitOutcome::Failed { reason: Reason::TimeoutBody, detail: "after 30 s".to_owned() };
    let again = failed.ending.visit.clone();
    store.commit(step_of([failed])).unwrap();
    let again = store.commit(Step::of(Event::AskedAgain(Box::new(again)))).unwrap();
    assert_eq!(exclude(again.queued[0].visit.clone()), 0);
    assert_verified(&*store);
}

fn lets_in_when_budgets_are_raised(bench: &dyn Bench) {
    let store = bench.open();
    let mut crawl = crawl(&["http://a.test/", "http://b.a.test/"]);
    crawl.limits.urls_per_host_max = 3;
    let mut record = store.create(NewCrawl { crawl, random: 1 }).unwrap();
    let no = record.crawl.no;
    for host in ["a.test", "b.a.test"] {
        let links: Vec<String> = (0..6).map(|n| format!("http://{host}/{n}")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let root = first(&*store, &record, host);
        store.commit(step(&*store, &record, root, 200, &links)).unwrap();
    }
    let let_in = |store: &dyn Store| {
        let committed = store.commit(Step::of(Event::BudgetsRaised { crawl: no })).unwrap();
        assert_eq!(committed.more_held, []);
        committed.queued.into_iter().map(|it| it.visit.url.to_string()).collect::<Vec<_>>()
    };
    assert!(!store.has_room_for_left_out(&record.crawl).unwrap());
    assert!(let_in(&*store).is_empty());
    record.crawl.limits.urls_per_host_max = 5;
    store.change(&record.crawl).unwrap();
    drop(store);
    let store = bench.open();
    assert!(store.has_room_for_left_out(&record.crawl).unwrap());
    let expect = ["http://a.test/2", "http://a.test/3", "http://b.a.test/2", "http://b.a.test/3"];
    assert_eq!(let_in(&*store), expect);
    assert!(!store.has_room_for_left_out(&record.crawl).unwrap());
    record.crawl.limits.urls_per_host_max = 100;
    record.crawl.limits.urls_per_site_max = 11;
    store.change(&record.crawl).unwrap();
    assert_eq!(let_in(&*store).len(), 1);
    record.crawl.limits.urls_per_site_max = 100;
    store.change(&record.crawl).unwrap();
    assert_eq!(let_in(&*store).len(), 3);
    assert!(!store.has_room_for_left_out(&record.crawl).unwrap());
    let stats = store.crawl(no).unwrap().unwrap().stats;
    assert_eq!((stats.queued, stats.skipped, stats.skips.len()), (12, 0, 0));
    assert_verified(&*store);
}

fn keeps_traps(bench: &dyn Bench) {
    let store = bench.open();
    let [one, two] = ["http://a.test/", "http://b.test/"].map(|seed| create(&*store, &[seed]));
    let [one, two] = [one.crawl.no, two.crawl.no];
    let mark = |shape, run, rule: Option<&str>| TrapMark { shape, run, rule: rule.map(Into::into) };
    let ended = mark(7, 60, Some("60 pages say the same"));
    let noted = |(crawl, mark)| Event::TrapNoted { crawl, site: Site::of_host("a.test"), mark };
    let traps = [(one, mark(7, 50, None)), (one, ended.clone()), (two, mark(7, 10, None))];
    store.commit(traps.map(noted).into_iter().collect()).unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(store.traps(one).unwrap(), [ended]);
    assert_eq!(store.traps(two).unwrap(), [mark(7, 10, None)]);
    store.commit(Step::of(noted((two, mark(7, 0, None))))).unwrap();
    store.remove(one).unwrap();
    assert_eq!((store.traps(one).unwrap(), store.traps(two).unwrap()), (vec![], vec![]));
}

fn gives_up_hosts(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://b.test/"]);
    let host = url("http://a.test/").host();
    let give_up = GiveUp {
        crawl: record.crawl.no,
        host,
        reason: Reason::RetryAfter,
        detail: "an hour".to_owned(),
        at: Timestamp(7),
    };
    let committed = store.commit(Step::of(Event::HostGivenUp(Box::new(give_up)))).unwrap();
    let stats = &committed.stats[0].1;
    assert_eq!((committed.dequeued.len(), stats.queued, stats.failed), (1, 1, 1));
    let known = store.url(record.crawl.no, &url("http://a.test/")).unwrap().unwrap();
    assert!(matches!(known.state, UrlState::Failed { reason: Reason::RetryAfter, .. }));
    assert_verified(&*store);
}

fn follows_unmarked_links(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/", "http://b.test/"]);
    let no = record.crawl.no;
    let target = url("http://a.test/x");
    let mut marked = {
        let visit = first(&*store, &record, "a.test");
        ended(&*store, &record, visit, 200, &["http://a.test/x"])
    };
    marked.links[0].nofollow = true;
    let stats = store.commit(step_of([marked])).unwrap().stats.remove(0).1;
    assert_eq!((stats.queued, stats.skipped, stats.skips[&Reason::Nofollow]), (1, 1, 1));
    let known = store.url(no, &target).unwrap().unwrap();
    assert!(matches!(known.state, UrlState::Skipped { reason: Reason::Nofollow, .. }));
    let visit = first(&*store, &record, "b.test");
    let plain = step(&*store, &record, visit, 200, &["http://a.test/x", "http://a.test/x"]);
    let committed = store.commit(plain).unwrap();
    assert_eq!(committed.queued.len(), 1);
    let stats = &committed.stats[0].1;
    assert_eq!((stats.queued, stats.skipped, stats.discovered), (1, 0, 3));
    assert!(matches!(store.url(no, &target).unwrap().unwrap().state, UrlState::Queued { .. }));
    assert_verified(&*store);
}

fn reads_sitemaps(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let crawl = &record.crawl;
    let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: true };
    let file = url("http://a.test/sitemap.xml");
    let scope = Scope::of(crawl).unwrap();
    let sitemap = Discovery {
        purpose: Purpose::Sitemap { nesting: 0 },
        ..Discovery::page(file.clone(), keyer.sitemap_key(&file), Via::Sitemap)
    };
    let source = source(crawl.no, "http://a.test/robots.txt", 0, 1_500);
    let found = source.judge_to_events(vec![sitemap.clone(), sitemap], &scope);
    let committed = store.commit(found.into_iter().collect()).unwrap();
    assert_eq!(committed.queued.len(), 1);
    let visit = committed.queued[0].visit.clone();
    assert_eq!((visit.purpose, visit.depth), (Purpose::Sitemap { nesting: 0 }, 0));
    // A page with the address of the sitemap is another thing.
    assert!(store.url(crawl.no, &file).unwrap().is_none());
    let page = url("http://a.test/listed");
    let entry = Discovery {
        lastmod: Some(Timestamp(77)),
        ..Discovery::page(page.clone(), keyer.key(&page), Via::Sitemap)
    };
    let found = LinkSource::of_visit(&visit, Timestamp(2_000)).judge(vec![entry], &scope);
    let mut step = Step::default();
    step.end(Ending {
        visit,
        how: VisitOutcome::Sitemap { entries: 1, dropped: 0, trouble: None },
        at: Timestamp(2_000),
        requested_at: Some(Timestamp(1_999)),
        found,
        other_schemes: 0,
        id: None,
        packed: None,
    });
    let committed = store.commit(step).unwrap();
    let stats = &committed.stats[0].1;
    assert_eq!((stats.sitemaps, stats.queued, stats.discovered, stats.pages), (1, 2, 3, 0));
    let listed = store.url(crawl.no, &page).unwrap().unwrap();
    assert_eq!((listed.depth, listed.lastmod), (1, Some(Timestamp(77))));
    assert_eq!(listed.referrer.as_deref(), Some(file.as_str()));
    let read = store.sitemap(crawl.no, &file).unwrap().unwrap();
    assert!(matches!(read.state, UrlState::Sitemap { entries: 1, .. }));
    let asked_since = |ms| store.hosts_asked_since(crawl.no, Timestamp(ms)).unwrap().len();
    assert_eq!((asked_since(1_999), asked_since(2_000)), (1, 0));
    assert_verified(&*store);
}

fn rereads_pages(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let crawl = &record.crawl;
    let seed = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, seed, 200, &[])).unwrap();
    let page = store.pages_after(crawl.no, 0, 10).unwrap().remove(0);
    let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: true };
    let target = url("http://a.test/overlooked");
    let link = Discovery::page(target.clone(), keyer.key(&target), Via::Link);
    let source = source(crawl.no, page.url.as_str(), 3, 3_000);
    let mut events = source.judge_to_events(vec![link], &Scope::of(crawl).unwrap());
    let better = PageRecord { title: Some("Better".into()), body: None, ..page.clone() };
    let again = [better.clone(), PageRecord { seq: page.seq + 1_000, ..better }];
    events.extend(again.map(|page| Event::PageReadAgain(Box::new(page))));
    let committed = store.commit(events.into_iter().collect()).unwrap();
    assert_eq!(committed.queued[0].visit.depth, 4);
    assert_eq!(committed.queued[0].visit.referrer.as_deref(), Some("http://a.test/"));
    let stats = &committed.stats[0].1;
    assert_eq!((stats.pages, stats.queued, stats.discovered), (1, 1, 2));
    drop(store);
    let store = bench.open();
    let pages = store.pages_after(crawl.no, 0, 10).unwrap();
    assert_eq!(pages.len(), 1, "a page that is not there is not made up");
    assert!(pages[0].seq > page.seq);
    assert_eq!((pages[0].title.as_deref(), pages[0].body), (Some("Better"), page.body));
    let known = store.url(crawl.no, &page.url).unwrap().unwrap();
    assert!(matches!(known.state, UrlState::Page { seq } if seq == pages[0].seq));
    assert_verified(&*store);
}

fn keeps_the_last_import(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let seed = first(&*store, &record, "a.test");
    let Ending { how: VisitOutcome::Page(page), packed: Some(packed), .. } =
        ended(&*store, &record, seed, 200, &[]).ending
    else {
        unreachable!("it is a page")
    };
    let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: true };
    let document = |path: &str, title: &str| {
        let mut record = (*page).clone();
        record.url = url(&format!("http://a.test/{path}"));
        record.key = keyer.key(&record.url);
        record.title = Some(title.into());
        PageToStore { record, packed: packed.clone() }
    };
    for round in ["first", "second"] {
        let mut step = Step::default();
        for page in [document("x", "old"), document("y", round), document("x", round)] {
            step.import(page);
        }
        store.commit(step).unwrap();
        let pages = store.pages_after(record.crawl.no, 0, 10).unwrap();
        let titles: Vec<_> = pages.iter().filter_map(|page| page.title.as_deref()).collect();
        assert_eq!(titles, [round, round]);
        assert_verified(&*store);
    }
}

fn keeps_origins(bench: &dyn Bench) {
    let row = |origin: &str| OriginRow {
        origin: origin.into(),
        asked_at: Timestamp(5),
        redirects: Vec::new(),
        robots: RobotsAnswer::Text { text: b"User-agent: *\nDisallow: /\xff".to_vec() },
        not_found: Some(NotFoundLook::Soft { fingerprint: 7, title_hash: 8 }),
    };
    {
        let store = bench.open();
        let origins = vec![row("http://a.test"), row("https://a.test:8443"), row("http://b.test")];
        let learned = |row| Event::OriginLearned(Box::new(row));
        store.commit(origins.into_iter().map(learned).collect()).unwrap();
    }
    let store = bench.open();
    assert_eq!(store.origin("http://a.test").unwrap(), Some(row("http://a.test")));
    assert_eq!(store.origin("http://c.test").unwrap(), None);
    assert_eq!(store.origins_of(&telusur_model::Host::new("a.test")).unwrap().len(), 2);
}

fn keeps_faults(bench: &dyn Bench) {
    let store = bench.open();
    let no = create(&*store, &["http://a.test/"]).crawl.no;
    let fault = EngineFault { times: 1, why: "a panic".into(), is_certain: true };
    store.set_fault(no, Some(fault.clone())).unwrap();
    store.set_state(no, CrawlState::Running, Timestamp(3_000)).unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(store.crawl(no).unwrap().unwrap().fault, Some(fault));
    let stopped = CrawlState::Finished { why: telusur_model::FinishReason::Stopped };
    store.set_state(no, stopped, Timestamp(4_000)).unwrap();
    assert_eq!(store.crawl(no).unwrap().unwrap().fault, None);
}

fn survives_reopening(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, visit, 200, &["http://a.test/1"])).unwrap();
    let before = (store.crawls().unwrap(), store.hosts(CrawlNo(1)).unwrap(), store.key_seed());
    drop(store);
    let store = bench.open();
    assert!(!store.was_closed());
    assert_eq!(
        (store.crawls().unwrap(), store.hosts(CrawlNo(1)).unwrap(), store.key_seed()),
        before
    );
    let visit = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, visit, 404, &["http://a.test/1"])).unwrap();
    let state = CrawlState::Finished { why: FinishReason::Drained };
    store.set_state(CrawlNo(1), state, Timestamp(9)).unwrap();
    store.close().unwrap();
    assert_verified(&*store);
    drop(store);
    let store = bench.open();
    assert!(store.was_closed());
    assert_eq!(store.crawl(CrawlNo(1)).unwrap().unwrap().state, state);
    assert_eq!(store.pages_after(CrawlNo(1), 0, 9).unwrap().len(), 2);
    assert_verified(&*store);
}

fn removes_everything(bench: &dyn Bench) {
    let store = bench.open();
    let gone = create(&*store, &["http://a.test/"]);
    let kept = create(&*store, &["http://a.test/"]);
    for record in [&gone, &kept] {
        let visit = first(&*store, record, "a.test");
        store.commit(step(&*store, record, visit, 200, &["http://a.test/1"])).unwrap();
    }
    store.remove(gone.crawl.no).unwrap();
    store.remove(gone.crawl.no).unwrap();
    assert!(store.crawl(gone.crawl.no).unwrap().is_none());
    assert!(store.hosts(gone.crawl.no).unwrap().is_empty());
    assert!(store.pages_after(gone.crawl.no, 0, 9).unwrap().is_empty());
    assert!(store.url(gone.crawl.no, &url("http://a.test/")).unwrap().is_none());
    assert_eq!(store.pages_after(kept.crawl.no, 0, 9).unwrap().len(), 1);
    assert_verified(&*store);
}

fn goes_on_with_removals(bench: &dyn Bench) {
    let store = bench.open();
    let gone = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &gone, "a.test");
    store.commit(step(&*store, &gone, visit, 200, &["http://a.test/1"])).unwrap();
    let no = gone.crawl.no;
    store.begin_removal(no).unwrap();
    let removals = store.removals().unwrap();
    assert_eq!(removals.iter().map(|removal| removal.crawl).collect::<Vec<_>>(), [no]);
    assert!(store.crawl(no).unwrap().is_none());
    assert_verified(&*store);
    drop(store);
    let store = bench.open();
    assert_eq!(store.removals().unwrap(), removals);
    assert!(store.crawls().unwrap().is_empty() && store.find("last").unwrap().is_none());
    while !store.delete_removed(no).unwrap() {}
    assert!(store.removals().unwrap()[0].is_deleted);
    assert_verified(&*store);
    store.end_removal(no).unwrap();
    assert_eq!(store.removals().unwrap(), []);
    assert_verified(&*store);
}

fn remembers_who_asks(bench: &dyn Bench) {
    let store = bench.open();
    let [asks, asked, over] = [0; 3].map(|_| create(&*store, &["http://a.test/"]).crawl.no);
    let until = Asking::Until(Timestamp(9));
    store.set_asking(asks, Some(Asking::Now)).unwrap();
    store.set_asking(asked, Some(until)).unwrap();
    store.set_asking(over, Some(Asking::Now)).unwrap();
    store.set_asking(over, None).unwrap();
    // Neither closing nor removing takes it back.
    store.remove(asks).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(bench.open().asking().unwrap(), [(asks, Asking::Now), (asked, until)]);
}

fn returns_bodies(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let visit = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, visit, 200, &["http://a.test/1"])).unwrap();
    let page = &store.pages_after(CrawlNo(1), 0, 1).unwrap()[0];
    let body = store.body(CrawlNo(1), page.body.expect("bodies are kept by default")).unwrap();
    assert_eq!(body.bytes, BODY);
    assert!(body.head.starts_with("HTTP/1.1 200"), "{}", body.head);
    assert!(body.head.contains("content-type: text/html"));
    assert_eq!(page.parsed, None, "what can be read out of the body is not kept beside it");
    let text_only = Crawl { keep: Keep::Text, ..crawl(&["http://a.test/"]) };
    let record = store.create(NewCrawl { crawl: text_only, random: 2 }).unwrap();
    let visit = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, visit, 200, &["http://a.test/1"])).unwrap();
    let page = &store.pages_after(record.crawl.no, 0, 1).unwrap()[0];
    assert_eq!(page.body, None);
    let parsed = store.parsed(record.crawl.no, page.parsed.expect("extracts are kept")).unwrap();
    assert_eq!(parsed.title.as_deref(), Some("Hello"));
    assert_eq!(parsed.links[0].url.as_str(), "http://a.test/1");
}

const BODY: &[u8] = b"<title>Hello</title>\r\n\r\n<p>with an empty line, a \0 and \xff bytes";

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

/// A crawl with these seeds and plain settings.
pub fn crawl(seeds: &[&str]) -> Crawl {
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(1_000),
        seeds: Seeds::Links(seeds.iter().map(|seed| url(seed)).collect()),
        scope: ScopeRules::default(),
        politeness: Politeness::default(),
        limits: Limits::default(),
        fetch: FetchRules::default(),
        keep: Keep::Html,
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules::default(),
        recrawl_of: None,
        labels: Default::default(),
    }
}

/// A new crawl with these seeds.
pub fn create(store: &dyn Store, seeds: &[&str]) -> CrawlRecord {
    let mut crawl = crawl(seeds);
    crawl.created_at = Timestamp(1_000 + store.crawls().unwrap().len() as u64);
    store.create(NewCrawl { crawl, random: 7 }).unwrap()
}

fn queued(store: &dyn Store, record: &CrawlRecord, host: &str) -> Vec<Visit> {
    let host = telusur_model::Host::new(host);
    let ask =
        QueueRange { crawl: record.crawl.no, host: &host, later: false, after: None, max: 1000 };
    store.queued(ask).unwrap().into_iter().map(|queued| queued.visit).collect()
}

/// The first queued URL of a host.
pub fn first(store: &dyn Store, record: &CrawlRecord, host: &str) -> Visit {
    queued(store, record, host).into_iter().next().expect("something is queued")
}

/// The end of a visit, with links that are judged when it becomes part of a step.
#[derive(Clone)]
struct Ended {
    ending: Ending,
    links: Vec<Discovery>,
    scope: Arc<Scope>,
}

fn step_of(ended: impl IntoIterator<Item = Ended>) -> Step {
    let mut step = Step::default();
    for Ended { ending, links, scope } in ended {
        let found = LinkSource::of_visit(&ending.visit, ending.at).judge(links, &scope);
        step.end(Ending { found, ..ending });
    }
    step
}

fn source(crawl: CrawlNo, url: &str, depth: u16, at: u64) -> LinkSource {
    let (referrer, redirects) = (None, Vec::new());
    let at = Timestamp(at);
    LinkSource { crawl, at, depth, hops_outside: 0, url: url.to_owned(), referrer, redirects }
}

/// A step in which one visit found a page with these links.
pub fn step(
    store: &dyn Store,
    record: &CrawlRecord,
    visit: Visit,
    status: u16,
    links: &[&str],
) -> Step {
    step_of([ended(store, record, visit, status, links)])
}

/// A visit that found a page with these links.
fn ended(
    store: &dyn Store,
    record: &CrawlRecord,
    visit: Visit,
    status: u16,
    links: &[&str],
) -> Ended {
    let crawl = &record.crawl;
    let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: true };
    let page = RawPage {
        url: visit.url.clone(),
        status,
        headers: vec![("content-type".into(), "text/html".into())],
        body: BODY.into(),
        truncated: false,
        wire_bytes: BODY.len() as u64,
    };
    let parsed = ParsedPage {
        charset: "UTF-8".into(),
        title: Some("Hello".into()),
        links: links
            .iter()
            .map(|link| telusur_model::Link {
                url: url(link),
                anchor: "there".into(),
                kind: telusur_model::LinkKind::Anchor,
                nofollow: false,
                rel: String::new(),
            })
            .collect(),
        ..Default::default()
    };
    let packed = store.pack(crawl, &page, Some(&parsed), Timestamp(2_000));
    let record = PageRecord {
        seq: 0,
        crawl: crawl.no,
        key: visit.key,
        url: visit.url.clone(),
        redirects: Vec::new(),
        status,
        content_type: Some("text/html".into()),
        title: parsed.title,
        via: visit.via,
        found_at: visit.found_at,
        referrer: visit.referrer.clone(),
        depth: visit.depth,
        requested_at: None,
        fetched_at: Timestamp(2_000),
        took_ms: 5,
        attempts: visit.attempt,
        bytes: BODY.len() as u64,
        wire_bytes: BODY.len() as u64,
        truncated: false,
        digest: Digest(*blake3::hash(BODY).as_bytes()),
        etag: None,
        last_modified: None,
        lastmod: visit.lastmod,
        directives: Default::default(),
        soft_404: false,
        parse_failed: None,
        change: None,
        link_count: u32::try_from(links.len()).unwrap(),
        body: None,
        parsed: None,
    };
    let links = links
        .iter()
        .map(|link| Discovery::page(url(link), keyer.key(&url(link)), Via::Link))
        .collect();
    let ending = Ending {
        visit,
        how: VisitOutcome::Page(Box::new(record)),
        at: Timestamp(2_000),
        requested_at: None,
        found: Vec::new(),
        other_schemes: 0,
        id: None,
        packed: Some(packed),
    };
    Ended { ending, links, scope: Arc::new(Scope::of(crawl).unwrap()) }
}

/// Fails if a promise about the content of a store is broken.
#[track_caller]
pub fn assert_verified(store: &dyn Store) {
    // These pages have no links that a parser would find: what they are said to link to is known.
    let links_of = |page: &PageRecord| Ok(vec![page.url.clone()]);
    let report = store.verify(&links_of).unwrap();
    assert!(report.holds(), "{report:#?}");
}
