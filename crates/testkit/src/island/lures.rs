//! A web that tries everything to be taken inside: every spelling of an internal address, in every
//! place where a crawler finds addresses.

use std::net::{IpAddr, Ipv4Addr};

use crate::answer::{FakeAnswer, FakeRequest, Website};

/// Internal addresses as they can stand in a URL.
const SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1:8080",
    "127.255.0.9",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "017700000001",
    "0177.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "%31%32%37.0.0.1",
    "user:word@127.0.0.1",
    "localhost",
    "localhost:8080",
    "0.0.0.0",
    "0",
    "10.0.0.5",
    "10.0.0.5:6379",
    "10.0.0.5:22",
    "172.16.0.5",
    "172.31.255.5",
    "192.168.1.5",
    "100.64.0.5",
    "100.100.100.200",
    "169.254.169.254",
    "2852039166",
    "192.0.0.192",
    "168.63.129.16",
    "192.0.2.5",
    "198.18.0.5",
    "198.51.100.5",
    "203.0.113.5",
    "240.0.0.5",
    "[::1]",
    "[::]",
    "[fd00:ec2::254]",
    "[fc00::5]",
    "[fe80::5]",
    "[fec0::5]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a00:5]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::10.0.0.5]",
    "[2002:7f00:1::1]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:7f00:1::1]",
    "[2001:db8::5]",
    "[100::5]",
    "metadata.google.internal",
    "alias.test",
];

/// Internal addresses that names of this web have: `name-0.test` the first one, and so on.
const NAMED: &[&str] = &[
    "127.0.0.1",
    "10.0.0.5",
    "192.168.1.5",
    "169.254.169.254",
    "100.64.0.5",
    "::1",
    "fd00:ec2::254",
    "fe80::5",
    "::ffff:10.0.0.5",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::1",
];

/// Pages in a row on the host whose name changes its address: more than its answer is believed for.
const CHAIN_PAGES: usize = 9;

/// Kinds of redirects.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// The web, and what it is after.
pub(super) struct Lures {
    /// Everything internal that it leads to, as it stands in a URL.
    authorities: Vec<String>,
}

impl Lures {
    pub(super) fn new() -> Self {
        let spelled = SPELLINGS.iter().map(|&spelling| spelling.to_owned());
        let named = (0..NAMED.len()).map(|number| format!("name-{number}.test"));
        Self { authorities: spelled.chain(named).collect() }
    }

    /// The address of a name at its `asked`-th lookup.
    pub(super) fn addresses(name: &str, asked: usize) -> Vec<IpAddr> {
        let inner = |text: &str| text.parse().expect("written down here");
        if name == "metadata.google.internal" {
            return vec![inner("169.254.169.254")];
        }
        let Some(label) = name.strip_suffix(".test") else { return Vec::new() };
        if let Some(number) = label.strip_prefix("name-") {
            let named = number.parse().ok().and_then(|number: usize| NAMED.get(number));
            return named.map(|text| inner(text)).into_iter().collect();
        }
        let own = IpAddr::V4(public_address(label));
        match label {
            "inside" | "alias" => vec![inner("127.0.0.1")],
            "mixed" => vec![inner("10.0.0.5"), own, inner("::1")],
            "turncoat" if asked > 0 => vec![inner("127.0.0.1"), inner("::1")],
            _ => vec![own],
        }
    }

    /// Where a crawl of everything starts.
    pub(super) fn seeds(&self) -> Vec<String> {
        let mut hosts: Vec<String> =
            ["links", "two-hops", "meta", "header", "maps", "mixed", "turncoat"]
                .map(str::to_owned)
                .to_vec();
        hosts.extend(STATUSES.map(|status| format!("moved-{status}")));
        for number in 0..self.authorities.len() {
            hosts.push(format!("base-{number}"));
            hosts.push(format!("robots-{number}"));
        }
        hosts.into_iter().map(|host| format!("http://{host}.test/")).collect()
    }

    /// Internal addresses as start URLs.
    pub(super) fn inner_seeds(&self) -> Vec<String> {
        (0..self.authorities.len()).map(|number| self.url("seed", number)).collect()
    }

    /// Marks of the URLs that a crawl of everything must have refused, by way and number.
    pub(super) fn marks(&self) -> Vec<String> {
        // What only a header says is not followed, and so not refused either.
        let mut ways: Vec<String> =
            ["link", "two-hops", "meta", "entry", "feed", "base"].map(str::to_owned).to_vec();
        ways.extend(STATUSES.map(|status| format!("moved-{status}")));
        let numbers = 0..self.authorities.len();
        let marks = ways.iter().flat_map(|way| numbers.clone().map(move |n| mark(way, n)));
        marks.chain(numbers.clone().map(|number| format!("//robots-{number}.test/"))).collect()
    }

    fn url(&self, way: &str, number: usize) -> String {
        format!("http://{}{}", self.authorities[number], mark(way, number))
    }

    fn urls(&self, way: &str) -> impl Iterator<Item = String> {
        (0..self.authorities.len()).map(move |number| self.url(way, number))
    }

