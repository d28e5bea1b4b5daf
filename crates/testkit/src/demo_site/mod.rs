//! [`DemoSite`]: a site of about two hundred pages in English and Indonesian, with everything that
//! makes crawling interesting. `telusur demo` crawls it without the internet; tests and screenshots
//! use the same pages. Nothing is read from disk: the texts are part of the program.

mod files;
mod layout;
mod library;
mod oddities;
mod shop;
#[cfg(test)]
mod tests;
mod texts;

use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use telusur_model::PageUrl;

use self::layout::{PageContent, STRING_TAKES_IT, link_list, paragraph};
use self::library::{Library, image_path};
use self::oddities::{COPIES, FORBIDDEN, MISSING, REDIRECT_CHAIN, REDIRECT_LOOP};
use crate::answer::{FakeAnswer, FakeRequest, Website};
use crate::request_log::RequestLog;
use crate::server::{LoopbackServer, bind_all};

/// How long the slow page takes.
pub const SLOW_PAGE_DELAY: Duration = Duration::from_millis(300);

/// Pictures of topics; the gallery shows them all.
const TOPIC_IMAGES: usize = 10;

/// The demo site at one origin.
pub struct DemoSite {
    /// `http://127.0.0.1:4711`, without a slash at the end.
    origin: String,
    library: Library,
}

/// One address of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DemoPage {
    /// Path and query.
    pub path: String,
    /// What is there.
    pub kind: DemoKind,
}

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DemoKind {
    /// A page of its own.
    Page,
    /// A page that is, byte for byte, also somewhere else.
    Copy,
    /// A picture, a PDF, a table, a style sheet.
    File,
    /// A redirect.
    Redirect,
    /// A link that leads nowhere: 404.
    Missing,
    /// A page that fails: 500.
    Broken,
    /// A page that robots.txt forbids.
    Forbidden,
    /// The first of pages without end.
    Trap,
    /// What only programs look for: robots.txt and the sitemap.
    ForCrawlers,
}

impl DemoKind {
    /// The status with which it is answered; redirects differ among themselves.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Page | Self::Copy | Self::File => Some(200),
            Self::Forbidden | Self::Trap | Self::ForCrawlers => Some(200),
            Self::Redirect => None,
            Self::Missing => Some(404),
            Self::Broken => Some(500),
        }
    }
}

/// Everything that exists on the site, or is linked on it; of the trap only its beginning.
pub fn pages() -> Vec<DemoPage> {
    let library = Library::new().paths();
    let items = shop::items().map(shop::item_path);
    let fixed = ["/items", "/gallery", "/oddities", "/about", "/contact", "/tables", "/lists"];
    let more = ["/slow", "/newsletter", "/legacy", COPIES[0]];
    let pages = library.into_iter().chain(items).chain(owned(&fixed)).chain(owned(&more));
    let topic_images = (0..TOPIC_IMAGES).map(image_path);
    let images = topic_images.chain(shop::items().map(shop::item_image_path));
    let files = ["/style.css", "/plain.txt", "/files/guide.pdf", "/files/rivers.csv"];

    let mut all = Vec::new();
    let mut add = |kind, paths: Vec<String>| {
        all.extend(paths.into_iter().map(|path| DemoPage { path, kind }));
    };
    add(DemoKind::Page, pages.collect());
    add(DemoKind::Copy, owned(&COPIES[1..]).collect());
    add(DemoKind::File, images.chain(owned(&files)).collect());
    add(DemoKind::Redirect, owned(&REDIRECT_CHAIN[..3]).chain(owned(&REDIRECT_LOOP)).collect());
    add(DemoKind::Missing, owned(&MISSING).collect());
    add(DemoKind::Broken, owned(&["/broken"]).collect());
    add(DemoKind::Forbidden, owned(&FORBIDDEN).collect());
    add(DemoKind::Trap, owned(&[oddities::CALENDAR]).collect());
    add(DemoKind::ForCrawlers, owned(&["/robots.txt", "/sitemap.xml"]).collect());
    all
}

