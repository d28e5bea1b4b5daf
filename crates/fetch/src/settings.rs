//! [`FetchSettings`]: the limits of the machine that fetches, the same for all crawls.

use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::descriptors::connections_share;
use crate::guard::OwnAddresses;

/// Every bound on one visit that is not the crawl's own, and on the connections kept between visits.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// Longest that a name lookup may take.
    pub dns_time_max: Duration,
    /// Longest that connecting may take, over all addresses tried.
    pub connect_time_max: Duration,
    /// Longest that the TLS handshake may take.
    pub tls_time_max: Duration,
    /// Longest from the request to the end of the answer's head.
    pub first_byte_time_max: Duration,
    /// Longest pause within a body.
    pub idle_time_max: Duration,
    /// The stretch of time over which the least rate is counted.
    pub rate_window: Duration,
    /// Fewest bytes of a body in one such stretch.
    pub rate_window_bytes_min: u64,
    /// Largest head of an answer, in bytes.
    pub head_bytes_max: usize,
    /// Most headers in an answer.
    pub headers_max: usize,
    /// Most addresses of one host that are tried.
    pub addresses_max: usize,
    /// Connections open at a time, over all hosts. Each holds a file descriptor; a visit that finds no
    /// room waits, or closes one that is kept for later.
    pub connections_max: usize,
    /// Longest that a visit waits for such room. It is no part of the visit's own time.
    pub room_time_max: Duration,
    /// Connections kept open for later, over all hosts.
    pub idle_connections_max: usize,
    /// Connections kept open for later at one host and address.
    pub idle_connections_per_host_max: usize,
    /// How long an unused connection is kept. Common servers close theirs after 5 to 75 seconds.
    pub idle_connection_time_max: Duration,
    /// Names whose addresses are remembered.
    pub names_max: usize,
    /// Where this process itself listens: never asked, with any settings of a crawl.
    pub own_addresses: OwnAddresses,
    /// Certificates that are trusted besides those of the system, for sites with an authority of
    /// their own.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl FetchSettings {
    /// The usual limits, with as many connections as this process has file descriptors for.
    pub fn of_this_process() -> Self {
        Self { connections_max: connections_share(), ..Self::default() }
    }
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            dns_time_max: Duration::from_secs(5),
            connect_time_max: Duration::from_secs(5),
            tls_time_max: Duration::from_secs(5),
            first_byte_time_max: Duration::from_secs(10),
            idle_time_max: Duration::from_secs(10),
            rate_window: Duration::from_secs(10),
            // 100 bytes a second: below that a page of 20 KB outlasts any total limit anyway.
            rate_window_bytes_min: 1000,
            head_bytes_max: 128 * 1024,
            // Honest sites were seen with 150; hyper's own default is 100.
            headers_max: 256,
            addresses_max: 3,
            // What the most common limit of open files (1,024) leaves for them.
            connections_max: 248,
            // As long as a visit may take by default: by then those before it are over.
            room_time_max: Duration::from_secs(30),
            idle_connections_max: 512,
            idle_connections_per_host_max: 8,
            idle_connection_time_max: Duration::from_secs(30),
            names_max: 65_536,
            own_addresses: OwnAddresses::default(),
            extra_roots: Vec::new(),
        }
    }
}