    fn answer(&self, label: &str, path: &str) -> FakeAnswer {
        if let Some(number) = number_in(label, "robots-") {
            return match path {
                "/robots.txt" => FakeAnswer::redirect(302, self.url("robots", number)),
                _ => FakeAnswer::html("the rules of this host are unknown"),
            };
        }
        if let ("/robots.txt", true) = (path, label != "maps") {
            return FakeAnswer::not_found();
        }
        if let Some(number) = number_in(label, "base-") {
            let base = self.url("base", number);
            return FakeAnswer::html(format!("<base href=\"{base}\"><a href=\"?x\">x</a>"));
        }
        match label {
            "maps" => self.map(path),
            "links" if path == "/" => FakeAnswer::html(links(self.urls("link"))),
            "turncoat" => chain(path),
            "mixed" => FakeAnswer::html("one of my addresses is public"),
            _ => self.lead(label, path),
        }
    }

    /// Hosts with a page of links to themselves, each of which leads inside.
    fn lead(&self, label: &str, path: &str) -> FakeAnswer {
        if path == "/" {
            let steps = (0..self.authorities.len()).map(|number| format!("/to/{number}"));
            return FakeAnswer::html(links(steps));
        }
        let (step, number) = match (number_in(path, "/to/"), number_in(path, "/hop/")) {
            (Some(number), _) => ("to", number),
            (_, Some(number)) => ("hop", number),
            _ => return FakeAnswer::not_found(),
        };
        if number >= self.authorities.len() {
            return FakeAnswer::not_found();
        }
        let target = self.url(label, number);
        match (label, step) {
            ("two-hops", "to") => FakeAnswer::redirect(302, format!("/hop/{number}")),
            ("two-hops", _) => FakeAnswer::redirect(307, target),
            ("meta", _) => FakeAnswer::html(format!(
                "<meta http-equiv=refresh content=\"0; url={target}\"><p>Wait.</p>"
            )),
            ("header", _) => {
                let mut answer = FakeAnswer::html("<p>Wait.</p>");
                answer.headers.push(("refresh", format!("0; url={target}").into()));
                answer.headers.push(("link", format!("<{target}>; rel=preload").into()));
                answer.headers.push(("alt-svc", "h2=\"127.0.0.1:8080\"".into()));
                answer
            }
            _ => match number_in(label, "moved-") {
                Some(status) => FakeAnswer::redirect(u16::try_from(status).unwrap_or(302), target),
                None => FakeAnswer::not_found(),
            },
        }
    }

    /// A host whose sitemaps lead inside, in all ways that sitemaps can.
    fn map(&self, path: &str) -> FakeAnswer {
        let list = |way: &str, open: &str, close: &str| -> String {
            self.urls(way).map(|url| format!("{open}{url}{close}")).collect()
        };
        match path {
            "/robots.txt" => FakeAnswer::ok(
                "text/plain",
                list("file", "Sitemap: ", "\n")
                    + "Sitemap: /entries.xml\nSitemap: /index.xml\nSitemap: /feed.xml\n",
            ),
            "/entries.xml" => {
                let entries = list("entry", "<url><loc>", "</loc></url>");
                FakeAnswer::ok("application/xml", format!("<urlset>{entries}</urlset>"))
            }
            "/index.xml" => {
                let entries = list("indexed", "<sitemap><loc>", "</loc></sitemap>");
                FakeAnswer::ok("application/xml", format!("<sitemapindex>{entries}</sitemapindex>"))
            }
            "/feed.xml" => {
                let items = list("feed", "<item><link>", "</link></item>");
                let feed = format!("<rss><channel>{items}</channel></rss>");
                FakeAnswer::ok("application/rss+xml", feed)
            }
            _ => FakeAnswer::html("my maps lead inside"),
        }
    }
}

impl Website for Lures {
    fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        host.strip_suffix(".test").map(public_address)
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        let label = request.host.strip_suffix(".test")?;
        Some(self.answer(label, request.target))
    }
}

/// Whether an address belongs to this web.
pub(super) fn is_public(address: IpAddr) -> bool {
    matches!(address.to_canonical(), IpAddr::V4(address) if address.octets()[..2] == [93, 184])
}

/// Hosts have addresses of their own, so that the delay of one is not the delay of all.
fn public_address(label: &str) -> Ipv4Addr {
    let hash =
        label.bytes().fold(7_u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(u16::from(byte)));
    let [high, low] = hash.to_be_bytes();
    Ipv4Addr::new(93, 184, high, low)
}

fn mark(way: &str, number: usize) -> String {
    format!("/lure/{way}/{number}")
}

fn number_in(text: &str, before: &str) -> Option<usize> {
    text.strip_prefix(before)?.parse().ok()
}

/// A page that links to these in all the ways of HTML.
fn links(urls: impl Iterator<Item = String>) -> String {
    let mut page = String::from("<!doctype html><title>Links</title>");
    for url in urls {
        page += &format!(
            "<a href=\"{url}\">x</a><img src=\"{url}\" srcset=\"{url} 2x\"><iframe src=\"{url}\">\
             </iframe><link rel=icon href=\"{url}\"><form action=\"{url}\"></form>\n"
        );
    }
    page
}

fn chain(path: &str) -> FakeAnswer {
    let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
    if number >= CHAIN_PAGES {
        return FakeAnswer::html("the end");
    }
    FakeAnswer::html(format!("<a href=\"/{}\">next</a>", number + 1))
}
