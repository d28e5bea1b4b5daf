//! The embedded store on a real directory, and its bodies on a simulated disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod at_rest;
mod conformance;
mod damaged_state;
mod directory;
mod older_format;
mod power_loss;
mod removals;
