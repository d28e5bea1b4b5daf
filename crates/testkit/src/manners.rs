//! [`MannersProof`]: a crawl of a web that gives every occasion to be rude (rules on other
//! hosts, redirects across hosts, errors, cut connections, 429s), killed in the middle, resumed and
//! repeated. The log of the server says whether anybody was asked too soon or too often at once.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::answer::{FakeAnswer, FakeRequest, Website};
use crate::clock::TokioClock;
use crate::fake_web::{FakeWeb, FakeWebSpec, LiveWeb, host_address};
use crate::request_log::RequestLog;
use crate::server::{LoopbackServer, bind_all};

/// What the rules of some hosts ask for.
const CRAWL_DELAY_MS: u64 = 1_000;
/// The crawl that is killed.
const NAME: &str = "manners";
/// Entries of every sitemap, of each kind.
const ENTRIES: u64 = 5;
/// What the program notes are whole milliseconds of the calendar, made from those of another clock.
const NOTED_MS_OFF: u64 = 2;
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// What to prove, and with what.
#[derive(Clone, Debug)]
pub struct MannersProof {
    /// The program.
    pub program: PathBuf,
    /// An empty directory.
    pub scratch: PathBuf,
    /// The web that it crawls.
    pub web: FakeWebSpec,
    /// The delay that it is told to keep.
    pub delay_ms: u64,
    /// How often it is killed.
    pub kills: usize,
    /// Requests between two kills.
    pub requests_per_life: usize,
    /// How much later the server may see one request than another, because of its own load.
    pub slack_ms: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MannersReport {
    /// Requests of all crawls.
    pub requests: usize,
    /// The shortest gap between two requests to one host, less the delay that was due, as the server
    /// saw it.
    pub spare_ms_min: i64,
    /// The most requests that one host had to answer at a time.
    pub at_once_max: usize,
    /// The shortest gap that the program itself noted.
    pub noted_ms_min: u64,
}

impl MannersProof {
    /// Runs it. `say` hears what is going on. The error says who was treated how.
    pub async fn run(&self, mut say: impl FnMut(&str)) -> Result<MannersReport, String> {
        let web = FakeWeb::new(self.web.clone()).map_err(|error| error.to_string())?;
        let addresses: Vec<Ipv4Addr> = (0..web.spec().hosts).map(host_address).collect();
        let listeners = bind_all(&addresses).await.map_err(|error| error.to_string())?;
        let web = web.on_port(listeners.port);
        let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
        let site = Arc::new(TryingWeb::new(web.clone()));
        let _server = LoopbackServer::start(listeners, site, Some(Arc::clone(&log)));
        for kill in 1..=self.kills {
            say(&format!("crawl, kill number {kill}"));
            self.crawl_and_kill(&web, &log).await?;
            for command in self.meanwhile(kill, &web)? {
                say(&format!("meanwhile: {}", words_of(&command)));
                finish(command).await?;
            }
        }
        say("crawl to its end");
        finish(self.crawl(&web)).await?;
        say("the same crawl again");
        finish(self.telusur(&["recrawl", NAME])).await?;
        self.judge(&web, &log)
    }

