//! Single pages from the web, fetched for a user of the API. They are visits of the engine like those of a
//! crawl, and are stored nowhere.

use telusur_engine::{Arrived, FetchError, FetchRequest, NotFetched};
use telusur_model::{PageContent, PageUrl, Reason};
use telusur_parse_pool::{PoolError, Reading};

use super::Service;
use super::pages::page_link;
use crate::json::FetchedView;
use crate::problem::{Code, Problem};

/// Longest that a request waits for its host; else the client is told when to come back.
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
        let named = url.clone();
        self.ask_page(url, &named).await
    }

    /// The same for somebody who has a place among the few already. `named` is what the user named: extra
    /// headers that are bound to no origin go to its origin only.
    pub(super) async fn ask_page(&self, url: PageUrl, named: &PageUrl) -> Result<Arrived, Problem> {
        let inner = self.inner();
        let defaults = &inner.settings.defaults;
        let request = FetchRequest {
            url,
            named: named.clone(),
            fetch: defaults.fetch.clone(),
            politeness: defaults.politeness.clone(),
            body_bytes_max: defaults.limits.body_bytes_max,
            wait_ms_max: WAIT_MS_MAX,
        };
        inner.engine.fetch(request).await.map_err(|error| match error {
            FetchError::NotFetched(failed) => not_fetched(&failed),
            FetchError::MustWait { host, retry_after_ms } => {
                let what = format!("{host} is asked as often as its time allows already");
                let seconds = retry_after_ms.div_ceil(1000);
                Problem::new(Code::TooManyRequests, what).retry_after_s(seconds)
            }
            FetchError::Refused(error) => error.into(),
        })
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
