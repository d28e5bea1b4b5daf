//! Pages that are costly to parse: who pays for them, and who does not wait for them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use telusur_engine::Engine;
use telusur_ledger::{CrawlStore, PageStore, UrlState};
use telusur_model::{
    Crawl, CrawlNo, CrawlState, FinishReason, PageContent, ParsedPage, Progress, RawPage, Reason,
    SearchPage,
};
use telusur_parse_pool::{InProcess, Parser, PoolError, ReadPage, Reading, VisibleText};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;
use telusur_testkit::clock::ManualClock;

use crate::bench::{
    Bench, accept, assert_verified, crawl, finished, known, page, polite_crawl, until, url,
};

/// What becomes of a page.
type Fate = fn(&RawPage) -> Cost;

#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    deaths: u32,
}

const CHEAP: Cost = Cost { cpu: Duration::from_millis(1), deaths: 0 };

/// Parses at once, and says that it took as long as it is told to say.
struct Priced(Fate);

fn priced<T>(fate: Fate, page: &RawPage, read: ReadPage<T>) -> ReadPage<T> {
    let Cost { cpu, deaths } = fate(page);
    let reading = match deaths {
        0 => read.reading,
        _ => Reading::Failed { why: "the parser died".to_owned() },
    };
    ReadPage { reading, cpu, deaths }
}

macro_rules! parser {
    ($parser:ty, |$self:ident, $pages:ident, $read:ident| $body:expr) => {
        impl Parser for $parser {
            fn parse_all(
                &$self,
                $pages: &[&RawPage],
                text: VisibleText,
            ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
                let $read = || InProcess::default().parse_all($pages, text);
                $body
            }

            fn read_for_search(
                &$self,
                $pages: &[&RawPage],
                text: VisibleText,
            ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
                let $read = || InProcess::default().read_for_search($pages, text);
                $body
            }

            fn read_all(
                &$self,
                $pages: &[&RawPage],
            ) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
                let $read = || InProcess::default().read_all($pages);
                $body
            }

            fn interrupt(&self) {
                self.interrupted();
            }
        }
    };
}

impl Priced {
    fn interrupted(&self) {}
}

parser!(Priced, |self, pages, read| {
    let read = read()?.into_iter();
    Ok(pages.iter().zip(read).map(|(page, read)| priced(self.0, page, read)).collect())
});

/// Does not come back from a page of a host whose name begins with `bad`, until it is let go.
#[derive(Default)]
pub(crate) struct Stuck {
    state: Mutex<StuckState>,
    changed: Condvar,
}

#[derive(Default)]
struct StuckState {
    /// Threads that are stuck.
    threads: usize,
    is_free: bool,
    is_interrupted: bool,
}

impl Stuck {
    pub(crate) fn free(&self) {
        self.state.lock().unwrap().is_free = true;
        self.changed.notify_all();
    }

    fn interrupted(&self) {
        self.state.lock().unwrap().is_interrupted = true;
        self.changed.notify_all();
    }

    pub(crate) fn threads(&self) -> usize {
        self.state.lock().unwrap().threads
    }

