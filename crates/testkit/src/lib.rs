//! What tests, the demo and the benchmark stand on: a web that is made up, clocks that stand still,
//! a disk that loses power, a server that misbehaves. Everything is decided by seeds.
//!
//! The synthetic web ([`FakeWeb`]) and the [`DemoSite`] are each a [`Website`]: they can be asked
//! in memory ([`FakeWebFetcher`]) or over loopback ([`serve`], [`serve_demo`]). This crate never
//! opens an outbound connection and knows nothing of the engine.

pub mod clock;
mod random;

mod answer;
mod request_log;

pub mod demo_site;
pub mod fake_web;

mod fake_fetcher;
mod server;

pub mod bad_server;
mod costly_feeds;
mod crowd;
pub mod island;
mod manners;
pub mod sim_disk;
mod torture;

#[cfg(test)]
mod html_check;
#[cfg(test)]
mod test_client;

pub use crate::answer::{FakeAnswer, FakeRequest, Lost, Website};
pub use crate::bad_server::BadServer;
pub use crate::costly_feeds::CostlyFeeds;
pub use crate::crowd::{Crowd, CrowdError};
pub use crate::demo_site::{DemoSite, ServedDemo, serve_demo};
pub use crate::fake_fetcher::FakeWebFetcher;
pub use crate::fake_web::{FakeWeb, FakeWebSpec};
pub use crate::manners::{MannersProof, MannersReport};
pub use crate::random::Dice;
pub use crate::request_log::{LoggedRequest, RequestLog};
pub use crate::server::{ServedWeb, serve};
pub use crate::sim_disk::SimDisk;
pub use crate::torture::{
    Along, Damage, DamageReport, DamageTorture, DamagedFiles, FileKind, FollowReport,
    RecoverReport, RemovalReport, Torture, TortureReport,
};
