//! What requests for crawls are judged by here, and the request of the first service.

use telusur_engine::request::{
    BadRequest, CrawlRequest, LimitsRequest, RequestBounds, RequestPolicy, Rights,
};
use telusur_model::{Crawl, PageUrl};

use super::Service;
use crate::json::S1Request;
use crate::problem::Problem;

/// Pages that a client of the first service may ask for.
const S1_PAGES_MAX: u64 = 1_000_000;

impl Service {
    /// What the requests of somebody with these rights are judged by.
    pub(super) fn policy(&self, rights: Rights) -> RequestPolicy {
        let settings = self.settings();
        let bounds = RequestBounds {
            seeds_max: settings.bounds.seeds_max,
            patterns_max: settings.bounds.patterns_max,
            pattern_bytes_max: settings.bounds.pattern_bytes_max,
            ..RequestBounds::USER
        };
        // Who may open addresses is not held to those that are open.
        let guard = match rights {
            Rights::Owner => None,
            Rights::User => Some(self.inner().guard.clone()),
        };
        RequestPolicy { defaults: settings.defaults.clone(), bounds, guard, rights }
    }

    /// The crawl that a client of the first service asks for.
    pub(crate) fn crawl_of_s1(&self, request: &S1Request) -> Result<Crawl, Problem> {
        let max_pages = u64::try_from(request.max_pages).ok();
        let max_pages = max_pages.filter(|pages| (1..=S1_PAGES_MAX).contains(pages));
        if max_pages.is_none() {
            let what = format!("max_pages is {}; write 1 to {S1_PAGES_MAX}", request.max_pages);
            return Err(Problem::field("/max_pages", what));
        }
        let limits = LimitsRequest { max_pages, ..LimitsRequest::default() };
        let urls = vec![request.url.clone()];
        let request = CrawlRequest { urls, limits, ..CrawlRequest::default() };
        // There is one other field. The patterns are the operator's.
        let of_url = |bad: BadRequest| BadRequest { pointer: "/url".to_owned(), ..bad };
        Ok(self.policy(Rights::User).crawl_of(&request).map_err(of_url)?)
    }

    /// A URL that a user names: it must be one that may be asked.
    pub(crate) fn url(&self, pointer: &str, text: &str) -> Result<PageUrl, Problem> {
        Ok(self.policy(Rights::User).url(pointer, text)?)
    }
}
