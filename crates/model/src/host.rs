//! Who is asked ([`Host`]), whose pages they are ([`Site`]), and which share of all sites that
//! belongs to ([`Slot`]).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How many slots all sites are shared into. Fixed: a slot is the unit that moves between machines.
pub const SLOTS: u16 = 64;

/// A host name or an IP literal, lower case, without port: the unit of politeness.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Host(Arc<str>);

impl Host {
    /// A host by the name that stands in a [`PageUrl`](crate::PageUrl).
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The site this host belongs to.
    pub fn site(&self) -> Site {
        Site::of_host(&self.0)
    }
}

/// A registrable domain (`example.co.id`), or the host itself where there is none (an address, an
/// intranet name): the unit of fairness and of sharing work.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Site(Arc<str>);

impl Site {
    /// The site of a host, by the public suffix list.
    pub fn of_host(host: &str) -> Self {
        let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        let domain = if is_address { None } else { psl::domain_str(host) };
        Self(Arc::from(domain.unwrap_or(host)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The slot this site falls into, the same on every machine and for ever.
    pub fn slot(&self) -> Slot {
        let share = xxh3_64(self.0.as_bytes()) % u64::from(SLOTS);
        Slot(u16::try_from(share).expect("less than SLOTS"))
    }
}

/// One of [`SLOTS`] fixed shares of all sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u16);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.0)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, site: &str) {
        assert_eq!(Site::of_host(host).as_str(), site);
    }

    #[test]
    fn sites_are_registrable_domains() {
        check("www.example.com", "example.com");
        check("a.b.example.co.id", "example.co.id");
        check("example.com", "example.com");
    }

    #[test]
    fn addresses_and_bare_names_are_their_own_site() {
        check("127.0.0.1", "127.0.0.1");
        check("[::1]", "[::1]");
        check("localhost", "localhost");
    }

    #[test]
    fn slots_never_change() {
        // Part of the data format: a slot computed by one version must be found by the next.
        assert_eq!(Site::of_host("example.com").slot(), Slot(51));
        assert_eq!(Site::of_host("example.co.id").slot(), Slot(32));
    }
}