fn owned<'a>(paths: &'a [&str]) -> impl Iterator<Item = String> + use<'a> {
    paths.iter().map(|path| (*path).to_owned())
}

impl DemoSite {
    /// The site at an origin such as `http://127.0.0.1:4711`.
    pub fn new(origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), library: Library::new() }
    }

    /// What the site says to a path and query.
    pub fn answer(&self, path_and_query: &str) -> FakeAnswer {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if let Some(answer) = self.odd_answer(path, query) {
            return answer;
        }
        if let Some(answer) = file(path) {
            return answer;
        }
        match self.page(path) {
            Some(page) => FakeAnswer::html(page.html()),
            None => {
                let main = paragraph("Nothing is kept under this address.");
                let page = PageContent::english("Not found", main + &link_list([("/", "Home")]));
                FakeAnswer { status: 404, ..FakeAnswer::html(page.html()) }
            }
        }
    }

    fn page(&self, path: &str) -> Option<PageContent> {
        if let Some(item) = shop::item_at(path) {
            return Some(shop::item_page(item));
        }
        match path {
            "/items" => Some(shop::shop_page()),
            "/gallery" => Some(gallery_page()),
            "/about" => Some(about_page()),
            "/contact" => Some(contact_page()),
            "/oddities" => Some(oddities::oddities_page()),
            "/tables" => Some(oddities::tables_page()),
            "/lists" => Some(oddities::lists_page()),
            "/newsletter" => Some(oddities::newsletter_page(&self.origin)),
            _ if COPIES.contains(&path) => Some(oddities::copy_page()),
            _ if FORBIDDEN.contains(&path) => Some(oddities::private_page()),
            _ => self.library.page(path),
        }
    }

    /// Answers other than 200 with a page or a file.
    fn odd_answer(&self, path: &str, query: &str) -> Option<FakeAnswer> {
        let [first, second, third, end] = REDIRECT_CHAIN;
        let [one, other] = REDIRECT_LOOP;
        Some(match path {
            _ if path == first => FakeAnswer::redirect(301, second),
            _ if path == second => FakeAnswer::redirect(302, third),
            _ if path == third => FakeAnswer::redirect(308, end),
            _ if path == one => FakeAnswer::redirect(302, other),
            _ if path == other => FakeAnswer::redirect(302, one),
            "/broken" => FakeAnswer::plain(500, "something is broken here\n"),
            "/contact/send" => FakeAnswer::plain(405, "letters are posted, not fetched\n"),
            "/slow" => FakeAnswer::html(oddities::slow_page().html()).after(SLOW_PAGE_DELAY),
            "/legacy" => FakeAnswer::ok("text/html", oddities::legacy_page()),
            "/calendar" => FakeAnswer::html(oddities::calendar_page(query)?.html()),
            "/robots.txt" => FakeAnswer::ok("text/plain; charset=utf-8", self.robots()),
            "/sitemap.xml" => FakeAnswer::ok("application/xml", self.sitemap()),
            _ => return None,
        })
    }

    fn robots(&self) -> String {
        format!("User-agent: *\nDisallow: /private/\n\nSitemap: {}/sitemap.xml\n", self.origin)
    }

    fn sitemap(&self) -> String {
        let mut xml = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        for page in pages().iter().filter(|page| page.kind == DemoKind::Page) {
            writeln!(xml, "<url><loc>{}{}</loc></url>", self.origin, page.path)
                .expect(STRING_TAKES_IT);
        }
        xml + "</urlset>\n"
    }

    /// Name and port, as in a Host header.
    fn authority(&self) -> &str {
        self.origin.split_once("://").map_or(self.origin.as_str(), |(_, authority)| authority)
    }
}

