//! [`Opening`]: an exception from "public addresses only". The guard in the fetcher decides about
//! every connection; here the exceptions are only read, and compared with what the user typed.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use url::Host;

/// Addresses that may be asked although they are not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// All ports of a range: `10.1.2.0/24`, `::1`.
    Range(IpNet),
    /// One port of one host: `localhost:8080`, `[::1]:80`.
    Endpoint {
        /// A name or an address, as it stands in a URL.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Opening {
    /// Reads a range, an address or HOST:PORT.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(range) = text.parse::<IpNet>() {
            return Some(Self::Range(range.trunc()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Range(address.into()));
        }
        let (host, port) = text.rsplit_once(':')?;
        // The same spelling rules as in a URL, so that both can be compared as text.
        let host = Host::parse(host).ok()?.to_string();
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Some(Self::Endpoint { host, port })
    }

    /// Whether it admits this host (as it stands in a URL) and port.
    pub fn admits(&self, host: &str, port: u16) -> bool {
        match self {
            Self::Range(range) => address_of(host).is_some_and(|address| range.contains(&address)),
            Self::Endpoint { host: name, port: open } => name == host && *open == port,
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => write!(f, "{range}"),
            Self::Endpoint { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The address, if a URL's host is one.
pub fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(opening: &str, host: &str, port: u16, admitted: bool) {
        let opening = Opening::parse(opening).unwrap();
        assert_eq!(opening.admits(host, port), admitted, "{opening} {host}:{port}");
        assert_eq!(Opening::parse(&opening.to_string()), Some(opening));
    }

    #[test]
    fn ranges_open_all_ports_of_their_addresses() {
        check("10.1.2.0/24", "10.1.2.9", 80, true);
        check("10.1.2.9/24", "10.1.2.77", 8080, true);
        check("10.1.2.0/24", "10.1.3.9", 80, false);
        check("127.0.0.1", "127.0.0.1", 9, true);
        check("::1", "[::1]", 80, true);
        check("10.0.0.0/8", "intranet.local", 80, false);
    }

    #[test]
    fn endpoints_open_one_port() {
        check("localhost:8080", "localhost", 8080, true);
        check("localhost:8080", "localhost", 8081, false);
        check("LOCALHOST:8080", "localhost", 8080, true);
        check("127.0.0.1:8080", "127.0.0.1", 8080, true);
        check("[::1]:80", "[::1]", 80, true);
    }

    #[test]
    fn everything_else_is_refused() {
        for text in ["", "10.0.0.0/33", "localhost", "a b:80", "host:0", "host:99999", "http://h:1"]
        {
            assert_eq!(Opening::parse(text), None, "{text:?}");
        }
    }
}
