//! Visits that come back late, hosts that are down for a while, and services that start before their
//! network.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use telusur_engine::Engine;
use telusur_engine::control::{Control, ResumeCrawl};
use telusur_ledger::{CrawlStore, FrontierStore};
use telusur_model::{
    Clock, Crawl, CrawlNo, CrawlState, EngineFault, FinishReason, Limits, PauseReason, Progress,
    Reason, RobotsAnswer, RobotsRules, Seeds,
};
use telusur_testkit::clock::ManualClock;
use telusur_testkit::{FakeAnswer, FakeRequest, FakeWebFetcher, Website};

use crate::bench::{Bench, accept, crawl, finished, page, polite_crawl, until, url};

/// Far more than anything here takes. A paused clock runs on while threads of the engine are at work.
const LONG: Duration = Duration::from_secs(1_000_000);

/// The time of an engine, which stands still until it is moved.
struct Time<'a> {
    engine: &'a Engine,
    clock: &'a ManualClock,
}

impl Time<'_> {
    /// So much time passes, and the engine has looked at the clock.
    async fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let mut pictures = self.engine.handle().progress();
        for _ in 0..2 {
            pictures.changed().await.unwrap();
        }
    }

    /// A crawl comes to be as wanted without any time passing.
    async fn at_once(&self, no: CrawlNo, is_wanted: impl Fn(&Progress) -> bool) -> Progress {
        let wanted = tokio::time::timeout(LONG, until(self.engine, no, is_wanted)).await;
        wanted.unwrap_or_else(|_| panic!("{:?}", self.engine.handle().progress().borrow()[&no]))
    }

    /// Time passes step by step until a crawl is as wanted.
    async fn pass_until(
        &self,
        step_ms: u64,
        no: CrawlNo,
        is_wanted: impl Fn(&Progress) -> bool,
    ) -> Progress {
        const STEPS_MAX: u32 = 20_000;
        for _ in 0..STEPS_MAX {
            // A hundred ticks of the engine.
            let wanted = until(self.engine, no, &is_wanted);
            match tokio::time::timeout(Duration::from_secs(10), wanted).await {
                Ok(progress) => return progress,
                Err(_) => self.clock.advance_ms(step_ms),
            }
        }
        panic!("{:?}", self.engine.handle().progress().borrow()[&no]);
    }
}

async fn finished_in_time(engine: &Engine, no: CrawlNo) -> Progress {
    let ended = tokio::time::timeout(LONG, finished(engine, no)).await;
    ended.unwrap_or_else(|_| panic!("not over: {:?}", engine.handle().progress().borrow()[&no]))
}

fn slow(_: &str, path: &str) -> FakeAnswer {
    match path {
        "/slow" => page(&[]).after(Duration::from_secs(10_000)),
        _ => page(&[]),
    }
}

fn slow_crawl(path: &str, per_host: u16) -> Crawl {
    let mut crawl = crawl(vec![url(&format!("http://a.test{path}"))]);
    crawl.politeness.per_host = per_host;
    crawl.fetch.timeout_ms = 20_000_000;
    crawl
}

/// Starts a crawl of a page that takes hours, and stops it while the page is under way. The engine's clock
/// is moved by hand: it would run on while the writer is at work, and bring it more work than it can do.
async fn stopped_crawl(bench: &Bench, engine: &Engine, clock: &ManualClock, no: CrawlNo) {
    let handle = engine.handle();
    handle.run(no).await.unwrap();
    while bench.fetcher.log().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut stopped = std::pin::pin!(handle.stop(no));
    loop {
        tokio::select! {
            biased;
            stopped = &mut stopped => break stopped.unwrap(),
            () = tokio::time::sleep(Duration::from_secs(1)) => clock.advance_ms(1_000),
        }
    }
}

/// Its host was once taken for good: later crawls of it asked nothing and never ended.
#[tokio::test(start_paused = true)]
async fn a_visit_that_ends_after_its_crawl_leaves_its_host_to_others() {
    let (bench, clock) = Bench::of_hosts_by_hand(slow);
    let store = bench.open();
    let engine = bench.engine(&store);
    let first = accept(&store, slow_crawl("/slow", 1));
    stopped_crawl(&bench, &engine, &clock, first).await;
    let second = accept(&store, slow_crawl("/", 1));
    engine.handle().run(second).await.unwrap();
    assert_eq!(finished_in_time(&engine, second).await.stats.ok, 1);
    engine.shutdown().await.unwrap();
}

