//! The door to the web: [`Fetch`], with one implementation that asks real servers and one (in the
//! test kit) that asks a synthetic web.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use telusur_model::{Fetched, Moment, PageUrl, Reason, Validators};
use tokio::sync::mpsc;

use crate::FetchProfile;

/// Asks for pages.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// Carries out one visit: one request, one hop. Never fails: what goes wrong is in the outcome.
    async fn fetch(&self, order: FetchOrder) -> Fetched;

    /// Finds the addresses of a URL's host and checks them, so that the scheduler can keep its
    /// distance to addresses as well as to names.
    async fn resolve(&self, url: &PageUrl, profile: &FetchProfile) -> Resolved;
}

/// One visit to carry out.
#[derive(Debug)]
pub struct FetchOrder {
    /// What to ask for.
    pub url: PageUrl,
    /// How to ask.
    pub profile: Arc<FetchProfile>,
    /// What the server said about the version that we have. Given them, an unchanged page comes as
    /// [`NotModified`](telusur_model::FetchOutcome::NotModified).
    pub if_changed: Validators,
    /// Told whenever the request itself is sent: the delay counts from there. A channel
    /// with room for [`REQUESTS_PER_VISIT_MAX`](crate::REQUESTS_PER_VISIT_MAX) loses nothing.
    pub on_request: Option<mpsc::Sender<Moment>>,
}

impl FetchOrder {
    /// An order for a page that we do not have.
    pub fn new(url: PageUrl, profile: Arc<FetchProfile>) -> Self {
        Self { url, profile, if_changed: Validators::default(), on_request: None }
    }
}

/// What came of a name lookup.
pub type Resolved = Result<Vec<IpAddr>, ResolveFailure>;

/// Why a host has no address that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveFailure {
    /// The kind of failure.
    pub why: Reason,
    /// What exactly, for people.
    pub detail: String,
    /// Whether it may work later.
    pub may_pass: bool,
}
