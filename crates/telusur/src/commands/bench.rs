//! `telusur bench`: crawls a synthetic web that another process serves over loopback, and measures.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_ledger::NewCrawl;
use telusur_model::{
    Clock, CrawlState, Fairness, FinishReason, Limits, Politeness, RobotsRules, ScopeKind, Seeds,
};
use telusur_store_embedded::DataDir;
use telusur_testkit::fake_web::PageCounts;
use telusur_testkit::{FakeWeb, FakeWebSpec, serve};

use super::findable::FindableWatch;
use super::{Outcome, Session};
use crate::backend;
use crate::cli::BenchArgs;
use crate::crawl_request::crawl_settings;
use crate::foreground::{Foreground, parsers};
use crate::message::{Code, Message, shown};
use crate::progress::ProgressDisplay;
use crate::settings::{Given, Key, Raw};
use crate::summary::Cost;
use crate::units::{read_count, read_size, show_count, show_size};

/// Pages of the synthetic web, if nobody says how many.
const PAGES: u64 = 20_000;

pub(super) fn bench(session: &Session, arguments: &BenchArgs, output: &mut dyn Write) -> Outcome {
    let keep = Raw::Untyped(arguments.keep.clone());
    let given = vec![
        Given { key: Key::Keep, flag: "--keep", raw: keep },
        Given {
            key: Key::Parsers,
            flag: "--parsers",
            raw: Raw::Untyped(arguments.parsers.clone()),
        },
        Given {
            key: Key::AllowPrivate,
            flag: "--allow-private",
            raw: Raw::List(vec!["127.0.0.0/8".into()]),
        },
    ];
    let settings = session.settings(given)?.settings;
    let saved = arguments.from.as_deref().map(saved_pages).transpose()?;
    let spec = spec(arguments, saved.as_ref().map(|pages| pages.len() as u64))?;
    let web = FakeWeb::new(spec.clone()).map_err(|error| bad(error.to_string()))?;
    let server = FakeWebProcess::start(&spec, arguments.from.as_deref())?;
    let web = web.on_port(server.port);
    let scratch = Scratch::new()?;
    let mut open = backend::open(&scratch.0)?;
    // What is measured is crawling, unless searching is asked for.
    if !arguments.search {
        open.index = None;
    }
    // Saved pages do not lead to each other.
    let seeds = if saved.is_some() { web.urls().collect() } else { web.seeds() };
    let mut crawl = crawl_settings(&settings)?;
    crawl.name = Some("bench".to_owned());
    crawl.created_at = SystemClock::new().wall();
    crawl.seeds = Seeds::Links(seeds);
    crawl.scope.kind = ScopeKind::Any;
    crawl.scope.exclude.clear();
    crawl.politeness = Politeness {
        delay_ms: 0,
        per_host: arguments.workers.div_ceil(u16::try_from(spec.hosts).unwrap_or(u16::MAX)).max(1),
        workers: arguments.workers,
        fairness: Fairness::Weighted,
        robots: if arguments.ignore_robots { RobotsRules::Ignore } else { RobotsRules::Obey },
        ..Politeness::default()
    };
    crawl.limits = Limits {
        urls_per_host_max: u64::MAX,
        urls_per_site_max: u64::MAX,
        depth_max: Some(if saved.is_some() { 0 } else { u16::MAX }),
        ..Limits::default()
    };
    let record = open.store.create(NewCrawl { crawl, random: 1 });
    let record = record.map_err(|error| backend::store_message(&error))?;
    let pages_max = Some(web.pages_total());
    let display = ProgressDisplay::new(session.terminal, pages_max, session.wants_progress());
    let index = open.index.clone();
    let watch = index
        .clone()
        .map(|index| FindableWatch::start(Arc::clone(&open.store), index, record.crawl.no));
    let before = Cost::of_process();
    let foreground = Foreground {
        open,
        crawl: record.crawl.no,
        free_bytes_min: 0,
        parsers: parsers(&settings),
        display,
        pages_max,
    };
    let ended = foreground.run()?;
    let cost = Cost::of_process().since(&before);
    if let Some(code) = ended.interrupted_code {
        return Ok(code);
    }
    let stats = &ended.progress.stats;
    let figures = Figures {
        pages: stats.ok,
        urls: stats.discovered,
        seconds: seconds(stats.active_ms),
        cpu_seconds: cost.cpu_seconds,
        memory_bytes_peak: cost.memory_bytes_peak.unwrap_or(0),
        disk_bytes: disk_bytes(&scratch.0),
        index_bytes: disk_bytes(&DataDir::index(&scratch.0)),
        waits_ms: watch.map(FindableWatch::finish),
    };
    drop((ended.open, index));
    if session.global.json {
        writeln!(output, "{}", figures.json())?;
    } else {
        figures.write(output)?;
    }
    let is_complete = stats.ok == web.pages_total()
        && ended.progress.state == CrawlState::Finished { why: FinishReason::Drained };
    if is_complete {
        return Ok(0);
    }
    let what = format!("{} of {} pages were stored", stats.ok, web.pages_total());
    Err(Message::new(Code::NotVerified, what).hint("This is a bug: please report it").into())
}

