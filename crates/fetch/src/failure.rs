//! [`Failure`]: how one visit ended short of an answer, and the one place where the errors of the
//! network stack become reason words.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use rustix::io::Errno;
use telusur_model::{FetchOutcome, NetworkSign, Reason, Retry};

/// Why a visit brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) why: Reason,
    pub(crate) detail: String,
    pub(crate) retry: Retry,
    /// The request cannot be answered in HTTP/2, but may be in HTTP/1.1.
    pub(crate) wants_http1: bool,
    /// What it shows about the network here.
    pub(crate) network: NetworkSign,
}

impl Failure {
    /// It would fail again.
    pub(crate) fn never(why: Reason, detail: impl Into<String>) -> Self {
        Self::new(why, detail.into(), Retry::Never)
    }

    /// It may work later.
    pub(crate) fn later(why: Reason, detail: impl Into<String>) -> Self {
        Self::new(why, detail.into(), Retry::Later)
    }

    /// What the server sent is no HTTP that can be read.
    fn broken(detail: &str) -> Self {
        Self::never(Reason::ProtocolError, format!("broken server: {detail}"))
    }

    /// This machine ran out of something; the site did nothing wrong.
    pub(crate) fn local(detail: impl Into<String>) -> Self {
        Self::new(Reason::LocalTrouble, detail.into(), Retry::NotCounted)
    }

    fn new(why: Reason, detail: String, retry: Retry) -> Self {
        let network = network_sign(why);
        Self { why, detail: printable(&detail), retry, wants_http1: false, network }
    }

    /// The same failure, by what it shows about the network here.
    pub(crate) fn showing(self, network: NetworkSign) -> Self {
        Self { network, ..self }
    }

    /// A connection that could not be opened.
    pub(crate) fn connecting(error: &io::Error, to: IpAddr) -> Self {
        let detail = format!("connect to {to}: {error}");
        // Without any IPv6 here, connecting to an IPv6 address fails with "address not available",
        // which for IPv4 says that no local port is free. The former never passes.
        let no_ipv6_here = to.is_ipv6() && is(error, Errno::ADDRNOTAVAIL);
        if is_local_trouble(error) && !no_ipv6_here {
            return Self::local(detail);
        }
        let why = match error.kind() {
            io::ErrorKind::TimedOut => Reason::TimeoutConnect,
            io::ErrorKind::ConnectionReset => Reason::ConnectionReset,
            // Refused, and every kind of "no route": no connection can be opened.
            _ => Reason::Refused,
        };
        // Many machines have no route for IPv6 and are online all the same.
        let has_no_route = to.is_ipv4() && error.kind() == io::ErrorKind::NetworkUnreachable;
        let network = if has_no_route { NetworkSign::Down } else { io_sign(error) };
        Self::later(why, detail).showing(network)
    }

    /// The operator's proxy could not be reached, which says nothing about the site.
    pub(crate) fn of_proxy(self) -> Self {
        if self.why == Reason::LocalTrouble {
            return self;
        }
        Self::later(Reason::ProxyError, format!("the proxy: {}", self.detail))
    }

    /// A handshake that did not end in a secure connection.
    pub(crate) fn tls(error: &io::Error) -> Self {
        let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
        else {
            // The connection died under the handshake. Never retried in clear, but retried.
            let detail = format!("{}: {error}", io_word(error));
            return Self::later(Reason::TlsError, detail).showing(io_sign(error));
        };
        Self::insecure(cause)
    }

    /// What the server sent is no TLS that can be trusted or read.
    fn insecure(cause: &rustls::Error) -> Self {
        let failure = Self::never(Reason::TlsError, format!("{}: {cause}", tls_word(cause)));
        failure.showing(NetworkSign::Alive)
    }

    /// A request that brought no complete head. `received` is how much of the answer came.
    pub(crate) fn asking(error: &hyper::Error, received: u64) -> Self {
        if error.is_parse_too_large() {
            return Self::never(Reason::HeaderTooLarge, "the answer's head is too large");
        }
        if error.is_parse() {
            return Self::broken(&chain(error));
        }
        if let Some(error) = io_cause(error) {
            return Self::reading(error, received);
        }
        if let Some(error) = http2_cause(error) {
            return Self::http2(error, received);
        }
        if received == 0 {
            return Self::later(Reason::EmptyReply, "the connection was closed without an answer");
        }
        if error.is_incomplete_message() {
            return Self::later(Reason::Truncated, "the connection was closed within the head");
        }
        Self::broken(&chain(error))
    }

