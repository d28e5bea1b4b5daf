use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use telusur_model::Timestamp;

use super::*;

#[derive(Default)]
struct HandClock(AtomicU64);

impl HandClock {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}

/// Answers the same to everything, and counts.
struct Prepared {
    answer: Result<NameAnswer, NameFailure>,
    asked: AtomicUsize,
}

#[async_trait]
impl NameLookup for Prepared {
    async fn lookup(&self, _: &str) -> Result<NameAnswer, NameFailure> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.answer.clone()
    }
}

struct Bench {
    names: Names,
    clock: Arc<HandClock>,
    lookup: Arc<Prepared>,
}

impl Bench {
    fn new(answer: Result<NameAnswer, NameFailure>) -> Self {
        let clock = Arc::new(HandClock::default());
        let lookup = Arc::new(Prepared { answer, asked: AtomicUsize::new(0) });
        let names = Names::new(lookup.clone(), clock.clone(), Duration::from_secs(5), 3);
        Self { names, clock, lookup }
    }

    fn with_ttl(ttl: Duration) -> Self {
        Self::new(Ok(NameAnswer { addresses: vec!["8.8.8.8".parse().unwrap()], ttl }))
    }

    fn asked(&self) -> usize {
        self.lookup.asked.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_ttl_of_zero_is_no_storm_of_queries() {
    // D17.
    let bench = Bench::with_ttl(Duration::ZERO);
    bench.names.addresses("a.org").await.unwrap();
    bench.clock.advance(Duration::from_millis(4999));
    bench.names.addresses("a.org").await.unwrap();
    assert_eq!(bench.asked(), 1);
    bench.clock.advance(Duration::from_millis(1));
    bench.names.addresses("a.org").await.unwrap();
    assert_eq!(bench.asked(), 2);
}

#[tokio::test]
async fn no_answer_is_believed_for_ever() {
    // D17.
    let bench = Bench::with_ttl(Duration::from_secs(1 << 31));
    bench.names.addresses("a.org").await.unwrap();
    bench.clock.advance(Duration::from_secs(3600));
    bench.names.addresses("a.org").await.unwrap();
    assert_eq!(bench.asked(), 2);
}

#[tokio::test]
async fn failures_are_remembered_for_a_moment() {
    let bench = Bench::new(Err(NameFailure { cause: "servfail", is_local: false }));
    for _ in 0..3 {
        let failure = bench.names.addresses("a.org").await.unwrap_err();
        assert_eq!(failure, Failure::later(Reason::DnsError, "servfail: look up a.org"));
    }
    assert_eq!(bench.asked(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_a_failure() {
    let empty = NameAnswer { addresses: Vec::new(), ttl: Duration::from_secs(60) };
    let failure = Bench::new(Ok(empty)).names.addresses("a.org").await.unwrap_err();
    assert_eq!(failure.why, Reason::DnsError);
}

#[tokio::test]
async fn our_own_shortage_is_not_remembered_against_a_name() {
    let bench = Bench::new(Err(NameFailure { cause: "unreachable", is_local: true }));
    for _ in 0..2 {
        let failure = bench.names.addresses("a.org").await.unwrap_err();
        assert_eq!(failure.why, Reason::LocalTrouble);
    }
    assert_eq!(bench.asked(), 2);
}

#[tokio::test]
async fn the_cache_is_bounded() {
    let bench = Bench::with_ttl(Duration::from_secs(60));
    for name in ["a", "b", "c", "d", "e"] {
        bench.names.addresses(name).await.unwrap();
        assert!(bench.names.cache.lock().unwrap().len() <= 3);
    }
}

/// Answers when it is told to.
struct Patient {
    go: tokio::sync::Semaphore,
    asked: AtomicUsize,
}

#[async_trait]
impl NameLookup for Patient {
    async fn lookup(&self, _: &str) -> Result<NameAnswer, NameFailure> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.go.acquire().await.unwrap().forget();
        let addresses = vec!["8.8.8.8".parse().unwrap()];
        Ok(NameAnswer { addresses, ttl: Duration::from_secs(60) })
    }
}

#[tokio::test]
async fn many_visits_wait_for_one_lookup() {
    let lookup =
        Arc::new(Patient { go: tokio::sync::Semaphore::new(0), asked: AtomicUsize::new(0) });
    let clock = Arc::new(HandClock::default());
    let names = Arc::new(Names::new(lookup.clone(), clock, Duration::from_secs(5), 3));
    let given_up = tokio::spawn({
        let names = names.clone();
        async move { names.addresses("a.org").await }
    });
    while lookup.asked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let names = names.clone();
        waiting.spawn(async move { names.addresses("a.org").await.unwrap().len() });
    }
    tokio::task::yield_now().await;
    assert_eq!(lookup.asked.load(Ordering::Relaxed), 1);
    // When the first visit is given up, another one takes the lookup over.
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    lookup.go.add_permits(1);
    assert_eq!(waiting.join_all().await, vec![1; 100]);
    assert_eq!(lookup.asked.load(Ordering::Relaxed), 2);
}

/// A resolver that never answers.
struct Silent;

#[async_trait]
impl NameLookup for Silent {
    async fn lookup(&self, _: &str) -> Result<NameAnswer, NameFailure> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_resolver_is_not_waited_for() {
    // D16.
    let clock = Arc::new(HandClock::default());
    let names = Names::new(Arc::new(Silent), clock, Duration::from_secs(5), 3);
    let failure = names.addresses("a.org").await.unwrap_err();
    assert_eq!(failure.detail, "timeout: look up a.org");
}

#[test]
fn both_families_are_among_the_first() {
    // D18.
    let addresses: Vec<IpAddr> =
        ["1::1", "1::2", "1::3", "1.0.0.1", "1.0.0.2"].map(|text| text.parse().unwrap()).into();
    let in_turn: Vec<String> = families_in_turn(&addresses).iter().map(IpAddr::to_string).collect();
    assert_eq!(in_turn, ["1.0.0.1", "1::1", "1.0.0.2", "1::2", "1::3"]);
}

#[test]
fn only_short_names_use_the_search_list() {
    assert!(full_name("a.org").unwrap().is_fqdn());
    assert!(!full_name("intranet").unwrap().is_fqdn());
}

#[tokio::test]
async fn localhost_needs_no_name_server() {
    let found = SystemLookup::new().unwrap().lookup("localhost").await.unwrap();
    assert!(found.addresses.contains(&"127.0.0.1".parse().unwrap()));
}
