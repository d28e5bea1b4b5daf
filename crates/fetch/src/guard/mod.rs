//! The address guard: no packet goes to an address that is not public, unless the operator named
//! it. A [`CheckedAddress`] is the proof, and the connector takes nothing else.

mod own;
mod ports;
mod ranges;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use telusur_model::{PageUrl, Reason};

pub use self::own::OwnAddresses;
use crate::failure::Failure;

/// The operator's exceptions from "public addresses and web ports only".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressGuard {
    /// Any web port of these addresses is open.
    ranges: Vec<IpNet>,
    /// Exactly this port of this address is open, under any name.
    sockets: Vec<SocketAddr>,
    /// Exactly this port of this name is open, at any address.
    names: Vec<NamedPort>,
    /// Never open: takes precedence over the others.
    own: OwnAddresses,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NamedPort {
    host: String,
    port: u16,
}

/// An `--allow-private` entry that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot allow {entry:?}: write an address (::1), a range (10.1.2.0/24) or a host with its \
     port (intranet.example:8080)"
)]
pub struct GuardError {
    /// The entry as written.
    pub entry: String,
}

/// An address that the guard let through. Only the guard makes these.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CheckedAddress(SocketAddr);

impl CheckedAddress {
    pub(crate) fn socket(self) -> SocketAddr {
        self.0
    }

    pub(crate) fn ip(self) -> IpAddr {
        self.0.ip()
    }
}

impl fmt::Display for CheckedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names under which clouds serve their credentials. Outside of that cloud they do not resolve, and
/// a guess at the name is the same attack.
const METADATA_NAMES: &[&str] = &["metadata.google.internal", "metadata.goog"];

impl AddressGuard {
    /// Reads the operator's entries: `10.1.2.0/24`, `::1`, `127.0.0.1:8080`, `host:port`.
    pub fn new(entries: &[String]) -> Result<Self, GuardError> {
        let mut guard = Self::default();
        for entry in entries {
            guard.open(entry.trim()).ok_or_else(|| GuardError { entry: entry.clone() })?;
        }
        Ok(guard)
    }

    /// The same, but for where this process itself listens.
    pub fn without_own(self, own: OwnAddresses) -> Self {
        Self { own, ..self }
    }

    fn open(&mut self, entry: &str) -> Option<()> {
        if let Ok(range) = entry.parse::<IpNet>() {
            self.ranges.push(range.trunc());
        } else if let Ok(address) = entry.parse::<IpAddr>() {
            self.ranges.push(IpNet::from(address));
        } else if let Ok(socket) = entry.parse::<SocketAddr>() {
            self.sockets.push(socket);
        } else {
            // Read as part of a URL, so that the name is spelled as it will be in URLs.
            let (_, port) = entry.rsplit_once(':')?;
            let port = port.parse().ok()?;
            let url = PageUrl::parse(&format!("http://{entry}/")).ok()?;
            let is_host_and_port = url.path() == "/" && url.query().is_none();
            if !is_host_and_port || entry.contains(['/', '@', '#', '?']) {
                return None;
            }
            self.names.push(NamedPort { host: url.host_str().to_owned(), port });
        }
        Some(())
    }

    /// Why a URL can never be asked, as far as its text tells: for callers that take URLs from strangers
    /// and answer at once. What a name leads to is checked when it is asked.
    pub fn refusal(&self, url: &PageUrl) -> Option<String> {
        let (host, port) = (url.host_str(), url.port());
        if let Err(refused) = self.check_name(host, port) {
            return Some(refused.detail);
        }
        let name = host.trim_end_matches('.');
        let address = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => address,
            // RFC 6761, 6.3: these names are loopback everywhere.
            _ if name == "localhost" || name.ends_with(".localhost") => Ipv4Addr::LOCALHOST.into(),
            _ => return None,
        };
        self.check(host, SocketAddr::new(address, port)).err().map(|refused| refused.detail)
    }

    /// Refuses, before its name is looked up, a host that can never be asked.
    pub(crate) fn check_name(&self, host: &str, port: u16) -> Result<(), Failure> {
        if self.names_port(host, port) {
            return Ok(());
        }
        if METADATA_NAMES.contains(&host.trim_end_matches('.')) {
            let detail = format!("{host} is a cloud metadata service");
            return Err(Failure::never(Reason::BlockedAddress, detail));
        }
        if !ports::is_web_port(port) && !self.sockets.iter().any(|socket| socket.port() == port) {
            return Err(blocked_port(host, port));
        }
        Ok(())
    }

    /// Lets an address of this host through, or says why not.
    pub(crate) fn check(&self, host: &str, address: SocketAddr) -> Result<CheckedAddress, Failure> {
        // An IPv4 address in IPv6 clothes reaches the IPv4 host, so that is what is judged.
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        self.own.check(address)?;
        if self.names_port(host, address.port()) || self.sockets.contains(&address) {
            return Ok(CheckedAddress(address));
        }
        if !ports::is_web_port(address.port()) {
            return Err(blocked_port(host, address.port()));
        }
        if self.ranges.iter().any(|range| range.contains(&address.ip())) {
            return Ok(CheckedAddress(address));
        }
        match ranges::not_public(address.ip()) {
            None => Ok(CheckedAddress(address)),
            Some(what) => Err(blocked_address(address.ip(), what)),
        }
    }

    fn names_port(&self, host: &str, port: u16) -> bool {
        self.names.iter().any(|named| named.port == port && named.host == host)
    }
}

fn blocked_address(address: IpAddr, what: &str) -> Failure {
    let range = IpNet::from(address);
    let detail = format!("{address} is {what}; allow it with --allow-private {range}");
    Failure::never(Reason::BlockedAddress, detail)
}

