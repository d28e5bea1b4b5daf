//! The holder's side of a lease: an indexer that has the index and no store.

use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use telusur_index::SearchIndex;
use telusur_model::Clock;
use telusur_parse_pool::through_short_path;

use super::{LeaseReply, LeaseRequest, LineError, Lines, REPLY_BYTES_MAX, line_of};
use crate::SystemClock;
use crate::control::{ErrorCode, Leased, NoItem, ReplyLine, RequestLine};
use crate::followers::{
    BATCH_CHANGES_MAX, Call, Caller, ChangeBatch, ChangeSource, FollowError, FollowerHealth,
    Runner, calls,
};
use crate::index_follower::{INDEX, IndexFollower, IndexNews};

/// How often somebody who waits for the index looks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum NotLeased {
    /// Nobody owns the directory, or whoever does answers no questions.
    #[error("nobody answers: {0}")]
    NoOwner(io::Error),
    /// The owner is ending.
    #[error("the owner of the directory is ending")]
    Ending,
    /// The owner does not lease its index.
    #[error("{0}")]
    Refused(String),
    /// Stopped while waiting.
    #[error("stopped")]
    Stopped,
}

/// How a lease ended.
#[derive(Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The owner wants the index for itself, for a while or for good.
    Recalled,
    /// The owner is gone.
    OwnerGone,
    /// It was stopped on this side.
    Stopped,
    /// The owner said what makes no sense.
    Broken(String),
}

/// What a follower has done, for whoever watches.
#[derive(Debug, Default)]
pub struct FollowCounts {
    /// Pages that it made searchable.
    pub indexed: AtomicU64,
    /// Pages that it was told of and has not yet made searchable.
    pub behind: Arc<AtomicU64>,
}

/// Stops a follower in order, from another thread.
#[derive(Clone, Default)]
pub struct StopFollowing(Arc<StopState>);

#[derive(Default)]
struct StopState {
    /// Guards whom to call; held for moments only.
    stop: Mutex<(bool, Option<Caller>)>,
    changed: Condvar,
}

impl StopFollowing {
    /// Stops it.
    pub fn stop(&self) {
        let mut stop = self.state();
        stop.0 = true;
        if let Some(caller) = &stop.1 {
            caller.call(Call::Leave);
        }
        self.0.changed.notify_all();
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().0
    }

    /// Waits so long, or until it is stopped. True if it is.
    pub fn wait(&self, pause: Duration) -> bool {
        let stop = self.state();
        let waited = self.0.changed.wait_timeout_while(stop, pause, |stop| !stop.0);
        waited.unwrap_or_else(PoisonError::into_inner).0.0
    }

    fn state(&self) -> MutexGuard<'_, (bool, Option<Caller>)> {
        self.0.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls this one when it is stopped.
    fn attach(&self, caller: Option<Caller>) {
        let mut stop = self.state();
        if let Some(caller) = caller.as_ref().filter(|_| stop.0) {
            caller.call(Call::Leave);
        }
        stop.1 = caller;
    }
}

/// The right to write an index that another process owns. Dropping it gives it back.
pub struct LeasedIndex {
    stream: UnixStream,
    replies: Lines<BufReader<UnixStream>>,
    stop: StopFollowing,
}

/// Asks the owner of a directory, at its control socket, to lease its index. Waits until it does.
pub fn lease_index(socket: &Path, stop: &StopFollowing) -> Result<LeasedIndex, NotLeased> {
    let connected = || -> io::Result<LeasedIndex> {
        let mut stream = through_short_path(socket, UnixStream::connect)?;
        stream.write_all(&line_of(&RequestLine::<NoItem>::LeaseIndex {
            format: telusur_index::FORMAT,
        })?)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        let replies = Lines::new(BufReader::new(stream.try_clone()?), REPLY_BYTES_MAX);
        Ok(LeasedIndex { stream, replies, stop: stop.clone() })
    };
    let mut leased = connected().map_err(NotLeased::NoOwner)?;
    loop {
        match leased.replies.next::<ReplyLine<NoItem, Leased>>() {
            Ok(ReplyLine::Reply(Leased {})) => return Ok(leased),
            Ok(ReplyLine::Error(error)) if error.code == ErrorCode::Stopped => {
                return Err(NotLeased::Ending);
            }
            Ok(ReplyLine::Error(error)) => return Err(NotLeased::Refused(error.text)),
            Ok(ReplyLine::Item(none)) => match none {},
            Err(LineError::Quiet) if stop.is_stopped() => return Err(NotLeased::Stopped),
            Err(LineError::Quiet) => {}
            Err(LineError::Ended) => return Err(NotLeased::Ending),
            Err(error) => return Err(NotLeased::Refused(error.to_string())),
        }
    }
}