/// The same for what must be known before a page is asked for.
#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_comes_after_its_crawl_leaves_its_host_to_others() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    let (bench, clock) = Bench::of_hosts_by_hand(|_, path| match path {
        "/robots.txt" if !ASKED.swap(true, Ordering::Relaxed) => {
            FakeAnswer::not_found().after(Duration::from_secs(10_000))
        }
        "/robots.txt" => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let polite = || {
        let mut crawl = slow_crawl("/", 1);
        crawl.politeness.robots = RobotsRules::Obey;
        accept(&store, crawl)
    };
    stopped_crawl(&bench, &engine, &clock, polite()).await;
    let second = polite();
    engine.handle().run(second).await.unwrap();
    assert_eq!(finished_in_time(&engine, second).await.stats.ok, 1);
    engine.shutdown().await.unwrap();
}

/// Two hosts on one address.
struct OneAddress;

impl Website for OneAddress {
    fn address_of(&self, _: &str) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::new(127, 7, 7, 7))
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        Some(slow(request.host, request.target))
    }
}

/// So was its address, with every other host that lives there.
#[tokio::test(start_paused = true)]
async fn a_visit_that_ends_after_its_crawl_leaves_its_address_to_others() {
    let by_hand = Arc::new(ManualClock::new());
    let clock = Arc::clone(&by_hand) as Arc<dyn Clock>;
    let fetcher = FakeWebFetcher::of_website(Arc::new(OneAddress), Arc::clone(&clock));
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench { dir, fetcher: Arc::new(fetcher), clock };
    let store = bench.open();
    let engine = bench.engine(&store);
    let first = accept(&store, slow_crawl("/slow", 1));
    stopped_crawl(&bench, &engine, &by_hand, first).await;
    let mut neighbour = slow_crawl("/", 1);
    neighbour.seeds = Seeds::Links(vec![url("http://b.test/")]);
    let second = accept(&store, neighbour);
    engine.handle().run(second).await.unwrap();
    assert_eq!(finished_in_time(&engine, second).await.stats.ok, 1);
    engine.shutdown().await.unwrap();
}

/// A visit of the run that was stopped once ended the engine.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_runs_again_takes_in_what_its_earlier_run_had_under_way() {
    for per_host in [1, 2] {
        let (bench, clock) = Bench::of_hosts_by_hand(slow);
        let store = bench.open();
        let engine = bench.engine(&store);
        let again = accept(&store, slow_crawl("/slow", per_host));
        stopped_crawl(&bench, &engine, &clock, again).await;
        engine.handle().run(again).await.unwrap();
        let progress = finished_in_time(&engine, again).await;
        assert_eq!((progress.stats.ok, progress.stats.failed), (1, 0), "{per_host} at once");
        engine.shutdown().await.unwrap();
    }
}

/// A host whose rules are known was once barred, with all its pages, because it did not bear witness.
#[tokio::test(start_paused = true)]
async fn a_witness_that_is_down_keeps_its_rules() {
    static UP: AtomicU8 = AtomicU8::new(2);
    let (bench, clock) = Bench::of_hosts_by_hand(|host, path| {
        let is_up = match host {
            "a.test" => UP.load(Ordering::Relaxed) > 1,
            _ => UP.load(Ordering::Relaxed) > 0,
        };
        match path {
            _ if !is_up => FakeAnswer::silence(),
            "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nDisallow: /no\n"),
            "/sitemap.xml" => FakeAnswer::not_found(),
            _ => page(&[]),
        }
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let of_host = |host: &str| {
        let mut crawl = polite_crawl();
        let seeds = (0..400).map(|number| url(&format!("http://{host}/{number}"))).collect();
        crawl.seeds = Seeds::Links(seeds);
        crawl.politeness.delay_ms = 1_000;
        accept(&store, crawl)
    };
    let (a, b) = (of_host("a.test"), of_host("b.test"));
    engine.handle().run(a).await.unwrap();
    engine.handle().run(b).await.unwrap();
    let time = Time { engine: &engine, clock: &clock };
    for no in [a, b] {
        time.pass_until(1_000, no, |progress| progress.stats.ok >= 5).await;
    }
    UP.store(0, Ordering::Relaxed);
    time.pass_until(1_000, a, |progress| progress.suspects_network).await;
    UP.store(1, Ordering::Relaxed);
    let ok_before = time.pass_until(1_000, b, |it| !it.suspects_network).await.stats.ok;
    // Long enough for all attempts at one file.
    time.pass_until(1_000, b, |progress| progress.stats.ok >= ok_before + 120).await;
    let row = store.origin(&url("http://a.test/").origin()).unwrap().unwrap();
    assert!(matches!(row.robots, RobotsAnswer::Text { .. }), "{:?}", row.robots);
    let called = bench.asked().iter().filter(|it| *it == "a.test/robots.txt").count();
    assert!(called <= 3, "asked {called} times: once for the rules, once for each doubt");
    UP.store(2, Ordering::Relaxed);
    let progress = time.pass_until(1_000, a, |it| it.state != CrawlState::Running).await;
    let barred = progress.stats.failures.get(&Reason::RobotsUnreachable);
    assert_eq!(barred, None, "no page is lost with the rules");
    engine.shutdown().await.unwrap();
}

/// What was refused once stood in the store as running.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_is_refused_keeps_its_state() {
    let bench = Bench::of_hosts(slow);
    let store = bench.open();
    let engine = bench.engine(&store);
    let mut unusable = crawl(vec![url("http://a.test/")]);
    unusable.scope.exclude = vec!["(".into()];
    let no = accept(&store, unusable);
    let paused = CrawlState::Paused { why: PauseReason::Asked };
    store.set_state(no, paused, bench.clock.wall()).unwrap();
    engine.handle().run(no).await.unwrap_err();
    assert_eq!(store.crawl(no).unwrap().unwrap().state, paused);
    engine.shutdown().await.unwrap();
}

