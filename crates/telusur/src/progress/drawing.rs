//! A crawl in a line or two: pure text, fitted to a width.

use std::iter;

use telusur_engine::json::CoverageView;
use telusur_model::Progress;

use super::strip::{count_parts, strip_line};
use crate::message::shown;
use crate::units::{show_count, show_duration_ms, show_size};

/// Narrower than this, one line must do.
const TWO_LINES_COLUMNS_MIN: usize = 60;
/// Width of the bar.
const BAR_COLUMNS: usize = 18;
/// Sites named in the second line.
const SITES_SHOWN_MAX: usize = 4;
/// Walks of a linear crawl that are drawn.
const WALKS_SHOWN_MAX: usize = 4;
/// Statuses named in the second line.
const STATUSES_SHOWN_MAX: usize = 6;

/// A crawl at one moment, to be drawn.
pub struct Drawing<'a> {
    /// The crawl.
    pub progress: &'a Progress,
    /// Its page limit.
    pub pages_max: Option<u64>,
    /// Drawings so far: turns the spinner.
    pub ticks: usize,
}

impl Drawing<'_> {
    /// The lines, none wider than `columns`.
    pub fn lines(&self, columns: usize, is_unicode: bool) -> Vec<String> {
        // A line that fills the last column makes many terminals wrap.
        let columns = columns.saturating_sub(1);
        if columns < TWO_LINES_COLUMNS_MIN {
            let spinner = spinner(self.ticks, is_unicode);
            let line = format!("{spinner} {}", plain_line(self.progress, self.pages_max));
            return vec![line.chars().take(columns).collect()];
        }
        if !self.progress.walks.is_empty() {
            return self.walks(columns, is_unicode);
        }
        vec![self.numbers(columns, is_unicode), self.shares(columns, is_unicode)]
    }

    fn numbers(&self, columns: usize, is_unicode: bool) -> String {
        let stats = &self.progress.stats;
        let done = match self.pages_max {
            None => format!("{} pages", show_count(stats.pages)),
            Some(max) => {
                let percent = stats.pages * 100 / max.max(1);
                let bar = bar(stats.pages, max, is_unicode);
                format!("{} / {}  {bar}  {percent}%", show_count(stats.pages), show_count(max))
            }
        };
        let line = format!("  {} {done}", spinner(self.ticks, is_unicode));
        let eta = self.progress.eta_s.map(|s| format!("eta {}", show_duration_ms(s * 1_000)));
        let rest = [
            Some(format!("{:.1}/s", self.progress.pages_per_second)),
            Some(format!("queue {}", show_count(stats.queued))),
            Some(format!("err {}", show_count(stats.errors()))),
            Some(show_size(stats.wire_bytes)),
            eta,
            index_lag(self.progress).map(|pages| format!("to index {}", show_count(pages))),
        ];
        let behind = self.progress.followers_behind.iter();
        let behind = behind.map(|(name, pages)| format!("{name} behind {}", show_count(*pages)));
        fit(line, rest.into_iter().flatten().chain(behind), "   ", columns)
    }

    /// A linear crawl: the strip of each walk, and the counts of the first.
    fn walks(&self, columns: usize, is_unicode: bool) -> Vec<String> {
        let walks = &self.progress.walks;
        let shown: Vec<CoverageView> = (0..)
            .zip(walks.iter().take(WALKS_SHOWN_MAX))
            .map(|(number, walk)| CoverageView::of(walk, number))
            .collect();
        let mut lines: Vec<String> =
            shown.iter().filter_map(|walk| strip_line(walk, columns, is_unicode)).collect();
        let rate = format!("{:.1}/s", self.progress.pages_per_second);
        let line = format!("  {} {rate}", spinner(self.ticks, is_unicode));
        let parts = match shown.as_slice() {
            [walk] => count_parts(walk, is_unicode),
            _ => id_counts(self.progress),
        };
        lines.push(fit(line, parts.into_iter(), "   ", columns));
        lines
    }

    fn shares(&self, columns: usize, is_unicode: bool) -> String {
        if self.progress.suspects_network {
            let text = "    nobody answers: waiting for the network, nothing is lost";
            return text.chars().take(columns).collect();
        }
        if let Some(ms) = self.progress.retry_after_ms {
            let text = format!("    {}", retry_after_text(ms));
            return text.chars().take(columns).collect();
        }
        let statuses = self.progress.stats.statuses.iter().take(STATUSES_SHOWN_MAX);
        let statuses = statuses.map(|(status, count)| format!("{status}:{count}"));
        let statuses = fit(String::new(), statuses, "  ", columns / 2);
        let dot = if is_unicode { " · " } else { " | " };
        let sites = self.progress.sites.iter().take(SITES_SHOWN_MAX);
        let sites = sites.map(|site| format!("{} {}", shown(&site.site), show_count(site.pages)));
        let sites = fit(String::new(), sites, dot, columns - 4 - 2 - statuses.len());
        let gap = columns - 4 - sites.chars().count() - statuses.len();
        format!("    {sites}{}{statuses}", " ".repeat(gap)).trim_end().to_owned()
    }
}