fn blocked_port(host: &str, port: u16) -> Failure {
    let detail =
        format!("port {port} is not used for the web; allow it with --allow-private {host}:{port}");
    Failure::never(Reason::BlockedPort, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(entries: &[&str]) -> AddressGuard {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        AddressGuard::new(&entries).unwrap()
    }

    #[track_caller]
    fn check(entries: &[&str], host: &str, address: &str, expect: Result<(), Reason>) {
        let address: SocketAddr = address.parse().unwrap();
        let found = guard(entries).check(host, address);
        assert_eq!(found.map(|_| ()).map_err(|refusal| refusal.why), expect);
    }

    const BLOCKED: Result<(), Reason> = Err(Reason::BlockedAddress);
    const BLOCKED_PORT: Result<(), Reason> = Err(Reason::BlockedPort);

    #[test]
    fn what_the_text_of_a_url_tells() {
        let refused = |entries: &[&str], url: &str| {
            guard(entries).refusal(&PageUrl::parse(url).unwrap()).is_some()
        };
        for url in [
            "http://169.254.169.254/",
            "http://[::1]/",
            "http://2130706433/",
            "http://localhost./",
            "http://a.localhost/",
            "http://metadata.google.internal/",
            "http://a.org:22/",
        ] {
            assert!(refused(&[], url), "{url}");
        }
        assert!(!refused(&[], "http://a.org/"));
        assert!(!refused(&["127.0.0.0/8"], "http://127.0.0.1:8080/"));
    }

    #[test]
    fn nothing_private_by_default() {
        check(&[], "a.org", "93.184.216.34:80", Ok(()));
        check(&[], "a.org", "127.0.0.1:80", BLOCKED);
        check(&[], "a.org", "[::1]:80", BLOCKED);
        check(&[], "a.org", "93.184.216.34:22", BLOCKED_PORT);
    }

    #[test]
    fn a_range_opens_only_itself() {
        // D20.
        check(&["10.1.2.0/24"], "a.org", "10.1.2.9:80", Ok(()));
        check(&["10.1.2.0/24"], "a.org", "10.1.3.9:80", BLOCKED);
        check(&["10.1.2.0/24"], "a.org", "169.254.169.254:80", BLOCKED);
        check(&["10.1.2.0/24"], "a.org", "10.1.2.9:22", BLOCKED_PORT);
        check(&["::1"], "a.org", "[::1]:8080", Ok(()));
        check(&["::1"], "a.org", "127.0.0.1:8080", BLOCKED);
    }

    #[test]
    fn a_mapped_address_is_the_address() {
        check(&["127.0.0.1"], "a.org", "[::ffff:127.0.0.1]:80", Ok(()));
        check(&["127.0.0.1"], "a.org", "[64:ff9b::127.0.0.1]:80", BLOCKED);
    }

    #[test]
    fn a_socket_opens_one_port_of_one_address() {
        check(&["127.0.0.1:81"], "localhost", "127.0.0.1:81", Ok(()));
        check(&["127.0.0.1:81"], "localhost", "127.0.0.1:80", BLOCKED);
        check(&["127.0.0.1:81"], "localhost", "127.0.0.2:81", BLOCKED_PORT);
        check(&["[::1]:8080"], "[::1]", "[::1]:8080", Ok(()));
    }

    #[test]
    fn no_exception_opens_where_we_listen() {
        let own = || OwnAddresses::new(["127.0.0.1:8088".parse().unwrap()]);
        for entry in ["127.0.0.0/8", "127.0.0.1:8088", "a.org:8088"] {
            let guard = guard(&[entry]).without_own(own());
            let refused = guard.check("a.org", "127.0.0.1:8088".parse().unwrap());
            assert_eq!(refused.map(|_| ()).map_err(|refusal| refusal.why), BLOCKED, "{entry}");
        }
        let guard = guard(&["127.0.0.0/8"]).without_own(own());
        let refusal = |url: &str| guard.refusal(&PageUrl::parse(url).unwrap());
        let detail = "127.0.0.1:8088 is where this service itself listens";
        assert_eq!(refusal("http://localhost:8088/").as_deref(), Some(detail));
        assert_eq!(refusal("http://localhost:8089/"), None);
    }

    #[test]
    fn a_name_opens_one_port_of_one_name() {
        check(&["Intranet:22"], "intranet", "10.0.0.5:22", Ok(()));
        check(&["intranet:8080"], "intranet", "10.0.0.5:8081", BLOCKED);
        check(&["intranet:8080"], "other", "10.0.0.5:8080", BLOCKED);
    }

    #[test]
    fn a_name_is_refused_before_it_is_looked_up() {
        let why = |entries: &[&str], host, port| {
            guard(entries).check_name(host, port).map_err(|refusal| refusal.why)
        };
        assert_eq!(why(&[], "metadata.google.internal", 80), BLOCKED);
        assert_eq!(why(&[], "metadata.google.internal.", 80), BLOCKED);
        assert_eq!(why(&[], "a.org", 22), BLOCKED_PORT);
        assert_eq!(why(&["127.0.0.1:22"], "localhost", 22), Ok(()));
        assert_eq!(why(&[], "a.org", 8080), Ok(()));
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for entry in ["", "intranet", "10.0.0.0/33", "a:b", "a:99999", "http://a:80", "a:80/x"] {
            let error = AddressGuard::new(&[entry.to_owned()]).unwrap_err();
            assert_eq!(error.entry, entry);
        }
    }

    #[test]
    fn refusals_tell_the_way_out() {
        let refusal = guard(&[]).check("a.org", "10.0.0.5:80".parse().unwrap()).err().unwrap();
        assert_eq!(
            refusal.detail,
            "10.0.0.5 is a private address; allow it with --allow-private 10.0.0.5/32"
        );
    }
}
