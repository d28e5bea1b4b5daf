//! Where children are born: one thread that lives as long as the pool.
//!
//! The kernel ends a child together with the *thread* that started it, not with the process. Were
//! children started by whichever thread needs one, they would die with it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use crate::jail::JailReport;
use crate::keeper::{ChildLimits, ChildProgram, ParserChild};

/// What every child of a pool is made of.
#[derive(Debug)]
pub(crate) struct Parentage {
    pub(crate) program: ChildProgram,
    pub(crate) limits: ChildLimits,
    pub(crate) socket: PathBuf,
}

type Birth = Result<(ParserChild, JailReport), String>;

/// The thread that starts children, one at a time.
#[derive(Debug)]
pub(crate) struct Nursery {
    orders: Option<Sender<SyncSender<Birth>>>,
    thread: Option<JoinHandle<()>>,
}

impl Nursery {
    pub(crate) fn open(parentage: Parentage) -> std::io::Result<Self> {
        let (orders, received) = channel();
        let thread = std::thread::Builder::new()
            .name("parser-nursery".to_owned())
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

impl Drop for Nursery {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(parentage: &Parentage, orders: &Receiver<SyncSender<Birth>>) {
    let Parentage { program, limits, socket } = parentage;
    for order in orders {
        // Nobody waits any more: the child is dropped, and ends.
        let _ = order.send(ParserChild::start(program, limits, socket));
    }
}
