//! [`FakeWeb`]: a synthetic web of any size. Every page is computed from the seed when it is asked
//! for, and nothing is kept: ten million pages cost no memory.

mod page_html;
mod shape;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use telusur_model::PageUrl;

use self::page_html::{Hrefs, PageParts, PageWriter, push_number};
use self::shape::{Shape, Target};
use crate::answer::{FakeAnswer, FakeRequest, Website};
use crate::random::Dice;

pub use self::shape::PageAt;
pub use self::spec::{DelayRange, FakeWebSpec, FaultShares, PageCounts, SpecError};

/// A web that is a pure function of its spec. Page `n` of a host lives at `/p/n`, and at `/item/n`
/// unless that is a gap.
#[derive(Clone, Debug)]
pub struct FakeWeb {
    spec: FakeWebSpec,
    shape: Shape,
    writer: Arc<PageWriter>,
    naming: Naming,
    /// Saved pages that are served in place of made ones, in turn.
    bodies: Arc<[Bytes]>,
}

/// How hosts are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// `host-7.test`, a name that no resolver knows.
    Names,
    /// `127.1.0.8:PORT`, where a server can listen.
    Loopback { port: u16 },
}

impl FakeWeb {
    /// The web of this spec, with hosts called `host-0.test`, `host-1.test` …
    pub fn new(spec: FakeWebSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let shape = Shape::new(&spec);
        let writer = Arc::new(PageWriter::new(spec.seed));
        Ok(Self { spec, shape, writer, naming: Naming::Names, bodies: Arc::default() })
    }

    /// The same web with hosts called by loopback addresses and this port.
    pub fn on_port(&self, port: u16) -> Self {
        Self { naming: Naming::Loopback { port }, ..self.clone() }
    }

    /// The same web with these pages in place of made ones, one after the other and again from the first.
    /// Their links lead elsewhere: no page leads to another.
    pub fn with_bodies(&self, bodies: Vec<Vec<u8>>) -> Self {
        Self { bodies: bodies.into_iter().map(Bytes::from).collect(), ..self.clone() }
    }

    /// What it looks like.
    pub fn spec(&self) -> &FakeWebSpec {
        &self.spec
    }

    /// Pages of one host.
    pub fn pages_of(&self, host: usize) -> u64 {
        self.shape.pages_of(host)
    }

    /// Pages of all hosts.
    pub fn pages_total(&self) -> u64 {
        self.shape.pages_total()
    }

    /// Page 0 of every host: from these, all pages are found.
    pub fn seeds(&self) -> Vec<PageUrl> {
        (0..self.spec.hosts).map(|host| self.url(PageAt { host, page: 0 })).collect()
    }

    /// Every page, host by host.
    pub fn urls(&self) -> impl Iterator<Item = PageUrl> {
        (0..self.spec.hosts)
            .flat_map(|host| (0..self.pages_of(host)).map(move |page| PageAt { host, page }))
            .map(|at| self.url(at))
    }

    /// The address of a page.
    pub fn url(&self, at: PageAt) -> PageUrl {
        let text = format!("http://{}/p/{}", self.host_name(at.host), at.page);
        PageUrl::parse(&text).expect("made from a name, a port and a number")
    }

    /// What stands between `http://` and the path of a host's URLs.
    pub fn host_name(&self, host: usize) -> String {
        let mut name = String::new();
        self.push_host_name(&mut name, host);
        name
    }

    fn push_host_name(&self, text: &mut String, host: usize) {
        match self.naming {
            Naming::Names => {
                text.push_str("host-");
                push_number(text, host as u64);
                text.push_str(".test");
            }
            Naming::Loopback { port } => {
                let [a, b, c, d] = host_address(host).octets();
                for (octet, end) in [(a, "."), (b, "."), (c, "."), (d, ":")] {
                    push_number(text, u64::from(octet));
                    text.push_str(end);
                }
                push_number(text, u64::from(port));
            }
        }
    }

