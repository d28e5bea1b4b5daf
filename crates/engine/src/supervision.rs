//! [`Supervisor`]: notices when a thread or a task dies, so that the engine stops and says which one.
//! Everything that runs beside the crawl task is started here; what is not has a reason in the test
//! that looks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// What a thread or task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Works on the pages of crawls: when it dies, one of them may be the cause.
    Stage(&'static str),
    /// Works for users: no crawl is to blame when it dies.
    Service(&'static str),
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Stage(name) | Self::Service(name) => name,
        }
    }
}

/// Starts threads and tasks, and notices when one of them dies.
#[derive(Clone, Default)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

struct Shared {
    /// The first part that died: the others may only have followed it.
    death: watch::Sender<Option<Part>>,
    /// The engine or the service ends: parts may end, too.
    is_closing: AtomicBool,
}

impl Default for Shared {
    fn default() -> Self {
        Self { death: watch::Sender::new(None), is_closing: AtomicBool::new(false) }
    }
}

/// How long a thread or task lives.
#[derive(Clone)]
enum Life {
    /// Until everything ends, or it is told to end itself.
    Whole { is_told: Arc<AtomicBool> },
    /// Until its work is done.
    Work,
}

impl Supervisor {
    /// Starts a thread that lives until the engine ends.
    pub fn thread<T: Send + 'static>(
        &self,
        part: Part,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<std::thread::JoinHandle<T>> {
        let guard = self.guard(part, Life::Whole { is_told: Arc::default() });
        std::thread::Builder::new().name(part.name().to_owned()).spawn(move || {
            let _guard = guard;
            work()
        })
    }

    /// Starts a task that lives until the engine or the service ends, or its handle ends it.
    pub fn task<T: Send + 'static>(
        &self,
        part: Part,
        task: impl Future<Output = T> + Send + 'static,
    ) -> SupervisedTask<T> {
        let is_told = Arc::<AtomicBool>::default();
        let guard = self.guard(part, Life::Whole { is_told: Arc::clone(&is_told) });
        let handle = tokio::spawn(async move {
            let _guard = guard;
            task.await
        });
        SupervisedTask { handle, is_told }
    }

    /// Starts a task that ends when its work is done, and that nobody waits for.
    pub fn work(&self, part: Part, work: impl Future<Output = ()> + Send + 'static) {
        let guard = self.guard(part, Life::Work);
        tokio::spawn(async move {
            let _guard = guard;
            work.await;
        });
    }

    /// The same for work that blocks.
    pub fn blocking_work(&self, part: Part, work: impl FnOnce() + Send + 'static) {
        let guard = self.guard(part, Life::Work);
        tokio::task::spawn_blocking(move || {
            let _guard = guard;
            work();
        });
    }

    /// From here on parts end in order. A panic still counts.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
    }

    /// The part that died first, if one did.
    pub(crate) fn dead(&self) -> Option<Part> {
        *self.shared.death.borrow()
    }

    /// Waits until a part dies.
    pub(crate) async fn death(&self) -> Part {
        let mut death = self.shared.death.subscribe();
        let died = death.wait_for(Option::is_some).await.ok().and_then(|died| *died);
        match died {
            Some(part) => part,
            // The sender is in `self`: it cannot be gone.
            None => std::future::pending().await,
        }
    }

    fn guard(&self, part: Part, life: Life) -> Guard {
        Guard { part, life, shared: Arc::clone(&self.shared) }
    }
}

/// A task that lives until the engine or the service ends.
#[derive(Debug)]
pub struct SupervisedTask<T> {
    handle: tokio::task::JoinHandle<T>,
    is_told: Arc<AtomicBool>,
}

impl<T> SupervisedTask<T> {
    /// Ends it, in order.
    pub fn end(&self) {
        self.is_told.store(true, Ordering::Release);
        self.handle.abort();
    }

    /// Waits for its end. `None` if it died or was told to end.
    pub async fn ended(self) -> Option<T> {
        self.handle.await.ok()
    }
}

/// Reports the end of whatever holds it.
struct Guard {
    part: Part,
    life: Life,
    shared: Arc<Shared>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let is_early = match &self.life {
            Life::Whole { is_told } => {
                !is_told.load(Ordering::Acquire) && !self.shared.is_closing.load(Ordering::Acquire)
            }
            Life::Work => false,
        };
        if !is_early && !std::thread::panicking() {
            return;
        }
        self.shared.death.send_if_modified(|died| {
            let is_first = died.is_none();
            died.get_or_insert(self.part);
            is_first
        });
    }
}

#[cfg(test)]
mod tests;
