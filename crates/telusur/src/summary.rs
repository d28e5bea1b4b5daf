//! [`Summary`]: what is said when a crawl ends: why, how much, how evenly, at what cost, and what
//! can be done next.

use std::fmt::Write as _;

use serde_json::json;
use telusur_model::{CrawlState, FinishReason, LeftOut, PauseReason, Progress, Reason};

use crate::message::shown;
use crate::progress::{count_parts, strip_line};
use crate::units::{show_count, show_duration_ms, show_size};

/// Sites that are named; the others are counted.
const SITES_SHOWN_MAX: usize = 8;
/// Walks of a linear crawl that are shown.
const WALKS_SHOWN_MAX: usize = 4;
/// Parked hosts that are named.
const PARKED_SHOWN_MAX: usize = 4;
/// Width of their strips.
const STRIP_COLUMNS: usize = 78;

/// A crawl at its end, or where it was left.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// Its last snapshot.
    pub progress: &'a Progress,
    /// What it took from this machine, if this process ran it.
    pub cost: Option<Cost>,
    /// Whether it spoke nothing but HTTP/2, by the wish of the user.
    pub is_http2_only: bool,
}

/// What a process took from the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Processor time of all threads, and of the children that are gone.
    pub cpu_seconds: f64,
    /// Most memory ever held, where the system tells.
    pub memory_bytes_peak: Option<u64>,
}

impl Cost {
    /// What was taken since an earlier moment. A program that was started in place of another, as
    /// `cargo run` does, begins with the time of the other's children.
    pub fn since(self, earlier: &Self) -> Self {
        Self { cpu_seconds: self.cpu_seconds - earlier.cpu_seconds, ..self }
    }

    /// In one line.
    fn line(&self) -> String {
        let memory = self.memory_bytes_peak.map(show_size);
        let memory = memory.map(|size| format!(", peak memory {size}")).unwrap_or_default();
        format!("CPU {:.1}s{memory}", self.cpu_seconds)
    }

    /// What this process has taken so far.
    pub fn of_process() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let of_children = std::fs::read_to_string("/proc/self/stat").ok();
        let of_children = of_children.and_then(|stat| children_ticks(&stat)).unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let cpu_seconds = time.tv_sec as f64
            + time.tv_nsec as f64 / 1e9
            + of_children as f64 / rustix::param::clock_ticks_per_second() as f64;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self { cpu_seconds, memory_bytes_peak: peak_of_status(&status) }
    }
}

/// What children that are gone have used, in clock ticks: the 16th and 17th word of `/proc/self/stat`.
/// The second word is the program's name in parentheses, which may hold anything.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut words = behind_name.split_ascii_whitespace().skip(13);
    let mut next = || words.next()?.parse::<u64>().ok();
    next()?.checked_add(next()?)
}

/// The line `VmHWM:   41212 kB` of Linux.
fn peak_of_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

