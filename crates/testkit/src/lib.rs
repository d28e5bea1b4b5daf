//! What tests, the demo and the benchmark stand on: a web that is made up, clocks that stand still,
//! a disk that loses power, a server that misbehaves. Everything is decided by seeds.
//!
//! The synthetic web ([`FakeWeb`]) and the [`DemoSite`] are both a [`Website`]: they can be asked
//! in memory ([`FakeWebFetcher`]) or over loopback ([`serve`], [`serve_demo`]). This crate never
//! opens an outbound connection and knows nothing of the engine.

mod answer;
pub mod clock;
mod fake_fetcher;
pub mod fake_web;
#[cfg(test)]
mod html_check;
mod random;
mod request_log;
mod server;

pub use crate::answer::{FakeAnswer, FakeRequest, Website};
pub use crate::fake_fetcher::FakeWebFetcher;
pub use crate::fake_web::{FakeWeb, FakeWebSpec};
pub use crate::random::Dice;
pub use crate::request_log::{LoggedRequest, RequestLog};
pub use crate::server::{ServedWeb, serve};