    fn enter(&self, pages: &[&RawPage]) -> Result<(), PoolError> {
        if !pages.iter().any(|page| page.url.host_str().starts_with("bad")) {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap();
        state.threads += 1;
        while !state.is_free && !state.is_interrupted {
            state = self.changed.wait(state).unwrap();
        }
        state.threads -= 1;
        if state.is_free { Ok(()) } else { Err(PoolError::Interrupted) }
    }
}

parser!(Stuck, |self, pages, read| {
    self.enter(pages)?;
    read()
});

/// An endless site: every page has two more.
fn endless(path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    page(&[&format!("/{}", 2 * number + 1), &format!("/{}", 2 * number + 2)])
}

/// Five pages, each large enough to be looked at with suspicion.
fn large(path: &str) -> FakeAnswer {
    let links = if path == "/" {
        "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a>"
    } else {
        ""
    };
    FakeAnswer::html(format!("<title>{path}</title>{links}<p>{}", "word ".repeat(80_000)))
}

/// Twenty pages.
pub(crate) fn small(path: &str) -> FakeAnswer {
    let links: Vec<String> = (1..20).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    if path == "/" { page(&links) } else { page(&[]) }
}

pub(crate) fn crawl_of(host: &str) -> Crawl {
    crawl(vec![url(&format!("http://{host}/"))])
}

/// Waits until the first visits are out: their queues are read from the store first, which takes real
/// time.
async fn begun(bench: &Bench, visits: usize) {
    while bench.fetcher.log().len() < visits {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Lets everything happen that can happen at this moment: until all that was asked for is stored.
async fn come_to_rest(bench: &Bench, engine: &Engine, no: CrawlNo) -> Progress {
    loop {
        // Longer than the engine waits before it looks at the clock again.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let asked = bench.fetcher.log().len();
        let progress = until(engine, no, |progress| progress.stats.pages >= asked as u64).await;
        // A page may have brought the next one on its way.
        tokio::time::sleep(Duration::from_millis(500)).await;
        if bench.fetcher.log().len() == asked {
            return progress;
        }
    }
}

/// Two seconds of CPU for each page: the host is asked every forty seconds, while its neighbour gets
/// through with all its pages.
#[tokio::test(start_paused = true)]
async fn a_host_pays_for_what_its_pages_cost() {
    fn fate(page: &RawPage) -> Cost {
        if page.url.host_str() == "bad.test" {
            Cost { cpu: Duration::from_secs(2), ..CHEAP }
        } else {
            CHEAP
        }
    }
    let (bench, clock) = Bench::of_hosts_by_hand(|host, path| match host {
        "bad.test" => endless(path),
        _ => small(path),
    });
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Priced(fate)));
    let mut crawl = crawl(vec![url("http://bad.test/"), url("http://good.test/")]);
    crawl.politeness.delay_ms = 1_000;
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    begun(&bench, 2).await;
    for _ in 0..90 {
        come_to_rest(&bench, &engine, no).await;
        clock.advance_ms(1_000);
    }
    engine.handle().stop(no).await.unwrap();
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    let requests = bench.fetcher.log().requests();
    let times = |host: &str| -> Vec<u64> {
        requests.iter().filter(|it| it.host == host).map(|it| it.started_at.0).collect()
    };
    assert_eq!(times("bad.test"), [0, 40_000, 80_000]);
    assert_eq!(times("good.test"), (0..20).map(|second| second * 1_000).collect::<Vec<_>>());
}

/// Large pages of four hosts of one crawl never come back from the parser; another crawl, and another
/// host of the same crawl, are parsed as if they were not there.
#[tokio::test]
async fn others_do_not_wait_for_a_costly_host() {
    let bench = Bench::of_hosts(|host, path| match host.starts_with("bad") {
        true => large(path),
        false => small(path),
    });
    let store = bench.open();
    let parser = Arc::new(Stuck::default());
    let engine = bench.engine_with_parser(&store, Arc::clone(&parser) as Arc<dyn Parser>);
    let hosts = ["bad1.test", "bad2.test", "bad3.test", "bad4.test", "neighbour.test"];
    let seeds = hosts.map(|host| url(&format!("http://{host}/"))).to_vec();
    let bad = accept(&store, crawl(seeds));
    let good = accept(&store, crawl_of("good.test"));
    engine.handle().run(bad).await.unwrap();
    until(&engine, bad, |progress| progress.stats.pages == 20).await;
    assert_eq!(parser.threads(), 1, "the other thread is free");
    engine.handle().run(good).await.unwrap();
    let progress = finished(&engine, good).await;
    assert_eq!(progress.stats.ok, 20);
    assert_eq!(parser.threads(), 1);
    // Nothing is lost: when the parser comes back, the rest is read.
    parser.free();
    let progress = finished(&engine, bad).await;
    assert_eq!(progress.stats.ok, 20 + 4 * 5);
    engine.shutdown().await.unwrap();
    assert_verified(&store);
}

/// Three hosts whose pages are stuck in the parser, or wait for it.
async fn stuck_crawl(
    bench: &Bench,
    engine: &Engine,
    parser: &Stuck,
    store: &EmbeddedStore,
) -> CrawlNo {
    let seeds = ["bad1.test", "bad2.test", "bad3.test"];
    let seeds = seeds.map(|host| url(&format!("http://{host}/"))).to_vec();
    let no = accept(store, crawl(seeds));
    engine.handle().run(no).await.unwrap();
    while parser.threads() == 0 || bench.fetcher.log().len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    no
}

/// Three seconds pass once the end was ordered; more are not needed.
pub(crate) async fn three_seconds(clock: &ManualClock) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    clock.advance_ms(3_000);
}

