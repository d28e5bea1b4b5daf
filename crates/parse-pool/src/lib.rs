//! Runs the parser where a page cannot hurt: in child processes that can do nothing but parse.
//!
//! A [`Parser`] takes raw pages and says what is in them, as much as a crawl needs, or a search, or
//! everything, or that they could not be read. There are
//! two: [`InProcess`] parses in the calling thread, [`ParserPool`] hands the page to a jailed child
//! of the same program. Linux only: the jail is made of Linux' parts.
//!
//! The way of a page: `pool` leases a child to the calling thread, `child` is the parent's side of
//! that child, `frames` is what they say to each other over a Unix socket, `watch` decides when a
//! page has cost too much, `child` is the other end of the socket, inside the walls of `jail`.
//! Children are started in `spawner`, with one end of a `socket` as standard input.
//!
//! This crate never parses by itself, never touches the network, and never tries a page a third
//! time.

mod lazy;
mod parser;
mod pool;
mod restarts;

mod child;
pub mod frames;
mod watch;

mod child_main;
mod jail;
mod spawner;

mod socket;

pub use crate::child::{ChildLimits, ChildProgram};
pub use crate::child_main::{CHILD_COMMAND, child_if_asked, child_main};
pub use crate::jail::{JailReport, Wall};
pub use crate::lazy::LazyPool;
pub use crate::parser::{InProcess, Parser, PoolError, ReadPage, Reading, VisibleText};
pub use crate::pool::{ParserPool, PoolSettings};
pub use crate::socket::{private_listener, through_short_path};