impl Summary<'_> {
    /// The summary for people.
    pub fn text(&self, is_unicode: bool) -> String {
        let mut text = format!("  {}\n", self.headline(is_unicode));
        for walk in self.progress.walks.iter().take(WALKS_SHOWN_MAX) {
            if let Some(line) = strip_line(walk, STRIP_COLUMNS, is_unicode) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        let dot = if is_unicode { " · " } else { " | " };
        let mut row = |name: &str, parts: Vec<String>| {
            if !parts.is_empty() {
                writeln!(text, "    {name:<9} {}", parts.join(dot)).expect("a string takes all");
            }
        };
        let stats = &self.progress.stats;
        for walk in self.progress.walks.iter().take(WALKS_SHOWN_MAX) {
            row("Ids", count_parts(walk, is_unicode));
        }
        row("Sites", self.sites());
        row("Status", counts(&stats.statuses));
        row("Failed", failure_counts(&stats.failures, self.is_http2_only));
        for parked in self.progress.parked.iter().take(PARKED_SHOWN_MAX) {
            row("Parked", vec![shown(&parked.text())]);
        }
        row("Skipped", counts(&stats.skips));
        row("Left out", left_out(&self.progress.left_out(), stats.uncounted));
        if stats.sitemaps > 0 {
            row("Sitemaps", vec![show_count(stats.sitemaps)]);
        }
        row("Changes", counts(&stats.changes));
        row("Machine", self.cost.iter().map(Cost::line).collect());
        for (name, command) in self.next_steps() {
            row(name, vec![command]);
        }
        text
    }

    /// The summary for machines.
    pub fn json(&self) -> serde_json::Value {
        let progress = self.progress;
        let finish_reason = match progress.state {
            CrawlState::Finished { why } => Some(why),
            CrawlState::Running | CrawlState::Paused { .. } => None,
        };
        json!({
            "crawl": progress.crawl.to_string(),
            "state": progress.state.word(),
            "finish_reason": finish_reason,
            "duration_ms": progress.stats.active_ms,
            "errors": progress.stats.errors(),
            "stats": progress.stats,
            "left_out": progress.left_out(),
            "sites": progress.sites,
            "sites_total": progress.sites_total,
            "fairness_index": progress.fairness_index,
            "walks": progress.walks,
            "parked": progress.parked,
            "cpu_seconds": self.cost.map(|cost| cost.cpu_seconds),
            "memory_bytes_peak": self.cost.and_then(|cost| cost.memory_bytes_peak),
        })
    }

    fn headline(&self, is_unicode: bool) -> String {
        let stats = &self.progress.stats;
        let (good, bad, still) = if is_unicode { ("✓", "✗", "■") } else { ("*", "x", "=") };
        let (mark, verb, why) = match self.progress.state {
            CrawlState::Finished { why: FinishReason::Stopped } => {
                (still, "Stopped after", Some("saved, nothing is lost"))
            }
            CrawlState::Finished { why: why @ FinishReason::NoStart } => {
                (bad, "Failed after", Some(why.phrase()))
            }
            CrawlState::Finished { why: why @ FinishReason::RetryAfter } => {
                (still, "Ended after", Some(why.phrase()))
            }
            CrawlState::Finished { why } => (good, "Done in", Some(why.phrase())),
            CrawlState::Paused { why: PauseReason::NoNetwork } => {
                (still, "Paused after", Some("nobody answers, nothing is lost"))
            }
            CrawlState::Paused { why: PauseReason::Refused } => {
                (still, "Paused after", Some("these ids may not be asked, nothing is lost"))
            }
            CrawlState::Paused { .. } => (still, "Paused after", None),
            CrawlState::Running => (still, "Saved after", Some("not finished, nothing is lost")),
        };
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        format!(
            "{mark} {verb} {}: {} pages{why}, {} errors, {}",
            show_duration_ms(stats.active_ms),
            show_count(stats.pages),
            show_count(stats.errors()),
            show_size(stats.wire_bytes),
        )
    }

    fn sites(&self) -> Vec<String> {
        let all = self.progress.stats.pages.max(1);
        let share = |pages: u64| pages.saturating_mul(100) / all;
        let named = self.progress.sites.iter().take(SITES_SHOWN_MAX);
        let mut parts: Vec<String> = named
            .map(|site| {
                let pages = show_count(site.pages);
                format!("{} {pages} ({}%)", shown(&site.site), share(site.pages))
            })
            .collect();
        let others = self.progress.sites_total.saturating_sub(parts.len() as u64);
        if others > 0 {
            parts.push(format!("{} more", show_count(others)));
        }
        if self.progress.sites_total > 1 {
            parts.push(format!("fairness {:.2}", self.progress.fairness_index));
        }
        parts
    }

    fn next_steps(&self) -> Vec<(&'static str, String)> {
        let crawl = self.progress.crawl;
        let mut steps = Vec::new();
        if !self.progress.walks.is_empty() {
            steps.push(("Coverage", format!("telusur coverage {crawl}")));
        } else if self.progress.stats.errors() > 0 {
            steps.push(("Errors", format!("telusur show {crawl} --errors")));
        }
        if !self.progress.stats.changes.is_empty() {
            steps.push(("Changed", format!("telusur show {crawl} --changes")));
        }
        if self.progress.stats.ok > 0 {
            steps.push(("Search", "telusur search WORDS, or in the browser: telusur serve".into()));
        }
        if self.progress.stats.pages > 0 {
            steps.push(("Export", format!("telusur export {crawl} -o {crawl}.jsonl")));
        }
        let is_stopped = matches!(
            self.progress.state,
            CrawlState::Finished { why: FinishReason::Stopped | FinishReason::RetryAfter }
        );
        let is_unfinished = !matches!(self.progress.state, CrawlState::Finished { .. });
        let has_rest = self.progress.stats.queued > 0 || !self.progress.walks.is_empty();
        if is_unfinished || is_stopped && has_rest {
            steps.push(("Resume", format!("telusur resume {crawl}")));
        }
        steps
    }
}

