//! What the crate promises to whoever calls it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod snapshots;
