//! [`StartUrls`]: reads the URLs that a crawl starts from, wherever the user wrote them. It judges
//! their form only; whether they can be reached is found out by asking.

use std::collections::HashSet;
use std::io::{self, BufRead};
use std::net::IpAddr;

use telusur_model::{PageUrl, URL_BYTES_MAX, UrlKey, UrlKeyer};

use crate::lines::read_line;
use crate::message::{Code, Message, shown};
use crate::settings::{Opening, address_of};

/// Start URLs of one crawl. They are kept with the crawl in one piece, about 100 MB at this number.
const START_URLS_MAX: usize = 1_000_000;
/// Bad lines of a list that are shown; the others are only counted.
const BAD_LINES_SHOWN_MAX: usize = 5;
/// Longest line of a list that is read in full; no URL is longer.
const LINE_BYTES_MAX: usize = URL_BYTES_MAX + 2;

/// Collects start URLs, each page once.
#[derive(Debug)]
pub struct StartUrls<'a> {
    /// What is worth telling the user.
    pub notes: Vec<String>,
    /// What the user should look at.
    pub warnings: Vec<String>,
    openings: &'a [Opening],
    assume_https: bool,
    keyer: UrlKeyer,
    seen: HashSet<UrlKey>,
    /// The URLs so far.
    pub urls: Vec<PageUrl>,
}

impl<'a> StartUrls<'a> {
    /// Starts with none. `assume_https` completes `example.com` to `https://example.com`.
    pub fn new(openings: &'a [Opening], assume_https: bool, keep_tracking: bool) -> Self {
        Self {
            notes: Vec::new(),
            warnings: Vec::new(),
            openings,
            assume_https,
            keyer: UrlKeyer { seed: 0, drop_tracking: !keep_tracking },
            seen: HashSet::new(),
            urls: Vec::new(),
        }
    }

    /// Adds a URL that the user named; a bad one is an error.
    pub fn add(&mut self, text: &str) -> Result<(), Message> {
        let url = match self.read(text) {
            Err(message) if message.code == Code::NoScheme && self.assume_https => {
                let url = self.read(&with_https(text).unwrap_or_default())?;
                self.notes.push(format!("{} is taken as {url}", shown(text)));
                url
            }
            other => other?,
        };
        self.push(url)
    }

    /// Adds the URLs of a list, one per line. Bad lines are counted and passed over.
    pub fn add_list(&mut self, name: &str, mut list: impl BufRead) -> Result<(), Message> {
        let refuse = |error: io::Error| {
            Message::new(Code::StartList, format!("cannot read {}: {error}", shown(name)))
        };
        let (mut line_no, mut bad_count) = (0, 0);
        let mut line = Vec::new();
        while read_line(&mut list, &mut line, LINE_BYTES_MAX).map_err(refuse)? {
            line_no += 1;
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match self.read(text) {
                Ok(url) => self.push(url)?,
                Err(message) => {
                    bad_count += 1;
                    if bad_count <= BAD_LINES_SHOWN_MAX {
                        let name = shown(name);
                        self.warnings.push(format!("{name}:{line_no}: {}", message.what));
                    }
                }
            }
        }
        if bad_count > 0 {
            let are = if bad_count == 1 { "line was" } else { "lines were" };
            self.warnings.push(format!("{}: {bad_count} bad {are} passed over", shown(name)));
        }
        Ok(())
    }

    /// The URLs; having none is an error.
    pub fn finish(self) -> Result<Vec<PageUrl>, Message> {
        if self.urls.is_empty() {
            return Err(Message::new(Code::NoStartUrl, "there is no start URL")
                .hint("Name one: telusur crawl https://example.com"));
        }
        Ok(self.urls)
    }

    fn push(&mut self, url: PageUrl) -> Result<(), Message> {
        if self.urls.len() >= START_URLS_MAX {
            let what = format!("more than {START_URLS_MAX} start URLs were given");
            return Err(Message::new(Code::TooManyStartUrls, what)
                .hint("Split the list and start several crawls"));
        }
        if self.seen.insert(self.keyer.key(&url)) {
            self.urls.push(url);
        }
        Ok(())
    }