    /// A body that broke off.
    pub(crate) fn body(error: &hyper::Error, received: u64) -> Self {
        if let Some(cause) = io_cause(error) {
            return Self::reading(cause, received);
        }
        match http2_cause(error) {
            Some(cause) => Self::http2(cause, received),
            None => Self::later(Reason::Truncated, chain(error)),
        }
    }

    /// A stream or connection of HTTP/2 that ended early.
    fn http2(error: &h2::Error, received: u64) -> Self {
        if let Some(error) = error.get_io() {
            return Self::reading(error, received);
        }
        let detail = error.to_string();
        let wants_http1 =
            error.reason() == Some(h2::Reason::HTTP_1_1_REQUIRED) || is_too_finely_cut(error);
        Self { wants_http1, ..Self::http2_end(error, detail, received) }
    }

    fn http2_end(error: &h2::Error, detail: String, received: u64) -> Self {
        match error.reason() {
            Some(h2::Reason::HTTP_1_1_REQUIRED) => {
                Self::never(Reason::ProtocolError, "the server wants HTTP/1.1 here (--http 1)")
            }
            // What h2 itself finds wrong is the server's bad HTTP/2.
            _ if error.is_library() => Self::broken(&detail),
            Some(h2::Reason::NO_ERROR) if received == 0 => Self::later(Reason::EmptyReply, detail),
            Some(h2::Reason::NO_ERROR) => Self::later(Reason::Truncated, detail),
            _ => Self::later(Reason::ConnectionReset, detail),
        }
    }

    fn reading(error: &io::Error, received: u64) -> Self {
        if let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            return Self::insecure(cause);
        }
        match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                Self::broken(&error.to_string())
            }
            // h2 says "broken pipe" when the connection ends under a stream.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe if received == 0 => {
                Self::later(Reason::EmptyReply, error.to_string())
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                Self::later(Reason::Truncated, error.to_string())
            }
            _ if is_local_trouble(error) => Self::local(error.to_string()),
            _ => Self::later(Reason::ConnectionReset, error.to_string()).showing(io_sign(error)),
        }
    }
}

impl From<Failure> for FetchOutcome {
    fn from(Failure { why, detail, retry, wants_http1: _, network: _ }: Failure) -> Self {
        match why {
            Reason::BlockedAddress | Reason::BlockedPort => Self::Refused { why, detail },
            _ => Self::Failed { why, detail, retry },
        }
    }
}

/// Whether an error says that this machine has run out of something.
pub(crate) fn is_local_trouble(error: &io::Error) -> bool {
    const SHORTAGES: [Errno; 6] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::NETDOWN,
    ];
    SHORTAGES.iter().any(|&shortage| is(error, shortage))
}

/// What most failures with this reason show about the network here.
fn network_sign(why: Reason) -> NetworkSign {
    match why {
        // Something came from the server.
        Reason::HeaderTooLarge
        | Reason::DecodeError
        | Reason::UnsupportedEncoding
        | Reason::ProtocolError
        | Reason::ConnectionReset
        | Reason::EmptyReply
        | Reason::Truncated
        | Reason::BadRedirect => NetworkSign::Alive,
        // Silence, and what was never sent. A timeout says that there is no answer now, even if the
        // connection was opened, or the answer begun, some time ago.
        _ => NetworkSign::Unknown,
    }
}

/// What an error of a socket shows about the network here. Routers that report a host as unreachable
/// and a gateway that cannot be found look the same.
fn io_sign(error: &io::Error) -> NetworkSign {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof => NetworkSign::Alive,
        _ => NetworkSign::Unknown,
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn io_cause(error: &hyper::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref::<io::Error>()
}

fn http2_cause(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref::<h2::Error>()
}

/// Whether h2 gave up on a body that comes in very many very small frames. That bound is ours; the
/// server did nothing that HTTP/2 forbids.
fn is_too_finely_cut(error: &h2::Error) -> bool {
    // The library has no better name for it than the text of its farewell.
    error.is_library() && error.to_string().contains("too_many_data_frames")
}

fn io_word(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "closed",
        io::ErrorKind::ConnectionReset => "reset",
        _ => "io",
    }
}

