//! Which ports the web is served on.

/// Whether a request may go to this port without being named by the operator.
pub(super) fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443) || port >= 1024 && OTHER_PROTOCOLS.binary_search(&port).is_err()
}

/// Ports from 1024 on where something listens that a stranger's link must not talk to: the bad ports
/// of the Fetch standard (<https://fetch.spec.whatwg.org/#port-blocking>), and Redis (6379) and
/// memcached (11211), which take a request line for a command.
const OTHER_PROTOCOLS: &[u16] = &[
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080, 11211,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_and_nothing_else() {
        assert!(OTHER_PROTOCOLS.is_sorted());
        for port in [80, 443, 1024, 8080, 8443, 65535] {
            assert!(is_web_port(port), "{port}");
        }
        for port in [0, 22, 25, 79, 81, 1023, 5060, 6000, 6379, 6667, 10080] {
            assert!(!is_web_port(port), "{port}");
        }
    }
}