    /// Reads one URL and checks that it may be asked.
    pub fn read(&self, text: &str) -> Result<PageUrl, Message> {
        let url = PageUrl::parse(text).map_err(|error| match with_https(text) {
            Some(completed) => {
                Message::new(Code::NoScheme, format!("\"{}\" has no scheme", shown(text)))
                    .hint(format!("Did you mean {} ?", shown(&completed)))
            }
            None => Message::new(
                Code::BadUrl,
                format!("\"{}\" is not a URL that can be crawled: {error}", shown(text)),
            )
            .hint("Write it like https://example.com/page"),
        })?;
        self.check_address(&url)?;
        Ok(url)
    }

    /// Tells early what the address guard would refuse later. The guard knows every special range;
    /// this knows those that people type.
    fn check_address(&self, url: &PageUrl) -> Result<(), Message> {
        let host = url.host_str();
        let Some(kind) = private_kind(host) else { return Ok(()) };
        if self.openings.iter().any(|opening| opening.admits(host, url.port())) {
            return Ok(());
        }
        let opening = match address_of(host) {
            Some(IpAddr::V4(address)) => format!("{address}/32"),
            Some(IpAddr::V6(address)) => format!("{address}/128"),
            None => format!("{host}:{}", url.port()),
        };
        Err(Message::new(Code::PrivateAddress, format!("{host} is a {kind} address"))
            .hint(format!("Allow it for this crawl: --allow-private {opening}")))
    }
}

/// The word for a host that is not on the public internet.
fn private_kind(host: &str) -> Option<&'static str> {
    if host == "localhost" || host.ends_with(".localhost") {
        return Some("loopback");
    }
    match address_of(host)?.to_canonical() {
        IpAddr::V4(address) if address.is_loopback() => Some("loopback"),
        IpAddr::V4(address) if address.is_private() => Some("private"),
        IpAddr::V4(address) if address.is_link_local() => Some("link-local"),
        IpAddr::V4(address) if address.is_unspecified() => Some("non-public"),
        IpAddr::V6(address) if address.is_loopback() => Some("loopback"),
        IpAddr::V6(address) if address.is_unique_local() => Some("private"),
        IpAddr::V6(address) if address.is_unicast_link_local() => Some("link-local"),
        IpAddr::V6(address) if address.is_unspecified() => Some("non-public"),
        _ => None,
    }
}

