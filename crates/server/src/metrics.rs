//! What is counted about the service, in the text format of Prometheus. No label holds a host or a URL:
//! there would be as many as there are pages.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::json::StatsOfAll;

/// Upper ends of the classes of search times, in milliseconds.
const SEARCH_MS: [u64; 8] = [1, 5, 10, 25, 50, 100, 500, 1000];

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by route and status. Routes are patterns, so there are few. Held to add one.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    searches: [AtomicU64; SEARCH_MS.len() + 1],
    search_ms_sum: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) event_readers: AtomicU64,
    pub(crate) refused_by_rate: AtomicU64,
}

impl Metrics {
    /// A request was answered.
    pub(crate) fn answered(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route.to_owned(), status)).or_default() += 1;
    }

    /// A search took so long.
    pub(crate) fn searched_ms(&self, ms: u64) {
        let class = SEARCH_MS.iter().position(|&end| ms <= end).unwrap_or(SEARCH_MS.len());
        self.searches[class].fetch_add(1, Ordering::Relaxed);
        self.search_ms_sum.fetch_add(ms, Ordering::Relaxed);
    }

    /// Everything, with the totals of the data directory.
    pub(crate) fn text(&self, totals: &StatsOfAll, live: &Live) -> String {
        let mut text = Text::default();
        text.family("build_info", "gauge", "The version of the program.");
        text.value("build_info", &[("version", &totals.version)], 1.0);
        text.one("uptime_seconds", "gauge", "Seconds since the service started.", totals.uptime_s);
        text.family("crawl_state", "gauge", "Crawls by state.");
        for (state, count) in &totals.crawls {
            text.value("crawl_state", &[("state", state)], number(*count));
        }
        text.one("pages", "gauge", "Pages stored in all crawls.", totals.pages);
        text.family("frontier_urls", "gauge", "URLs of all crawls by state.");
        text.value("frontier_urls", &[("state", "queued")], number(totals.queued));
        text.value("frontier_urls", &[("state", "in_flight")], number(live.in_flight));
        text.one("index_documents", "gauge", "Pages that can be found.", totals.indexed);
        text.one("index_bytes", "gauge", "Bytes of the search index.", totals.index_bytes);
        let help = "Pages that are stored and cannot be found yet.";
        text.one("index_lag_pages", "gauge", help, totals.index_lag);
        let help = "Whether writing the search index fails and is tried again.";
        text.one("index_failing", "gauge", help, u64::from(totals.index_trouble.is_some()));
        text.family(
            "follower_lag_pages",
            "gauge",
            "Pages that are stored and not yet derived from.",
        );
        for follower in &totals.followers {
            let labels = [("follower", follower.name.as_str())];
            text.value("follower_lag_pages", &labels, number(follower.lag));
        }
        text.family("follower_failing", "gauge", "Whether it fails and is tried again.");
        for follower in &totals.followers {
            let labels = [("follower", follower.name.as_str())];
            text.value("follower_failing", &labels, f64::from(follower.trouble.is_some()));
        }
        if let Some(free) = totals.free_bytes {
            text.one("disk_free_bytes", "gauge", "Bytes left on the disk.", free);
        }
        text.family("pages_per_second", "gauge", "Pages stored per second over the last seconds.");
        text.value("pages_per_second", &[], totals.pages_per_s);
        if let Some(index) = live.fairness_index {
            text.family("fairness_index", "gauge", "The lowest Jain index of the running crawls.");
            text.value("fairness_index", &[], index);
        }
        text.family("fetches_total", "counter", "Answers of running crawls by class of status.");
        for (class, count) in &live.fetches {
            text.value("fetches_total", &[("code_class", class)], number(*count));
        }
        text.family("skipped_total", "counter", "Skipped URLs of running crawls by reason.");
        for (reason, count) in &live.skips {
            text.value("skipped_total", &[("reason", reason)], number(*count));
        }
        self.write_own(&mut text);
        text.0
    }

    fn write_own(&self, text: &mut Text) {
        text.family("http_requests_total", "counter", "Answers by route and status.");
        for ((route, status), count) in
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter()
        {
            let labels = [("route", route.as_str()), ("code", &status.to_string())];
            text.value("http_requests_total", &labels, number(*count));
        }
        text.family("search_duration_seconds", "histogram", "How long searches took.");
        let mut sum = 0;
        for (class, count) in self.searches.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            #[expect(clippy::cast_precision_loss, reason = "ends of classes are small")]
            let end = SEARCH_MS
                .get(class)
                .map_or("+Inf".to_owned(), |&ms| (ms as f64 / 1000.0).to_string());
            text.value("search_duration_seconds_bucket", &[("le", &end)], number(sum));
        }
        let total = number(self.search_ms_sum.load(Ordering::Relaxed)) / 1000.0;
        text.value("search_duration_seconds_sum", &[], total);
        text.value("search_duration_seconds_count", &[], number(sum));
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text.one(
            "http_connections",
            "gauge",
            "Connections that are open.",
            load(&self.connections),
        );
        text.one("event_readers", "gauge", "Readers of events.", load(&self.event_readers));
        let help = "Requests that were refused because a key made too many.";
        text.one("rate_limited_total", "counter", help, load(&self.refused_by_rate));
    }
}

/// What is true of the running crawls at this moment.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) in_flight: u64,
    pub(crate) fairness_index: Option<f64>,
    pub(crate) fetches: BTreeMap<String, u64>,
    pub(crate) skips: BTreeMap<String, u64>,
}

/// The text so far.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP telusur_{name} {help}\n# TYPE telusur_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "telusur_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.value(name, &[], number(value));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
fn number(value: u64) -> f64 {
    value as f64
}
