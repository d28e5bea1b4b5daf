//! The owner's side of a lease. The index stage serves the holder itself: whoever may write the index
//! is decided in one place, by one thread.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use telusur_index::{IndexError, SearchIndex};
use telusur_ledger::Stored;

use super::{
    LeaseReply, LeaseRequest, LineError, Lines, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, line_of,
};
use crate::control::{ErrorReply, Leased, NoItem, ReplyLine};
use crate::error::RequestError;
use crate::followers::{
    BATCH_CHANGES_MAX, Call, Caller, ChangeBatch, ChangeSource, FollowError, FollowedChange,
    FollowerHealth, Given,
};

/// Lines on their way to the holder. Pages are read no faster than they are taken; word of a stored
/// page that finds no room is dropped, because the holder goes by its checkpoint.
const REPLIES_MAX: usize = 64;
/// A holder asks every two seconds, and commits and merges in between. One that says nothing for so
/// long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a recall is waited for: the holder commits, and ends merges that it has begun.
const RECALL_WAIT_MAX: Duration = Duration::from_secs(60);
/// An indexer that was killed and started again must not be refused because of itself: until then its
/// end is noticed.
const REFUSED_AFTER: Duration = Duration::from_secs(1);
/// How often a silent lease is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often an index is asked for that a holder has not let go of.
const TAKE_BACK_EVERY: Duration = Duration::from_millis(20);
/// A process that was killed lets go at once, in any order. After this somebody is told.
const TAKE_BACK_QUIETLY: Duration = Duration::from_secs(2);

/// The process at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseHolder {
    /// Its id, if the system knows it.
    pub(crate) pid: Option<i32>,
    /// The format of index that it writes.
    pub(crate) format: u32,
}

/// Whom the index is leased to. Shared by the stage that leases it, connections that ask for it, and
/// whoever wants it back.
#[derive(Default)]
pub(crate) struct Leases {
    /// Guards who has the index; held for moments only.
    state: Mutex<State>,
    changed: Condvar,
    /// Whether a holder is gone and has not let go of the index.
    is_stuck: AtomicBool,
}

#[derive(Default)]
struct State {
    out: Option<Out>,
    /// Those who need the index to stay here.
    holds: usize,
    /// Nothing is leased any more: the stage ends or has ended.
    is_over: bool,
}

/// The lease that is out.
struct Out {
    pid: Option<i32>,
    /// The way to the holder, until its connection is closed.
    replies: Option<SyncSender<LeaseReply>>,
}

impl Leases {
    /// Tells the holder, if there is one, of stored pages.
    pub(crate) fn tell(&self, stored: &[Stored]) {
        let state = self.state();
        let Some(replies) = state.replies() else { return };
        for Stored { seq, url } in stored {
            let _ = replies.try_send(LeaseReply::Stored { page: *seq, url: url.to_string() });
        }
    }

    /// Tells the holder, if there is one, that something else than a page has changed.
    pub(crate) fn tell_look(&self) {
        let _ = self.state().replies().map(|replies| replies.try_send(LeaseReply::Look));
    }

    /// Whether a holder holds the index and does nothing with it.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Acquire)
    }

    /// Nothing is leased from now on, and what is leased is called back.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.call_back();
        self.changed.notify_all();
    }

    /// Keeps a place for a lease, when nobody needs the index here.
    fn reserve(
        &self,
        holder: LeaseHolder,
        replies: SyncSender<LeaseReply>,
    ) -> Result<(), RequestError> {
        let is_out = |state: &mut State| state.out.is_some() && !state.is_over;
        let (state, _) = self
            .changed
            .wait_timeout_while(self.state(), REFUSED_AFTER, is_out)
            .unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .changed
            .wait_while(state, |state| state.holds > 0 && !state.is_over)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Err(RequestError::Stopped);
        }
        if let Some(out) = &state.out {
            let what = format!("{} follows this directory already; end it first", indexer(out.pid));
            return Err(RequestError::WrongState(what));
        }
        state.out = Some(Out { pid: holder.pid, replies: Some(replies) });
        Ok(())
    }

    /// Nothing more is said to the holder.
    fn hang_up(&self) {
        if let Some(out) = &mut self.state().out {
            out.replies = None;
        }
    }

    /// The index is here again, or the lease came to nothing.
    pub(crate) fn returned(&self) {
        self.is_stuck.store(false, Ordering::Release);
        self.state().out = None;
        self.changed.notify_all();
    }

    fn is_recalled(&self) -> bool {
        let state = self.state();
        state.is_over || state.holds > 0
    }

    fn is_over(&self) -> bool {
        self.state().is_over
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn call_back(&self) {
        // If there is no room, the holder is about to ask, and hears it then.
        let _ = self.replies().map(|replies| replies.try_send(LeaseReply::Recalled));
    }

    fn replies(&self) -> Option<&SyncSender<LeaseReply>> {
        self.out.as_ref()?.replies.as_ref()
    }
}