/// One line without any escape: `1240/5000 pages 21.4/s queue=2034 err=21`.
pub fn plain_line(progress: &Progress, pages_max: Option<u64>) -> String {
    let stats = &progress.stats;
    let limit = pages_max.map(|max| format!("/{max}")).unwrap_or_default();
    if !progress.walks.is_empty() {
        let ids = &stats.ids;
        return format!(
            "{}{limit} pages {:.1}/s missing={} holes={} waiting={}",
            stats.pages, progress.pages_per_second, ids.missing, ids.holes, ids.waiting
        );
    }
    let waits = match (progress.suspects_network, progress.retry_after_ms) {
        (true, _) => " (nobody answers: waiting)".to_owned(),
        (false, Some(ms)) => format!(" ({})", retry_after_text(ms)),
        (false, None) => String::new(),
    };
    let mut lag = index_lag(progress).map(|pages| format!(" to_index={pages}")).unwrap_or_default();
    for (name, pages) in &progress.followers_behind {
        lag.push_str(&format!(" {name}_behind={pages}"));
    }
    format!(
        "{}{limit} pages {:.1}/s queue={} err={}{lag}{waits}",
        stats.pages,
        progress.pages_per_second,
        stats.queued,
        stats.errors()
    )
}

fn retry_after_text(ms: u64) -> String {
    format!("every host asks us to wait (Retry-After): next in {}", show_duration_ms(ms))
}

/// Pages that are stored and cannot be found yet, if there are any.
fn index_lag(progress: &Progress) -> Option<u64> {
    Some(progress.index_lag).filter(|pages| *pages > 0)
}

/// The ids of all walks together.
fn id_counts(progress: &Progress) -> Vec<String> {
    let ids = &progress.stats.ids;
    let counts = [
        ("content", ids.content),
        ("missing", ids.missing),
        ("holes", ids.holes),
        ("to retry", ids.waiting),
    ];
    counts.map(|(word, count)| format!("{word} {}", show_count(count))).into()
}

/// Adds as many parts to a line as fit.
fn fit(
    start: String,
    parts: impl Iterator<Item = String>,
    between: &str,
    columns: usize,
) -> String {
    let mut line = start;
    for part in parts {
        let gap = if line.is_empty() { "" } else { between };
        if (line.chars().count() + gap.chars().count() + part.chars().count()) > columns {
            break;
        }
        line.push_str(gap);
        line.push_str(&part);
    }
    line.chars().take(columns).collect()
}

pub(super) fn spinner(ticks: usize, is_unicode: bool) -> char {
    let turns: &[char] = if is_unicode {
        &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
    } else {
        &['|', '/', '-', '\\']
    };
    turns[ticks % turns.len()]
}

fn bar(done: u64, max: u64, is_unicode: bool) -> String {
    let columns = BAR_COLUMNS as u64;
    let eighths = done.min(max) * columns * 8 / max.max(1);
    let full = usize::try_from(eighths / 8).expect("at most the width");
    let (block, empty) = if is_unicode { ('█', '░') } else { ('#', '.') };
    let part = match eighths % 8 {
        part if part > 0 && is_unicode => {
            char::from_u32(0x2590 - u32::try_from(part).expect("below eight"))
        }
        _ => None,
    };
    let filled = iter::repeat_n(block, full).chain(part);
    filled.chain(iter::repeat(empty)).take(BAR_COLUMNS).collect()
}
