//! The engine on a synthetic web and the embedded store.

mod bench;
mod completeness;
mod control;
mod desk;
mod endings;
mod manners;
mod order;