/// One stable word for what is wrong with a TLS server.
fn tls_word(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError as Certificate;
    use rustls::{AlertDescription, Error};
    match error {
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "expired"
        }
        Error::InvalidCertificate(
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
        ) => "not_valid_yet",
        Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => "wrong_host",
        Error::InvalidCertificate(Certificate::UnknownIssuer) => "unknown_issuer",
        Error::InvalidCertificate(Certificate::Revoked) => "revoked",
        Error::InvalidCertificate(_) => "certificate",
        Error::AlertReceived(AlertDescription::ProtocolVersion) | Error::PeerIncompatible(_) => {
            "version"
        }
        Error::AlertReceived(_) => "alert",
        Error::General(_) => "records",
        _ => "handshake",
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Text that may stem from a stranger, made safe for logs and terminals: one line, no control
/// characters, not endless.
fn printable(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    text.chars()
        .take(CHARS_MAX)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_connecting(errno: Errno, to: &str, why: Reason, retry: Retry) {
        let error = io::Error::from(errno);
        let failure = Failure::connecting(&error, to.parse().unwrap());
        assert_eq!((failure.why, failure.retry), (why, retry));
    }

    #[test]
    fn a_shortage_here_is_not_the_fault_of_the_site() {
        // T13, P7.
        for errno in [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS] {
            check_connecting(errno, "8.8.8.8", Reason::LocalTrouble, Retry::NotCounted);
        }
    }

    #[test]
    fn a_machine_without_ipv6_does_not_try_for_ever() {
        check_connecting(Errno::ADDRNOTAVAIL, "2606::1", Reason::Refused, Retry::Later);
        check_connecting(Errno::MFILE, "2606::1", Reason::LocalTrouble, Retry::NotCounted);
    }

    #[test]
    fn nobody_there() {
        check_connecting(Errno::CONNREFUSED, "8.8.8.8", Reason::Refused, Retry::Later);
        check_connecting(Errno::HOSTUNREACH, "8.8.8.8", Reason::Refused, Retry::Later);
        check_connecting(Errno::TIMEDOUT, "8.8.8.8", Reason::TimeoutConnect, Retry::Later);
    }

    /// Who is refused was answered; who has no route was not.
    #[test]
    fn what_failures_show_about_the_network() {
        let sign = |errno: Errno, to: &str| {
            Failure::connecting(&io::Error::from(errno), to.parse().unwrap()).network
        };
        assert_eq!(sign(Errno::CONNREFUSED, "8.8.8.8"), NetworkSign::Alive);
        assert_eq!(sign(Errno::CONNRESET, "8.8.8.8"), NetworkSign::Alive);
        assert_eq!(sign(Errno::TIMEDOUT, "8.8.8.8"), NetworkSign::Unknown);
        assert_eq!(sign(Errno::HOSTUNREACH, "8.8.8.8"), NetworkSign::Unknown);
        assert_eq!(sign(Errno::NETUNREACH, "8.8.8.8"), NetworkSign::Down);
        assert_eq!(sign(Errno::NETUNREACH, "2606::1"), NetworkSign::Unknown);
        let tls = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(Failure::tls(&tls).network, NetworkSign::Alive);
        let cut = io::Error::from(Errno::CONNRESET);
        assert_eq!(Failure::tls(&cut).network, NetworkSign::Alive);
        assert_eq!(Failure::reading(&cut, 0).network, NetworkSign::Alive);
        let no_route = io::Error::from(Errno::NETUNREACH);
        assert_eq!(Failure::reading(&no_route, 0).network, NetworkSign::Unknown);
        let silence = Failure::later(Reason::TimeoutFirstByte, "");
        assert_eq!(silence.network, NetworkSign::Unknown);
        let refused =
            Failure::connecting(&io::Error::from(Errno::CONNREFUSED), [127, 0, 0, 1].into());
        assert_eq!(refused.of_proxy().network, NetworkSign::Unknown, "it is no answer of the web");
    }

    #[test]
    fn details_are_one_short_printable_line() {
        let failure =
            Failure::never(Reason::ProtocolError, format!("\x1b[2J\n{}", "x".repeat(999)));
        assert_eq!(failure.detail.chars().count(), 300);
        assert!(!failure.detail.contains(char::is_control));
    }

    #[test]
    fn the_guard_refuses_and_the_web_fails() {
        let refused = Failure::never(Reason::BlockedPort, "");
        assert!(matches!(FetchOutcome::from(refused), FetchOutcome::Refused { .. }));
        let failed = Failure::later(Reason::Refused, "");
        assert!(matches!(FetchOutcome::from(failed), FetchOutcome::Failed { .. }));
    }
}