    async fn crawl_and_kill(&self, web: &FakeWeb, log: &RequestLog) -> Result<(), String> {
        let before = log.len();
        let mut child = spawn(self.crawl(web))?;
        while log.len() < before + self.requests_per_life {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("it ended before it was killed: {status}"));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// The same command every time: after a kill it goes on by itself.
    fn crawl(&self, web: &FakeWeb) -> Command {
        let delay = format!("{}ms", self.delay_ms);
        let flags = ["crawl", "--name", NAME, "--scope", "any", "--min-free-disk", "0B"];
        let mut command = self.telusur(&flags);
        command.args(["--allow-private", "127.0.0.0/8", "--delay", &delay]);
        command.args(web.seeds().iter().map(ToString::to_string));
        command
    }

    /// What is done to the directory between a kill and the next crawl. Each of them closes it in order: nothing
    /// that the killed crawl has not written down may be forgotten by that.
    fn meanwhile(&self, kill: usize, web: &FakeWeb) -> Result<Vec<Command>, String> {
        let import = |name| {
            let file = self.scratch.join("documents.jsonl");
            let line = "{\"id\":\"1\",\"title\":\"One\",\"text\":\"One document.\"}\n";
            std::fs::write(&file, line).map_err(|error| error.to_string())?;
            let mut import = self.telusur(&["import", "--name", name]);
            import.arg(file);
            Ok::<_, String>(import)
        };
        Ok(match kill % 5 {
            0 => Vec::new(),
            1 => vec![import("first")?],
            2 => vec![self.telusur(&["verify"]), self.telusur(&["search", "one"])],
            // Another crawl of the same hosts, to its end.
            3 => {
                let mut crawl = self.telusur(&["crawl", "--name", "second", "--max-pages", "60"]);
                crawl.args(["--allow-private", "127.0.0.0/8", "--min-free-disk", "0B"]);
                crawl.args(["--delay", &format!("{}ms", self.delay_ms)]);
                crawl.args(web.seeds().iter().map(ToString::to_string));
                vec![crawl]
            }
            _ => vec![
                import("other")?,
                self.telusur(&["rm", "--yes", "other"]),
                self.telusur(&["reparse", NAME]),
            ],
        })
    }

    fn telusur(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--no-config", "--no-progress", "--quiet", "--data"]);
        command.arg(self.scratch.join("data")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn judge(&self, web: &FakeWeb, log: &RequestLog) -> Result<MannersReport, String> {
        let mut report = MannersReport {
            requests: log.len(),
            spare_ms_min: i64::MAX,
            noted_ms_min: u64::MAX,
            at_once_max: 0,
        };
        for number in 0..web.spec().hosts {
            let host = web.host_name(number);
            report.at_once_max = report.at_once_max.max(log.at_once_max(&host));
            let requests: Vec<_> =
                log.requests().into_iter().filter(|it| it.host == host).collect();
            // What a host asks for is known from the request for its rules on.
            let mut due_ms = self.delay_ms;
            for pair in requests.windows(2) {
                if asks_for_delay(number) && pair[0].target == "/robots.txt" {
                    due_ms = self.delay_ms.max(CRAWL_DELAY_MS);
                }
                if pair[0].may_be_resent && pair[0].target == pair[1].target {
                    // One visit: the next gap counts from its second request.
                    continue;
                }
                let gap_ms = pair[1].started_at.ms_since(pair[0].started_at);
                let spare_ms = gap_ms.cast_signed() - due_ms.cast_signed();
                report.spare_ms_min = report.spare_ms_min.min(spare_ms);
                if spare_ms < -self.slack_ms.cast_signed() {
                    return Err(format!("{gap_ms} ms, where {due_ms} were due: {pair:#?}"));
                }
            }
            report.noted_ms_min = report.noted_ms_min.min(self.noted_gap_ms(&host)?);
        }
        if report.at_once_max > 1 {
            return Err(format!("{} requests at a time", report.at_once_max));
        }
        if report.noted_ms_min + NOTED_MS_OFF < self.delay_ms {
            return Err(format!("the program notes a gap of {} ms", report.noted_ms_min));
        }
        Ok(report)
    }

    /// What the program says about how it treated a host.
    fn noted_gap_ms(&self, host: &str) -> Result<u64, String> {
        let name = host.split(':').next().unwrap_or(host);
        let mut command = self.telusur(&["politeness", name, "--json"]);
        let output = command.stdout(Stdio::piped()).output().map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stdout);
        let report: serde_json::Value =
            serde_json::from_str(&told).map_err(|error| format!("{error} in {told}"))?;
        gap_in(&report).ok_or_else(|| format!("no gap in {told}"))
    }
}

/// The smallest `gap_ms_min` anywhere in a report.
fn gap_in(report: &serde_json::Value) -> Option<u64> {
    let of_parts =
        |parts: &mut dyn Iterator<Item = &serde_json::Value>| parts.filter_map(gap_in).min();
    match report {
        serde_json::Value::Object(fields) => {
            let own = fields.get("gap_ms_min").and_then(serde_json::Value::as_u64);
            own.into_iter().chain(of_parts(&mut fields.values())).min()
        }
        serde_json::Value::Array(items) => of_parts(&mut items.iter()),
        _ => None,
    }
}

/// What a command is told, without addresses.
fn words_of(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy());
    let words = words.filter(|word| !word.starts_with("http:") && !word.starts_with('/'));
    words.collect::<Vec<_>>().join(" ")
}

fn spawn(mut command: Command) -> Result<Child, String> {
    command.spawn().map_err(|error| format!("start {command:?}: {error}"))
}

async fn finish(command: Command) -> Result<(), String> {
    let mut child = spawn(command)?;
    let ended = tokio::task::spawn_blocking(move || child.wait()).await;
    match ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())? {
        status if status.success() => Ok(()),
        status => Err(format!("the crawl ended: {status}")),
    }
}

fn asks_for_delay(host: usize) -> bool {
    host % 4 == 1
}

/// A synthetic web whose hosts are trying.
struct TryingWeb {
    web: FakeWeb,
    live: LiveWeb,
    /// What has been refused once. Held to look up one address.
    refused: Mutex<HashSet<(usize, String)>>,
}

impl TryingWeb {
    fn new(web: FakeWeb) -> Self {
        Self { live: LiveWeb::new(web.clone()), web, refused: Mutex::default() }
    }