impl LeasedIndex {
    /// Follows the store of the owner with this index, which is the one that was leased, until the
    /// owner wants it back or is gone, or this side is stopped.
    pub fn follow(
        self,
        index: SearchIndex,
        counts: &Arc<FollowCounts>,
    ) -> Result<LeaseEnd, FollowError> {
        let Self { stream, replies, stop } = self;
        stream.set_read_timeout(None).map_err(unreachable_owner)?;
        let (caller, calls) = calls();
        let (batches, batch_queue) = sync_channel(1);
        let hearing = Hearing {
            replies,
            batches,
            caller: caller.clone(),
            counts: Arc::clone(counts),
            is_over: Arc::default(),
        };
        let requests = Requests(Mutex::new(stream.try_clone().map_err(unreachable_owner)?));
        let requests = Arc::new(requests);
        let source = LeasedSource {
            requests: Arc::clone(&requests),
            batches: Mutex::new(batch_queue),
            is_over: Arc::clone(&hearing.is_over),
            stop: stop.clone(),
            given: AtomicU64::new(0),
            counts: Arc::clone(counts),
        };
        // The first look needs no word from anybody.
        caller.wake();
        stop.attach(Some(caller));
        let index = Arc::new(index);
        let tell = move |news| {
            requests.say(match news {
                IndexNews::Merged => LeaseRequest::Committed,
                IndexNews::Digested => LeaseRequest::Digested,
            })
        };
        let mut follower = IndexFollower::telling(Arc::clone(&index), Arc::new(tell));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let health = FollowerHealth::new(INDEX, clock, Arc::clone(&counts.behind));
        let ended = std::thread::scope(|scope| {
            let hearing = scope.spawn(|| hearing.listen());
            let mut runner = Runner { follower: &mut follower, source: &source, health: &health };
            let followed = runner.follow(&calls);
            drop(follower);
            let followed = followed.and_then(|_call| Ok(index.release()?));
            // Only now, when the owner finds the index free.
            let _ = stream.shutdown(Shutdown::Both);
            let heard = hearing.join();
            followed.map(|()| heard.unwrap_or(LeaseEnd::Broken("its listener panicked".into())))
        });
        stop.attach(None);
        counts.behind.store(0, Ordering::Release);
        let ended = ended?;
        Ok(if stop.is_stopped() { LeaseEnd::Stopped } else { ended })
    }
}

fn unreachable_owner(source: io::Error) -> FollowError {
    let doing = "talk to the owner of the directory".to_owned();
    telusur_ledger::StoreError::Io { doing, source }.into()
}

/// The way to the owner.
struct Requests(
    /// Guards that a line is written whole: links are digested beside.
    Mutex<UnixStream>,
);

impl Requests {
    /// Says something to the owner. Whether the owner is still there is heard elsewhere: what is not
    /// heard by it, it reads in the index.
    fn say(&self, request: LeaseRequest) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line_of(&request).and_then(|line| stream.write_all(&line));
    }
}

/// The changes of a store that another process owns.
struct LeasedSource {
    requests: Arc<Requests>,
    /// Used by the one thread that asks.
    batches: Mutex<Receiver<ChangeBatch>>,
    /// Whether the owner has wanted the index back or is gone.
    is_over: Arc<AtomicBool>,
    stop: StopFollowing,
    /// Changes since the last commit.
    given: AtomicU64,
    counts: Arc<FollowCounts>,
}

impl ChangeSource for LeasedSource {
    /// Nothing, once the lease is over: what was taken in is committed, and the index given back.
    fn next(&self, after: u64, max: usize) -> Result<ChangeBatch, FollowError> {
        let nothing = ChangeBatch { upto: after, ..ChangeBatch::default() };
        if self.is_over.load(Ordering::Acquire) {
            return Ok(nothing);
        }
        self.requests.say(LeaseRequest::Next { after, pages_max: max });
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = loop {
            match batches.recv_timeout(LOOK_EVERY) {
                Ok(batch) => break batch,
                // An owner that hangs does not keep anybody here.
                Err(RecvTimeoutError::Timeout) if !self.stop.is_stopped() => {}
                Err(_) => break nothing,
            }
        };
        self.given.fetch_add(batch.len() as u64, Ordering::AcqRel);
        Ok(batch)
    }

    fn committed(&self) {
        let changes = self.given.swap(0, Ordering::AcqRel);
        self.counts.indexed.fetch_add(changes, Ordering::AcqRel);
        self.requests.say(LeaseRequest::Committed);
    }
}

/// Hears what the owner says, as long as it says something.
struct Hearing {
    replies: Lines<BufReader<UnixStream>>,
    batches: SyncSender<ChangeBatch>,
    caller: Caller,
    counts: Arc<FollowCounts>,
    is_over: Arc<AtomicBool>,
}

impl Hearing {
    fn listen(mut self) -> LeaseEnd {
        let mut is_recalled = false;
        let mut batch = ChangeBatch::default();
        let ended = loop {
            match self.replies.next() {
                Ok(LeaseReply::Recalled) => {
                    is_recalled = true;
                    self.leave();
                }
                Ok(reply) => {
                    if let Err(why) = self.take(reply, &mut batch) {
                        break LeaseEnd::Broken(why);
                    }
                }
                Err(LineError::Quiet) => {}
                Err(LineError::Ended) if is_recalled => break LeaseEnd::Recalled,
                Err(LineError::Ended) => break LeaseEnd::OwnerGone,
                Err(error) => break LeaseEnd::Broken(error.to_string()),
            }
        };
        self.leave();
        ended
    }

    fn leave(&self) {
        self.is_over.store(true, Ordering::Release);
        self.caller.call(Call::Leave);
    }

    fn take(&self, reply: LeaseReply, batch: &mut ChangeBatch) -> Result<(), String> {
        match reply {
            LeaseReply::Stored { page, url } => {
                tracing::debug!(page, url, "told of a stored page");
                self.counts.behind.fetch_add(1, Ordering::AcqRel);
                self.caller.wake();
            }
            LeaseReply::Look => self.caller.wake(),
            LeaseReply::Change(change) => batch.changes.push(change),
            LeaseReply::BatchEnd { upto } => {
                let batch = ChangeBatch { upto, ..std::mem::take(batch) };
                self.batches.try_send(batch).map_err(|_| "changes that nobody asked for")?;
            }
            LeaseReply::Recalled => {}
        }
        if batch.len() > BATCH_CHANGES_MAX {
            return Err("more changes than were asked for".to_owned());
        }
        Ok(())
    }
}
