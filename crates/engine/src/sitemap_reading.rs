//! Reads a sitemap that a visit brought: its entries become discoveries, judged like links.

use telusur_fetch::sitemap::{self, EntryKind};
use telusur_ledger::VisitOutcome;
use telusur_model::{Discovery, PageUrl, Purpose, RawPage, Via, Visit, matches_topic};

use crate::context::CrawlContext;

/// Index files that may lie between robots.txt and a list of pages.
const NESTING_MAX: u8 = 2;

/// What a sitemap lists.
pub(crate) struct SitemapReading {
    pub(crate) how: VisitOutcome,
    pub(crate) discoveries: Vec<Discovery>,
}

/// Reads the answer to a visit of a sitemap.
pub(crate) fn read_sitemap(
    visit: &Visit,
    page: &RawPage,
    nesting: u8,
    context: &CrawlContext,
) -> SitemapReading {
    if !(200..300).contains(&page.status) {
        return unread(format!("status {}", page.status));
    }
    let listed = sitemap::read(&page.body);
    let mut dropped = listed.dropped.total();
    let mut discoveries = Vec::with_capacity(listed.entries.len());
    for entry in listed.entries {
        let purpose = match entry.kind {
            EntryKind::Page | EntryKind::Alternate { .. } => Purpose::Page,
            EntryKind::Sitemap if nesting < NESTING_MAX => {
                Purpose::Sitemap { nesting: nesting + 1 }
            }
            EntryKind::Sitemap => {
                dropped += 1;
                continue;
            }
            EntryKind::Image | EntryKind::Video => continue,
        };
        match visit.url.join(&entry.loc) {
            Ok(url) => {
                let lastmod = entry.lastmod.and_then(|lastmod| lastmod.at);
                discoveries
                    .push(Discovery { lastmod, ..discovery(url, purpose, Via::Sitemap, context) });
            }
            Err(_) => dropped += 1,
        }
    }
    let trouble = listed.trouble.map(|trouble| format!("{}: {trouble}", trouble.word()));
    let entries = u32::try_from(discoveries.len()).unwrap_or(u32::MAX);
    SitemapReading { how: VisitOutcome::Sitemap { entries, dropped, trouble }, discoveries }
}

/// A sitemap without entries, and why.
fn unread(trouble: String) -> SitemapReading {
    let how = VisitOutcome::Sitemap { entries: 0, dropped: 0, trouble: Some(trouble) };
    SitemapReading { how, discoveries: Vec::new() }
}

/// A page or a sitemap that a sitemap or robots.txt names.
pub(crate) fn discovery(
    url: PageUrl,
    purpose: Purpose,
    via: Via,
    context: &CrawlContext,
) -> Discovery {
    if purpose != Purpose::Page {
        let key = context.keyer.sitemap_key(&url);
        return Discovery { purpose, ..Discovery::page(url, key, via) };
    }
    let url = context.scope.treat_query(url);
    let hot = matches_topic(&context.topic, &url, "");
    let key = context.keyer.key(&url);
    Discovery { hot, ..Discovery::page(url, key, via) }
}
