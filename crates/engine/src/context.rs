//! [`CrawlContext`]: a running crawl with everything compiled that its visits need.

use std::sync::Arc;

use telusur_fetch::FetchProfile;
use telusur_model::{Crawl, PageUrl, Scope, UrlKeyer};

use crate::error::RequestError;

/// Shared by the visits of a crawl. Replaced as a whole when the crawl is changed.
pub(crate) struct CrawlContext {
    pub(crate) crawl: Crawl,
    pub(crate) scope: Arc<Scope>,
    pub(crate) keyer: UrlKeyer,
    pub(crate) profile: Arc<FetchProfile>,
    /// The topic words in lower case.
    pub(crate) topic: Vec<String>,
}

impl CrawlContext {
    pub(crate) fn new(crawl: Crawl, key_seed: u64) -> Result<Self, RequestError> {
        let refuse = |error: String| RequestError::BadArgument(error);
        let scope = Scope::new(&crawl.scope, crawl.seeds.urls(), &crawl.limits)
            .map_err(|error| refuse(error.to_string()))?;
        let origins = crawl.seeds.urls().iter().map(PageUrl::origin).collect();
        let profile = FetchProfile::new(&crawl.fetch, crawl.limits.body_bytes_max, origins)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            scope: Arc::new(scope),
            keyer: UrlKeyer { seed: key_seed, drop_tracking: !crawl.keep_tracking },
            profile: Arc::new(profile),
            topic: crawl.topic.iter().map(|word| word.to_lowercase()).collect(),
            crawl,
        })
    }
}
