//! Crawls for real: the program against a site on loopback, killed, interrupted, asked from another
//! terminal.

use std::process::{Child, Stdio};
use std::sync::Arc;

use serde_json::Value;
use telusur_testkit::clock::TokioClock;
use telusur_testkit::fake_web::{DelayRange, FaultShares, PageCounts};
use telusur_testkit::{Along, FakeWeb, FakeWebSpec, RequestLog, ServedWeb, Torture, serve};

use crate::{Place, Seen};

/// A served web with the runtime that serves it.
pub(crate) struct Web {
    runtime: tokio::runtime::Runtime,
    served: ServedWeb,
    log: Arc<RequestLog>,
}

pub(crate) fn small_web(pages: u64) -> FakeWebSpec {
    FakeWebSpec {
        hosts: 3,
        pages: PageCounts::Even { total: pages },
        links_per_page: 8,
        page_bytes: 2_000,
        ..FakeWebSpec::default()
    }
}

impl Web {
    pub(crate) fn new(spec: FakeWebSpec) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let web = FakeWeb::new(spec).unwrap();
        let (served, log) = runtime.block_on(async {
            let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
            (serve(&web, Some(Arc::clone(&log))).await.unwrap(), log)
        });
        Self { runtime, served, log }
    }

    /// The arguments of a crawl of it, without delay.
    fn crawl(&self, more: &[&str]) -> Vec<String> {
        let flags = ["crawl", "--delay", "0s", "--scope", "any", "--allow-private", "127.0.0.0/8"];
        let flags = flags.iter().chain(&["--min-free-disk", "0B"]).chain(more);
        let seeds = self.served.web().seeds();
        let seeds = seeds.iter().map(ToString::to_string);
        flags.map(|flag| (*flag).to_owned()).chain(seeds).collect()
    }
}

