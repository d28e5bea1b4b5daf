//! What an index promises to its users.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod durability;
mod failing_disk;
mod hostile;
mod lease;
mod links;
mod relevance;
mod search;
mod web;