impl Website for DemoSite {
    fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        (host == self.authority()).then_some(Ipv4Addr::LOCALHOST)
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        self.address_of(request.host)?;
        Some(self.answer(request.target))
    }
}

fn file(path: &str) -> Option<FakeAnswer> {
    if let Some(topic) = (0..TOPIC_IMAGES).find(|&topic| image_path(topic) == path) {
        return Some(FakeAnswer::ok("image/svg+xml", files::svg(topic as u64)));
    }
    if let Some(item) = shop::items().find(|&item| shop::item_image_path(item) == path) {
        return Some(FakeAnswer::ok("image/png", files::png(u64::from(item))));
    }
    Some(match path {
        "/style.css" => FakeAnswer::ok("text/css; charset=utf-8", files::STYLE),
        "/plain.txt" => FakeAnswer::ok("text/plain; charset=utf-8", PLAIN_TEXT),
        "/files/rivers.csv" => FakeAnswer::ok("text/csv; charset=utf-8", files::RIVERS_CSV),
        "/files/guide.pdf" => FakeAnswer::ok("application/pdf", files::pdf(&GUIDE_LINES)),
        _ => return None,
    })
}

const PLAIN_TEXT: &str = "A page without any markup. Even so it can be searched: the word for today \
                          is marmalade.\n";

const GUIDE_LINES: [&str; 4] = [
    "A guide to the demo site",
    "Start at the home page and follow the links.",
    "Beware of the calendar (it has no end).",
    "The word that is only in this file is bathyscaphe.",
];

fn gallery_page() -> PageContent {
    let figure = |topic| {
        let path = image_path(topic);
        format!(
            "<figure>\n<img src=\"{path}\" alt=\"Picture {topic}\" width=\"240\" height=\"120\">\n\
             <figcaption>Picture {topic}</figcaption>\n</figure>\n"
        )
    };
    PageContent::english("Gallery", (0..TOPIC_IMAGES).map(figure).collect::<String>())
}

fn about_page() -> PageContent {
    let text = "Nobody lives here. The site was written to be crawled, in two languages, with a few \
                traps and no secrets. A link to elsewhere shows what a crawl leaves alone.";
    let links =
        [("https://example.org/", "Elsewhere"), ("mailto:demo@example.org", "Write a letter")];
    PageContent::english("About this site", paragraph(text) + &link_list(links))
}

fn contact_page() -> PageContent {
    let form = "<form action=\"/contact/send\" method=\"post\">\n\
        <p><label for=\"name\">Name</label> <input id=\"name\" name=\"name\" required></p>\n\
        <p><label for=\"topic\">Topic</label> <select id=\"topic\" name=\"topic\">\n\
        <option value=\"praise\">Praise</option>\n<option value=\"fault\">Fault</option>\n</select></p>\n\
        <p><label for=\"text\">Text</label> <textarea id=\"text\" name=\"text\"></textarea></p>\n\
        <p><button type=\"submit\">Send</button></p>\n</form>\n";
    PageContent::english("Contact", form)
}

/// Serves the demo site on `127.0.0.1`, on a port that is free.
pub async fn serve_demo(log: Option<Arc<RequestLog>>) -> io::Result<ServedDemo> {
    let listeners = bind_all(&[Ipv4Addr::LOCALHOST]).await?;
    let origin = format!("http://127.0.0.1:{}", listeners.port);
    let server = LoopbackServer::start(listeners, Arc::new(DemoSite::new(origin.as_str())), log);
    Ok(ServedDemo { origin, server })
}

/// The demo site while it is served, until it is dropped or stopped.
pub struct ServedDemo {
    origin: String,
    server: LoopbackServer,
}

impl ServedDemo {
    /// The home page.
    pub fn home(&self) -> PageUrl {
        PageUrl::parse(&format!("{}/", self.origin)).expect("made from an address and a port")
    }

    /// Scheme, address and port, without a slash at the end.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Takes no new requests, finishes the answers under way, and closes all connections.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}
