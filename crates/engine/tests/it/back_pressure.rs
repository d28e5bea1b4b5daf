//! Pages that wait for the parser keep no other site and no other crawl waiting.

use std::sync::Arc;
use std::time::Duration;

use telusur_engine::Engine;
use telusur_engine::control::{Control, ExplainUrl};
use telusur_ledger::Store;
use telusur_model::{Crawl, CrawlNo, CrawlState, Fairness, Progress};
use telusur_parse_pool::Parser;
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, assert_verified, crawl, finished, until, url};
use crate::parse_fairness::{FAILED_AFTER, Stuck, crawl_of, small, three_seconds};

const BAD_HOSTS: usize = 200;
const BODY_BYTES: usize = 1 << 20;

/// Hosts whose name begins with `bad` answer with the largest body there is; the others have twenty
/// pages, or 150 (`long`).
fn answer(host: &str, path: &str) -> FakeAnswer {
    if host.starts_with("bad") {
        // A comment, which costs nothing once the parser is let go.
        return FakeAnswer::html(format!("<title>x</title><!--{}-->", "x".repeat(BODY_BYTES - 50)));
    }
    if !host.starts_with("long") {
        return small(path);
    }
    let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
    let links = if path == "/" { 1..150 } else { 0..0 };
    let links: String = links.map(|number| format!("<a href=/{number}>on</a>")).collect();
    // No page looks like another: this is no trap.
    let words =
        (0..40).map(|word| format!("w{}", (number * 40 + word).wrapping_mul(2_654_435_761)));
    let text = words.collect::<Vec<_>>().join(" ");
    FakeAnswer::html(format!("<title>Page {number} of {host}</title><p>{text}</p>{links}"))
}

/// The hosts of one site.
fn wild() -> Vec<String> {
    (0..BAD_HOSTS).map(|number| format!("bad{number}.wild.test")).collect()
}

fn seeds(hosts: impl IntoIterator<Item = String>) -> Crawl {
    crawl(hosts.into_iter().map(|host| url(&format!("http://{host}/"))).collect())
}

struct Rig {
    bench: Bench,
    store: Arc<EmbeddedStore>,
    parser: Arc<Stuck>,
    engine: Engine,
}

impl Rig {
    fn new(bench: Bench) -> Self {
        let store = bench.open();
        let parser = Arc::new(Stuck::default());
        let engine = bench.engine_with_parser(&store, Arc::clone(&parser) as Arc<dyn Parser>);
        Self { bench, store, parser, engine }
    }

    async fn run(&self, crawl: Crawl) -> CrawlNo {
        let no = accept(&self.store, crawl);
        self.engine.handle().run(no).await.unwrap();
        no
    }

    async fn until(&self, no: CrawlNo, is_wanted: impl Fn(&Progress) -> bool) -> Progress {
        let reached = tokio::time::timeout(FAILED_AFTER, until(&self.engine, no, is_wanted)).await;
        match reached {
            Ok(progress) => progress,
            Err(_) => {
                let shown = self.engine.handle().progress().borrow()[&no].clone();
                panic!("{} stored, {} asked", shown.stats.pages, self.bench.fetcher.log().len());
            }
        }
    }

    /// Waits until a crawl has all the pages that it can get while the parser is stuck.
    async fn until_blocked(&self, no: CrawlNo) -> Progress {
        let is_blocked = |it: &Progress| !it.parse_backlog.is_empty() && it.in_flight == 0;
        until(&self.engine, no, is_blocked).await
    }

    async fn finished(&self, no: CrawlNo) -> Progress {
        self.until(no, |progress| matches!(progress.state, CrawlState::Finished { .. })).await
    }

    async fn end(self) {
        self.parser.free();
        self.engine.shutdown().await.unwrap();
        assert_verified(&self.store);
    }
}

/// None of the pages of the 200 hosts comes back from the parser; all of the others' do.
#[tokio::test]
async fn a_site_of_many_hosts_keeps_no_other_site_of_its_crawl_waiting() {
    let goods = (0..20).map(|number| format!("good{number}.test"));
    let long = (0..3).map(|number| format!("long{number}.test"));
    let cases = [
        (Fairness::None, goods.collect::<Vec<_>>(), 20 * 20),
        (Fairness::Equal, long.collect(), 3 * 150),
    ];
    for (fairness, others, pages) in cases {
        let rig = Rig::new(Bench::of_hosts(answer));
        let mut crawl = seeds(wild().into_iter().chain(others));
        crawl.politeness.fairness = fairness;
        let no = rig.run(crawl).await;
        rig.until(no, |progress| progress.stats.pages == pages).await;
        // Another crawl of the same process, too.
        let other = rig.run(crawl_of("other.test")).await;
        assert_eq!(rig.finished(other).await.stats.ok, 20);
        // Nothing is lost.
        rig.parser.free();
        let progress = rig.finished(no).await;
        assert_eq!(progress.stats.ok, pages + BAD_HOSTS as u64);
        assert_eq!(progress.parse_backlog, Vec::<String>::new());
        rig.end().await;
    }
}

