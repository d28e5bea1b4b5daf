//! [`Proxy`]: requests through a proxy, and why the guard still holds (`docs/decisions/0004`).
//!
//! The proxy's own address was named by the operator, so it may be private; that opens its host and
//! port for us as a proxy and nothing else: a page that links there is judged like any other link.
//!
//! A proxy would reach inside for us as readily as outside, so targets are judged before it hears of
//! them. Names are looked up here, and a name that has no address here is not asked for. For `https`,
//! and for everything through SOCKS5, the proxy is told the checked *address* to connect to, never the
//! name: a second lookup of its own could lead elsewhere. Only plain `http` through an HTTP proxy has
//! to carry the name (the request line is all that such a proxy goes by); there every address of the
//! name must be allowed, not just one.

use std::fmt;
use std::net::SocketAddr;

use http::HeaderValue;
use telusur_model::{PageUrl, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::basic::basic_authorization;
use crate::failure::Failure;
use crate::guard::{AddressGuard, CheckedAddress};

#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    kind: ProxyKind,
    host: String,
    port: u16,
    user: String,
    password: String,
    /// Lets through the proxy's own address, and only that.
    guard: AddressGuard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ProxyKind {
    Http,
    Socks5,
}

/// The answer of a proxy is short; a longer one is not the answer of a proxy.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

impl Proxy {
    /// Reads `http://user:password@host:port` or `socks5://…`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text.trim()).ok()?;
        let (kind, default_port) = match url.scheme() {
            "http" => (ProxyKind::Http, 80),
            "socks5" => (ProxyKind::Socks5, 1080),
            _ => return None,
        };
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none();
        if !is_bare {
            return None;
        }
        // Hosts of other schemes are not normalised by `url`; as a page's host they are.
        let page = PageUrl::parse(&format!("http://{}/", url.host_str()?)).ok()?;
        let host = page.host_str().to_owned();
        let port = url.port().unwrap_or(default_port);
        let decoded = |part: &str| {
            percent_encoding::percent_decode_str(part).decode_utf8().ok().map(String::from)
        };
        let user = decoded(url.username())?;
        let password = decoded(url.password().unwrap_or_default())?;
        let guard = AddressGuard::new(&[format!("{host}:{port}")]).ok()?;
        Some(Self { kind, host, port, user, password, guard })
    }

    /// Who has to be looked up to reach it, if it is not an address already.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Lets one of the proxy's addresses through.
    pub(crate) fn check(&self, address: std::net::IpAddr) -> Result<CheckedAddress, Failure> {
        self.guard.check(&self.host, SocketAddr::new(address, self.port))
    }

    /// Whether the proxy itself reads the request for this URL, instead of a tunnel's other end.
    pub(crate) fn reads(&self, url: &PageUrl) -> bool {
        self.kind == ProxyKind::Http && !url.is_secure()
    }

    /// The `Proxy-Authorization` header.
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        if self.user.is_empty() && self.password.is_empty() {
            return None;
        }
        Some(basic_authorization(&self.user, &self.password))
    }

    /// Makes the proxy connect to a checked address. What is sent on the stream from then on, the
    /// target reads.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut TcpStream,
        target: CheckedAddress,
    ) -> Result<(), Failure> {
        match self.kind {
            ProxyKind::Http => self.http_tunnel(stream, target).await,
            ProxyKind::Socks5 => self.socks5_tunnel(stream, target).await,
        }
    }

    async fn http_tunnel(
        &self,
        stream: &mut TcpStream,
        target: CheckedAddress,
    ) -> Result<(), Failure> {
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = self.authorization() {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await.map_err(broken)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // Byte by byte, because what follows the head is not the proxy's.
            head.push(stream.read_u8().await.map_err(broken)?);
            if head.len() > ANSWER_BYTES_MAX {
                return Err(refused("its answer does not end"));
            }
        }
        match connect_status(&head) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(refused("it asks for a user name and password (407)")),
            // These are about the target: the proxy could not reach it just now.
            Some(status @ (500 | 502..=504)) => {
                let detail = format!("the proxy could not reach {target}: status {status}");
                Err(Failure::later(Reason::ProxyError, detail))
            }
            Some(status) => Err(refused(&format!("status {status} for {target}"))),
            None => Err(refused("it does not speak HTTP")),
        }
    }

    /// RFC 1928, with the user name and password of RFC 1929.
    async fn socks5_tunnel(
        &self,
        stream: &mut TcpStream,
        target: CheckedAddress,
    ) -> Result<(), Failure> {
        const VERSION: u8 = 5;
        const NO_AUTHENTICATION: u8 = 0;
        const USER_AND_PASSWORD: u8 = 2;
        let method = match self.authorization() {
            None => NO_AUTHENTICATION,
            Some(_) => USER_AND_PASSWORD,
        };
        stream.write_all(&[VERSION, 1, method]).await.map_err(broken)?;
        if read_array(stream).await? != [VERSION, method] {
            return Err(refused("it does not take our kind of authentication"));
        }
        if method == USER_AND_PASSWORD {
            self.socks5_log_in(stream).await?;
        }
        stream.write_all(&socks5_request(target.socket())).await.map_err(broken)?;
        let [version, reply, _, address_kind] = read_array(stream).await?;
        if version != VERSION {
            return Err(refused("it does not speak SOCKS5"));
        }
        match reply {
            0 => {}
            // Unreachable, refused, timed out: it may be otherwise later.
            1 | 3..=6 => {
                let detail = format!("the proxy could not reach {target}: reply {reply}");
                return Err(Failure::later(Reason::ProxyError, detail));
            }
            reply => return Err(refused(&format!("reply {reply} for {target}"))),
        }
        // Where it connected from: read over, because the tunnel begins behind it.
        let address_bytes = match address_kind {
            1 => 4,
            3 => usize::from(stream.read_u8().await.map_err(broken)?),
            4 => 16,
            _ => return Err(refused("it does not speak SOCKS5")),
        };
        let mut rest = vec![0; address_bytes + 2];
        stream.read_exact(&mut rest).await.map_err(broken)?;
        Ok(())
    }

    async fn socks5_log_in(&self, stream: &mut TcpStream) -> Result<(), Failure> {
        let mut message = vec![1];
        for part in [&self.user, &self.password] {
            let length = u8::try_from(part.len())
                .map_err(|_| refused("the user name or password is longer than SOCKS5 allows"))?;
            message.push(length);
            message.extend_from_slice(part.as_bytes());
        }
        stream.write_all(&message).await.map_err(broken)?;
        match read_array(stream).await? {
            [_, 0] => Ok(()),
            _ => Err(refused("it does not take the user name and password")),
        }
    }
}

