//! [`CrawlContext`]: a running crawl with everything compiled that its visits need.

use std::sync::Arc;
use std::time::Duration;

use telusur_fetch::{FetchProfile, robots, sitemap};
use telusur_model::{Crawl, LinkRules, PageUrl, Purpose, Scope, UrlKeyer};

use crate::change::CrawlChange;
use crate::error::RequestError;
use crate::id_visits::WalkContext;
use crate::learned::Learned;
use crate::soft_404::SoftNotFound;

/// Longest that a probe may take: pages wait behind it. A server that is silent for longer would
/// have given its worker back, too.
const PROBE_TIME_MAX: Duration = Duration::from_secs(2);

/// Shared by the visits of a crawl. Replaced as a whole when the crawl is changed.
pub(crate) struct CrawlContext {
    pub(crate) crawl: Crawl,
    pub(crate) scope: Arc<Scope>,
    pub(crate) keyer: UrlKeyer,
    pub(crate) profile: Arc<FetchProfile>,
    /// The same for probes.
    pub(crate) probe_profile: Arc<FetchProfile>,
    /// The same for robots.txt files.
    pub(crate) robots_profile: Arc<FetchProfile>,
    /// The same for sitemaps.
    pub(crate) sitemap_profile: Arc<FetchProfile>,
    /// The name by which robots.txt files speak to this crawl.
    pub(crate) product_token: String,
    /// How the missing pages of hosts look that do not say that they are missing.
    pub(crate) soft_404: Arc<SoftNotFound>,
    /// What was learned about links; the scope goes by it, too.
    pub(crate) learned: Arc<Learned>,
    /// The topic words in lower case.
    pub(crate) topic: Vec<String>,
    /// The walks of a linear crawl.
    pub(crate) walks: Vec<WalkContext>,
}

impl CrawlContext {
    /// For a crawl that is to be run. Fails if it cannot be.
    pub(crate) fn to_run(crawl: Crawl, key_seed: u64) -> Result<Self, RequestError> {
        if crawl.is_import() {
            let no = crawl.no;
            let what = format!("{no} is an import: nothing can be fetched for it; import again");
            return Err(RequestError::WrongState(what));
        }
        Self::new(crawl, key_seed)
    }

    pub(crate) fn new(crawl: Crawl, key_seed: u64) -> Result<Self, RequestError> {
        let refuse = |error: String| RequestError::BadArgument(error);
        let scope = Scope::of(&crawl).map_err(|error| refuse(error.to_string()))?;
        let origins = crawl.home().iter().map(PageUrl::origin).collect();
        let profile = FetchProfile::new(&crawl.fetch, crawl.limits.body_bytes_max, origins)
            .map_err(|error| refuse(error.to_string()))?;
        let learned = Arc::<Learned>::default();
        Ok(Self {
            scope: Arc::new(scope.with_learned(Arc::clone(&learned) as Arc<dyn LinkRules>)),
            learned,
            keyer: UrlKeyer { seed: key_seed, drop_tracking: !crawl.keep_tracking },
            probe_profile: Arc::new(profile.with_timeout_max(PROBE_TIME_MAX)),
            // One byte more than is read tells that there is more.
            robots_profile: Arc::new(profile.with_body_bytes_max(robots::BYTES_MAX as u64 + 1)),
            sitemap_profile: Arc::new(profile.with_body_bytes_max(sitemap::BYTES_MAX as u64 + 1)),
            profile: Arc::new(profile),
            product_token: robots::product_token(&crawl.fetch.user_agent).to_owned(),
            soft_404: Arc::default(),
            walks: WalkContext::all(&crawl).map_err(|error| refuse(error.to_string()))?,
            topic: crawl.topic.iter().map(|word| word.to_lowercase()).collect(),
            crawl,
        })
    }

    /// The same for the crawl as it was changed, with what was learned on the way: cookies, rules of
    /// robots.txt, and how missing pages look. Nothing is compiled but a scope with new patterns.
    pub(crate) fn changed(&self, change: CrawlChange) -> Result<Self, RequestError> {
        let known = Some(self.scope.compiled());
        let (crawl, scope) = change
            .applied(self.crawl.clone(), known)
            .map_err(|error| RequestError::BadArgument(error.to_string()))?;
        Ok(Self {
            crawl,
            scope: Arc::new(scope.with_learned(Arc::clone(&self.learned) as Arc<dyn LinkRules>)),
            keyer: self.keyer,
            profile: Arc::clone(&self.profile),
            probe_profile: Arc::clone(&self.probe_profile),
            robots_profile: Arc::clone(&self.robots_profile),
            sitemap_profile: Arc::clone(&self.sitemap_profile),
            product_token: self.product_token.clone(),
            soft_404: Arc::clone(&self.soft_404),
            learned: Arc::clone(&self.learned),
            topic: self.topic.clone(),
            walks: self.walks.clone(),
        })
    }

    /// How a visit with this purpose asks.
    pub(crate) fn profile_for(&self, purpose: Purpose) -> &Arc<FetchProfile> {
        match purpose {
            Purpose::Page => &self.profile,
            Purpose::Probe => &self.probe_profile,
            Purpose::Robots => &self.robots_profile,
            Purpose::Sitemap { .. } => &self.sitemap_profile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_does_not_keep_pages_waiting() {
        let profile = FetchProfile::new(&Default::default(), 1 << 20, Vec::new()).unwrap();
        assert!(profile.timeout_ms() > 10_000);
        assert_eq!(profile.with_timeout_max(PROBE_TIME_MAX).timeout_ms(), 2_000);
    }
}