/// Why a crawl was set aside was once forgotten before it was certain that it runs.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_was_set_aside_keeps_the_reason_until_it_runs() {
    let (bench, _) = Bench::of_hosts_by_hand(slow);
    let store = bench.open();
    let engine = bench.engine(&store);
    let aside = CrawlState::Paused { why: PauseReason::EngineStopped };
    let fault = EngineFault { times: 2, why: "a queue row is damaged".into(), is_certain: true };
    let accept_aside = |pattern: &str| {
        let mut crawl = crawl(vec![url("http://a.test/slow")]);
        crawl.scope.exclude = vec![pattern.to_owned()];
        let no = accept(&store, crawl);
        store.set_state(no, aside, bench.clock.wall()).unwrap();
        store.set_fault(no, Some(fault.clone())).unwrap();
        no
    };
    let control = Control::of_engine(store.clone(), engine.handle());
    let resume = async |no: CrawlNo| {
        let (control, order) = (control.clone(), ResumeCrawl { crawl: no.to_string() });
        let replied = tokio::task::spawn_blocking(move || control.collect(&order)).await.unwrap();
        let record = store.crawl(no).unwrap().unwrap();
        (replied.is_err(), record.state, record.fault)
    };
    let (unusable, usable) = (accept_aside("("), accept_aside("/never"));
    assert_eq!(resume(unusable).await, (true, aside, Some(fault.clone())));
    assert_eq!(resume(usable).await, (false, CrawlState::Running, None));
    engine.vanish().await;
}

fn offline() -> CrawlState {
    CrawlState::Paused { why: PauseReason::NoNetwork }
}

/// The path is no rules and no sitemap, or a page.
fn plain_site(path: &str) -> FakeAnswer {
    match path {
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        _ => page(&[]),
    }
}