    fn answer(&self, host: usize, path: &str) -> Option<FakeAnswer> {
        let next = self.web.host_name((host + 1) % self.web.spec().hosts);
        let sitemap = "Sitemap: /sitemap.xml\n";
        if path == "/robots.txt" {
            return Some(match host % 4 {
                0 if host.is_multiple_of(8) => {
                    FakeAnswer::redirect(302, format!("http://{next}/rules"))
                }
                0 => FakeAnswer::not_found(),
                1 => rules(format!("User-agent: *\nCrawl-delay: 1\n{sitemap}")),
                2 => FakeAnswer::redirect(302, format!("http://{next}/rules")),
                _ if self.is_first(host, path) => busy(503),
                _ => rules(format!("User-agent: *\nDisallow: /gone/\n{sitemap}")),
            });
        }
        if path == "/rules" {
            return Some(rules("User-agent: *\nDisallow: /gone/\n".to_owned()));
        }
        if path == "/sitemap.xml" {
            let entry = |number| format!("/busy/{number}\n/away/{number}\n");
            let own = self.web.host_name(host);
            let list: String = (0..ENTRIES).map(entry).collect();
            let list = list.lines().map(|path| format!("http://{own}{path}\n")).collect::<String>();
            return Some(FakeAnswer::ok("text/plain", list));
        }
        if let Some(number) = path.strip_prefix("/away/") {
            return Some(FakeAnswer::redirect(302, format!("http://{next}/p/{number}")));
        }
        if let Some(number) = path.strip_prefix("/busy/") {
            let is_refused = self.is_first(host, path);
            let page = FakeAnswer::html(format!("<title>{number}</title>at last"));
            return Some(if is_refused { busy(429) } else { page });
        }
        None
    }

    fn is_first(&self, host: usize, path: &str) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert((host, path.to_owned()))
    }
}

impl Website for TryingWeb {
    fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        self.live.address_of(host)
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        let host = self.web.host_index(request.host)?;
        self.answer(host, request.target).or_else(|| self.live.answer_to(request))
    }
}

fn rules(text: String) -> FakeAnswer {
    FakeAnswer::ok("text/plain", text)
}

fn busy(status: u16) -> FakeAnswer {
    let mut answer = FakeAnswer::plain(status, "too fast\n");
    answer.headers.push(("retry-after", "1".into()));
    answer
}
