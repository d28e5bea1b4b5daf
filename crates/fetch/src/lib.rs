//! Asking a stranger's server for a page. The only crate that opens outbound connections.

mod order;
mod profile;
mod settings;

mod guard;
mod names;

mod failure;

pub use crate::guard::{AddressGuard, GuardError};
pub use crate::names::{NameAnswer, NameFailure, NameLookup};
pub use crate::order::{Fetch, FetchOrder, ResolveFailure, Resolved};
pub use crate::profile::{FetchProfile, ProfileError};
pub use crate::settings::FetchSettings;