    /// The host that goes by this name.
    pub fn host_index(&self, name: &str) -> Option<usize> {
        let host = match self.naming {
            Naming::Names => {
                page_number(name.strip_prefix("host-")?.strip_suffix(".test")?)?.try_into().ok()?
            }
            Naming::Loopback { port } => {
                let (address, own_port) = name.split_once(':')?;
                if own_port.parse() != Ok(port) {
                    return None;
                }
                host_at(address.parse().ok()?)?
            }
        };
        (host < self.spec.hosts).then_some(host)
    }

    /// What the host says to this path, once a passing fault has passed.
    pub fn answer(&self, host: usize, path: &str) -> FakeAnswer {
        let answer = self.answer_at_once(host, path);
        let number = page_number_in(path).unwrap_or(0);
        let range = self.spec.host_delays_ms.get(&host).unwrap_or(&self.spec.delay_ms);
        answer.after(range.pick(&mut Dice::of(&[self.spec.seed, DELAY, host as u64, number])))
    }

    /// What the host says to the first request for this path, if that is not the usual answer.
    pub fn first_answer(&self, host: usize, path: &str) -> Option<FakeAnswer> {
        let faults = &self.spec.faults;
        if faults.error_once == 0.0 && faults.reset_once == 0.0 {
            return None;
        }
        let (page, is_item) = match path.strip_prefix(ITEM_ADDRESS) {
            Some(number) => (page_number(number)?, true),
            None => (page_number(path.strip_prefix("/p/")?)?, false),
        };
        let is_gap = is_item && self.is_gap(PageAt { host, page });
        if page >= self.pages_of(host) || is_gap {
            return None;
        }
        let mut dice = Dice::of(&[self.spec.seed, PASSING_FAULT, host as u64, page]);
        if dice.chance(faults.error_once) {
            Some(FakeAnswer::plain(500, "this will pass\n"))
        } else if dice.chance(faults.reset_once) {
            Some(FakeAnswer::cut())
        } else {
            None
        }
    }

    fn answer_at_once(&self, host: usize, path: &str) -> FakeAnswer {
        if path == "/" {
            return FakeAnswer::redirect(302, "/p/0");
        }
        let Some(page) = page_number_in(path) else { return FakeAnswer::not_found() };
        if page >= self.pages_of(host) {
            return FakeAnswer::not_found();
        }
        let at = PageAt { host, page };
        if path.starts_with(ITEM_ADDRESS) && self.is_gap(at) {
            return FakeAnswer::not_found();
        }
        if path.starts_with(OLD_ADDRESS) {
            return FakeAnswer::redirect(301, format!("/p/{page}"));
        }
        let faults = &self.spec.faults;
        if faults.reset_always > 0.0
            && self.page_dice(LASTING_FAULT, at).chance(faults.reset_always)
        {
            return FakeAnswer::cut();
        }
        match self.saved_body(at) {
            Some(body) => FakeAnswer::ok("text/html", body),
            None => FakeAnswer::html(self.html(at)),
        }
    }

    fn saved_body(&self, at: PageAt) -> Option<Bytes> {
        let pages_before: u64 = (0..at.host).map(|host| self.pages_of(host)).sum();
        let place = (pages_before + at.page).checked_rem(self.bodies.len() as u64)?;
        self.bodies.get(usize::try_from(place).ok()?).cloned()
    }

    fn html(&self, at: PageAt) -> String {
        let mut hrefs = Hrefs::default();
        hrefs.ends.reserve(self.spec.links_per_page);
        hrefs.text.reserve(self.spec.links_per_page * HREF_BYTES_USUAL);
        self.shape.links(&self.spec, at, |target| {
            self.push_href(&mut hrefs.text, at.host, target);
            hrefs.end_href();
        });
        self.writer.page(PageParts {
            at,
            dice: self.page_dice(TEXT, at),
            page_bytes: self.spec.page_bytes,
            hrefs: &hrefs,
        })
    }

