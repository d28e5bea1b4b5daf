//! A crawl as it is shown, from what the store and the engine know of it.

use std::collections::{BTreeMap, HashMap};

use telusur_ledger::CrawlRecord;
use telusur_model::{
    Crawl, CrawlNo, CrawlState, CrawlStats, FetchRules, HostRow, Limits, ParkedHost, PauseReason,
    Politeness, Progress, SiteShare, jain_index,
};

use super::handle::Control;
use crate::followers::FollowerReport;
use crate::json::{
    CrawlLineView, CrawlLinks, CrawlView, FetchRulesView, FollowerView, HostStats, IdCountsView,
    LeftOutView, LimitsView, MannersView, ParkedView, ScopeView, SiteView, StatsView,
};

/// Start URLs that are shown.
const SEEDS_SHOWN_MAX: usize = 10;
/// Hosts and sites that are shown with a crawl.
const HOSTS_SHOWN_MAX: usize = 10;
/// Labels that begin like this are the program's own.
const OWN_LABELS: &str = "telusur.";

impl Control {
    /// A crawl as it is shown, with the most served of these hosts.
    pub fn crawl_view(&self, record: &CrawlRecord, hosts: &[HostRow]) -> CrawlView {
        let CrawlRecord { crawl, state_since, .. } = record;
        let progress = self.progress(crawl.no);
        let state = self.state(record);
        let is_over = matches!(state, CrawlState::Finished { .. });
        let seeds = crawl.seeds.texts();
        let mut labels = crawl.labels.clone();
        labels.retain(|name, _| !name.starts_with(OWN_LABELS));
        CrawlView {
            id: crawl.id.to_string(),
            alias: crawl.no.to_string(),
            name: crawl.name.clone(),
            state: self.state_word(record).to_owned(),
            is_live: self.is_live(crawl.no),
            kind: if crawl.seeds.linear().is_some() { "linear" } else { "bfs" }.to_owned(),
            created_at: crawl.created_at.rfc3339(),
            state_since: state_since.rfc3339(),
            ended_at: is_over.then(|| state_since.rfc3339()),
            repeats: crawl.recrawl_of.map(|base| base.to_string()),
            seeds_total: seeds.len() as u64,
            seeds: seeds.into_iter().take(SEEDS_SHOWN_MAX).collect(),
            moved_seeds: Vec::new(),
            limits: limits_view(&crawl.limits),
            manners: manners_view(&crawl.politeness),
            scope: ScopeView {
                kind: crawl.scope.kind.word().to_owned(),
                include: crawl.scope.include.clone(),
                exclude: crawl.scope.exclude.clone(),
                allow_hosts: crawl.scope.allow_hosts.clone(),
                extra_hops: crawl.scope.extra_hops,
                keep_tracking: crawl.keep_tracking,
            },
            fetch: fetch_view(&crawl.fetch),
            keep: crawl.keep.word().to_owned(),
            topic: crawl.topic.clone(),
            labels,
            stats: stats_view(record, progress.as_ref(), hosts),
            finish_reason: match state {
                CrawlState::Finished { why } => Some(why.word().to_owned()),
                CrawlState::Running | CrawlState::Paused { .. } => None,
            },
            pause_reason: match state {
                CrawlState::Paused { why } => Some(why.word().to_owned()),
                CrawlState::Running | CrawlState::Finished { .. } => None,
            },
            pause_detail: pause_detail(record, state),
            parked: progress.iter().flat_map(|it| &it.parked).map(parked_view).collect(),
            parse_backlog: progress.map(|it| it.parse_backlog).unwrap_or_default(),
            behind: self.behind().into_iter().map(FollowerView::from).collect(),
            warnings: Vec::new(),
            links: links(crawl),
        }
    }

    /// The same in short.
    pub(super) fn crawl_line(&self, record: CrawlRecord) -> CrawlLineView {
        let word = self.state_word(&record);
        let pause_detail = pause_detail(&record, self.state(&record));
        let CrawlRecord { crawl, stats, .. } = record;
        CrawlLineView {
            id: crawl.id.to_string(),
            alias: crawl.no.to_string(),
            state: word.to_owned(),
            pause_detail,
            fetched: stats.pages,
            queued: stats.queued,
            errors: stats.errors(),
            created_at: crawl.created_at.rfc3339(),
            seed: crawl.seeds.texts().into_iter().next(),
            name: crawl.name,
        }
    }

    /// What a crawl is doing. That it goes on is known in the engine a moment before it is written
    /// down; everything else is written down first.
    pub fn state(&self, record: &CrawlRecord) -> CrawlState {
        let no = record.crawl.no;
        let live = self.progress(no).filter(|_| self.is_live(no));
        live.map_or(record.state, |live| live.state)
    }

    /// The state in one word. A crawl that the store says runs waits for its turn if no engine has it,
    /// or was interrupted if nothing here starts it.
    pub fn state_word(&self, record: &CrawlRecord) -> &'static str {
        let no: CrawlNo = record.crawl.no;
        let waits = self.waits(no);
        match self.state(record) {
            CrawlState::Running if waits == Some(true) => "queued",
            CrawlState::Running if waits.is_none() && !self.is_live(no) => "interrupted",
            state => state.word(),
        }
    }
}

