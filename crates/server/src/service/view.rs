//! Crawls, as they are shown.

use std::collections::{BTreeMap, HashMap};

use telusur_engine::FollowerReport;
use telusur_ledger::{CrawlRecord, ScrubState};
use telusur_model::{
    Crawl, CrawlNo, CrawlState, CrawlStats, Fairness, HostRow, Keep, LeftOut, Limits, PauseReason,
    Politeness, Progress, RobotsRules, jain_index,
};

use super::Service;
use super::catalog::REQUEST_LABEL;
use super::lists::Cursor;
use super::orders::settings_tag;
use crate::json::{
    CrawlLinks, CrawlView, FollowerView, HostStats, LeftOutView, LimitsView, MannersView, Paged,
    ScopeView, ScrubView, SiteView, StatsOfAll, StatsView,
};
use crate::problem::Problem;

/// Start URLs that are shown.
const SEEDS_SHOWN_MAX: usize = 10;
/// Hosts and sites that are shown with a crawl.
const HOSTS_SHOWN_MAX: usize = 10;

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
        let hosts = match self.inner().store.hosts(no) {
            // Why it is set aside can be seen all the same.
            Err(error) if error.is_of_rows() => {
                tracing::error!(crawl = %no, %error, "the hosts of a crawl cannot be read");
                Vec::new()
            }
            hosts => hosts?,
        };
        Ok((self.view(&record, &hosts), settings_tag(&record)))
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
            let after = cursor.map(|cursor| cursor.number()).transpose()?;
            let after = after.map(|no| CrawlNo(u32::try_from(no).unwrap_or(u32::MAX)));
            let (numbers, total) = {
                let catalog = service.catalog();
                (catalog.below(after), catalog.len() as u64)
            };
            let is_all = state.is_none() && label.is_none();
            let (mut items, mut next_cursor) = (Vec::new(), None);
            for no in numbers {
                let Some(record) = service.inner().store.crawl(no)? else { continue };
                let view = service.view(&record, &[]);
                let is_wanted = state.as_ref().is_none_or(|state| *state == view.state)
                    && label.as_ref().is_none_or(|label| has_label(&view, label));
                if !is_wanted {
                    continue;
                }
                if items.len() == limit {
                    let last: Option<&(CrawlNo, CrawlView)> = items.last();
                    next_cursor = last.map(|(no, _)| Cursor::of_number(u64::from(no.0)).text());
                    break;
                }
                items.push((no, view));
            }
            let items = items.into_iter().map(|(_, view)| view).collect();
            Ok(Paged { items, next_cursor, total: is_all.then_some(total) })
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
        let CrawlRecord { crawl, state_since, .. } = record;
        let progress = self.progress(crawl.no);
        let state = self.state(record);
        let is_over = matches!(state, CrawlState::Finished { .. });
        let word = self.state_word(crawl.no, state);
        let seeds = crawl.seeds.texts();
        let mut labels = crawl.labels.clone();
        labels.remove(REQUEST_LABEL);
        CrawlView {
            id: crawl.id.to_string(),
            alias: crawl.no.to_string(),
            name: crawl.name.clone(),
            state: word.to_owned(),
            kind: if crawl.seeds.linear().is_some() { "linear" } else { "bfs" }.to_owned(),
            created_at: crawl.created_at.rfc3339(),
            state_since: state_since.rfc3339(),
            ended_at: is_over.then(|| state_since.rfc3339()),
            seeds_total: seeds.len() as u64,
            seeds: seeds.into_iter().take(SEEDS_SHOWN_MAX).collect(),
            limits: limits_view(&crawl.limits),
            manners: manners_view(&crawl.politeness),
            scope: ScopeView {
                kind: crawl.scope.kind.word().to_owned(),
                include: crawl.scope.include.clone(),
                exclude: crawl.scope.exclude.clone(),
                allow_hosts: crawl.scope.allow_hosts.clone(),
            },
            keep: keep_word(crawl.keep).to_owned(),
            labels,
            stats: stats_view(record, progress.as_ref(), hosts),
            finish_reason: match state {
                CrawlState::Finished { why } => word_of(&why),
                _ => None,
            },
            pause_reason: match state {
                CrawlState::Paused { why } => word_of(&why),
                _ => None,
            },
            pause_detail: match (state, &record.fault) {
                (CrawlState::Paused { why: PauseReason::EngineStopped }, Some(fault)) => {
                    Some(fault.text())
                }
                _ => None,
            },
            warnings: Vec::new(),
            links: links(crawl),
        }
    }

    /// `queued` if it waits for its turn; else what the store says.
    pub(super) fn state_word(&self, no: CrawlNo, state: CrawlState) -> &'static str {
        match state {
            CrawlState::Running if self.inner().run_queue.is_waiting(no) => "queued",
            state => state.word(),
        }
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
                followers: service.followers().into_iter().map(follower_view).collect(),
                free_bytes: inner.store.free_bytes()?,
                scrub: inner.store.scrubbed()?.map(scrub_view),
            };
            if let Some(index) = &inner.index {
                totals.index_bytes = index.disk_bytes().map_or(0, |(bytes, _)| bytes);
            }
            for record in inner.store.crawls()? {
                let word = service.state_word(record.crawl.no, record.state);
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

fn follower_view(report: FollowerReport) -> FollowerView {
    FollowerView {
        name: report.name,
        lag: report.lag,
        trouble_since: report.trouble.as_ref().map(|it| it.since.rfc3339()),
        trouble: report.trouble.map(|it| it.why),
    }
}

fn has_label(view: &CrawlView, label: &str) -> bool {
    match label.split_once('=') {
        Some((name, value)) => view.labels.get(name).is_some_and(|other| other == value),
        None => view.labels.contains_key(label),
    }
}

/// The word that a reason is written with.
fn word_of(reason: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}

fn limits_view(limits: &Limits) -> LimitsView {
    LimitsView {
        max_pages: limits.pages_max.unwrap_or(0),
        max_depth: u64::from(limits.depth_max.unwrap_or(0)),
        max_duration_s: limits.duration_ms_max.unwrap_or(0) / 1000,
        max_bytes: limits.bytes_max.unwrap_or(0),
        max_errors: limits.errors_max.unwrap_or(0),
        max_per_host: limits.urls_per_host_max,
        max_per_site: limits.urls_per_site_max,
        patience_s: limits.patience_ms / 1000,
        max_body: limits.body_bytes_max,
    }
}

fn manners_view(manners: &Politeness) -> MannersView {
    let fairness = match manners.fairness {
        Fairness::Equal => "equal",
        Fairness::Weighted => "weighted",
        Fairness::None => "none",
    };
    let robots = match manners.robots {
        RobotsRules::Obey => "obey",
        RobotsRules::UnreachableAllows => "unreachable_allows",
        RobotsRules::Ignore => "ignore",
    };
    MannersView {
        delay_ms: manners.delay_ms,
        per_host: u64::from(manners.per_host),
        workers: u64::from(manners.workers),
        rate_per_s: manners.rate_per_second,
        adaptive: manners.adaptive,
        fairness: fairness.to_owned(),
        robots: robots.to_owned(),
    }
}

fn keep_word(keep: Keep) -> &'static str {
    match keep {
        Keep::None => "none",
        Keep::Text => "text",
        Keep::Html => "html",
        Keep::Raw => "raw",
    }
}

