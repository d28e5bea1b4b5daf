//! Which pages the crawled web itself points to. [`LinkGraph`] holds the links, ranks pages and
//! sites; [`Ranks`] is what searches look up.

mod graph;
mod ranks;

pub use graph::{LinkGraph, LinkGraphBuilder};
pub use ranks::Ranks;