/// Serves a synthetic web until standard input ends; the first line of output is the port.
pub(super) fn serve_fake_web(spec: &str, bodies: Option<&Path>, output: &mut dyn Write) -> Outcome {
    let spec: FakeWebSpec = spec.parse().map_err(|error| bad(format!("{error}")))?;
    let mut web = FakeWeb::new(spec).map_err(|error| bad(error.to_string()))?;
    if let Some(directory) = bodies {
        let read = |path: &PathBuf| std::fs::read(path).map_err(unreadable(path));
        web = web.with_bodies(saved_pages(directory)?.iter().map(read).collect::<Result<_, _>>()?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| bad(error.to_string()))?;
    runtime.block_on(async {
        let served = serve(&web, None).await.map_err(|error| bad(error.to_string()))?;
        writeln!(output, "{}", served.port())?;
        output.flush()?;
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = ended.await;
        Ok(0)
    })
}

/// The files of a directory, by name.
fn saved_pages(directory: &Path) -> Result<Vec<PathBuf>, Message> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable(directory))? {
        let path = entry.map_err(unreadable(directory))?.path();
        if path.is_file() {
            // The process that serves them would be far away from whoever asked for them.
            std::fs::File::open(&path).map_err(unreadable(&path))?;
            pages.push(path);
        }
    }
    if pages.is_empty() {
        return Err(bad(format!("there is no file in {}", shown(&directory.to_string_lossy()))));
    }
    pages.sort();
    Ok(pages)
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Message + '_ {
    move |error| bad(format!("cannot read {}: {error}", shown(&path.to_string_lossy())))
}

fn spec(arguments: &BenchArgs, saved: Option<u64>) -> Result<FakeWebSpec, Message> {
    let pages = match &arguments.pages {
        Some(text) => read_count(text)
            .filter(|pages| *pages > 0)
            .ok_or_else(|| bad(format!("--pages {text:?} is not a count such as 20k")))?,
        None => saved.unwrap_or(PAGES),
    };
    let page_bytes =
        read_size(&arguments.page_bytes).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(
            || bad(format!("--page-bytes {:?} is not a size such as 20kB", arguments.page_bytes)),
        )?;
    Ok(FakeWebSpec {
        seed: arguments.seed,
        hosts: arguments.hosts,
        pages: PageCounts::Even { total: pages },
        links_per_page: arguments.links,
        page_bytes,
        ..FakeWebSpec::default()
    })
}

fn bad(what: String) -> Message {
    Message::new(Code::BadArgument, what)
}

/// The process that serves the synthetic web.
struct FakeWebProcess {
    child: Child,
    port: u16,
}

impl FakeWebProcess {
    fn start(spec: &FakeWebSpec, bodies: Option<&Path>) -> Result<Self, Message> {
        let refuse =
            |what: String| Message::new(Code::Storage, format!("serve the synthetic web: {what}"));
        let program = std::env::current_exe().map_err(|error| refuse(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["fake-web", &spec.to_string()])
            .args(bodies)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| refuse(error.to_string()))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let port = line.trim().parse().map_err(|_| refuse(format!("it said {line:?}")))?;
        Ok(Self { child, port })
    }
}

impl Drop for FakeWebProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that is gone when the benchmark is.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Message> {
        let dir = std::env::temp_dir().join(format!("telusur-bench-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|error| {
            Message::new(Code::Storage, format!("make {}: {error}", dir.display()))
        })?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn disk_bytes(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| disk_bytes(&entry.path())).sum()
}

#[expect(clippy::cast_precision_loss, reason = "figures of a few digits")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// What was measured.
struct Figures {
    pages: u64,
    urls: u64,
    seconds: f64,
    cpu_seconds: f64,
    memory_bytes_peak: u64,
    disk_bytes: u64,
    index_bytes: u64,
    /// How long pages took until they could be found, ascending.
    waits_ms: Option<Vec<u64>>,
}

#[expect(clippy::cast_precision_loss, reason = "figures of a few digits")]
impl Figures {
    fn per_second(&self) -> f64 {
        self.pages as f64 / self.seconds.max(1e-3)
    }

    fn per_cpu_second(&self) -> f64 {
        self.pages as f64 / self.cpu_seconds.max(1e-3)
    }

    /// The wait that so many percent of the pages did not exceed.
    fn findable_s(&self, percent: usize) -> Option<f64> {
        let waits = self.waits_ms.as_ref()?;
        waits.get(waits.len().saturating_sub(1) * percent / 100).map(|ms| seconds(*ms))
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "pages": self.pages,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "pages_per_second": self.per_second(),
            "pages_per_cpu_second": self.per_cpu_second(),
            "peak_rss_mb": self.memory_bytes_peak as f64 / 1e6,
            "disk_bytes_per_page": self.disk_bytes as f64 / self.pages.max(1) as f64,
            "disk_bytes_per_url": self.disk_bytes as f64 / self.urls.max(1) as f64,
            "index_bytes_per_page": self.index_bytes as f64 / self.pages.max(1) as f64,
            "findable_seconds_p50": self.findable_s(50),
            "findable_seconds_p95": self.findable_s(95),
            "findable_seconds_max": self.findable_s(100),
        })
    }

    fn write(&self, output: &mut dyn Write) -> std::io::Result<()> {
        writeln!(output, "pages                  {}", show_count(self.pages))?;
        writeln!(output, "pages per second       {:.0}", self.per_second())?;
        writeln!(output, "pages per CPU-second   {:.0}", self.per_cpu_second())?;
        writeln!(output, "peak memory            {}", show_size(self.memory_bytes_peak))?;
        writeln!(
            output,
            "disk per page          {}",
            show_size(self.disk_bytes / self.pages.max(1))
        )?;
        writeln!(
            output,
            "disk per URL           {}",
            show_size(self.disk_bytes / self.urls.max(1))
        )?;
        let waits = [50, 95, 100].map(|percent| self.findable_s(percent));
        if let [Some(half), Some(most), Some(all)] = waits {
            writeln!(
                output,
                "index per page         {}",
                show_size(self.index_bytes / self.pages.max(1))
            )?;
            writeln!(
                output,
                "findable after         {half:.1} s (half), {most:.1} s (95 %), {all:.1} s (all)"
            )?;
        }
        Ok(())
    }
}
