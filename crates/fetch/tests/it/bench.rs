//! A fetcher on the bench: with a clock and names that the test controls.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use telusur_fetch::{
    Fetch, FetchOrder, FetchProfile, FetchSettings, NameAnswer, NameFailure, NameLookup, WebFetcher,
};
use telusur_model::{
    Clock, FetchOutcome, FetchRules, Fetched, Moment, PageUrl, RawPage, Reason, Timestamp,
};

use crate::script::{Act, ScriptedServer};

pub(crate) struct Bench {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) names: Arc<PreparedNames>,
    pub(crate) fetcher: WebFetcher,
    pub(crate) profile: FetchProfile,
}

impl Bench {
    /// A fetcher that may ask loopback addresses.
    pub(crate) fn new() -> Self {
        Self::with(FetchSettings::default(), FetchRules::default())
    }

    pub(crate) fn with_settings(settings: FetchSettings) -> Self {
        Self::with(settings, FetchRules::default())
    }

    pub(crate) fn with_rules(rules: FetchRules) -> Self {
        Self::with(FetchSettings::default(), rules)
    }

    pub(crate) fn with(settings: FetchSettings, mut rules: FetchRules) -> Self {
        if rules.allow_private.is_empty() {
            rules.allow_private = vec!["127.0.0.1".to_owned()];
        }
        let (clock, names) = (Arc::new(HandClock::default()), Arc::new(PreparedNames::default()));
        let fetcher = WebFetcher::with_lookup(settings, clock.clone(), names.clone());
        let profile = FetchProfile::new(&rules, 1 << 20, Vec::new()).unwrap();
        Self { clock, names, fetcher, profile }
    }

    pub(crate) async fn fetch(&self, url: &str) -> Fetched {
        let url = PageUrl::parse(url).unwrap();
        let profile = Arc::new(self.profile.clone());
        self.fetcher.fetch(FetchOrder::new(url, profile)).await
    }

    #[track_caller]
    pub(crate) fn page(&self, url: &str) -> impl Future<Output = RawPage> {
        let caller = std::panic::Location::caller();
        async move {
            match self.fetch(url).await.outcome {
                FetchOutcome::Page(page) => page,
                other => panic!("{caller}: {other:?}"),
            }
        }
    }
}

/// What a fresh fetcher makes of a server with this script.
pub(crate) async fn outcome(script: Vec<Act>) -> FetchOutcome {
    outcome_on(&Bench::new(), script).await
}

pub(crate) async fn outcome_on(bench: &Bench, script: Vec<Act>) -> FetchOutcome {
    let server = ScriptedServer::start(vec![script]).await;
    bench.fetch(&server.url("/")).await.outcome
}

/// The reason for which a visit failed or was refused.
#[track_caller]
pub(crate) fn reason(outcome: &FetchOutcome) -> Reason {
    match outcome {
        FetchOutcome::Failed { why, .. } | FetchOutcome::Refused { why, .. } => *why,
        other => panic!("{other:?}"),
    }
}

/// What the calendar shows in all tests: the 15th of November 2026, 17:59:26.
pub(crate) const WALL: Timestamp = Timestamp(1_794_765_566_000);

#[derive(Default)]
pub(crate) struct HandClock(AtomicU64);

impl HandClock {
    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        WALL
    }
}

/// Names whose answers are used up one after the other; the last one stays.
#[derive(Default)]
pub(crate) struct PreparedNames(Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>);

impl PreparedNames {
    pub(crate) fn add(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.0.lock().unwrap().entry(name.to_owned()).or_default().push_back(addresses);
    }
}

#[async_trait]
impl NameLookup for PreparedNames {
    async fn lookup(&self, name: &str) -> Result<NameAnswer, NameFailure> {
        let mut names = self.0.lock().unwrap();
        let answers =
            names.get_mut(name).ok_or(NameFailure { cause: "nxdomain", is_local: false })?;
        let addresses = answers.front().unwrap().clone();
        if answers.len() > 1 {
            answers.pop_front();
        }
        Ok(NameAnswer { addresses, ttl: Duration::ZERO })
    }
}