/// What ended the engine, of a crawl that is set aside for that.
fn pause_detail(record: &CrawlRecord, state: CrawlState) -> Option<String> {
    match (state, &record.fault) {
        (CrawlState::Paused { why: PauseReason::EngineStopped }, Some(fault)) => Some(fault.text()),
        (CrawlState::Running | CrawlState::Paused { .. } | CrawlState::Finished { .. }, _) => None,
    }
}

impl From<FollowerReport> for FollowerView {
    fn from(report: FollowerReport) -> Self {
        Self {
            name: report.name,
            lag: report.lag,
            trouble_since: report.trouble.as_ref().map(|it| it.since.rfc3339()),
            trouble: report.trouble.map(|it| it.why),
        }
    }
}

pub(super) fn parked_view(parked: &ParkedHost) -> ParkedView {
    ParkedView {
        host: parked.host.clone(),
        reason: parked.reason.word().to_owned(),
        pages: parked.pages,
        left_s: parked.left_s,
        text: parked.text(),
    }
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
    MannersView {
        delay_ms: manners.delay_ms,
        per_host: u64::from(manners.per_host),
        workers: u64::from(manners.workers),
        rate_per_s: manners.rate_per_second,
        adaptive: manners.adaptive,
        fairness: manners.fairness.word().to_owned(),
        robots: manners.robots.word().to_owned(),
        crawl_delay_max_ms: manners.crawl_delay_max_ms,
        retries: u64::from(manners.attempts_max.saturating_sub(1)),
        nofollow: manners.obey_rel_nofollow,
    }
}

fn fetch_view(rules: &FetchRules) -> FetchRulesView {
    FetchRulesView {
        user_agent: rules.user_agent.clone(),
        timeout_ms: rules.timeout_ms,
        max_redirects: rules.redirects_max,
        http: rules.http.word().to_owned(),
        cookies: rules.cookies,
        // Of headers even masked values say nothing.
        headers: rules.headers.iter().map(|(name, _)| name.clone()).collect(),
        allow_private: rules.allow_private.clone(),
        insecure_hosts: rules.insecure_hosts.iter().map(ToString::to_string).collect(),
    }
}

/// The counters are those of the store: what was shown once is never taken back, not even by a kill.
/// Only what is true of this moment comes from the engine.
fn stats_view(record: &CrawlRecord, progress: Option<&Progress>, hosts: &[HostRow]) -> StatsView {
    let stats = &record.stats;
    let live = progress.filter(|_| !matches!(record.state, CrawlState::Finished { .. }));
    // The snapshot of a crawl that is over tells nothing of what still waits.
    let sites = sites(if hosts.is_empty() { progress } else { live }, hosts);
    let left_out = record.crawl.left_out(record.state, stats);
    #[expect(clippy::cast_precision_loss, reason = "seconds with three digits")]
    let active_s = stats.active_ms as f64 / 1000.0;
    StatsView {
        discovered: stats.discovered,
        fetched: stats.pages,
        ok: stats.ok,
        redirected: stats.redirected,
        failed: stats.failed,
        errors: stats.errors(),
        skipped: stats.skipped,
        sitemaps: stats.sitemaps,
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
        left_out: left_out.into_iter().map(LeftOutView::from).collect(),
        uncounted: stats.uncounted,
        not_web: stats.other_schemes,
        changes: words(&stats.changes),
        ids: record.crawl.seeds.linear().map(|_| ids_view(stats)),
        depths: words(&stats.depths),
        sites: sites.top,
        sites_total: sites.total,
        hosts: host_stats(record, hosts),
        suspects_network: live.is_some_and(|live| live.suspects_network),
        retry_after_s: live.and_then(|live| live.retry_after_ms).map(|ms| ms.div_ceil(1000)),
        index_lag: live.map_or(0, |live| live.index_lag),
    }
}

fn ids_view(stats: &CrawlStats) -> IdCountsView {
    let ids = &stats.ids;
    IdCountsView {
        content: ids.content,
        missing: ids.missing,
        holes: ids.holes,
        pending_retry: ids.waiting,
    }
}

struct Sites {
    top: Vec<SiteView>,
    total: u64,
    fairness_index: f64,
}

/// The sites by the snapshot of a crawl, else by its hosts.
fn sites(progress: Option<&Progress>, hosts: &[HostRow]) -> Sites {
    let view = |share: SiteShare| SiteView {
        site: share.site,
        fetched: share.pages,
        queued: share.queued,
    };
    if let Some(progress) = progress {
        return Sites {
            top: progress.sites.iter().cloned().map(view).collect(),
            total: progress.sites_total,
            fairness_index: progress.fairness_index,
        };
    }
    let mut by_site: HashMap<String, SiteShare> = HashMap::new();
    for row in hosts {
        let site = row.host.site().to_string();
        let share = by_site.entry(site.clone()).or_insert(SiteShare { site, pages: 0, queued: 0 });
        share.pages += row.pages;
        share.queued += row.queued;
    }
    let mut top: Vec<SiteShare> = by_site.into_values().collect();
    top.sort_by(|left, right| {
        right.pages.cmp(&left.pages).then_with(|| left.site.cmp(&right.site))
    });
    let fairness_index = jain_index(top.iter().map(|site| site.pages));
    let total = top.len() as u64;
    top.truncate(HOSTS_SHOWN_MAX);
    Sites { top: top.into_iter().map(view).collect(), total, fairness_index }
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
