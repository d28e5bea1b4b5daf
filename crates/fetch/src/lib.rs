//! Asking a stranger's server for a page. The only crate that opens outbound connections.

mod order;

pub use crate::order::{Fetch, FetchOrder, FetchProfile, ResolveFailure, Resolved};
