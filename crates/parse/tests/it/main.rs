//! What the crate promises to its callers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod snapshots;