/// The budgets that were reached, what they left out, and the flags that let it in.
pub(crate) fn left_out(rows: &[LeftOut], uncounted: u64) -> Vec<String> {
    let way_out = |reason: Reason, flag: &str| match reason {
        Reason::TrapSuspected => format!("follow them with {flag} PATTERN"),
        _ => format!("raise {flag}"),
    };
    let mut parts: Vec<String> = rows
        .iter()
        .map(|row| {
            let urls = show_count(row.urls);
            let more = if row.at_least { " or more" } else { "" };
            format!("{} {urls}{more} ({})", row.reason, way_out(row.reason, &row.flag))
        })
        .collect();
    if !parts.is_empty() && uncounted > 0 {
        parts.push(format!("{} more links that are not listed", show_count(uncounted)));
    }
    parts
}

/// The entries of a table of counters, the largest first.
fn counts<K: ToString>(table: &std::collections::BTreeMap<K, u64>) -> Vec<String> {
    let mut rows: Vec<(&K, u64)> = table.iter().map(|(key, count)| (key, *count)).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    rows.iter().map(|(key, count)| format!("{} {}", key.to_string(), show_count(*count))).collect()
}

/// Why pages failed. That a server is broken is said in words: nothing here helps, and its operator may
/// want to know. A crawl that speaks nothing but HTTP/2 may have asked too much of a good one.
fn failure_counts(
    failures: &std::collections::BTreeMap<Reason, u64>,
    is_http2_only: bool,
) -> Vec<String> {
    let mut parts = counts(failures);
    for part in &mut parts {
        if part.starts_with(Reason::ProtocolError.word()) {
            part.push_str(match is_http2_only {
                true => " (broken server, or one without HTTP/2: --http 2)",
                false => " (broken server)",
            });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use telusur_model::{CrawlNo, CrawlStats, ParkedHost, SiteShare};

    #[test]
    fn broken_servers_are_named() {
        let failures = [(Reason::ProtocolError, 1_200), (Reason::DnsError, 1)].into();
        let expect = ["protocol_error 1,200 (broken server)", "dns_error 1"];
        assert_eq!(failure_counts(&failures, false), expect);
        // Nothing is stored that tells the two apart.
        let expect = "protocol_error 1,200 (broken server, or one without HTTP/2: --http 2)";
        assert_eq!(failure_counts(&failures, true)[0], expect);
    }

    fn progress(state: CrawlState) -> Progress {
        let site = |name: &str, pages| SiteShare { site: name.to_owned(), pages, queued: 0 };
        Progress {
            suspects_network: false,
            retry_after_ms: None,
            index_lag: 0,
            followers_behind: Vec::new(),
            walks: Vec::new(),
            parked: Vec::new(),
            parse_backlog: Vec::new(),
            crawl: CrawlNo(7),
            state,
            stats: CrawlStats {
                pages: 5_000,
                ok: 4_963,
                failed: 4,
                wire_bytes: 193_000_000,
                active_ms: 234_000,
                statuses: [(200, 4_963), (404, 37)].into(),
                failures: [(Reason::TimeoutConnect, 3), (Reason::DnsError, 1)].into(),
                skips: [(Reason::OutOfScope, 310)].into(),
                ..CrawlStats::default()
            },
            in_flight: 0,
            pages_per_second: 0.0,
            eta_s: None,
            sites: vec![site("kompas.com", 2_500), site("detik.com", 2_400)],
            sites_total: 3,
            fairness_index: 0.974,
        }
    }

    const COST: Cost = Cost { cpu_seconds: 3.21, memory_bytes_peak: Some(41_000_000) };

    #[test]
    fn a_finished_crawl() {
        let progress = progress(CrawlState::Finished { why: FinishReason::MaxPages });
        let text =
            Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.text(true);
        assert_eq!(
            text,
            "  ✓ Done in 3m54s: 5,000 pages (page limit reached), 41 errors, 193 MB
    Sites     kompas.com 2,500 (50%) · detik.com 2,400 (48%) · 1 more · fairness 0.97
    Status    200 4,963 · 404 37
    Failed    timeout_connect 3 · dns_error 1
    Skipped   out_of_scope 310
    Machine   CPU 3.2s, peak memory 41 MB
    Errors    telusur show crawl_7 --errors
    Search    telusur search WORDS, or in the browser: telusur serve
    Export    telusur export crawl_7 -o crawl_7.jsonl
"
        );
    }

    #[test]
    fn a_crawl_that_left_links_out_names_budgets_and_flags() {
        let mut progress = progress(CrawlState::Finished { why: FinishReason::Budget });
        progress.stats.skips =
            [(Reason::HostBudget, 2_000), (Reason::SiteBudget, 7), (Reason::TrapSuspected, 60)]
                .into();
        progress.stats.uncounted = 5;
        let summary = Summary { progress: &progress, cost: Some(COST), is_http2_only: false };
        let text = summary.text(false);
        assert!(!text.contains("nothing left to fetch"), "{text}");
        assert!(
            text.contains(
                "    Left out  host_budget 2,000 (raise --max-per-host) | trap_suspected 60 (follow \
                 them with --include PATTERN) | site_budget 7 (raise --max-per-site) | 5 more links \
                 that are not listed\n"
            ),
            "{text}"
        );
        let json = summary.json();
        assert_eq!(json["finish_reason"], "budget");
        assert_eq!(json["left_out"][0]["reason"], "host_budget");
        assert_eq!(json["left_out"][0]["urls"], 2_000);
        assert_eq!(json["left_out"][0]["flag"], "--max-per-host");
    }

    /// A linear crawl whose hosts ask for more patience than it has.
    #[test]
    fn a_walk_out_of_patience_says_so_and_how_to_go_on() {
        let mut progress = progress(CrawlState::Finished { why: FinishReason::RetryAfter });
        progress.stats.queued = 1;
        let text =
            Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.text(false);
        assert!(text.contains("Ended after"), "{text}");
        assert!(text.contains("(every host that is left asks us to wait)"), "{text}");
        assert!(text.ends_with("    Resume    telusur resume crawl_7\n"), "{text}");
    }

    #[test]
    fn an_unfinished_crawl_says_how_to_go_on() {
        for state in [CrawlState::Running, CrawlState::Paused { why: PauseReason::Asked }] {
            let progress = progress(state);
            let text =
                Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.text(false);
            assert!(text.ends_with("    Resume    telusur resume crawl_7\n"), "{text}");
            assert!(text.is_ascii());
        }
    }

    #[test]
    fn pages_that_could_not_be_parsed_are_errors_and_parked_hosts_are_named() {
        let mut progress = progress(CrawlState::Finished { why: FinishReason::Drained });
        let failures = [(Reason::ParseFailed, 6)].into();
        progress.stats = CrawlStats { pages: 9, ok: 9, failures, ..CrawlStats::default() };
        let (host, reason) = ("bad.org".to_owned(), Reason::ParseLimit);
        progress.parked = vec![ParkedHost { host, reason, pages: 6, left_s: None }];
        let text =
            Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.text(true);
        assert!(text.contains("9 pages (nothing left to fetch), 6 errors"), "{text}");
        assert!(text.contains("Failed    parse_failed 6\n"), "{text}");
        assert!(text.contains("Errors    telusur show crawl_7 --errors"), "{text}");
        let parked =
            "bad.org is given up: 6 of its pages in a row stopped the parser (parse_limit)";
        assert!(text.contains(&format!("Parked    {parked}\n")), "{text}");
    }

    #[test]
    fn an_empty_crawl_is_shown_too() {
        let mut progress = progress(CrawlState::Finished { why: FinishReason::NoStart });
        progress.stats = CrawlStats { failed: 1, ..CrawlStats::default() };
        progress.sites.clear();
        progress.sites_total = 0;
        let text =
            Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.text(true);
        assert!(
            text.starts_with(
                "  ✗ Failed after 0.0s: 0 pages (no start URL could be fetched), 1 errors, 0 B\n"
            ),
            "{text}"
        );
        assert!(!text.contains("Sites") && !text.contains("Export"), "{text}");
    }

    #[test]
    fn machines_get_everything() {
        let progress = progress(CrawlState::Finished { why: FinishReason::MaxPages });
        let json = Summary { progress: &progress, cost: Some(COST), is_http2_only: false }.json();
        assert_eq!(json["crawl"], "crawl_7");
        assert_eq!(json["finish_reason"], "max_pages");
        assert_eq!(json["stats"]["failures"]["dns_error"], 1);
        assert_eq!(json["stats"]["statuses"]["404"], 37);
        assert_eq!(json["memory_bytes_peak"], 41_000_000);
    }

    #[test]
    fn the_process_has_a_cost() {
        assert_eq!(peak_of_status("VmPeak:\t 9 kB\nVmHWM:\t   41212 kB\n"), Some(41_212 * 1024));
        assert_eq!(peak_of_status("VmHWM: many kB"), None);
        let before = Cost::of_process();
        assert!(before.cpu_seconds >= 0.0);
        let after = Cost { cpu_seconds: before.cpu_seconds + 1.5, memory_bytes_peak: Some(7) };
        let cost = after.since(&before);
        assert!((cost.cpu_seconds - 1.5).abs() < 1e-6);
        assert_eq!(cost.memory_bytes_peak, Some(7));
    }
}
