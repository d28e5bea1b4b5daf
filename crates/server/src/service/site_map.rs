//! The URLs of a site, quickly: those of its sitemaps, and the links of one of its pages.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use telusur_fetch::robots::{Rules, product_token};
use telusur_fetch::sitemap::{self, EntryKind};
use telusur_model::{PageUrl, Reason, RobotsRules, UrlKeyer};
use telusur_parse_pool::Reading;

use super::Service;
use super::lone_fetch::no_parser;
use crate::json::{FoundLink, MapBody, MapView};
use crate::problem::{Code, Problem};

/// URLs in one answer.
const LINKS_MAX: usize = 50_000;
/// Sitemaps that are read: an index and those that it names first.
const SITEMAPS_MAX: usize = 10;

impl Service {
    /// Lists the URLs of a site.
    pub async fn map(&self, body: MapBody) -> Result<MapView, Problem> {
        self.check_writable()?;
        if !(1..=LINKS_MAX).contains(&body.limit) {
            return Err(Problem::field("/limit", format!("write 1 to {LINKS_MAX}")));
        }
        let url = self.url("/url", &body.url)?;
        let _one_of_few = self.inner().fetches.try_acquire().map_err(|_| {
            Problem::new(Code::TooManyRequests, "too many sites are being read").retry_after_s(5)
        })?;
        let arrived = self.ask_page(url.clone(), &url).await?;
        let home = arrived.page.url.clone();
        let mut map = SiteMap::new(home.clone(), body.limit);
        self.read_sitemaps(&home, &url, &mut map).await;
        let reading = self.work(move |service| {
            let reading = service.inner().engine.parser().parse(&arrived.page);
            reading.map_err(|error| no_parser(&error))
        });
        match reading.await? {
            Reading::Read(parsed) => {
                parsed.links.iter().for_each(|link| map.add(&link.url, "link"));
            }
            Reading::Failed { why } => {
                map.warnings.push(format!("{home}: {}: {why}", Reason::ParseFailed));
            }
        }
        let SiteMap { links, truncated, warnings, .. } = map;
        Ok(MapView { url: url.to_string(), links, truncated, warnings })
    }

    /// Reads the sitemaps that robots.txt names, or the usual one.
    /// They may be at any host, which gets none of the headers that are meant for the origin of `named`.
    async fn read_sitemaps(&self, home: &PageUrl, named: &PageUrl, map: &mut SiteMap) {
        let mut waiting: VecDeque<PageUrl> = self.named_sitemaps(home, named).await.into();
        let mut read = 0;
        while let Some(url) = waiting.pop_front().filter(|_| !map.truncated) {
            read += 1;
            if read > SITEMAPS_MAX {
                map.warnings.push(format!("only the first {SITEMAPS_MAX} sitemaps were read"));
                return;
            }
            let page = match self.ask_page(url.clone(), named).await {
                Ok(arrived) if arrived.page.status == 200 => arrived.page,
                Ok(arrived) => {
                    map.warnings.push(format!("{url} answered {}", arrived.page.status));
                    continue;
                }
                Err(problem) => {
                    map.warnings.push(problem.detail().to_owned());
                    continue;
                }
            };
            let Ok(list) = self.work(move |_| Ok(sitemap::read(&page.body))).await else { return };
            for entry in list.entries {
                let Ok(found) = url.join(&entry.loc) else { continue };
                match entry.kind {
                    EntryKind::Sitemap => waiting.push_back(found),
                    EntryKind::Page => map.add(&found, "sitemap"),
                    _ => {}
                }
            }
        }
    }

    async fn named_sitemaps(&self, home: &PageUrl, named: &PageUrl) -> Vec<PageUrl> {
        let usual = home.join("/sitemap.xml").into_iter().collect();
        let Ok(file) = home.join("/robots.txt") else { return usual };
        let Some(rules) = self.rules_of(&file, named).await else { return usual };
        let named: Vec<PageUrl> =
            rules.sitemaps().filter_map(|text| file.join(text).ok()).collect();
        if named.is_empty() { usual } else { named }
    }

    /// The rules of an origin. They were read before its first page, unless nobody obeys them: then its
    /// robots.txt is a page like any other.
    async fn rules_of(&self, file: &PageUrl, named: &PageUrl) -> Option<Arc<Rules>> {
        let defaults = &self.settings().defaults;
        let (url, agent) = (file.clone(), defaults.fetch.user_agent.clone());
        if defaults.politeness.robots != RobotsRules::Ignore {
            let rules =
                self.read(move |service| Ok(service.inner().engine.stored_rules(&url, &agent)?));
            return rules.await.ok().flatten();
        }
        let page = self.ask_page(url, named).await.ok()?.page;
        let parsed = self.work(move |_| Ok(Rules::parse(&page.body, product_token(&agent))));
        parsed.await.ok().map(Arc::new)
    }
}

/// What was found so far, each page once.
struct SiteMap {
    home: PageUrl,
    limit: usize,
    seen: HashSet<telusur_model::UrlKey>,
    keyer: UrlKeyer,
    links: Vec<FoundLink>,
    truncated: bool,
    warnings: Vec<String>,
}

impl SiteMap {
    fn new(home: PageUrl, limit: usize) -> Self {
        Self {
            home,
            limit,
            seen: HashSet::new(),
            keyer: UrlKeyer { seed: 0, drop_tracking: true },
            links: Vec::new(),
            truncated: false,
            warnings: Vec::new(),
        }
    }

    /// Adds a URL of the site.
    fn add(&mut self, url: &PageUrl, via: &str) {
        if url.site() != self.home.site() || !self.seen.insert(self.keyer.key(url)) {
            return;
        }
        if self.links.len() == self.limit {
            self.truncated = true;
            return;
        }
        self.links.push(FoundLink { url: url.to_string(), via: via.to_owned() });
    }
}
