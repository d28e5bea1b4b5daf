//! Crawls, as they are shown.

use std::collections::BTreeMap;

use telusur_engine::FollowerReport;
use telusur_engine::control::ReadCrawls;
use telusur_ledger::{CrawlRecord, ScrubState};
use telusur_model::{Crawl, CrawlNo, CrawlState, CrawlStats, HostRow};

use super::Service;
use super::lists::Cursor;
use super::orders::settings_tag;
use crate::json::{CrawlView, FollowerView, Paged, ScrubView, StatsOfAll};
use crate::problem::Problem;

impl Service {
    /// One crawl.
    pub async fn crawl(&self, no: CrawlNo) -> Result<CrawlView, Problem> {
        Ok(self.tagged_crawl(no).await?.0)
    }

    /// One crawl, and the tag of this version of its settings.
    pub async fn tagged_crawl(&self, no: CrawlNo) -> Result<(CrawlView, String), Problem> {
        self.read(move |service| service.crawl_now(no)).await
    }

    /// The same. Blocks.
    pub(super) fn crawl_now(&self, no: CrawlNo) -> Result<(CrawlView, String), Problem> {
        let record = self.record(no)?;
        Ok((self.inner().control.whole_crawl(&record)?, settings_tag(&record)))
    }

    /// Crawls, the youngest first; those in a state or with a label, if one is named.
    pub async fn crawls(
        &self,
        state: Option<String>,
        label: Option<String>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<CrawlView>, Problem> {
        self.read(move |service| {
            let total =
                (state.is_none() && label.is_none()).then(|| service.catalog().len() as u64);
            let after = cursor.map(Cursor::raw);
            let crawls = service.list(&ReadCrawls { state, label, after, limit: Some(limit) })?;
            Ok(Paged { total, ..crawls })
        })
        .await
    }

    /// A crawl that was not accepted, as it would be shown.
    pub(super) fn view_of_request(&self, crawl: Crawl, warnings: Vec<String>) -> CrawlView {
        let now = self.inner().clock.wall();
        let record = CrawlRecord {
            crawl: Crawl { created_at: now, ..crawl },
            state: CrawlState::Running,
            stats: CrawlStats::default(),
            state_since: now,
            fault: None,
            key_seed: self.inner().store.key_seed(),
        };
        CrawlView { state: "dry_run".to_owned(), warnings, ..self.view(&record, &[]) }
    }

    pub(super) fn view(&self, record: &CrawlRecord, hosts: &[HostRow]) -> CrawlView {
        self.inner().control.crawl_view(record, hosts)
    }

    /// How far everything that is derived from pages is behind, and why.
    pub fn followers(&self) -> Vec<FollowerReport> {
        self.inner().engine.followers()
    }

    /// Whether everything that is stored can be found, and if not, why. Nothing if nothing is indexed here.
    fn indexing(&self) -> Option<FollowerReport> {
        self.inner().engine.indexing()
    }

    /// Totals over everything.
    pub async fn totals(&self) -> Result<StatsOfAll, Problem> {
        self.read(|service| {
            let inner = service.inner();
            let indexing = service.indexing();
            let index_lag = indexing.as_ref().map_or(0, |report| report.lag);
            let index_trouble = indexing.and_then(|report| report.trouble);
            let mut totals = StatsOfAll {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_s: inner.clock.now().ms_since(inner.started) / 1000,
                crawls: BTreeMap::new(),
                pages: 0,
                queued: 0,
                indexed: inner.index.as_ref().map_or(0, |index| index.doc_count()),
                pages_per_s: 0.0,
                index_bytes: 0,
                index_lag,
                index_trouble_since: index_trouble.as_ref().map(|it| it.since.rfc3339()),
                index_trouble: index_trouble.map(|it| it.why),
                followers: service.followers().into_iter().map(FollowerView::from).collect(),
                free_bytes: inner.store.free_bytes()?,
                scrub: inner.store.scrubbed()?.map(scrub_view),
            };
            if let Some(index) = &inner.index {
                totals.index_bytes = index.disk_bytes().map_or(0, |(bytes, _)| bytes);
            }
            for record in inner.store.crawls()? {
                let word = inner.control.state_word(&record);
                *totals.crawls.entry(word.to_owned()).or_default() += 1;
                totals.pages += record.stats.pages;
                totals.queued += record.stats.queued;
            }
            let snapshots = inner.engine.progress();
            let snapshots = snapshots.borrow();
            let running = snapshots.values().filter(|it| it.state == CrawlState::Running);
            totals.pages_per_s = running.map(|it| it.pages_per_second).sum();
            Ok(totals)
        })
        .await
    }
}

fn scrub_view(state: ScrubState) -> ScrubView {
    ScrubView {
        started_at: state.started_at.rfc3339(),
        ended_at: state.ended_at.map(|at| at.rfc3339()),
        bytes: state.bytes,
        pages: state.pages,
        damaged: state.damaged,
        found: state.found,
    }
}
