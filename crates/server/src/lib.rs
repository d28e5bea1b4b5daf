//! The service: a data directory that takes orders and answers questions over HTTP.
//!
//! Read in this order: [`Service`] is everything it can do; [`json`] is what goes over the wire; `api` are the
//! routes, and `ui` the web pages, both of which only ask the service; `access` decides who may ask; `door`
//! takes connections, bodies and parameters within their limits. This crate opens no outbound connection by
//! itself: single pages are fetched through the same guarded door as a crawl's.

pub mod settings;

mod service;

pub mod json;

mod api;
mod openapi;
mod ui;

mod access;
mod door;
mod problem;

mod app;
mod metrics;

pub use crate::access::{KEY_COOKIE, KeyFile, KeyRingError, Scope, StoredKey};
pub use crate::app::app;
pub use crate::door::serve;
pub use crate::problem::{Code, Problem};
pub use crate::service::{
    Accepted, Cursor, EventKind, EventKinds, EventReader, ExportPieces, Order, RequestMark,
    Service, ServiceError, ServiceEvent, ServiceParts,
};
pub use crate::settings::{Bounds, ServiceSettings};
