//! Wakes and calls a follower. Never waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::RequestError;
use crate::index_lease::Lease;

/// What interrupts a follower.
pub(crate) enum Call {
    /// Another process wants to do its work.
    Lease(Box<Lease>),
    /// The index is given back.
    Leave,
    /// What the follower has is thrown away and made from nothing. The answer says whether that has begun.
    Rebuild(SyncSender<Result<(), RequestError>>),
}

/// The end of the one who calls.
#[derive(Clone)]
pub(crate) struct Caller {
    wake: SyncSender<()>,
    /// The call that is not yet heard. Held for moments only.
    call: Arc<Mutex<Option<Call>>>,
}

/// The end of the follower.
pub(crate) struct Calls {
    woken: Receiver<()>,
    call: Arc<Mutex<Option<Call>>>,
}

/// A line between one who calls and one who follows.
pub(crate) fn calls() -> (Caller, Calls) {
    let (wake, woken) = sync_channel(1);
    let call = Arc::<Mutex<Option<Call>>>::default();
    (Caller { wake, call: Arc::clone(&call) }, Calls { woken, call })
}

impl Caller {
    pub(crate) fn wake(&self) {
        // A wake-up that is already waiting is enough.
        let _ = self.wake.try_send(());
    }

    pub(crate) fn call(&self, call: Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
        self.wake();
    }
}

impl Calls {
    /// Waits for a wake-up, unless there is a call. [`RecvTimeoutError::Disconnected`] if there can be no
    /// more of either.
    pub(super) fn wait(&self, wait_max: Duration) -> Result<(), RecvTimeoutError> {
        if self.is_called() { Ok(()) } else { self.woken.recv_timeout(wait_max) }
    }

    /// Forgets wake-ups that have been answered.
    pub(super) fn hush(&self) {
        while self.woken.try_recv().is_ok() {}
    }

    pub(super) fn take(&self) -> Option<Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a follower that is busy should stop: there is a call, or there can be no more. Forgets a
    /// wake-up: the caller looks at the store afterwards.
    pub(super) fn interrupt(&self) -> bool {
        self.is_called() || self.woken.try_recv() == Err(TryRecvError::Disconnected)
    }

    fn is_called(&self) -> bool {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}