/// A page is being parsed and will not come back, others wait for their turn: the end comes all the
/// same, and the visits stay queued.
#[tokio::test(start_paused = true)]
async fn an_end_does_not_wait_for_the_parser() {
    let (bench, clock) = Bench::of_hosts_by_hand(|_, path| large(path));
    let store = bench.open();
    let parser = Arc::new(Stuck::default());
    let engine = bench.engine_with_parser(&store, Arc::clone(&parser) as Arc<dyn Parser>);
    let no = stuck_crawl(&bench, &engine, &parser, &store).await;
    let (ended, ()) = tokio::join!(engine.shutdown(), three_seconds(&clock));
    ended.unwrap();
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!((record.stats.pages, record.stats.queued), (0, 3));
    assert_eq!(record.state, CrawlState::Running);
    assert_verified(&store);
    drop(store);
    // The next start gets everything.
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    let progress = finished(&engine, no).await;
    assert_eq!(progress.stats.ok, 15);
    engine.shutdown().await.unwrap();
    assert_verified(&store);
}

/// What was taken out of the parse queue by a pause is handed out again when the crawl goes on.
#[tokio::test(start_paused = true)]
async fn a_pause_does_not_wait_for_the_parser_and_loses_nothing() {
    let (bench, clock) = Bench::of_hosts_by_hand(|_, path| large(path));
    let store = bench.open();
    let parser = Arc::new(Stuck::default());
    let engine = bench.engine_with_parser(&store, Arc::clone(&parser) as Arc<dyn Parser>);
    let no = stuck_crawl(&bench, &engine, &parser, &store).await;
    let handle = engine.handle();
    let (paused, ()) = tokio::join!(handle.pause(no), three_seconds(&clock));
    paused.unwrap();
    parser.free();
    handle.resume(no).await.unwrap();
    let progress = finished(&engine, no).await;
    assert_eq!((progress.stats.ok, progress.stats.queued), (15, 0));
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    // Two of the start URLs were fetched and taken back, and so asked for twice.
    assert_eq!(bench.fetcher.log().len(), 17);
}

/// A host whose pages kill the parser each time is parked, for longer each time, and then given up:
/// its other URLs fail with that reason, and are not asked for.
#[tokio::test(start_paused = true)]
async fn a_host_whose_pages_kill_the_parser_is_parked_and_given_up() {
    fn fate(page: &RawPage) -> Cost {
        if page.url.host_str() == "bad.test" {
            Cost { cpu: Duration::from_secs(1), deaths: 2 }
        } else {
            CHEAP
        }
    }
    let (bench, clock) = Bench::of_hosts_by_hand(|host, path| match (host, path) {
        ("good.test", "/") => {
            let links: Vec<String> = (0..20).map(|it| format!("http://bad.test/{it}")).collect();
            page(&links.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => page(&[]),
    });
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Priced(fate)));
    let mut crawl = crawl_of("good.test");
    crawl.politeness.delay_ms = 1_000;
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    begun(&bench, 1).await;
    let mut parked = Vec::new();
    let ended = loop {
        let progress = come_to_rest(&bench, &engine, no).await;
        parked.extend(progress.parked.into_iter().next());
        if matches!(progress.state, CrawlState::Finished { .. }) {
            break progress.state;
        }
        clock.advance_ms(20_000);
    };
    assert_eq!(ended, CrawlState::Finished { why: FinishReason::Drained });
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    assert_eq!((parked[0].host.as_str(), parked[0].reason), ("bad.test", Reason::ParseLimit));
    assert_eq!((parked[0].pages, parked[0].left_s), (3, Some(60)));
    // Three, and one after each of three parks.
    let pages = store.pages_after(no, 0, 100).unwrap();
    assert_eq!(pages.iter().filter(|page| page.parse_failed.is_some()).count(), 6);
    assert_eq!(bench.fetcher.log().len(), 7);
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.stats.failures[&Reason::ParseLimit], 14);
    assert_eq!(record.stats.failures[&Reason::ParseFailed], 6);
    assert_eq!(record.stats.errors(), 20);
    let states = (0..20).map(|it| known(&store, &format!("http://bad.test/{it}")).state);
    let failed =
        |state| matches!(state, UrlState::Failed { detail, .. } if detail.contains("parked"));
    assert_eq!(states.filter_map(|state| failed(state).then_some(())).count(), 14);
}

