//! Watches a crawl that another process runs, as if it ran here.

use std::time::Duration;

use telusur_engine::SystemClock;
use telusur_engine::control::{CatchUpIndex, CrawlEnd, StopCrawl, WatchCrawl};
use telusur_model::{Clock, CrawlNo, Progress};
use tokio::sync::mpsc;

use crate::backend::{NoReply, Owner};
use crate::foreground::{Signals, Told};
use crate::message::{Code, Message};
use crate::progress::{Indexing, ProgressDisplay, plain_line};

/// Snapshots on their way to the display; the newest counts.
const SNAPSHOTS_MAX: usize = 64;

/// A crawl that was watched to its end.
pub(super) struct Watched {
    pub(super) end: CrawlEnd,
    /// The exit code that a signal asks for.
    pub(super) signal_code: Option<u8>,
}

/// Shows a crawl until it is over and can be searched. The first signal ends the crawl, as it would here; the second
/// ends this command.
pub(super) fn watch(
    owner: &Owner,
    crawl: CrawlNo,
    display: ProgressDisplay,
    pages_max: Option<u64>,
) -> Result<Watched, NoReply> {
    let cannot = |what: String| NoReply::Refused(Message::new(Code::Storage, what));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| cannot(format!("start the runtime: {error}")))?;
    let watched = runtime.block_on(async {
        let signals =
            Signals::new().map_err(|error| cannot(format!("wait for signals: {error}")))?;
        Watching { owner: owner.clone(), crawl, display, pages_max, signals, signal_code: None }
            .watch()
            .await
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    watched
}

struct Watching {
    owner: Owner,
    crawl: CrawlNo,
    display: ProgressDisplay,
    pages_max: Option<u64>,
    signals: Signals,
    signal_code: Option<u8>,
}

impl Watching {
    async fn watch(mut self) -> Result<Watched, NoReply> {
        let (sender, mut snapshots) = mpsc::channel::<Progress>(SNAPSHOTS_MAX);
        let (owner, crawl) = (self.owner.clone(), self.crawl.to_string());
        let mut watching = tokio::task::spawn_blocking(move || {
            // A display that is slow misses some.
            owner.ask(&WatchCrawl { crawl }, &mut |progress| {
                !matches!(sender.try_send(progress), Err(mpsc::error::TrySendError::Closed(_)))
            })
        });
        let clock = SystemClock::new();
        let mut last: Option<Progress> = None;
        let end = loop {
            tokio::select! {
                Some(progress) = snapshots.recv() => {
                    self.display.update(&progress, clock.now());
                    last = Some(progress);
                }
                ended = &mut watching => break ended,
                told = self.signals.next() => self.obey(told, last.as_ref()),
            }
        };
        let end = end.unwrap_or_else(|error| {
            Err(NoReply::Refused(Message::new(Code::Storage, error.to_string())))
        })?;
        let end = end.expect("an operation that is not broken off replies");
        self.complete_index().await;
        self.display.finish();
        Ok(Watched { end, signal_code: self.signal_code })
    }

    fn obey(&mut self, told: Told, last: Option<&Progress>) {
        match told {
            Told::Status => {
                if let Some(progress) = last {
                    self.display.above(&plain_line(progress, self.pages_max));
                }
            }
            Told::Stop(code) => {
                if self.signal_code.is_some() {
                    std::process::exit(i32::from(code));
                }
                self.signal_code = Some(code);
                self.display.above("saving what is under way; once more leaves at once");
                let (owner, crawl) = (self.owner.clone(), self.crawl.to_string());
                tokio::task::spawn_blocking(move || {
                    // One that has just ended is refused; the watch ends as well.
                    let _ = owner.reply(&StopCrawl { crawl });
                });
            }
        }
    }

    /// Waits until the pages can be found, unless a signal says not to.
    async fn complete_index(&mut self) {
        if self.signal_code.is_some() {
            return;
        }
        let owner = self.owner.clone();
        let (sender, mut steps) = mpsc::channel(SNAPSHOTS_MAX);
        let mut indexing = tokio::task::spawn_blocking(move || {
            // Without an index there is nothing to wait for.
            let _ = owner.ask(&CatchUpIndex {}, &mut |step| {
                !matches!(sender.try_send(step), Err(mpsc::error::TrySendError::Closed(_)))
            });
        });
        let clock = SystemClock::new();
        loop {
            tokio::select! {
                Some(step) = steps.recv() => {
                    let indexing = Indexing { indexed: step.indexed, behind: step.behind };
                    self.display.update_indexing(indexing, clock.now());
                }
                _ = &mut indexing => return,
                _ = self.signals.stop() => return,
            }
        }
    }
}
