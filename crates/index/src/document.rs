//! What is handed to the index: one [`IndexDoc`] per page and crawl.

use serde::{Deserialize, Serialize};
use telusur_model::{CrawlNo, Timestamp, UrlKey};

/// A document's identity. A document with the same key replaces the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocKey {
    /// Which page.
    pub url: UrlKey,
    /// In which crawl.
    pub crawl: CrawlNo,
}

/// Length of a key in the index.
const KEY_BYTES: usize = 20;

impl DocKey {
    pub(crate) fn to_bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..16].copy_from_slice(&self.url.0.to_be_bytes());
        bytes[16..].copy_from_slice(&self.crawl.0.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (url, crawl) = bytes.split_first_chunk::<16>()?;
        let crawl = <[u8; 4]>::try_from(crawl).ok()?;
        Some(Self {
            url: UrlKey(u128::from_be_bytes(*url)),
            crawl: CrawlNo(u32::from_be_bytes(crawl)),
        })
    }
}

/// A page as the index wants it. Every text may be hostile and of any length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDoc {
    /// Its identity.
    pub key: DocKey,
    /// The name that an imported document brought along.
    pub id: Option<String>,
    /// Its address; empty for an imported document without one.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its headings, in order. They are part of the text as well.
    pub headings: Vec<String>,
    /// What it says about itself.
    pub description: String,
    /// The words it wants to be found by.
    pub keywords: String,
    /// Its main text.
    pub text: String,
    /// The code of its language, declared or detected (`id`, `en-GB`). `None`: the index guesses.
    pub language: Option<String>,
    /// What it was made from: `html`, `pdf`, `text`, `feed` …
    pub kind: String,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// When it says that it was published.
    pub published_at: Option<Timestamp>,
    /// The HTTP status.
    pub status: u16,
    /// Links away from a seed.
    pub depth: u16,
    /// What `has:` can ask for: `table`, `form`, `image`, `code`.
    pub has: Vec<String>,
    /// What its publisher allows, as words: `noindex`, `ai-train=no` … for `rights:`.
    pub rights: Vec<String>,
    /// The keys of addresses that redirect here: links to them count as links to this page.
    pub aliases: Vec<UrlKey>,
    /// Where its links lead, for `link:`, for link rank, and for the words that other pages are
    /// found by. Costs about ten bytes of index per different target.
    pub links: Vec<OutLink>,
}

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutLink {
    /// Where it leads.
    pub url: String,
    /// The key of that page.
    pub page: UrlKey,
    /// Its words.
    pub anchor: String,
    /// Whether the page does not vouch for it: it is found by `link:` and counts for nothing else.
    pub nofollow: bool,
}

impl IndexDoc {
    /// A document with nothing but an identity, an address and a time.
    pub fn new(key: DocKey, url: &str, fetched_at: Timestamp) -> Self {
        Self {
            key,
            id: None,
            url: url.to_owned(),
            title: String::new(),
            headings: Vec::new(),
            description: String::new(),
            keywords: String::new(),
            text: String::new(),
            language: None,
            kind: "html".to_owned(),
            fetched_at,
            published_at: None,
            status: 200,
            depth: 0,
            has: Vec::new(),
            rights: Vec::new(),
            aliases: Vec::new(),
            links: Vec::new(),
        }
    }
}
