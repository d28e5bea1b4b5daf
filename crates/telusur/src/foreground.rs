//! Runs one crawl in this process until it ends, is paused by a full disk, or is told to stop:
//! progress on standard error, commands from other terminals through the control socket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use telusur_engine::control::{self, Control, is_over};
use telusur_engine::{Engine, EngineOptions, EngineParts, FREE_BYTES_LEAST, Indexer, SystemClock};
use telusur_fetch::{FetchSettings, WebFetcher};
use telusur_model::{Clock, CrawlNo, Progress};
use telusur_parse_pool::{InProcess, Parser, ParserPool, PoolSettings};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::backend::{OpenStore, engine_message, request_message};
use crate::message::{Code, Message, exit};
use crate::progress::{ProgressDisplay, plain_line};
use crate::settings::{Key, Settings};

/// What runs, and how it is shown.
pub struct Foreground {
    /// Where it is kept.
    pub open: OpenStore,
    /// The crawl.
    pub crawl: CrawlNo,
    /// Pause below this.
    pub free_bytes_min: u64,
    /// Jailed processes that parse; with 0 this one does.
    pub parsers: usize,
    /// Where it is shown.
    pub display: ProgressDisplay,
    /// The page limit, for status lines.
    pub pages_max: Option<u64>,
}

/// How it ended.
pub struct Ended {
    /// The last snapshot.
    pub progress: Progress,
    /// The exit code that a signal asks for.
    pub signal_code: Option<u8>,
    /// The same, if a signal came before the search index was in order: of no concern to the crawl.
    pub interrupted_code: Option<u8>,
    /// The store, closed and free again when this is dropped.
    pub open: OpenStore,
}

impl Foreground {
    /// Runs it.
    pub fn run(self) -> Result<Ended, Message> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| no_start(&format!("start the runtime: {error}")))?;
        let ended = runtime.block_on(self.run_inside());
        // Lookups that hang must not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(200));
        ended
    }

    async fn run_inside(mut self) -> Result<Ended, Message> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let fetcher = WebFetcher::new(FetchSettings::of_this_process(), Arc::clone(&clock))
            .map_err(|error| no_start(&error.to_string()))?;
        let parser = parser(self.parsers)?;
        let parts = EngineParts {
            store: Arc::clone(&self.open.store),
            fetcher: Arc::new(fetcher),
            clock: Arc::clone(&clock),
            parser: Arc::clone(&parser),
            index: self.open.index.clone(),
            followers: Vec::new(),
        };
        let options = EngineOptions {
            parse_threads: parse_threads(self.parsers),
            free_bytes_min: self.free_bytes_min.max(FREE_BYTES_LEAST),
        };
        let mut engine = Engine::start(parts, &options)
            .map_err(|error| no_start(&format!("start the engine: {error}")))?;
        let control = Control::of_engine(Arc::clone(&self.open.store), engine.handle())
            .with_index(self.open.index.clone());
        let socket = control::serve(&self.open.control_socket, control)
            .map_err(|error| no_start(&format!("open the control socket: {error}")))?;
        let mut signals =
            Signals::new().map_err(|error| no_start(&format!("wait for signals: {error}")))?;
        engine.handle().run(self.crawl).await.map_err(|error| request_message(&error))?;
        let signal_code = self.watch(&mut engine, &mut signals, clock.as_ref()).await?;
        let progress = snapshot(&engine, self.crawl)
            .ok_or_else(|| no_start("the crawl was thrown away from another terminal"))?;
        drop(socket);
        engine.shutdown().await.map_err(|error| engine_message(&error))?;
        let interrupted_code = match signal_code {
            Some(code) => Some(code),
            None => self.complete_index(parser, &mut signals).await,
        };
        self.display.finish();
        Ok(Ended { progress, signal_code, interrupted_code, open: self.open })
    }

    /// Takes the rest of a large crawl into the search index and puts that in order, unless a signal says that
    /// nobody wants to wait for it: it is searched either way. Gives the exit code of that signal.
    async fn complete_index(&self, parser: Arc<dyn Parser>, signals: &mut Signals) -> Option<u8> {
        let index = self.open.index.clone()?;
        self.display.tell_compaction(&index);
        let indexer = Indexer::new(Arc::clone(&self.open.store), index, parser);
        let completion = tokio::task::spawn_blocking(move || {
            let completed = indexer.catch_up(&mut |_| {}).and_then(|_| indexer.digest_links());
            match completed {
                Ok(()) => indexer.compact(),
                Err(error) => tracing::error!(%error, "the search index is made good later"),
            }
        });
        tokio::select! {
            _ = completion => None,
            code = signals.stop() => Some(code),
        }
    }

    /// Shows the crawl until it is over. Gives the exit code of the signal that ended it.
    async fn watch(
        &mut self,
        engine: &mut Engine,
        signals: &mut Signals,
        clock: &dyn Clock,
    ) -> Result<Option<u8>, Message> {
        let handle = engine.handle();
        let mut snapshots = handle.progress();
        let mut signal_code = None;
        loop {
            if let Some(progress) = snapshots.borrow_and_update().get(&self.crawl) {
                self.display.update(progress, clock.now());
                if is_over(progress.state) {
                    return Ok(signal_code);
                }
            }
            tokio::select! {
                changed = snapshots.changed() => {
                    if changed.is_err() {
                        return Err(engine_message(&engine.failed().await));
                    }
                }
                error = engine.failed() => return Err(engine_message(&error)),
                told = signals.next() => match told {
                    Told::Status => {
                        if let Some(progress) = snapshots.borrow().get(&self.crawl) {
                            self.display.above(&plain_line(progress, self.pages_max));
                        }
                    }
                    Told::Stop(code) => {
                        if signal_code.is_some() {
                            // The second one does not wait. Nothing is lost: what is not committed
                            // is still queued.
                            std::process::exit(i32::from(code));
                        }
                        signal_code = Some(code);
                        self.display.above("saving what is under way; once more leaves at once");
                        let (handle, crawl) = (handle.clone(), self.crawl);
                        tokio::spawn(async move { handle.stop(crawl).await });
                    }
                },
            }
        }
    }
}

