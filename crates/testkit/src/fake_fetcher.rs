//! [`FakeWebFetcher`]: asks a made-up web without opening a socket, so that a crawl of hours runs
//! in seconds under paused time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use telusur_fetch::{Fetch, FetchOrder, FetchProfile, ResolveFailure, Resolved, retry_after_ms};
use telusur_model::{Clock, FetchOutcome, Fetched, NetworkSign, PageUrl, RawPage, Reason, Retry};

use crate::answer::{FakeAnswer, FakeRequest, Lost, Website};
use crate::fake_web::{FakeWeb, LiveWeb};
use crate::request_log::RequestLog;

/// The detail of a failure for want of a route.
const NO_ROUTE: &str = "network is unreachable";

/// Asks a [`Website`] in memory.
pub struct FakeWebFetcher {
    website: Arc<dyn Website>,
    clock: Arc<dyn Clock>,
    log: RequestLog,
}

impl FakeWebFetcher {
    /// A fetcher for a synthetic web.
    pub fn new(web: FakeWeb, clock: Arc<dyn Clock>) -> Self {
        Self::of_website(Arc::new(LiveWeb::new(web)), clock)
    }

    /// A fetcher for any website.
    pub fn of_website(website: Arc<dyn Website>, clock: Arc<dyn Clock>) -> Self {
        Self { website, log: RequestLog::new(clock.clone()), clock }
    }

    /// Every request so far.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    async fn ask(&self, url: &PageUrl, profile: &FetchProfile) -> FetchOutcome {
        let host = url.authority();
        let target = url.target();
        let Some(answer) = self.website.answer_to(FakeRequest { host, target }) else {
            let detail = no_such_host(host);
            return FetchOutcome::Failed { why: Reason::DnsError, detail, retry: Retry::Never };
        };
        let number = self.log.started(host, target);
        let timeout = Duration::from_millis(profile.timeout_ms());
        tokio::time::sleep(answer.delay.min(timeout)).await;
        self.log.ended(number);
        if answer.delay > timeout {
            let detail = format!("no answer in {} ms", profile.timeout_ms());
            return failed_for_now(Reason::TimeoutFirstByte, detail);
        }
        outcome(url, answer, profile.body_bytes_max())
    }
}

#[async_trait]
impl Fetch for FakeWebFetcher {
    async fn fetch(&self, order: FetchOrder) -> Fetched {
        let started_at = self.clock.now();
        let address = self.website.address_of(order.url.authority()).map(IpAddr::from);
        if let (Some(on_request), Some(_)) = (order.on_request, address) {
            // The receiver may be gone; the visit goes on.
            let _ = on_request.try_send(started_at);
        }
        let outcome = self.ask(&order.url, &order.profile).await;
        let retry_after_ms = match &outcome {
            FetchOutcome::Page(page) => retry_after_ms(page, self.clock.wall()),
            _ => None,
        };
        Fetched {
            network: network_sign(&outcome),
            outcome,
            requested_at: address.map(|_| started_at),
            took_ms: self.clock.now().ms_since(started_at),
            address,
            retry_after_ms,
        }
    }

    async fn resolve(&self, url: &PageUrl, _profile: &FetchProfile) -> Resolved {
        let host = url.authority();
        let address = self.website.address_of(host).ok_or_else(|| ResolveFailure {
            why: Reason::DnsError,
            detail: no_such_host(host),
            may_pass: false,
        })?;
        Ok(vec![IpAddr::from(address)])
    }
}

/// What a real fetcher would make of this answer.
fn outcome(url: &PageUrl, answer: FakeAnswer, body_bytes_max: u64) -> FetchOutcome {
    match answer.lost {
        Some(Lost::Silent) => {
            return failed_for_now(Reason::TimeoutConnect, "no answer".to_owned());
        }
        Some(Lost::NoRoute) => {
            return failed_for_now(Reason::Refused, NO_ROUTE.to_owned());
        }
        None => {}
    }
    if answer.reset {
        return failed_for_now(Reason::ConnectionReset, "the connection was cut".to_owned());
    }
    if let (300..=399, Some(location)) = (answer.status, answer.header("location")) {
        return match url.join(location) {
            Ok(to) => FetchOutcome::Redirected { status: answer.status, to },
            Err(error) => FetchOutcome::Failed {
                why: Reason::BadRedirect,
                detail: error.to_string(),
                retry: Retry::Never,
            },
        };
    }
    let limit = usize::try_from(body_bytes_max).unwrap_or(usize::MAX);
    let headers = answer.headers.iter();
    FetchOutcome::Page(RawPage {
        url: url.clone(),
        status: answer.status,
        headers: headers.map(|(name, value)| ((*name).to_owned(), value.to_string())).collect(),
        body: answer.body.slice(..answer.body.len().min(limit)),
        truncated: answer.body.len() > limit,
        wire_bytes: answer.body.len().min(limit) as u64,
    })
}

/// What a real fetcher would say about the network.
fn network_sign(outcome: &FetchOutcome) -> NetworkSign {
    match outcome {
        FetchOutcome::Failed { detail, .. } if detail == NO_ROUTE => NetworkSign::Down,
        FetchOutcome::Failed { why: Reason::TimeoutConnect | Reason::TimeoutFirstByte, .. } => {
            NetworkSign::Unknown
        }
        _ => NetworkSign::Alive,
    }
}