/// The URL that a text without scheme probably means.
fn with_https(text: &str) -> Option<String> {
    let text = text.trim();
    // `mailto:a@b.org` has a scheme, `localhost:8080` has none: a port is a number.
    let has_scheme = text.split_once(':').is_some_and(|(before, after)| {
        !before.contains('/') && !after.starts_with(|c: char| c.is_ascii_digit())
    });
    let bare = text.trim_start_matches('/');
    let looks_like_host = bare.contains('.') || bare.starts_with("localhost");
    let completed = format!("https://{bare}");
    let is_url = PageUrl::parse(&completed).is_ok();
    (!has_scheme && looks_like_host && is_url).then_some(completed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<PageUrl, Message> {
        let mut start = StartUrls::new(&[], false, false);
        start.add(text)?;
        Ok(start.finish()?.remove(0))
    }

    #[track_caller]
    fn refused(text: &str, code: Code, line: &str) {
        let message = one(text).unwrap_err();
        assert_eq!((message.code, message.to_string().as_str()), (code, line));
    }

    #[test]
    fn a_missing_scheme_is_pointed_out() {
        refused(
            "example.com",
            Code::NoScheme,
            "\"example.com\" has no scheme. Did you mean https://example.com ?",
        );
        for text in ["example.com:8080/x", "localhost:8080", "//example.com/", "a.org/?u=http://b"]
        {
            assert_eq!(one(text).unwrap_err().code, Code::NoScheme, "{text}");
        }
    }

    #[test]
    fn a_missing_scheme_is_assumed_on_a_terminal() {
        let mut start = StartUrls::new(&[], true, false);
        start.add("example.com/x").unwrap();
        assert_eq!(start.notes, ["example.com/x is taken as https://example.com/x"]);
        assert_eq!(start.finish().unwrap()[0].as_str(), "https://example.com/x");
        let mut start = StartUrls::new(&[], true, false);
        assert_eq!(start.add("192.168.1.1").unwrap_err().code, Code::PrivateAddress);
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in
            ["", " ", "#", "?", "http:", "://x", "🦀", "mailto:a@b.org", "file:///etc/passwd"]
        {
            assert_eq!(one(text).unwrap_err().code, Code::BadUrl, "{text:?}");
        }
        let long = format!("http://a.org/{}", "x".repeat(2_000_000));
        let message = one(&long).unwrap_err();
        assert!(message.to_string().len() < 500, "{message}");
    }

    #[test]
    fn private_addresses_need_an_exception() {
        refused(
            "http://10.0.0.5/",
            Code::PrivateAddress,
            "10.0.0.5 is a private address. Allow it for this crawl: --allow-private 10.0.0.5/32",
        );
        refused(
            "http://localhost:8080/",
            Code::PrivateAddress,
            "localhost is a loopback address. Allow it for this crawl: --allow-private localhost:8080",
        );
        for host in [
            "2130706433",
            "0x7f.1",
            "169.254.169.254",
            "[::1]",
            "[fd00::1]",
            "0.0.0.0",
            "[::ffff:10.0.0.1]",
            "[fe80::1]",
        ] {
            let message = one(&format!("http://{host}/")).unwrap_err();
            assert_eq!(message.code, Code::PrivateAddress, "{host}");
        }
        let openings = [Opening::parse("10.0.0.0/8").unwrap()];
        let mut start = StartUrls::new(&openings, false, false);
        start.add("http://10.0.0.5/").unwrap();
        assert!(start.add("http://192.168.0.5/").is_err());
        assert!(one("http://93.184.216.34/").is_ok());
    }

    #[test]
    fn lists_are_read_line_by_line() {
        let list = "\u{feff}http://a.org/\r\n\n# comment\nhttp://a.org/#again\n  http://b.org/  \n\
                    nonsense\nhttp://a.org/?utm_source=x\nhttp://c.org/";
        let mut start = StartUrls::new(&[], false, false);
        start.add_list("list.txt", list.as_bytes()).unwrap();
        assert_eq!(
            start.warnings,
            [
                "list.txt:6: \"nonsense\" is not a URL that can be crawled: relative URL without a \
                 base",
                "list.txt: 1 bad line was passed over"
            ]
        );
        let urls: Vec<_> = start.finish().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(urls, ["http://a.org/", "http://b.org/", "http://c.org/"]);
    }

    #[test]
    fn of_many_bad_lines_the_first_are_shown() {
        let list = format!("{}\n\u{1b}[2J\n{}", "x\n".repeat(1_000), "y".repeat(100_000));
        let mut start = StartUrls::new(&[], false, false);
        start.add_list("l", list.as_bytes()).unwrap();
        assert_eq!(start.warnings.len(), BAD_LINES_SHOWN_MAX + 1);
        assert_eq!(start.warnings[5], "l: 1002 bad lines were passed over");
        assert_eq!(start.finish().unwrap_err().code, Code::NoStartUrl);
    }

    #[test]
    fn bytes_that_are_no_text_are_a_bad_line() {
        let mut start = StartUrls::new(&[], false, false);
        start.add_list("l", &b"http://\xff\xfe/\nhttp://a.org/"[..]).unwrap();
        assert_eq!(start.warnings.len(), 2);
        assert_eq!(start.finish().unwrap().len(), 1);
    }
}