/// Every host has one page, and each of them kills the parser: a wildcard stands for the names. The
/// site is parked after five hosts, and given up when none of the next ones can be read.
#[tokio::test(start_paused = true)]
async fn a_site_whose_hosts_kill_the_parser_is_parked_and_given_up() {
    fn fate(page: &RawPage) -> Cost {
        if page.url.host_str().ends_with(".wild.test") {
            Cost { cpu: Duration::from_secs(1), deaths: 2 }
        } else {
            CHEAP
        }
    }
    let (bench, clock) = Bench::of_hosts_by_hand(|_, _| page(&[]));
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Priced(fate)));
    let hosts = (0..20).map(|number| url(&format!("http://h{number}.wild.test/")));
    let mut crawl = crawl(hosts.chain([url("http://good.test/")]).collect());
    // One at a time: none is under way when its site is parked.
    crawl.politeness.rate_per_second = Some(1.0);
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    begun(&bench, 1).await;
    let mut parked = Vec::new();
    loop {
        let progress = come_to_rest(&bench, &engine, no).await;
        assert!(progress.parked.len() <= 1, "{:?}", progress.parked);
        if let Some(site) = progress.parked.first() {
            let why = progress.why_host_waits("h19.wild.test");
            assert_eq!(why, Some(site.text()));
            parked.push(site.clone());
        }
        if matches!(progress.state, CrawlState::Finished { .. }) {
            break;
        }
        clock.advance_ms(20_000);
    }
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    assert_eq!((parked[0].host.as_str(), parked[0].reason), ("*.wild.test", Reason::ParseLimit));
    assert_eq!((parked[0].pages, parked[0].left_s), (5, Some(60)));
    // Five, one after each of three parks, and the good one.
    assert_eq!(bench.fetcher.log().len(), 9);
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.stats.failures[&Reason::ParseLimit], 12);
    assert_eq!(record.stats.failures[&Reason::ParseFailed], 8);
}

/// Only a test that has failed waits for so long.
pub(crate) const FAILED_AFTER: Duration = Duration::from_secs(60);

/// One costly page, and its host was asked for one page at a time for as long as the process ran, also
/// by crawls that never saw a costly one.
#[tokio::test]
async fn a_costly_page_is_forgotten_after_a_cheap_one_also_in_a_later_crawl() {
    fn fate(page: &RawPage) -> Cost {
        let cpu = Duration::from_millis(60);
        if page.url.path() == "/costly" { Cost { cpu, ..CHEAP } } else { CHEAP }
    }
    let (bench, clock) = Bench::of_hosts_by_hand(|_, path| match path {
        "/" | "/costly" => small(path),
        // Under way for as long as the test runs.
        _ => page(&[]).after(Duration::from_secs(3_600)),
    });
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Priced(fate)));
    let start = async |seed: &str| {
        let mut crawl = crawl(vec![url(seed)]);
        crawl.politeness.per_host = 4;
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        no
    };
    let first = start("http://a.test/costly").await;
    finished(&engine, first).await;
    clock.advance_ms(10_000);
    start("http://a.test/").await;
    let asked = tokio::time::timeout(FAILED_AFTER, begun(&bench, 6)).await;
    assert!(asked.is_ok(), "asked for one page at a time: {:?}", bench.asked());
}

/// A probe teaches how unknown URLs look: what it costs to parse is not held against the site.
#[tokio::test]
async fn a_probe_that_is_costly_to_parse_costs_the_host_nothing() {
    static PROBES: AtomicU32 = AtomicU32::new(0);
    fn fate(page: &RawPage) -> Cost {
        if page.url.path().len() < 30 {
            return CHEAP;
        }
        PROBES.fetch_add(1, Ordering::Relaxed);
        Cost { cpu: Duration::from_secs(4), deaths: 2 }
    }
    let (bench, _) = Bench::of_hosts_by_hand(|_, path| match path {
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        path if path.len() > 30 => page(&[]),
        // A chain: the probe comes back before its end.
        path => {
            let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
            if number < 20 { page(&[&format!("/{}", number + 1)]) } else { page(&[]) }
        }
    });
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Priced(fate)));
    let no = accept(&store, polite_crawl());
    engine.handle().run(no).await.unwrap();
    // No time passes: a host that is left alone is never asked again.
    let ended = tokio::time::timeout(FAILED_AFTER, finished(&engine, no)).await;
    assert_eq!(ended.map(|progress| progress.stats.ok), Ok(21), "{:?}", bench.asked());
    assert_eq!(PROBES.load(Ordering::Relaxed), 1);
    engine.shutdown().await.unwrap();
}