fn indexer(pid: Option<i32>) -> String {
    pid.map_or_else(|| "another indexer".to_owned(), |pid| format!("an indexer (pid {pid})"))
}

/// Leases the index of a running engine, and calls it back.
#[derive(Clone)]
pub(crate) struct IndexOwner {
    pub(crate) caller: Weak<Caller>,
    pub(crate) leases: Arc<Leases>,
}

impl IndexOwner {
    /// Leases the index over this connection. If it cannot be leased, the connection is told why. Blocks.
    pub(crate) fn lease(&self, stream: UnixStream, holder: LeaseHolder) {
        if let Err((stream, error)) = self.try_lease(stream, holder) {
            refuse(stream, &error);
        }
    }

    fn try_lease(
        &self,
        stream: UnixStream,
        holder: LeaseHolder,
    ) -> Result<(), (UnixStream, RequestError)> {
        if holder.format != telusur_index::FORMAT {
            let what = format!(
                "the indexer writes indexes of format {}, this process reads {}; use one version",
                holder.format,
                telusur_index::FORMAT
            );
            return Err((stream, RequestError::WrongState(what)));
        }
        let Some(caller) = self.caller.upgrade() else {
            return Err((stream, RequestError::Stopped));
        };
        let (replies, queue) = sync_channel(REPLIES_MAX);
        if let Err(error) = self.leases.reserve(holder, replies.clone()) {
            return Err((stream, error));
        }
        let leases = Arc::clone(&self.leases);
        caller.call(Call::Lease(Box::new(Lease { stream, holder, replies, queue, leases })));
        Ok(())
    }

    /// Calls the index back, if it is leased, and keeps it here until the hold is dropped. Blocks.
    pub(crate) fn hold(&self) -> Result<Hold, RequestError> {
        let mut state = self.leases.state();
        state.holds += 1;
        let hold = Hold { leases: Arc::clone(&self.leases) };
        state.call_back();
        let (state, waited) = self
            .leases
            .changed
            .wait_timeout_while(state, RECALL_WAIT_MAX, |state| state.out.is_some())
            .unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() {
            drop(state);
            return Ok(hold);
        }
        let holder = indexer(state.out.as_ref().and_then(|out| out.pid));
        // The hold locks the state as well when it goes.
        drop(state);
        let what = format!("{holder} does not give the search index back; end it and try again");
        Err(RequestError::WrongState(what))
    }
}

/// Tells a process that wants the lease why it cannot.
pub(crate) fn refuse(mut stream: UnixStream, error: &RequestError) {
    // If nobody hears it, nobody waits for it.
    let _ = line_of(&ReplyLine::<NoItem, Leased>::Error(ErrorReply::of(error)))
        .and_then(|line| stream.write_all(&line));
}

/// Keeps the index in this process.
pub(crate) struct Hold {
    leases: Arc<Leases>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.leases.state().holds -= 1;
        self.leases.changed.notify_all();
    }
}

/// A lease, from the holder's wish to the index's return.
pub struct Lease {
    stream: UnixStream,
    holder: LeaseHolder,
    replies: SyncSender<LeaseReply>,
    queue: Receiver<LeaseReply>,
    leases: Arc<Leases>,
}

impl Lease {
    /// There is no lease: the holder is told why.
    pub(crate) fn refuse(self, error: &RequestError) {
        refuse(self.stream, error);
        self.leases.returned();
    }

    /// Leases the index until the connection closes, and takes it back.
    pub(crate) fn carry_out(
        self,
        index: &SearchIndex,
        source: &dyn ChangeSource,
        health: &FollowerHealth,
    ) -> Result<(), FollowError> {
        if let Err(error) = index.release() {
            let what = format!("the search index cannot be written: {error}");
            self.refuse(&RequestError::WrongState(what));
            return Err(error.into());
        }
        let Self { stream, holder, replies, queue, leases } = self;
        let pid = holder.pid.unwrap_or_default();
        tracing::info!(pid, "the search index is leased to an indexer");
        let served = std::thread::scope(|scope| {
            let server =
                LeaseServer { stream: &stream, replies, leases: &leases, index, source, health };
            let writer = scope.spawn(|| write_lines(&stream, queue));
            let served = server.serve();
            // The writer ends with the last who may say something, or with the connection.
            drop(server);
            leases.hang_up();
            let _ = stream.shutdown(Shutdown::Both);
            drop(writer.join());
            served
        });
        let taken = take_back(index, &leases, pid);
        leases.returned();
        tracing::info!(pid, "the search index is back");
        served.and(taken)
    }
}