/// The counters are those of the store: what was shown once is never taken back, not even by a kill.
/// Only what is true of this moment comes from the engine.
fn stats_view(record: &CrawlRecord, progress: Option<&Progress>, hosts: &[HostRow]) -> StatsView {
    let stats = &record.stats;
    let live = progress.filter(|_| !matches!(record.state, CrawlState::Finished { .. }));
    let sites = sites(progress, hosts);
    #[expect(clippy::cast_precision_loss, reason = "seconds with three digits")]
    let active_s = stats.active_ms as f64 / 1000.0;
    StatsView {
        discovered: stats.discovered,
        fetched: stats.pages,
        ok: stats.ok,
        redirected: stats.redirected,
        failed: stats.failed,
        skipped: stats.skipped,
        queued: stats.queued,
        in_flight: live.map_or(0, |live| live.in_flight),
        bytes: stats.wire_bytes,
        pages_per_s: live.map_or(0.0, |live| live.pages_per_second),
        eta_s: live.and_then(|live| live.eta_s),
        active_s,
        fairness_index: sites.fairness_index,
        status_codes: words(&stats.statuses),
        failures: words(&stats.failures),
        skips: words(&stats.skips),
        left_out: record
            .crawl
            .left_out(record.state, stats)
            .into_iter()
            .map(left_out_view)
            .collect(),
        depths: words(&stats.depths),
        sites: sites.top,
        sites_total: sites.total,
        hosts: host_stats(record, hosts),
        suspects_network: live.is_some_and(|live| live.suspects_network),
        retry_after_s: live.and_then(|live| live.retry_after_ms).map(|ms| ms.div_ceil(1000)),
        index_lag: live.map_or(0, |live| live.index_lag),
    }
}