fn socks5_request(target: SocketAddr) -> Vec<u8> {
    let mut request = vec![5, 1, 0];
    match target {
        SocketAddr::V4(target) => {
            request.push(1);
            request.extend_from_slice(&target.ip().octets());
        }
        SocketAddr::V6(target) => {
            request.push(4);
            request.extend_from_slice(&target.ip().octets());
        }
    }
    request.extend_from_slice(&target.port().to_be_bytes());
    request
}

async fn read_array<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map_err(broken)?;
    Ok(bytes)
}

/// `HTTP/1.1 200 Connection established`.
fn connect_status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let mut words = line.split(' ');
    let is_http = words.next()?.starts_with("HTTP/1.");
    let status = words.next()?.parse().ok()?;
    is_http.then_some(status)
}

fn refused(detail: &str) -> Failure {
    Failure::never(Reason::ProxyError, format!("the proxy refused: {detail}"))
}

fn broken(error: std::io::Error) -> Failure {
    Failure::later(Reason::ProxyError, format!("the connection to the proxy broke: {error}"))
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} proxy at {}:{}", self.kind, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        let found = Proxy::parse(text).map(|proxy| format!("{proxy:?}"));
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn what_is_a_proxy() {
        check("http://proxy.example:3128", Some("Http proxy at proxy.example:3128"));
        check("http://Proxy.Example/", Some("Http proxy at proxy.example:80"));
        check("http://[::1]:8080", Some("Http proxy at [::1]:8080"));
        check("socks5://127.0.0.1", Some("Socks5 proxy at 127.0.0.1:1080"));
        for text in
            ["", "proxy:3128", "https://proxy/", "socks5h://proxy", "http://proxy/x", "ftp://p"]
        {
            check(text, None);
        }
    }

    #[test]
    fn credentials_are_read_and_not_shown() {
        let proxy = Proxy::parse("http://me:s3%40cret@proxy.example:3128").unwrap();
        assert_eq!((&*proxy.user, &*proxy.password), ("me", "s3@cret"));
        assert!(!format!("{proxy:?}").contains("s3"));
        assert!(proxy.authorization().unwrap().is_sensitive());
        assert_eq!(Proxy::parse("http://proxy.example").unwrap().authorization(), None);
    }

    #[test]
    fn only_its_own_address_is_let_through() {
        let proxy = Proxy::parse("http://127.0.0.1:22").unwrap();
        assert!(proxy.check("127.0.0.1".parse().unwrap()).is_ok());
        assert!(proxy.check("127.0.0.2".parse().unwrap()).is_err());
        let named = Proxy::parse("http://proxy:3128").unwrap();
        assert!(named.check("10.0.0.1".parse().unwrap()).is_ok());
        assert!(named.guard.check("other", "10.0.0.1:3128".parse().unwrap()).is_err());
    }

    #[test]
    fn statuses_of_proxies() {
        assert_eq!(connect_status(b"HTTP/1.1 200 OK\r\n\r\n"), Some(200));
        assert_eq!(connect_status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        assert_eq!(connect_status(b"SSH-2.0-x\r\n\r\n"), None);
        assert_eq!(connect_status(b"\xff\r\n\r\n"), None);
    }
}
