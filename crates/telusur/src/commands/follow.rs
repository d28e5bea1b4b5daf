//! `telusur index --follow`: the indexer as a process of its own. It has the index while a process owns
//! the directory and leases it, and nothing at all while it waits for one.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;
use telusur_engine::{
    FollowCounts, FollowError, LeaseEnd, NotLeased, StopFollowing, SystemClock,
    follower_retry_pause, lease_index,
};
use telusur_index::{IndexLimits, SearchIndex};
use telusur_model::Clock;
use tokio::sync::oneshot;

use super::{Outcome, Session};
use crate::backend::{self, DataDir};
use crate::foreground::{Signals, Told};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::progress::{Aside, Indexing, ProgressDisplay};
use crate::units::show_count;

/// How often somebody who waits looks for an owner.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often progress is looked at.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn follow(session: &Session, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(Vec::new())?.settings;
    let dir = backend::data_dir(&settings)?;
    let (counts, stop) = (Arc::<FollowCounts>::default(), StopFollowing::default());
    let display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let aside = display.aside();
    let companion = Companion::start(display, Arc::clone(&counts), stop.clone())?;
    let followed = Follower { session, dir, aside, counts: &counts, stop: &stop }.run();
    let code = companion.end();
    followed?;
    let indexed = counts.indexed.load(Ordering::Acquire);
    if session.global.json {
        write_json_line(output, &json!({ "indexed": indexed }))?;
    } else {
        writeln!(output, "{} pages indexed", show_count(indexed))?;
    }
    Ok(code)
}

struct Follower<'a> {
    session: &'a Session,
    dir: &'a Path,
    aside: Aside,
    counts: &'a Arc<FollowCounts>,
    stop: &'a StopFollowing,
}

impl Follower<'_> {
    /// Follows one owner after the other until it is stopped.
    fn run(&self) -> Result<(), Message> {
        let mut says_that_it_waits = true;
        let mut failures = 0;
        while !self.stop.is_stopped() {
            match lease_index(&DataDir::control_socket(self.dir), self.stop) {
                Ok(leased) => {
                    let path = DataDir::index(self.dir);
                    let index = SearchIndex::open(&path, IndexLimits::default())
                        .map_err(|error| backend::index_message(&error))?;
                    self.note(&format!("following {}", self.dir_shown()));
                    says_that_it_waits = true;
                    match leased.follow(index, self.counts) {
                        Ok(ended) => {
                            failures = 0;
                            self.tell_end(ended)?;
                        }
                        // The owner has the index meanwhile, and goes on from the last commit.
                        Err(error) => {
                            failures += 1;
                            self.pause_after(&error, failures);
                        }
                    }
                }
                Err(NotLeased::NoOwner(_) | NotLeased::Ending) => {
                    if std::mem::take(&mut says_that_it_waits) {
                        self.tell_waiting();
                    }
                    self.stop.wait(LOOK_EVERY);
                }
                Err(NotLeased::Stopped) => {}
                Err(NotLeased::Refused(why)) => return Err(Message::new(Code::Locked, why)),
            }
        }
        Ok(())
    }

    /// Says what failed, and waits before the index is leased again.
    fn pause_after(&self, error: &FollowError, failures: u32) {
        let pause = follower_retry_pause(failures);
        let what = format!("{error}; trying again in {} s", pause.as_secs());
        self.aside.say(|| self.session.talk.warning(&what));
        self.stop.wait(pause);
    }

    fn tell_waiting(&self) {
        let dir = self.dir_shown();
        let what = format!("no crawl and no service runs in {dir}; waiting for one");
        self.note(&what);
    }

    fn note(&self, text: &str) {
        self.aside.say(|| self.session.talk.note(text));
    }

    fn tell_end(&self, ended: LeaseEnd) -> Result<(), Message> {
        match ended {
            LeaseEnd::Stopped => {}
            LeaseEnd::Recalled => tracing::info!("the owner has called the index back"),
            LeaseEnd::OwnerGone => {
                let what = format!("the owner of {} is gone", self.dir_shown());
                self.aside.say(|| self.session.talk.warning(&what));
            }
            LeaseEnd::Broken(why) => {
                let what = format!("the owner of {} is not understood: {why}", self.dir_shown());
                return Err(Message::new(Code::Locked, what)
                    .hint("Run the indexer and the owner with one version of telusur"));
            }
        }
        Ok(())
    }

    fn dir_shown(&self) -> String {
        shown(&self.dir.to_string_lossy())
    }
}

/// Listens to signals and shows progress while the indexer works.
struct Companion {
    thread: JoinHandle<()>,
    over: oneshot::Sender<()>,
    code: Arc<AtomicU8>,
}

impl Companion {
    fn start(
        display: ProgressDisplay,
        counts: Arc<FollowCounts>,
        stop: StopFollowing,
    ) -> Result<Self, Message> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| no_start(&format!("start the runtime: {error}")))?;
        let signals = {
            let _inside = runtime.enter();
            Signals::new().map_err(|error| no_start(&format!("wait for signals: {error}")))?
        };
        let (over, is_over) = oneshot::channel();
        let code = Arc::<AtomicU8>::default();
        let watch = Watch { display, counts, stop, code: Arc::clone(&code) };
        let thread = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(watch.run(signals, is_over)))
            .map_err(|error| no_start(&error.to_string()))?;
        Ok(Self { thread, over, code })
    }

    /// Ends it, and gives the exit code that a signal asked for.
    fn end(self) -> u8 {
        drop(self.over);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
        self.code.load(Ordering::Acquire)
    }
}

struct Watch {
    display: ProgressDisplay,
    counts: Arc<FollowCounts>,
    stop: StopFollowing,
    code: Arc<AtomicU8>,
}

impl Watch {
    async fn run(mut self, mut signals: Signals, mut is_over: oneshot::Receiver<()>) {
        let _stop = StopOnPanic(self.stop.clone());
        let clock = SystemClock::new();
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                _ = &mut is_over => break,
                _ = tick.tick() => self.display.update_indexing(self.indexing(), clock.now()),
                told = signals.next() => match told {
                    Told::Status => self.display.above(&self.indexing().plain_line()),
                    Told::Stop(code) if self.stop.is_stopped() => {
                        // The second one does not wait. What is not committed is indexed again.
                        std::process::exit(i32::from(code));
                    }
                    Told::Stop(code) => {
                        self.code.store(code, Ordering::Release);
                        self.display.above("giving the index back; once more leaves at once");
                        self.stop.stop();
                    }
                },
            }
        }
        self.display.finish();
    }

    fn indexing(&self) -> Indexing {
        Indexing {
            indexed: self.counts.indexed.load(Ordering::Acquire),
            behind: self.counts.behind.load(Ordering::Acquire),
        }
    }
}

/// Nobody hears signals any more when the watch has died: the indexer stops, and says why.
struct StopOnPanic(StopFollowing);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

fn no_start(why: &str) -> Message {
    Message::new(Code::Storage, format!("cannot follow: {why}"))
}
