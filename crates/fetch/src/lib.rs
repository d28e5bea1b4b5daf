//! Asking a stranger's server for a page. The only crate that opens outbound connections.
//!
//! Read in the order of the modules. A visit comes in as a [`FetchOrder`]; its host's name is looked
//! up, every address is judged by the [`AddressGuard`], and only an address that passed is dialled.
//! Connections are pooled; the answer is read and decoded within limits on time and size. Whatever
//! goes wrong becomes an outcome with a reason word. This crate never follows a redirect by itself
//! and retries nothing, but for a request that met a dead connection (`resend`).

mod order;
mod profile;
mod service_client;
mod settings;

mod web_fetcher;

mod guard;
mod names;

mod connection;
mod connector;
mod descriptors;
mod dial;
mod frames;
mod pool;
mod proxy;
mod resend;
mod tasks;
mod tls;
mod versions;
mod wire;

mod answer;
mod basic;
mod body;
mod budget;
mod conditions;
mod cookies;
mod decode;
mod exchange;
mod failure;
mod http_date;
mod retry_after;

pub mod robots;
pub mod sitemap;

pub use crate::descriptors::{connections_share, raise_open_files_limit};
pub use crate::guard::{AddressGuard, GuardError, OwnAddresses};
pub use crate::names::{NameAnswer, NameFailure, NameLookup};
pub use crate::order::{Fetch, FetchOrder, ResolveFailure, Resolved};
pub use crate::profile::{FetchProfile, ProfileError};
pub use crate::resend::REQUESTS_PER_VISIT_MAX;
pub use crate::retry_after::retry_after_ms;
pub use crate::service_client::{ServiceClient, ServiceClientError};
pub use crate::settings::FetchSettings;
pub use crate::web_fetcher::{FetcherError, WebFetcher};
