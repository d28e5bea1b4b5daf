//! What bad servers, bad networks and bad names do to one visit, and what must come of it. The tests
//! of each module follow one group of the hostile inputs: URLs, names, TCP, TLS, HTTP, redirects,
//! codings. A number such as `T4` in a test names the case that it covers.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

mod authority;
mod bench;
mod script;

mod codings;
mod conditions;
mod http;
mod http2;
mod names;
mod proxies;
mod redirects;
mod reuse;
mod tcp;
mod tls;
mod urls;