    fn push_href(&self, text: &mut String, own_host: usize, target: Target) {
        let (at, prefix) = match target {
            Target::Page(at) if self.has_moved(at) => (at, OLD_ADDRESS),
            Target::Page(at) => (at, "/p/"),
            Target::Dead(at) => (at, "/gone/"),
        };
        if at.host != own_host {
            text.push_str("http://");
            self.push_host_name(text, at.host);
        }
        text.push_str(prefix);
        push_number(text, at.page);
    }

    /// Whether the page is missing among the numbered ones.
    fn is_gap(&self, at: PageAt) -> bool {
        let share = self.spec.faults.gaps;
        share > 0.0 && self.page_dice(GAP, at).chance(share)
    }

    /// Whether the page is linked by its old address.
    fn has_moved(&self, at: PageAt) -> bool {
        let share = self.spec.faults.redirects;
        share > 0.0 && self.page_dice(MOVED, at).chance(share)
    }

    fn page_dice(&self, purpose: u64, at: PageAt) -> Dice {
        Dice::of(&[self.spec.seed, purpose, at.host as u64, at.page])
    }
}

/// Keep the dice of one page's different properties apart.
const TEXT: u64 = 3;
const DELAY: u64 = 4;
const MOVED: u64 = 5;
const PASSING_FAULT: u64 = 6;
const LASTING_FAULT: u64 = 7;
const GAP: u64 = 8;

/// Where pages were before they moved to `/p/`.
const OLD_ADDRESS: &str = "/old/";

/// Where the same pages lie once more, with gaps and without links to them, for crawls along a number.
const ITEM_ADDRESS: &str = "/item/";

/// Enough for `/p/` and six digits; longer ones only cost a reallocation.
const HREF_BYTES_USUAL: usize = 12;

/// The page that a path stands for, at any of its addresses.
fn page_number_in(path: &str) -> Option<u64> {
    let prefixes = ["/p/", OLD_ADDRESS, ITEM_ADDRESS];
    page_number(prefixes.into_iter().find_map(|prefix| path.strip_prefix(prefix))?)
}

/// A number in its one usual spelling: `007` and `+7` would be second addresses of page 7.
fn page_number(text: &str) -> Option<u64> {
    let usual =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if usual { text.parse().ok() } else { None }
}

/// The loopback address of a host: 127.1.0.1 and up, leaving 127.0.0.0/16 to the machine.
pub(crate) fn host_address(host: usize) -> Ipv4Addr {
    let offset = u32::try_from(host).expect("a spec has at most 16 million hosts");
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + offset)
}

fn host_at(address: Ipv4Addr) -> Option<usize> {
    usize::try_from(address.to_bits().checked_sub(FIRST_ADDRESS.to_bits())?).ok()
}

const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);

/// A web while it is being asked: it remembers which pages have had their passing fault.
#[derive(Debug)]
pub struct LiveWeb {
    web: FakeWeb,
    /// Pages whose passing fault is over. Held only to look up one page.
    faults_over: Mutex<HashSet<(usize, String)>>,
}

impl LiveWeb {
    /// A web without any request yet.
    pub fn new(web: FakeWeb) -> Self {
        Self { web, faults_over: Mutex::default() }
    }

    /// The web itself.
    pub fn web(&self) -> &FakeWeb {
        &self.web
    }
}

impl Website for LiveWeb {
    fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        self.web.host_index(host).map(host_address)
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        let host = self.web.host_index(request.host)?;
        if let Some(fault) = self.web.first_answer(host, request.target) {
            let page = (host, request.target.to_owned());
            let mut over = self.faults_over.lock().unwrap_or_else(PoisonError::into_inner);
            if over.insert(page) {
                return Some(fault);
            }
        }
        Some(self.web.answer(host, request.target))
    }
}