fn snapshot(engine: &Engine, crawl: CrawlNo) -> Option<Progress> {
    engine.handle().progress().borrow().get(&crawl).cloned()
}

/// How many children parse: there is no more to gain than the cores give.
pub fn parsers(settings: &Settings) -> usize {
    settings.workers(Key::Parsers).map_or_else(cores, usize::from)
}

/// Threads that hand pages to so many children, or parse themselves if there are none.
pub fn parse_threads(children: usize) -> usize {
    if children == 0 { cores() } else { children }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Who reads pages: this many jailed children, or this process.
pub fn parser(children: usize) -> Result<Arc<dyn Parser>, Message> {
    if children == 0 {
        return Ok(Arc::new(InProcess::default()));
    }
    let settings = PoolSettings::new(children);
    let settings = settings.map_err(|error| no_start(&format!("find this program: {error}")))?;
    let pool = ParserPool::start(settings).map_err(|error| {
        no_start(&error.to_string()).hint("With --parsers 0 pages are parsed without a jail")
    })?;
    Ok(Arc::new(pool))
}

fn no_start(why: &str) -> Message {
    Message::new(Code::Storage, format!("cannot run the crawl: {why}"))
}

/// What signals tell a command that runs for long.
pub enum Told {
    /// Save and end; the exit code says who asked.
    Stop(u8),
    /// Say where you are.
    Status,
}

/// The signals that are listened to.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    status: Signal,
    orders: Orders,
}

/// An order to stop that comes so soon after the first is the same: `timeout` and service managers
/// signal a process, and then its whole group. Nobody presses a key twice in that time on purpose.
const SAME_ORDER: Duration = Duration::from_millis(250);

/// Orders to stop.
#[derive(Default)]
struct Orders {
    first: Option<Instant>,
}

impl Orders {
    /// Whether a signal that came now is an order of its own.
    fn is_new(&mut self, now: Instant) -> bool {
        match self.first {
            None => {
                self.first = Some(now);
                true
            }
            Some(first) => now.saturating_duration_since(first) >= SAME_ORDER,
        }
    }
}

impl Signals {
    /// Listens from now on. Must be called inside a tokio runtime.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            status: signal(SignalKind::user_defined1())?,
            orders: Orders::default(),
        })
    }

    /// Waits for the next.
    pub async fn next(&mut self) -> Told {
        loop {
            let code = tokio::select! {
                biased;
                _ = self.interrupt.recv() => exit::INTERRUPTED,
                _ = self.terminate.recv() => exit::TERMINATED,
                // A closed terminal: save, as if asked to end.
                _ = self.hang_up.recv() => exit::TERMINATED,
                _ = self.status.recv() => return Told::Status,
            };
            if self.orders.is_new(Instant::now()) {
                return Told::Stop(code);
            }
        }
    }

    /// Waits for an order to stop, and gives the exit code that it asks for.
    pub async fn stop(&mut self) -> u8 {
        loop {
            if let Told::Stop(code) = self.next().await {
                return code;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `timeout` of coreutils sends TERM twice; the second once ended the program without saving.
    #[test]
    fn two_orders_at_once_are_one() {
        let (mut orders, start) = (Orders::default(), Instant::now());
        let mut is_new = |ms| orders.is_new(start + Duration::from_millis(ms));
        assert!(is_new(0));
        assert!(!is_new(0));
        assert!(!is_new(3));
        assert!(!is_new(249));
        assert!(is_new(250), "a later one leaves at once");
        assert!(is_new(251));
    }
}