/// The same with many sites of one page each: more than the pipeline has room for, but for its reserve.
#[tokio::test]
async fn many_costly_sites_keep_no_other_site_of_their_crawl_waiting() {
    const COSTLY: u64 = 90;
    let rig = Rig::new(Bench::of_hosts(answer));
    let costly = (0..COSTLY).map(|number| format!("bad{number}.test"));
    let others = (0..3).map(|number| format!("long{number}.test"));
    let no = rig.run(seeds(costly.chain(others))).await;
    rig.until(no, |progress| progress.stats.pages == 3 * 150).await;
    rig.parser.free();
    assert_eq!(rig.finished(no).await.stats.ok, 3 * 150 + COSTLY);
    rig.end().await;
}

/// The same with 200 sites, none of which has more than one page: one crawl, and so one share.
#[tokio::test]
async fn a_crawl_of_many_costly_sites_keeps_no_other_crawl_waiting() {
    let rig = Rig::new(Bench::of_hosts(answer));
    let other = rig.run(crawl_of("good.test")).await;
    rig.finished(other).await;
    let mut costly = seeds((0..BAD_HOSTS).map(|number| format!("bad{number}.test")));
    costly.politeness.workers = 100;
    let costly = rig.run(costly).await;
    // Alone, it may use all there is.
    while rig.bench.fetcher.log().len() < 20 + 64 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut others = Vec::new();
    for number in 0..3 {
        others.push(rig.run(crawl_of(&format!("other{number}.test"))).await);
    }
    for other in others {
        assert_eq!(rig.finished(other).await.stats.ok, 20);
    }
    rig.parser.free();
    assert_eq!(rig.finished(costly).await.stats.ok, BAD_HOSTS as u64);
    rig.end().await;
}

#[tokio::test]
async fn it_says_that_the_pages_of_a_site_wait_for_the_parser() {
    let rig = Rig::new(Bench::of_hosts(answer));
    let no = rig.run(seeds(wild())).await;
    let progress = rig.until_blocked(no).await;
    assert_eq!(progress.parse_backlog, ["wild.test"]);
    let why = progress.why_host_waits("bad199.wild.test").unwrap();
    assert!(why.contains("pages of wild.test wait for the parser"), "{why}");
    assert_eq!(progress.why_host_waits("notwild.test"), None);
    let control = Control::of_engine(Arc::clone(&rig.store) as Arc<dyn Store>, rig.engine.handle());
    let explain = ExplainUrl { url: "http://bad199.wild.test/".into(), crawl: None };
    let (explanations, ()) = control.collect(&explain).unwrap();
    assert_eq!(explanations.last().unwrap().parked, Some(why));
    rig.end().await;
}

/// A site is released whatever becomes of the crawl that filled its share.
#[tokio::test(start_paused = true)]
async fn a_site_is_released_when_its_crawl_is_paused_or_stopped() {
    let (bench, clock) = Bench::of_hosts_by_hand(answer);
    let rig = Rig::new(bench);
    let handle = rig.engine.handle();
    let no = rig.run(seeds(wild())).await;
    rig.until_blocked(no).await;
    let (paused, ()) = tokio::join!(handle.pause(no), three_seconds(&clock));
    paused.unwrap();
    // Another crawl may ask the site; its pages are stuck in their turn.
    let asked = rig.bench.fetcher.log().len();
    let second = rig.run(seeds(wild())).await;
    rig.until_blocked(second).await;
    assert!(rig.bench.fetcher.log().len() > asked + 2);
    let (stopped, ()) = tokio::join!(handle.stop(second), three_seconds(&clock));
    stopped.unwrap();
    // The one that was paused goes on, and gets everything.
    rig.parser.free();
    handle.resume(no).await.unwrap();
    assert_eq!(finished(&rig.engine, no).await.stats.ok, BAD_HOSTS as u64);
    rig.end().await;
}

/// The engine ends while a site is blocked, and the next one begins with nothing blocked.
#[tokio::test(start_paused = true)]
async fn the_engine_ends_while_a_site_is_blocked() {
    let (bench, clock) = Bench::of_hosts_by_hand(answer);
    let Rig { bench, store, parser, engine } = {
        let rig = Rig::new(bench);
        let no = rig.run(seeds(wild())).await;
        rig.until_blocked(no).await;
        rig
    };
    let (ended, ()) = tokio::join!(engine.shutdown(), three_seconds(&clock));
    ended.unwrap();
    assert_verified(&store);
    drop((store, parser));
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(CrawlNo(1)).await.unwrap();
    assert_eq!(finished(&engine, CrawlNo(1)).await.stats.ok, BAD_HOSTS as u64);
    engine.shutdown().await.unwrap();
    assert_verified(&store);
}