fn failed_for_now(why: Reason, detail: String) -> FetchOutcome {
    FetchOutcome::Failed { why, detail, retry: Retry::Later }
}

fn no_such_host(host: &str) -> String {
    format!("{host} is not part of this web")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use telusur_model::{FetchRules, Moment};

    use super::*;
    use crate::clock::TokioClock;

    fn fetcher(spec: &str) -> FakeWebFetcher {
        let web = FakeWeb::new(spec.parse().unwrap()).unwrap();
        FakeWebFetcher::new(web, Arc::new(TokioClock::new()))
    }

    fn profile() -> FetchProfile {
        let rules = FetchRules { timeout_ms: 1000, ..FetchRules::default() };
        FetchProfile::new(&rules, 1 << 20, Vec::new()).unwrap()
    }

    async fn fetch(fetcher: &FakeWebFetcher, url: &str, profile: FetchProfile) -> Fetched {
        let url = PageUrl::parse(url).unwrap();
        fetcher.fetch(FetchOrder::new(url, Arc::new(profile))).await
    }

    #[track_caller]
    fn failure(fetched: &Fetched) -> (Reason, Retry) {
        let FetchOutcome::Failed { why, retry, .. } = &fetched.outcome else {
            panic!("did not fail: {:?}", fetched.outcome)
        };
        (*why, *retry)
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_comes_after_its_delay_and_is_logged() {
        let fetcher = fetcher("hosts=2,pages=10,delay=250");
        let fetched = fetch(&fetcher, "http://host-1.test/p/3", profile()).await;
        assert_eq!((fetched.requested_at, fetched.took_ms), (Some(Moment(0)), 250));
        assert_eq!(fetched.address, Some(IpAddr::from(Ipv4Addr::new(127, 1, 0, 2))));
        let FetchOutcome::Page(page) = fetched.outcome else { panic!("no page") };
        assert_eq!((page.status, page.content_type().as_deref()), (200, Some("text/html")));
        let logged = fetcher.log().requests();
        assert_eq!((logged[0].host.as_str(), logged[0].target.as_str()), ("host-1.test", "/p/3"));
        assert_eq!((logged[0].started_at, logged[0].ended_at), (Moment(0), Some(Moment(250))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_request_is_announced() {
        let fetcher = fetcher("hosts=1,pages=1");
        let (on_request, mut announced) = tokio::sync::mpsc::channel(1);
        let url = PageUrl::parse("http://host-0.test/p/0").unwrap();
        let profile = Arc::new(profile());
        fetcher
            .fetch(FetchOrder { on_request: Some(on_request), ..FetchOrder::new(url, profile) })
            .await;
        assert_eq!(announced.recv().await, Some(Moment(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_time_out() {
        let fetched = fetch(&fetcher("delay=5000"), "http://host-0.test/p/0", profile()).await;
        assert_eq!(failure(&fetched), (Reason::TimeoutFirstByte, Retry::Later));
        assert_eq!(fetched.took_ms, 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn long_bodies_are_cut_at_the_limit() {
        let profile = profile().with_body_bytes_max(100);
        let fetched = fetch(&fetcher(""), "http://host-0.test/p/0", profile).await;
        let FetchOutcome::Page(page) = fetched.outcome else { panic!("no page") };
        assert_eq!((page.body.len(), page.truncated), (100, true));
    }

    #[tokio::test(start_paused = true)]
    async fn old_addresses_redirect() {
        let fetched = fetch(&fetcher(""), "http://host-0.test/old/5", profile()).await;
        let to = PageUrl::parse("http://host-0.test/p/5").unwrap();
        assert_eq!(fetched.outcome, FetchOutcome::Redirected { status: 301, to });
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_fault_passes() {
        for (spec, first) in
            [("error-once=1", Ok(500)), ("reset-once=1", Err(Reason::ConnectionReset))]
        {
            let fetcher = fetcher(spec);
            let fetched = fetch(&fetcher, "http://host-0.test/p/1", profile()).await;
            match (&fetched.outcome, first) {
                (FetchOutcome::Page(page), Ok(status)) => assert_eq!(page.status, status),
                (_, Err(reason)) => assert_eq!(failure(&fetched), (reason, Retry::Later)),
                (other, _) => panic!("{spec}: {other:?}"),
            }
            let again = fetch(&fetcher, "http://host-0.test/p/1", profile()).await;
            assert!(matches!(again.outcome, FetchOutcome::Page(page) if page.status == 200));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_hosts_do_not_resolve() {
        let fetcher = fetcher("hosts=1");
        let fetched = fetch(&fetcher, "http://host-1.test/p/0", profile()).await;
        assert_eq!(failure(&fetched), (Reason::DnsError, Retry::Never));
        assert_eq!((fetched.requested_at, fetched.address), (None, None));
        assert!(fetcher.log().is_empty());
        let url = PageUrl::parse("http://host-1.test/").unwrap();
        assert_eq!(fetcher.resolve(&url, &profile()).await.unwrap_err().why, Reason::DnsError);
    }
}
