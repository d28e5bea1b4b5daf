//! [`OwnAddresses`]: where this process itself listens. A page, or a user, that names such an address
//! would let the service ask itself, with the rights of its own machine.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use telusur_model::Reason;

use crate::failure::Failure;

/// The sockets on which this process takes requests. They are never asked, even if the operator opens their range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnAddresses(Vec<SocketAddr>);

impl OwnAddresses {
    /// The sockets as they were bound: `0.0.0.0` and `::` mean every address of this machine.
    pub fn new(listening: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self(listening.into_iter().map(canonical).collect())
    }

    /// Refuses an address that leads back here.
    pub(crate) fn check(&self, target: SocketAddr) -> Result<(), Failure> {
        let target = canonical(target);
        for own in self.0.iter().filter(|own| own.port() == target.port()) {
            if leads_to(*own, target.ip())? {
                let detail = format!("{target} is where this service itself listens");
                return Err(Failure::never(Reason::BlockedAddress, detail));
            }
        }
        Ok(())
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn leads_to(own: SocketAddr, target: IpAddr) -> Result<bool, Failure> {
    let own = own.ip();
    if own == target {
        return Ok(true);
    }
    // A connection to "no address in particular" goes to the loopback address.
    if target.is_unspecified() {
        return Ok(own.is_unspecified() || own.is_loopback());
    }
    if own.is_unspecified() { is_of_this_machine(target) } else { Ok(false) }
}

/// Only an address of this machine can be bound. Asking each time notices interfaces that come and
/// go, and happens only for the port that we listen on.
fn is_of_this_machine(address: IpAddr) -> Result<bool, Failure> {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(true),
        // "Invalid" is a link-local address without its interface, which cannot be connected to either.
        Err(error) => match error.kind() {
            io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported => Ok(false),
            _ => Err(Failure::local(format!("find out whether {address} is ours: {error}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use telusur_model::Retry;

    use super::*;

    #[track_caller]
    fn check(own: &str, target: &str, is_own: bool) {
        let refused = OwnAddresses::new([own.parse().unwrap()]).check(target.parse().unwrap());
        match refused {
            Ok(()) => assert!(!is_own, "{own} {target}"),
            Err(Failure { why, retry, .. }) => {
                assert!(is_own, "{own} {target}");
                assert_eq!((why, retry), (Reason::BlockedAddress, Retry::Never));
            }
        }
    }

    #[test]
    fn one_address_and_port() {
        check("127.0.0.1:8088", "127.0.0.1:8088", true);
        check("127.0.0.1:8088", "[::ffff:127.0.0.1]:8088", true);
        check("127.0.0.1:8088", "127.0.0.1:8089", false);
        check("127.0.0.1:8088", "127.0.0.2:8088", false);
        check("[::1]:8088", "[::1]:8088", true);
        check("127.0.0.1:8088", "0.0.0.0:8088", true);
        check("[::1]:8088", "[::]:8088", true);
    }

    #[test]
    fn every_address_of_this_machine() {
        for any in ["0.0.0.0:8088", "[::]:8088"] {
            check(any, "127.0.0.1:8088", true);
            check(any, "127.9.8.7:8088", true);
            check(any, "0.0.0.0:8088", true);
            check(any, "127.0.0.1:8089", false);
            // Reserved for documentation (RFC 5737): no machine has it.
            check(any, "203.0.113.7:8088", false);
        }
    }
}