impl Place {
    pub(crate) fn crawl(&self, web: &Web, more: &[&str]) -> Seen {
        let arguments = web.crawl(more);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a crawl and waits until it has stored a page.
    pub(crate) fn start_crawl(&self, web: &Web, more: &[&str]) -> Child {
        let arguments = web.crawl(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = self.command(&arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while self.shown("last")["stats"]["fetched"].as_u64().is_none_or(|pages| pages == 0) {
            std::thread::yield_now();
        }
        child
    }

    /// `show ID --json`, or null while there is nothing to show.
    pub(crate) fn shown(&self, id: &str) -> Value {
        let seen = self.run(&["show", id, "--json"]);
        serde_json::from_str(&seen.stdout).unwrap_or(Value::Null)
    }

    #[track_caller]
    pub(crate) fn assert_verified(&self) {
        let seen = self.run(&["verify"]);
        assert_eq!(seen.code, 0, "{seen:?}");
        let lines = seen.stdout.lines().filter(|line| line.starts_with('I'));
        let held = lines.filter(|line| line.split_whitespace().nth(1) == Some("holds")).count();
        assert_eq!(held, 12, "{seen:?}");
    }
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub(crate) fn code_of(mut child: Child) -> i32 {
    child.wait().unwrap().code().unwrap_or(-1)
}

#[test]
fn the_demo_crawls_explains_and_exports() {
    let place = Place::new();
    let seen = place.run(&["demo"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stdout.contains("nothing left to fetch"), "{seen:?}");
    place.assert_verified();
    let searches =
        seen.stdout.lines().filter_map(|line| line.trim().strip_prefix("Search    telusur "));
    let searches: Vec<&str> = searches.filter(|search| !search.contains("WORDS")).collect();
    assert_eq!(searches.len(), 3, "{seen:?}");
    for search in searches {
        // The shell takes the outer quotation marks away.
        let words: Vec<&str> = search.split(' ').map(|word| word.trim_matches('\'')).collect();
        assert_eq!(place.run(&words).code, 0, "{search}");
    }
    let shown = place.shown("demo");
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["stats"]["failures"]["redirect_loop"], 1);
    let pages = shown["stats"]["fetched"].as_u64().unwrap();
    assert!(pages > 180, "{shown}");
    let redirected = shown["stats"]["redirected"].as_u64().unwrap();
    let export = place.run(&["export", "demo", "-o", "demo.jsonl"]);
    assert_eq!(export.code, 0, "{export:?}");
    let text = std::fs::read_to_string(place.path().join("demo.jsonl")).unwrap();
    assert_eq!(text.lines().count() as u64, pages + redirected);
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for field in ["url", "final_url", "status", "title", "links", "depth", "fetched_at", "bytes"] {
        assert!(!line[field].is_null(), "{field}: {line}");
    }
    let start = line["url"].as_str().unwrap();
    let why = place.run(&["explain", start]);
    assert!(why.result().contains("named as a start URL"), "{why:?}");
    let why = place.run(&["explain", start, "--json"]);
    let why: Value = serde_json::from_str(why.result()).unwrap();
    assert_eq!(why[0]["page"]["id"].as_str().map(|id| &id[..2]), Some("p_"), "{why}");
    let errors = place.run(&["show", "demo", "--errors", "--json"]);
    for line in errors.result().lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert_eq!(place.run(&["export", "demo", "-o", "demo.jsonl"]).code, 2, "it exists");
    assert!(place.run(&["ls"]).result().contains("completed"));
}

#[test]
fn one_damaged_page_costs_one_page() {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    let whole = place.run(&["export", "demo"]).result().lines().count();
    let segment = place.path().join(".local/share/telusur/bodies/crawl_1/00000001.warc.zst");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let seen = place.run(&["export", "demo"]);
    assert_eq!((seen.code, seen.stdout.lines().count()), (4, whole - 1), "{}", seen.stderr);
    assert!(seen.stderr.contains("bodies/crawl_1/00000001.warc.zst at byte"), "{}", seen.stderr);
    let seen = place.run(&["verify"]);
    assert_eq!(seen.code, 4);
    assert!(seen.stdout.contains("I1 BROKEN"), "{seen:?}");
}

/// A lost database once let a new crawl write over the bodies of an old one.
#[test]
fn bodies_that_nobody_knows_are_never_written_over() {
    let (place, web) = (Place::new(), Web::new(small_web(3)));
    assert_eq!(place.crawl(&web, &["-q"]).code, 0);
    std::fs::create_dir(place.path().join(".local/share/telusur/bodies/crawl_2")).unwrap();
    assert_eq!(place.crawl(&web, &["-q"]).code, 0);
    assert_eq!(place.shown("last")["alias"], "crawl_3");
    assert_eq!(place.run(&["verify"]).code, 4);
}

#[test]
fn a_crawl_finds_everything_and_says_how_it_went() {
    let (place, web) = (Place::new(), Web::new(small_web(90)));
    let seen = place.crawl(&web, &["--json", "-o", "pages.jsonl", "--name", "all"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let summary: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(summary["stats"]["ok"], 90);
    assert_eq!(summary["finish_reason"], "drained");
    assert!(summary["stats"]["fairness_index"].as_f64().unwrap() > 0.9);
    let text = std::fs::read_to_string(place.path().join("pages.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 90);
    let text = place.run(&["resume", "all"]);
    assert!(text.error(2).contains("nothing is left to fetch"), "{text:?}");
}

#[test]
fn killed_again_and_again_nothing_is_lost() {
    let place = Place::new();
    let torture = Torture {
        program: env!("CARGO_BIN_EXE_telusur").into(),
        web: FakeWebSpec { delay_ms: DelayRange { min: 20, max: 60 }, ..small_web(240) },
        kills: 12,
        seed: 7,
        life_ms_max: 500,
        workers: 8,
        scratch: place.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(torture.run(|_| {})).unwrap();
    assert_eq!(report.pages, 240);
    assert!(report.kills > 0, "{report:?}");
    // In flight are the eight that are being fetched, and a group that is not durable yet.
    const GROUP_VISITS_MAX: usize = 256;
    assert!(report.refetches <= (8 + GROUP_VISITS_MAX) * report.kills as usize, "{report:?}");
}

#[test]
fn a_linear_crawl_killed_again_and_again_knows_every_number() {
    let place = Place::new();
    let faults = FaultShares { gaps: 0.2, error_once: 0.1, ..FaultShares::default() };
    let torture = Torture {
        program: env!("CARGO_BIN_EXE_telusur").into(),
        web: FakeWebSpec {
            hosts: 2,
            delay_ms: DelayRange { min: 40, max: 90 },
            faults,
            ..small_web(600)
        },
        kills: 8,
        seed: 3,
        life_ms_max: 400,
        workers: 8,
        scratch: place.path().to_owned(),
        along: Along::Numbers,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(torture.run(|_| {})).unwrap();
    assert!(report.kills > 0 && report.pages > 400, "{report:?}");
}

#[test]
fn whatever_is_killed_every_page_is_indexed_once() {
    let place = Place::new();
    let torture = Torture {
        program: env!("CARGO_BIN_EXE_telusur").into(),
        web: FakeWebSpec { delay_ms: DelayRange { min: 5, max: 40 }, ..small_web(60) },
        kills: 10,
        seed: 5,
        life_ms_max: 150,
        workers: 8,
        scratch: place.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(torture.run_following(|_| {})).unwrap();
    assert!(report.kills >= 10 && report.documents >= 60, "{report:?}");
}

#[test]
fn a_removal_that_is_cut_short_is_complete_or_not_begun() {
    let place = Place::new();
    let torture = Torture {
        program: env!("CARGO_BIN_EXE_telusur").into(),
        web: small_web(60),
        kills: 8,
        seed: 2,
        life_ms_max: 0,
        workers: 8,
        scratch: place.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(torture.run_removing(|_| {})).unwrap();
    assert_eq!(report.cuts, 8, "{report:?}");
}

#[test]
fn the_first_interrupt_saves_and_the_same_command_goes_on() {
    let (place, web) = (Place::new(), Web::new(slow_web(150)));
    let child = place.start_crawl(&web, &[]);
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(code_of(child), 130);
    place.assert_verified();
    let taken = place.run(&["crawl", "--dry-run", "--name", "last", "http://a.org/"]);
    assert!(taken.error(2).contains("cannot be the name"), "{taken:?}");
    let stopped = place.shown("last");
    assert_eq!(stopped["state"], "stopped");
    let seen = place.crawl(&web, &["--json"]);
    assert!(seen.stderr.contains("goes on"), "{seen:?}");
    let summary: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!((&summary["alias"], &summary["stats"]["ok"]), (&"crawl_1".into(), &150.into()));
    assert!(web.log.counts().values().all(|times| *times == 1));
}

fn slow_web(pages: u64) -> FakeWebSpec {
    FakeWebSpec { delay_ms: DelayRange::fixed(40), ..small_web(pages) }
}

#[test]
fn other_terminals_reach_a_running_crawl() {
    let (place, web) = (Place::new(), Web::new(slow_web(3_000)));
    let child = place.start_crawl(&web, &["--name", "live"]);
    assert_eq!(place.shown("live")["is_live"], true);
    assert!(place.run(&["ls"]).result().contains("running"));
    place.assert_verified();
    // A second crawl runs beside it, in the same process.
    let nowhere =
        ["crawl", "http://127.0.0.1:1/", "--allow-private", "127.0.0.0/8", "--name", "second"];
    let second = place.run(&[&nowhere[..], &["--delay", "0s", "--retries", "0"]].concat());
    assert_eq!(second.code, 3, "{second:?}");
    assert_eq!(place.shown("second")["alias"], "crawl_2");
    assert_eq!(place.run(&["exclude", "live", "("]).code, 2);
    assert_eq!(place.run(&["pause", "live"]).code, 0);
    assert_eq!(place.shown("live")["state"], "paused");
    assert_eq!(place.run(&["rm", "live", "--yes"]).code, 2, "it is still here");
    assert_eq!(place.run(&["exclude", "live", "/p/9"]).code, 0);
    assert_eq!(place.run(&["resume", "live"]).code, 0);
    assert_eq!(place.run(&["stop", "live"]).code, 0);
    assert_eq!(code_of(child), 0);
    assert_eq!(place.shown("live")["state"], "stopped");
    assert_eq!(place.run(&["rm", "live"]).code, 2, "nobody confirmed");
    assert_eq!(place.run(&["rm", "live", "--yes"]).code, 0);
    let gone = place.run(&["show", "live"]);
    assert!(gone.error(2).contains("no crawl"), "{gone:?}");
}

#[test]
fn a_full_disk_pauses_the_crawl_and_says_so() {
    let (place, web) = (Place::new(), Web::new(slow_web(60)));
    let mut arguments = web.crawl(&[]);
    let at = arguments.iter().position(|argument| argument == "0B").unwrap();
    arguments[at] = "900TiB".to_owned();
    let seen = place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.code, 4, "{seen:?}");
    let line = seen.stderr.lines().last().unwrap();
    assert!(line.contains("paused: only") && line.contains("telusur resume"), "{seen:?}");
    assert_eq!(place.shown("last")["state"], "paused");
    place.assert_verified();
    let seen = place.crawl(&web, &["--json"]);
    let summary: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(summary["stats"]["ok"], 60);
}

#[test]
fn a_start_url_that_answers_nothing_is_exit_code_3() {
    let place = Place::new();
    let web = Web::new(small_web(3));
    let seeds = web.served.web().seeds();
    web.runtime.block_on(web.served.stop());
    let seed = seeds[0].to_string();
    let arguments = ["crawl", "--allow-private", "127.0.0.0/8", "--retries", "0", "-q", &seed];
    let seen = place.run(&arguments);
    assert_eq!(seen.code, 3, "{seen:?}");
    assert!(seen.stderr.contains("refused") && seen.stderr.contains("telusur demo"), "{seen:?}");
}

#[test]
fn more_errors_than_borne_is_exit_code_6() {
    let place = Place::new();
    let faults = telusur_testkit::fake_web::FaultShares { dead_links: 0.2, ..Default::default() };
    let web = Web::new(FakeWebSpec { faults, ..small_web(30) });
    assert_eq!(place.crawl(&web, &["-q", "--fail-on", "any-error"]).code, 6);
    assert_eq!(place.crawl(&web, &["-q", "--fail-on", "ratio=0.99"]).code, 0);
    let errors = place.run(&["show", "last", "--errors"]);
    assert!(errors.result().starts_with("404"), "{errors:?}");
}

#[test]
fn the_delay_is_kept_on_the_wire() {
    let (place, web) = (Place::new(), Web::new(small_web(12)));
    let mut arguments = web.crawl(&[]);
    let at = arguments.iter().position(|argument| argument == "0s").unwrap();
    arguments[at] = "400ms".to_owned();
    let seen = place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.code, 0, "{seen:?}");
    let mut requests = web.log.requests();
    requests.sort_by_key(|request| request.started_at);
    let hosts: std::collections::HashSet<_> =
        requests.iter().map(|request| request.host.clone()).collect();
    assert_eq!(hosts.len(), 3);
    for host in hosts {
        let times = web.log.starts_of(&host);
        for pair in times.windows(2) {
            // The server sees a request a little after it was sent; on a busy machine that little
            // differs from request to request.
            const SEEN_LATE_MS: u64 = 150;
            assert!(pair[1].ms_since(pair[0]) + SEEN_LATE_MS >= 400, "{host}: {times:?}");
        }
        assert_eq!(web.log.at_once_max(&host), 1);
    }
}

#[test]
fn the_bench_measures_a_complete_crawl() {
    let place = Place::new();
    let seen = place.run(&["bench", "--pages", "200", "--hosts", "4", "--json", "--no-progress"]);
    let figures: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(figures["pages"], 200);
    for figure in [
        "pages_per_second",
        "pages_per_cpu_second",
        "peak_rss_mb",
        "disk_bytes_per_page",
        "disk_bytes_per_url",
    ] {
        assert!(figures[figure].as_f64().unwrap() > 0.0, "{figure}: {figures}");
    }
}

#[test]
fn the_bench_measures_with_saved_pages() {
    let place = Place::new();
    let saved = tempfile::tempdir().unwrap();
    let from = saved.path().to_str().unwrap();
    let empty = place.run(&["bench", "--from", from]);
    assert!(empty.error(2).contains("there is no file in"), "{empty:?}");
    for number in 0..5 {
        let page = format!("<title>{number}</title><a href=/elsewhere>{number}</a> otter {number}");
        std::fs::write(saved.path().join(format!("{number}.html")), page).unwrap();
    }
    let seen = place.run(&[
        "bench",
        "--from",
        from,
        "--hosts",
        "2",
        "--search",
        "--json",
        "--no-progress",
    ]);
    let figures: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(figures["pages"], 5);
    assert!(figures["findable_seconds_p95"].is_number(), "{figures}");
}

/// Sixty hosts that answer slowly would take sixty connections, and with them the last descriptor of
/// the store.
#[test]
fn few_file_descriptors_make_a_crawl_slow_and_cost_nothing() {
    let spec = FakeWebSpec { hosts: 60, delay_ms: DelayRange::fixed(20), ..small_web(180) };
    let web = Web::new(spec);
    let place = Place::new();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_telusur")]);
    command.args(web.crawl(&[])).current_dir(place.path()).env_clear().env("HOME", place.path());
    let seen = crate::finish(command, "");
    assert_eq!(seen.code, 0, "{seen:?}");
    let stats = &place.shown("last")["stats"];
    assert_eq!(stats["ok"], 180, "{stats}");
    assert_eq!(stats["failures"], serde_json::json!({}), "{stats}");
    place.assert_verified();
}

/// The way out that is named leads on: a raised budget lets in what it left out.
#[test]
fn a_crawl_that_left_links_out_goes_on_with_a_higher_budget() {
    let (web, place) = (Web::new(small_web(90)), Place::new());
    let seen = place.crawl(&web, &["--max-per-host", "10"]);
    assert!(seen.stdout.contains("(raise --max-per-host)"), "{seen:?}");
    assert_eq!(place.shown("last")["stats"]["ok"], 30);
    let refused = place.run(&["resume", "crawl_1"]);
    assert!(refused.error(2).contains("telusur resume crawl_1 --max-per-host 20"), "{refused:?}");
    let resumed = place.run(&["resume", "crawl_1", "--max-per-host", "100"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let shown = place.shown("last");
    assert_eq!(
        (&shown["stats"]["ok"], &shown["stats"]["left_out"]),
        (&90.into(), &serde_json::json!([]))
    );
    place.assert_verified();
}

/// It once went on with the default, whatever the crawl was started with.
#[test]
fn a_resumed_crawl_keeps_its_least_free_space() {
    let (web, place) = (Web::new(small_web(30)), Place::new());
    let arguments = web.crawl(&["--retries", "0"]);
    let arguments: Vec<&str> =
        arguments.iter().map(|it| if it == "0B" { "1000TB" } else { it }).collect();
    let seen = place.run(&arguments);
    assert!(seen.stderr.contains("min_free_disk is 1000TB"), "{seen:?}");
    let seen = place.run(&["resume", "last"]);
    assert!(seen.stderr.contains("min_free_disk is 1000TB"), "{seen:?}");
    let seen = place.run(&["resume", "last", "--min-free-disk", "0B"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_eq!(place.shown("last")["state"], "completed");
}