fn left_out_view(row: LeftOut) -> LeftOutView {
    let LeftOut { reason, urls, at_least, flag } = row;
    LeftOutView { reason: reason.word().to_owned(), urls, at_least, flag }
}

struct Sites {
    top: Vec<SiteView>,
    total: u64,
    fairness_index: f64,
}

fn sites(progress: Option<&Progress>, hosts: &[HostRow]) -> Sites {
    if let Some(progress) = progress {
        let view = |share: &telusur_model::SiteShare| SiteView {
            site: share.site.clone(),
            fetched: share.pages,
        };
        return Sites {
            top: progress.sites.iter().map(view).collect(),
            total: progress.sites_total,
            fairness_index: progress.fairness_index,
        };
    }
    let mut by_site: HashMap<String, u64> = HashMap::new();
    for row in hosts {
        *by_site.entry(row.host.site().to_string()).or_default() += row.pages;
    }
    let mut top: Vec<SiteView> =
        by_site.into_iter().map(|(site, fetched)| SiteView { site, fetched }).collect();
    top.sort_by(|left, right| {
        right.fetched.cmp(&left.fetched).then_with(|| left.site.cmp(&right.site))
    });
    let fairness_index = jain_index(top.iter().map(|site| site.fetched));
    let total = top.len() as u64;
    top.truncate(HOSTS_SHOWN_MAX);
    Sites { top, total, fairness_index }
}

fn host_stats(record: &CrawlRecord, hosts: &[HostRow]) -> Vec<HostStats> {
    let mut rows: Vec<&HostRow> = hosts.iter().collect();
    rows.sort_by(|left, right| {
        right.pages.cmp(&left.pages).then_with(|| left.host.as_str().cmp(right.host.as_str()))
    });
    let own_ms = record.crawl.politeness.delay_ms;
    let view = |row: &HostRow| HostStats {
        host: row.host.to_string(),
        fetched: row.pages,
        queued: row.queued,
        delay_ms: row.delay_ms.unwrap_or(own_ms),
        state: host_state(row, own_ms).to_owned(),
    };
    rows.into_iter().take(HOSTS_SHOWN_MAX).map(view).collect()
}

/// Whether a host taught the crawl a longer delay than its own.
pub(super) fn host_state(row: &HostRow, own_ms: u64) -> &'static str {
    if row.delay_ms.is_some_and(|delay_ms| delay_ms > own_ms) { "slowed" } else { "ok" }
}

fn words<K: ToString>(counts: &BTreeMap<K, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(key, count)| (key.to_string(), *count)).collect()
}

fn links(crawl: &Crawl) -> CrawlLinks {
    let this = format!("/api/v1/crawls/{}", crawl.id);
    let below = |name: &str| format!("{this}/{name}");
    CrawlLinks {
        pages: below("pages"),
        errors: below("errors"),
        skipped: below("skipped"),
        hosts: below("hosts"),
        frontier: below("frontier"),
        coverage: crawl.seeds.linear().map(|_| below("coverage")),
        events: below("events"),
        export: below("export"),
        this,
    }
}
