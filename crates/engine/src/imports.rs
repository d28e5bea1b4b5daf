//! Documents that nobody crawled: taken in from a file, stored and found like pages.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use telusur_ledger::{PageToStore, Step, Store, StoreError};
use telusur_model::{Crawl, Digest, PageRecord, PageUrl, ParsedPage, RawPage, Timestamp, UrlKeyer};

/// Where documents without an address lie. The name can never be looked up (RFC 2606).
const HOST: &str = "import.invalid";
/// Documents in one step.
const BATCH_MAX: usize = 500;

/// One line of an import file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ImportLine {
    /// Its name, if it has no address.
    pub id: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub text: String,
    /// Its language.
    pub language: Option<String>,
}

impl ImportLine {
    /// Where the document is kept; an error says what is wrong with the line.
    pub fn address(&self) -> Result<PageUrl, String> {
        match (&self.url, &self.id) {
            (Some(url), _) => PageUrl::parse(url).map_err(|error| format!("url: {error}")),
            (None, Some(id)) => {
                let name = utf8_percent_encode(id, NON_ALPHANUMERIC);
                PageUrl::parse(&format!("http://{HOST}/{name}"))
                    .map_err(|error| format!("id: {error}"))
            }
            (None, None) => Err("has neither an id nor a url".to_owned()),
        }
    }
}

/// The name that a document without an address was imported under.
pub(crate) fn imported_id(url: &PageUrl) -> Option<String> {
    (url.host_str() == HOST)
        .then(|| percent_decode_str(&url.path()[1..]).decode_utf8_lossy().into_owned())
}

/// Takes documents into a crawl that was made for them. One with the address of an earlier one
/// replaces it.
pub struct Importer<'a> {
    store: &'a dyn Store,
    crawl: Crawl,
    keyer: UrlKeyer,
    batch: Step,
    documents: usize,
}

impl<'a> Importer<'a> {
    /// An importer into this crawl.
    pub fn new(store: &'a dyn Store, crawl: Crawl) -> Self {
        let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: false };
        Self { store, crawl, keyer, batch: Step::default(), documents: 0 }
    }

    /// Takes one document in.
    pub fn add(&mut self, line: ImportLine, url: PageUrl, at: Timestamp) -> Result<(), StoreError> {
        let parsed = ParsedPage {
            charset: "UTF-8".to_owned(),
            title: Some(line.title).filter(|title| !title.is_empty()),
            language: line.language,
            visible_text: line.text,
            ..ParsedPage::default()
        };
        let answer = RawPage {
            url: url.clone(),
            status: 200,
            headers: Vec::new(),
            body: Default::default(),
            truncated: false,
            wire_bytes: 0,
        };
        let packed = self.store.pack(&self.crawl, &answer, Some(&parsed), at);
        let text = parsed.visible_text.as_bytes();
        let record = PageRecord {
            title: parsed.title,
            bytes: text.len() as u64,
            digest: Digest(*blake3::hash(text).as_bytes()),
            ..PageRecord::bare(self.crawl.no, self.keyer.key(&url), url, at)
        };
        self.batch.import(PageToStore { record, packed });
        self.documents += 1;
        if self.documents >= BATCH_MAX { self.flush() } else { Ok(()) }
    }

    /// Makes everything durable that was taken in.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.documents = 0;
        self.store.commit(std::mem::take(&mut self.batch))?;
        Ok(())
    }
}