/// Writes lines until there are no more to come, or the holder does not take them.
fn write_lines(stream: &UnixStream, queue: Receiver<LeaseReply>) {
    let write = || -> io::Result<()> {
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut output = BufWriter::new(stream);
        output.write_all(&line_of(&ReplyLine::<NoItem, Leased>::Reply(Leased {}))?)?;
        output.flush()?;
        while let Ok(mut reply) = queue.recv() {
            loop {
                output.write_all(&line_of(&reply)?)?;
                match queue.try_recv() {
                    Ok(next) => reply = next,
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            output.flush()?;
        }
        Ok(())
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "a line for the indexer was not taken");
        // Whoever reads must hear that nothing is written any more.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Answers what a holder asks.
struct LeaseServer<'a> {
    stream: &'a UnixStream,
    replies: SyncSender<LeaseReply>,
    leases: &'a Leases,
    index: &'a SearchIndex,
    source: &'a dyn ChangeSource,
    health: &'a FollowerHealth,
}

impl LeaseServer<'_> {
    /// Serves until the holder is gone, hangs, or says what makes no sense. Fails only if the store
    /// or the index does.
    fn serve(&self) -> Result<(), FollowError> {
        let mut requests = Lines::new(BufReader::new(self.stream), REQUEST_BYTES_MAX);
        if self.stream.set_read_timeout(Some(LOOK_EVERY)).is_err() {
            return Ok(());
        }
        let mut given = Given::default();
        let mut heard = Instant::now();
        loop {
            match requests.next() {
                Ok(request) => {
                    heard = Instant::now();
                    if !self.answer(request, &mut given)? {
                        return Ok(());
                    }
                }
                Err(LineError::Quiet) if heard.elapsed() < SILENCE_MAX => {}
                Err(LineError::Quiet) => {
                    tracing::warn!("the indexer says nothing any more; its lease is over");
                    return Ok(());
                }
                Err(LineError::Ended) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "the indexer is not understood; its lease is over");
                    return Ok(());
                }
            }
        }
    }

    /// Answers a request; false if the holder does not take the answer.
    fn answer(&self, request: LeaseRequest, given: &mut Given) -> Result<bool, FollowError> {
        match request {
            LeaseRequest::Next { after, .. } if self.leases.is_recalled() => {
                let lines = [LeaseReply::Recalled, LeaseReply::BatchEnd { upto: after }];
                Ok(lines.into_iter().all(|line| self.replies.send(line).is_ok()))
            }
            LeaseRequest::Next { after, pages_max } => {
                let max = pages_max.min(BATCH_CHANGES_MAX);
                let behind = self.health.lag().load(Ordering::Acquire);
                let batch = self.source.next(after, max)?;
                given.batch(batch.len() as u64, behind);
                if given.changes == 0 {
                    given.committed(self.health.lag());
                }
                self.health.moved();
                if batch.len() < max {
                    self.health.caught_up();
                }
                Ok(self.hand_over(batch))
            }
            LeaseRequest::Committed => {
                self.index.refresh()?;
                given.committed(self.health.lag());
                self.health.committed(self.index.applied_upto());
                Ok(true)
            }
            LeaseRequest::Digested => {
                self.index.refresh_links();
                Ok(true)
            }
        }
    }

    fn hand_over(&self, batch: ChangeBatch) -> bool {
        let changes = batch.changes.into_iter().map(|mut change| {
            if let FollowedChange::Page(page) = &mut change {
                // Its line would be refused, and asked for again for ever.
                let is_too_large = page
                    .content
                    .take_if(|it| it.page.findings.text.len() > REPLY_BYTES_MAX / 8)
                    .is_some();
                if is_too_large {
                    let url = page.record.url.as_str();
                    tracing::warn!(url, "a page is too large to be handed to the indexer");
                }
            }
            LeaseReply::Change(change)
        });
        let end = LeaseReply::BatchEnd { upto: batch.upto };
        changes.chain([end]).all(|line| self.replies.send(line).is_ok())
    }
}

/// Takes the index back from a holder whose connection is closed. One that was killed has let go
/// already; one that hangs is waited for, unless this process ends.
fn take_back(index: &SearchIndex, leases: &Leases, pid: i32) -> Result<(), FollowError> {
    let since = Instant::now();
    loop {
        match index.take_back() {
            Err(IndexError::Locked) => {}
            taken => return Ok(taken?),
        }
        if since.elapsed() >= TAKE_BACK_QUIETLY && !leases.is_stuck() {
            tracing::warn!(pid, "the indexer has not let go of the search index; end it");
            leases.is_stuck.store(true, Ordering::Release);
        }
        if leases.is_over() && since.elapsed() >= RECALL_WAIT_MAX {
            return Err(IndexError::Locked.into());
        }
        std::thread::sleep(TAKE_BACK_EVERY);
    }
}
