//! What an index promises to whoever uses it.

mod crash;
mod durability;
mod hostile;
mod relevance;
mod search;
mod web;
