//! Single pages from the web, fetched for a user of the API. Every hop passes the same address guard and
//! the same robots.txt as a crawl's, and hosts are given the same time between two requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use telusur_engine::{Arrived, NotFetched, SingleFetch};
use telusur_fetch::FetchProfile;
use telusur_model::{Clock, Host, Moment, PageContent, PageUrl, Reason};
use telusur_parse_pool::{PoolError, Reading};

use super::Service;
use super::pages::page_link;
use crate::json::FetchedView;
use crate::problem::{Code, Problem};

/// Hosts whose last request is remembered. Beyond that, those whose time is over are forgotten.
const HOSTS_MAX: usize = 10_000;
/// Longest that a request waits for its host; else the client is told to come back.
const WAIT_MS_MAX: u64 = 10_000;

impl Service {
    /// Fetches one page and reads it. Nothing is stored.
    pub async fn fetch(&self, url: &str) -> Result<FetchedView, Problem> {
        self.check_writable()?;
        let url = self.url("/url", url)?;
        let arrived = self.fetch_page(url).await?;
        self.work(move |service| {
            let reading = service.inner.engine.parser().read(&arrived.page);
            Ok(fetched_view(&arrived, reading.map_err(|error| no_parser(&error))?))
        })
        .await
    }

    /// Fetches one page.
    pub(super) async fn fetch_page(&self, url: PageUrl) -> Result<Arrived, Problem> {
        let _one_of_few = self.inner().fetches.try_acquire().map_err(|_| {
            Problem::new(Code::TooManyRequests, "too many pages are being fetched").retry_after_s(5)
        })?;
        let named = url.origin();
        self.ask_page(url, &named).await
    }

    /// The same for somebody who has a place among the few already. `named` is the origin that the user
    /// named: extra headers that are bound to no origin go there only.
    pub(super) async fn ask_page(&self, url: PageUrl, named: &str) -> Result<Arrived, Problem> {
        let inner = self.inner();
        let defaults = &inner.settings.defaults;
        inner.gate.pass(&url.host(), defaults.politeness.delay_ms, inner.clock.as_ref()).await?;
        let body_bytes_max = defaults.limits.body_bytes_max;
        let profile = FetchProfile::new(&defaults.fetch, body_bytes_max, vec![named.to_owned()])
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let redirects_max = usize::from(defaults.fetch.redirects_max);
        let robots = defaults.politeness.robots;
        let mut single = SingleFetch::new(inner.fetcher.as_ref(), profile, robots, redirects_max);
        single.fetch(url).await.map_err(|failed| not_fetched(&failed))
    }
}

fn not_fetched(failed: &NotFetched) -> Problem {
    let NotFetched { url, why, detail } = failed;
    let code = match why {
        Reason::BlockedAddress | Reason::BlockedPort | Reason::BlockedScheme => Code::UrlNotAllowed,
        _ => Code::NotFetched,
    };
    Problem::new(code, format!("cannot fetch {url}: {why} ({detail})"))
        .at("/url")
        .hint(format!("That is: {}", why.help()))
}

/// No page can be parsed at present.
pub(super) fn no_parser(error: &PoolError) -> Problem {
    tracing::error!(%error, "a page cannot be parsed");
    Problem::new(Code::Internal, error.to_string())
}

/// A page that breaks the parser is shown without content, and with the reason.
fn fetched_view(arrived: &Arrived, reading: Reading<PageContent>) -> FetchedView {
    let page = &arrived.page;
    let (content, parse_failed) = match reading {
        Reading::Read(content) => (*content, None),
        Reading::Failed { why } => (PageContent::default(), Some(why)),
    };
    FetchedView {
        url: page.url.to_string(),
        status: page.status,
        redirects: arrived.redirects.clone(),
        content_type: page.content_type(),
        took_ms: arrived.took_ms,
        bytes: page.body.len() as u64,
        truncated: page.truncated,
        parse_failed,
        title: content.title.clone(),
        markdown: content.markdown.clone(),
        text: content.text.clone(),
        links: content.links.iter().map(page_link).collect(),
        content: serde_json::to_value(content).unwrap_or_default(),
    }
}

/// Keeps the time between two requests to one host.
#[derive(Default)]
pub(crate) struct HostGate {
    /// When each host may be asked next. Held to look and to note, never while waiting.
    next: Mutex<HashMap<Host, Moment>>,
}

impl HostGate {
    /// Waits until a host may be asked.
    async fn pass(&self, host: &Host, delay_ms: u64, clock: &dyn Clock) -> Result<(), Problem> {
        let now = clock.now();
        let wait_ms = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            if next.len() >= HOSTS_MAX {
                next.retain(|_, at| *at > now);
            }
            let at = next.get(host).copied().unwrap_or(now).max(now);
            let wait_ms = at.ms_since(now);
            if wait_ms > WAIT_MS_MAX || next.len() >= HOSTS_MAX {
                let what = format!("{host} is asked as often as its time allows already");
                let seconds = wait_ms.div_ceil(1000).max(1);
                return Err(Problem::new(Code::TooManyRequests, what).retry_after_s(seconds));
            }
            next.insert(host.clone(), at.plus_ms(delay_ms));
            wait_ms
        };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        Ok(())
    }
}