/// A service that starts before its network once gave up robots.txt after twelve seconds, and with it
/// everything that was queued.
#[tokio::test(start_paused = true)]
async fn a_service_that_starts_before_its_network_loses_nothing() {
    static IS_UP: AtomicBool = AtomicBool::new(false);
    let (bench, clock) = Bench::of_hosts_by_hand(|_, path| match IS_UP.load(Ordering::Relaxed) {
        true => plain_site(path),
        false => FakeAnswer::no_route(),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let time = Time { engine: &engine, clock: &clock };
    let mut crawls = Vec::new();
    for host in 0..2 {
        let mut crawl = polite_crawl();
        crawl.seeds = Seeds::Links(vec![url(&format!("http://h{host}.test/"))]);
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        crawls.push(no);
    }
    for no in &crawls {
        let ended = time.pass_until(1_000, *no, |it| it.state != CrawlState::Running).await;
        assert_eq!((ended.state, ended.stats.failed), (offline(), 0));
    }
    // They try in turn, and are not charged for it.
    for _ in 0..6 {
        let asked = bench.fetcher.log().len();
        let has_tried = |it: &Progress| it.state == offline() && bench.fetcher.log().len() > asked;
        time.pass_until(5_000, crawls[0], has_tried).await;
    }
    IS_UP.store(true, Ordering::Relaxed);
    for no in &crawls {
        let ended = time.pass_until(1_000, *no, is_over).await;
        assert_eq!((ended.stats.ok, ended.stats.failed), (1, 0));
    }
    engine.shutdown().await.unwrap();
}

fn is_over(progress: &Progress) -> bool {
    matches!(progress.state, CrawlState::Finished { .. })
}

/// Machines that refuse and names that do not exist are answers: nobody waits for a network.
#[tokio::test(start_paused = true)]
async fn crawls_of_closed_ports_and_unknown_names_end_with_their_reasons() {
    for crawls in [1, 4] {
        let (bench, clock) = Bench::of_hosts_by_hand(|_, _| FakeAnswer::cut());
        let store = bench.open();
        let engine = bench.engine(&store);
        let time = Time { engine: &engine, clock: &clock };
        let mut dead = Vec::new();
        for number in 0..crawls {
            for host in [format!("closed{number}.test"), format!("unknown{number}.example")] {
                let mut crawl = polite_crawl();
                crawl.seeds = Seeds::Links(vec![url(&format!("http://{host}/"))]);
                let no = accept(&store, crawl);
                engine.handle().run(no).await.unwrap();
                dead.push(no);
            }
        }
        for no in dead {
            let ended = time.pass_until(1_000, no, |it| it.state != CrawlState::Running).await;
            let no_start = CrawlState::Finished { why: FinishReason::NoStart };
            assert_eq!((ended.state, ended.stats.failed), (no_start, 1));
            let why: Vec<Reason> = ended.stats.failures.keys().copied().collect();
            assert!(matches!(why[..], [Reason::RobotsUnreachable | Reason::DnsError]), "{why:?}");
        }
        let attempts = usize::from(polite_crawl().politeness.attempts_max);
        assert_eq!(bench.asked().len(), crawls * attempts, "robots.txt of each closed port");
        engine.shutdown().await.unwrap();
    }
}

/// A site without an end, which is up or not.
fn endless(is_up: bool, path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    match is_up {
        true => FakeAnswer::page_about(number, &[&format!("/{}", number + 1)]),
        false => FakeAnswer::silence(),
    }
}

fn endless_crawl(host: &str) -> Crawl {
    let mut crawl = crawl(vec![url(&format!("http://{host}/0"))]);
    crawl.politeness.delay_ms = 1_000;
    crawl
}

/// A site that died once kept all other crawls from starting, for an hour.
#[tokio::test(start_paused = true)]
async fn one_dead_site_holds_up_no_new_crawl_for_long() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let (bench, clock) = Bench::of_hosts_by_hand(|host, path| {
        endless(host == "only.test" && IS_UP.load(Ordering::Relaxed), path)
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let time = Time { engine: &engine, clock: &clock };
    let lone = accept(&store, endless_crawl("only.test"));
    handle.run(lone).await.unwrap();
    time.pass_until(1_000, lone, |progress| progress.stats.ok >= 3).await;
    IS_UP.store(false, Ordering::Relaxed);
    time.pass_until(1_000, lone, |progress| progress.suspects_network).await;
    for other in 0..3 {
        time.pass(29_000).await;
        let held_back = handle.holds_back();
        assert_eq!(held_back, Some(PauseReason::NoNetwork), "before crawl {other}");
        time.pass(1_000).await;
        assert_eq!(handle.holds_back(), None, "before crawl {other}");
        let no = accept(&store, endless_crawl(&format!("other{other}.test")));
        handle.run(no).await.unwrap();
        assert!(handle.holds_back().is_some(), "the next one waits for what this one finds out");
    }
    engine.shutdown().await.unwrap();
}

/// A lone host that died once kept its crawl running for an hour.
#[tokio::test(start_paused = true)]
async fn a_crawl_of_one_host_that_died_waits_and_goes_on_when_it_is_back() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let (bench, clock) =
        Bench::of_hosts_by_hand(|_, path| endless(IS_UP.load(Ordering::Relaxed), path));
    let store = bench.open();
    let engine = bench.engine(&store);
    let time = Time { engine: &engine, clock: &clock };
    let lone = accept(&store, endless_crawl("only.test"));
    engine.handle().run(lone).await.unwrap();
    time.pass_until(1_000, lone, |progress| progress.stats.ok >= 3).await;
    IS_UP.store(false, Ordering::Relaxed);
    time.pass_until(1_000, lone, |progress| progress.suspects_network).await;
    time.pass(600_000).await;
    let cut_off = time.at_once(lone, |progress| progress.state == offline()).await;
    // It tries by itself, and waits again.
    for _ in 0..3 {
        let asked = bench.fetcher.log().len();
        let has_tried = |it: &Progress| it.state == offline() && bench.fetcher.log().len() > asked;
        time.pass_until(5_000, lone, has_tried).await;
    }
    IS_UP.store(true, Ordering::Relaxed);
    let ok = cut_off.stats.ok;
    let back = time.pass_until(1_000, lone, |it| it.stats.ok > ok + 3).await;
    assert_eq!(back.stats.failed, 0);
    engine.shutdown().await.unwrap();
}

/// With somebody else to ask, the same host is given up after its ordinary attempts.
#[tokio::test(start_paused = true)]
async fn a_dead_host_beside_one_that_answers_is_given_up() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let (bench, clock) = Bench::of_hosts_by_hand(|host, path| {
        endless(host == "good.test" || IS_UP.load(Ordering::Relaxed), path)
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let time = Time { engine: &engine, clock: &clock };
    let lone = accept(&store, endless_crawl("only.test"));
    engine.handle().run(lone).await.unwrap();
    time.pass_until(1_000, lone, |progress| progress.stats.ok >= 3).await;
    IS_UP.store(false, Ordering::Relaxed);
    time.pass_until(5_000, lone, |progress| progress.state == offline()).await;
    let good = accept(&store, endless_crawl("good.test"));
    engine.handle().run(good).await.unwrap();
    let ended = time.pass_until(1_000, lone, is_over).await;
    assert_eq!(ended.stats.failures.get(&Reason::TimeoutConnect), Some(&1));
    engine.shutdown().await.unwrap();
}

/// A crawl that sits in `Retry-After` runs, but asks nothing: nobody would have found out that the
/// network is back.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_waits_for_retry_after_keeps_no_other_from_trying() {
    static IS_UP: AtomicBool = AtomicBool::new(false);
    let (bench, clock) = Bench::of_hosts_by_hand(|host, _| match host {
        "busy.test" => busy(),
        _ if IS_UP.load(Ordering::Relaxed) => page(&[]),
        _ => FakeAnswer::no_route(),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let time = Time { engine: &engine, clock: &clock };
    let mut waiting = crawl(vec![url("http://busy.test/")]);
    waiting.limits.patience_ms = 0;
    let waiting = accept(&store, waiting);
    engine.handle().run(waiting).await.unwrap();
    time.at_once(waiting, |progress| progress.retry_after_ms.is_some()).await;
    let cut_off = accept(&store, crawl(vec![url("http://a.test/")]));
    engine.handle().run(cut_off).await.unwrap();
    time.pass_until(1_000, cut_off, |progress| progress.suspects_network).await;
    time.pass(31_000).await;
    time.at_once(cut_off, |progress| progress.state == offline()).await;
    IS_UP.store(true, Ordering::Relaxed);
    // The wait for the next trial begins when the pause is seen.
    time.pass(30_000).await;
    time.pass(31_000).await;
    assert_eq!(time.at_once(cut_off, is_over).await.stats.ok, 1);
    assert_eq!(bench.asked().iter().filter(|it| it.starts_with("busy")).count(), 1);
    engine.shutdown().await.unwrap();
}

/// After a restart nobody remembered that the host had asked for the wait: the crawl sat there for as long
/// as the host said, without a word.
#[tokio::test(start_paused = true)]
async fn a_wait_for_retry_after_goes_on_after_a_restart() {
    let (bench, clock) = Bench::of_hosts_by_hand(|_, _| busy());
    let store = bench.open();
    let engine = bench.engine(&store);
    let seeds = (0..3).map(|path| url(&format!("http://busy.test/{path}"))).collect();
    let no = accept(&store, crawl(seeds));
    engine.handle().run(no).await.unwrap();
    let time = Time { engine: &engine, clock: &clock };
    time.at_once(no, |progress| progress.retry_after_ms.is_some()).await;
    engine.shutdown().await.unwrap();
    drop(store);
    let asked = bench.asked().len();

    let store = bench.open_again().await;
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    let time = Time { engine: &engine, clock: &clock };
    time.at_once(no, |progress| progress.retry_after_ms.is_some()).await;
    time.pass(Limits::default().patience_ms).await;
    let ended = time.at_once(no, is_over).await;
    assert_eq!(ended.stats.failures.get(&Reason::RetryAfter), Some(&3));
    assert_eq!(bench.asked().len(), asked, "the host was left alone");
    engine.shutdown().await.unwrap();
}

fn busy() -> FakeAnswer {
    let mut answer = FakeAnswer::plain(429, "no");
    answer.headers.push(("retry-after", "3600".into()));
    answer
}
