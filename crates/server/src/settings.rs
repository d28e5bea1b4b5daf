//! [`ServiceSettings`]: what the operator decides about the service, and the bounds of what its users
//! may ask for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use telusur_model::Crawl;

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names besides `localhost` and addresses that requests may be sent to.
    pub allowed_hosts: Vec<String>,
    /// Whether searching needs no key.
    pub public_search: bool,
    /// Whether nothing may be changed.
    pub read_only: bool,
    /// Whether there are web pages.
    pub has_ui: bool,
    /// Where the keys are kept.
    pub keys_file: PathBuf,
    /// What a crawl is like if its user says nothing else: limits, manners, identity, exceptions
    /// from "public addresses only".
    pub defaults: Crawl,
    /// What users may ask for.
    pub bounds: Bounds,
}

/// How much users may ask for.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Crawls that run at the same time.
    pub running_max: usize,
    /// Crawls that wait for their turn.
    pub queued_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Start URLs of one crawl.
    pub seeds_max: usize,
    /// Bytes of one regular expression.
    pub pattern_bytes_max: usize,
    /// Regular expressions of one crawl.
    pub patterns_max: usize,
    /// Requests that one key may make in a second, on average.
    pub key_requests_per_s: u32,
    /// Requests that it may make at once.
    pub key_burst: u32,
    /// Connections served at once; further ones wait.
    pub connections_max: usize,
    /// How long the head of a request may take.
    pub header_time_max: Duration,
    /// Bytes of the head of a request.
    pub header_bytes_max: usize,
    /// How long its body may take.
    pub body_time_max: Duration,
    /// How long a reader may take nothing before its connection is cut.
    pub stall_time_max: Duration,
    /// Exports that are written at the same time.
    pub exports_max: usize,
    /// Commands on other machines that watch a crawl or the index; each has a thread.
    pub watchers_max: usize,
    /// Single pages and maps that are fetched at the same time.
    pub fetches_max: usize,
    /// Readers of events.
    pub event_readers_max: usize,
    /// Bytes in a second that are read to find damage while no crawl runs; 0: none.
    pub scrub_bytes_per_second: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            running_max: 8,
            queued_max: 1000,
            body_bytes_max: 1 << 20,
            seeds_max: 10_000,
            pattern_bytes_max: 64 << 10,
            patterns_max: 100,
            key_requests_per_s: 100,
            key_burst: 500,
            connections_max: 4096,
            header_time_max: Duration::from_secs(10),
            header_bytes_max: 64 << 10,
            body_time_max: Duration::from_secs(30),
            stall_time_max: Duration::from_secs(60),
            exports_max: 8,
            watchers_max: 128,
            fetches_max: 16,
            event_readers_max: 2048,
            scrub_bytes_per_second: 0,
        }
    }
}
