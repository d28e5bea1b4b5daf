//! The engine on a synthetic web and the embedded store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod back_pressure;
mod bench;
mod budgets;
mod changing;
mod completeness;
mod control;
mod crawl_faults;
mod endings;
mod failing_index;
mod faults;
mod follower_conformance;
mod following;
mod hostile;
mod linear;
mod machine;
mod manners;
mod many_crawls;
mod network;
mod parse_fairness;
mod parsing;
mod questions;
mod reparse;
mod robots;
mod searching;
mod short_disk;
mod single_fetch;
mod sitemaps;
mod supervision;
mod wire;
