//! What links say about pages: how well linked each is, and by which words others call it.
//!
//! The log of links grows with the index and is part of its commits. Everything else here is worked
//! out of the log now and then, replaced whole, and as good as never there when it is lost.

mod anchors;
mod digest;
mod graph;
mod log;
mod ranks;

pub(crate) use anchors::{Anchors, LinkedPage};
pub(crate) use digest::{Digest, digest};
pub use graph::{LinkGraph, LinkGraphBuilder};
pub(crate) use log::{LinkLog, LogEnd, LoggedPage};
pub use ranks::Ranks;
