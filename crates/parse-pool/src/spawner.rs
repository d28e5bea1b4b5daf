//! Starts children: one thread that lives as long as the pool.
//!
//! The kernel ends a child together with the *thread* that started it, not with the process. Were
//! children started by whichever thread needs one, they would die with it.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use crate::child::{ChildLimits, ChildProgram, ParserChild};
use crate::jail::JailReport;

/// What every child of a pool is made of.
#[derive(Debug)]
pub(crate) struct SpawnSettings {
    pub(crate) program: ChildProgram,
    pub(crate) limits: ChildLimits,
}

type Birth = Result<(ParserChild, JailReport), String>;

/// The thread that starts children, one at a time.
#[derive(Debug)]
pub(crate) struct Spawner {
    orders: Option<Sender<SyncSender<Birth>>>,
    thread: Option<JoinHandle<()>>,
}

impl Spawner {
    pub(crate) fn open(parentage: SpawnSettings) -> std::io::Result<Self> {
        let (orders, received) = channel();
        let thread = std::thread::Builder::new()
            .name("parser-spawner".to_owned())
            .spawn(move || run(&parentage, &received))?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Starts a child. The words say why there is none.
    pub(crate) fn child(&self) -> Birth {
        let closed = || "the thread that starts children has ended".to_owned();
        let (sender, birth) = sync_channel(1);
        self.orders.as_ref().ok_or_else(closed)?.send(sender).map_err(|_| closed())?;
        birth.recv().map_err(|_| closed())?
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(parentage: &SpawnSettings, orders: &Receiver<SyncSender<Birth>>) {
    let SpawnSettings { program, limits } = parentage;
    for order in orders {
        // If the receiver is gone, the child is dropped, and ends.
        let _ = order.send(ParserChild::start(program, limits));
    }
}
