//! The ledger on rows in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conformance;
mod event_format;
mod folding;
mod script;
