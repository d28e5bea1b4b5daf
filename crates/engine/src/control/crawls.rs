//! Crawls: all of them in short or in full, and one with everything that is known of it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use telusur_ledger::{CrawlRecord, UrlState};
use telusur_model::{
    CrawlNo, CrawlState, EngineFault, PageUrl, Progress, Scope, SiteShare, Timestamp, Verdict,
};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::error::RequestError;
use crate::followers::FollowerReport;

/// All crawls, with as much of each as a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCrawls {}

/// All crawls, with everything but their sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCrawls {}

/// One crawl, with its sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCrawl {
    /// An id, an alias `crawl_N`, a name, or `last`.
    pub crawl: String,
}

/// A crawl as a list shows it: a tenth of what is known of it, for there may be thousands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlLine {
    /// Which crawl.
    pub no: CrawlNo,
    /// Its name.
    pub name: Option<String>,
    /// What it is doing.
    pub state: CrawlState,
    /// Whether some process is working on it now.
    pub is_live: bool,
    /// Why it ended the engine, if it did.
    pub fault: Option<EngineFault>,
    /// Pages stored.
    pub pages: u64,
    /// URLs waiting.
    pub queued: u64,
    /// URLs that failed or answered with an error.
    pub errors: u64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The first of its start URLs, or its first template.
    pub start: Option<String>,
    /// What is derived from pages in the owner's process and fails.
    pub behind: Vec<FollowerReport>,
}

/// A crawl with everything that is shown of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlReply {
    /// The crawl, its state and its counters.
    pub record: CrawlRecord,
    /// Its snapshot, if it is in the owner's process.
    pub progress: Option<Progress>,
    /// Whether some process is working on it now.
    pub is_live: bool,
    /// Its sites, the most served first.
    pub sites: Vec<SiteShare>,
    /// Start URLs that lead out of the crawl's scope: where, and to where.
    pub moved_seeds: Vec<(String, String)>,
    /// What the owner derives from pages and is behind, because it fails.
    pub behind: Vec<FollowerReport>,
}

impl Operation for ListCrawls {
    const KIND: OperationKind = OperationKind::ListCrawls;
    type Item = CrawlLine;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, CrawlLine>) -> Result<(), RequestError> {
        let behind = control.behind();
        for record in control.store.crawls()? {
            if !each(crawl_line(control, record, behind.clone())) {
                break;
            }
        }
        Ok(())
    }
}

impl Operation for ReadCrawls {
    const KIND: OperationKind = OperationKind::ReadCrawls;
    type Item = CrawlReply;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, CrawlReply>) -> Result<(), RequestError> {
        for record in control.store.crawls()? {
            if !each(crawl_reply(control, record)) {
                break;
            }
        }
        Ok(())
    }
}

impl Operation for ReadCrawl {
    const KIND: OperationKind = OperationKind::ReadCrawl;
    type Item = NoItem;
    type Reply = CrawlReply;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlReply, RequestError> {
        let reply = crawl_reply(control, control.find(&self.crawl)?);
        Ok(CrawlReply {
            sites: sites(control, reply.record.crawl.no)?,
            moved_seeds: moved_seeds(control, &reply.record)?,
            ..reply
        })
    }
}

fn crawl_line(control: &Control, record: CrawlRecord, behind: Vec<FollowerReport>) -> CrawlLine {
    let CrawlRecord { crawl, state, stats, fault, .. } = record;
    CrawlLine {
        no: crawl.no,
        state,
        is_live: control.is_live(crawl.no),
        fault,
        pages: stats.pages,
        queued: stats.queued,
        errors: stats.errors(),
        created_at: crawl.created_at,
        start: crawl.seeds.texts().into_iter().next(),
        name: crawl.name,
        behind,
    }
}

fn crawl_reply(control: &Control, record: CrawlRecord) -> CrawlReply {
    let no = record.crawl.no;
    CrawlReply {
        progress: control.progress(no),
        is_live: control.is_live(no),
        record,
        sites: Vec::new(),
        moved_seeds: Vec::new(),
        behind: control.behind(),
    }
}

fn sites(control: &Control, crawl: CrawlNo) -> Result<Vec<SiteShare>, RequestError> {
    let mut by_site: HashMap<String, SiteShare> = HashMap::new();
    for row in control.store.hosts(crawl)? {
        let site = row.host.site().to_string();
        let share = by_site.entry(site.clone()).or_insert(SiteShare { site, pages: 0, queued: 0 });
        share.pages += row.pages;
        share.queued += row.queued;
    }
    let mut sites: Vec<SiteShare> = by_site.into_values().collect();
    sites.sort_by(|left, right| {
        right.pages.cmp(&left.pages).then_with(|| left.site.cmp(&right.site))
    });
    Ok(sites)
}

/// Start URLs that redirect out of the scope: an empty crawl must say why it is empty.
pub(super) fn moved_seeds(
    control: &Control,
    record: &CrawlRecord,
) -> Result<Vec<(String, String)>, RequestError> {
    let crawl = &record.crawl;
    let scope = Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
    let mut moved = Vec::new();
    for seed in crawl.seeds.urls() {
        let Some(known) = control.store.url(crawl.no, seed)? else { continue };
        let UrlState::Redirected { to, .. } = known.state else { continue };
        let leads_out =
            PageUrl::parse(&to).is_ok_and(|url| scope.judge(&url, 0, 0).verdict != Verdict::Admit);
        if leads_out {
            moved.push((seed.to_string(), to));
        }
    }
    Ok(moved)
}
