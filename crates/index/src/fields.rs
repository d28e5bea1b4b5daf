//! The columns of the index, and how a document becomes a row.
//!
//! `body` holds a page's words in three sections, one after the other: its title; what stands around
//! the text (headings, description, keywords, words of the address); the text. Two numbers
//! per page say where the sections meet. So one list of positions per word tells how often it occurs
//! where, and all words of a page are weighed against one length: separate fields with lengths of
//! their own rank worse.

use tantivy::TantivyDocument;
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions,
};
use telusur_model::PageUrl;
use xxhash_rust::xxh3::xxh3_64;

use crate::IndexDoc;
use crate::analysis::{Depth, DocumentReader, Language, PIECES, Stems, Words};

/// Words around the text that are indexed: a page that repeats itself in thousands of keywords gains
/// nothing beyond this.
const AROUND_WORDS_MAX: usize = 400;
/// Targets of links that are indexed for a page.
const LINKS_MAX: usize = 300;
/// Longest text of a page that is indexed and stored: about 170,000 words. Longer ones are books
/// and generated lists, whose beginning says what they are.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) key: Field,
    pub(crate) id: Field,
    pub(crate) body: Field,
    pub(crate) exact: Field,
    pub(crate) title_words: Field,
    pub(crate) description_words: Field,
    pub(crate) keyword_words: Field,
    pub(crate) url_words: Field,
    pub(crate) site: Field,
    pub(crate) site_number: Field,
    pub(crate) host: Field,
    pub(crate) language: Field,
    pub(crate) kind: Field,
    pub(crate) has: Field,
    pub(crate) rights: Field,
    pub(crate) link: Field,
    pub(crate) crawl: Field,
    pub(crate) status: Field,
    pub(crate) depth: Field,
    pub(crate) time: Field,
    pub(crate) year: Field,
    pub(crate) fetched: Field,
    pub(crate) published: Field,
    pub(crate) page: Field,
    pub(crate) words: Field,
    pub(crate) title_end: Field,
    pub(crate) text_start: Field,
    pub(crate) sketch: Field,
    pub(crate) url: Field,
    pub(crate) title: Field,
    pub(crate) description: Field,
    pub(crate) keywords: Field,
    pub(crate) text: Field,
}

/// Names of the columns that are read by name.
pub(crate) mod name {
    pub(crate) const SITE: &str = "site";
    pub(crate) const SITE_NUMBER: &str = "site_number";
    pub(crate) const LANGUAGE: &str = "language";
    pub(crate) const KIND: &str = "kind";
    pub(crate) const YEAR: &str = "year";
    pub(crate) const CRAWL: &str = "crawl";
    pub(crate) const TIME: &str = "time";
    pub(crate) const FETCHED: &str = "fetched";
    pub(crate) const PUBLISHED: &str = "published";
    pub(crate) const PAGE: &str = "page";
    pub(crate) const WORDS: &str = "words";
    pub(crate) const TITLE_END: &str = "title_end";
    pub(crate) const TEXT_START: &str = "text_start";
    pub(crate) const SKETCH: &str = "sketch";
    pub(crate) const LINK: &str = "link";
    pub(crate) const URL: &str = "url";
}

impl Fields {
    /// The schema, and the columns in it.
    pub(crate) fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let number = INDEXED | FAST;
        // Counted and sorted by in columns, shown from the stored page: looking up the name of a
        // value in a column costs more than reading the page.
        let shown = STRING | FAST | STORED;
        let fields = Self {
            key: schema.add_bytes_field("key", BytesOptions::from(INDEXED | STORED)),
            id: schema.add_text_field("id", STRING | STORED),
            body: words_field(&mut schema, "body", IndexRecordOption::WithFreqsAndPositions),
            exact: words_field(&mut schema, "exact", IndexRecordOption::Basic),
            title_words: words_field(&mut schema, "in_title", IndexRecordOption::Basic),
            description_words: words_field(&mut schema, "in_description", IndexRecordOption::Basic),
            keyword_words: words_field(&mut schema, "in_keywords", IndexRecordOption::Basic),
            url_words: words_field(&mut schema, "in_url", IndexRecordOption::Basic),
            site: schema.add_text_field(name::SITE, shown.clone()),
            // Comparing numbers is far cheaper than reading the names of hundreds of sites.
            site_number: schema.add_u64_field(name::SITE_NUMBER, FAST),
            host: schema.add_text_field("host", STRING),
            language: schema.add_text_field(name::LANGUAGE, shown.clone()),
            kind: schema.add_text_field(name::KIND, shown.clone()),
            has: schema.add_text_field("has", STRING),
            rights: schema.add_text_field("rights", STRING),
            // A page has as many links as words, and nearly all lead somewhere else: as terms they were half
            // of the dictionary. A column is read through in some ten milliseconds when it is asked for.
            link: schema.add_u64_field(name::LINK, FAST),
            crawl: schema.add_u64_field(name::CRAWL, number.clone()),
            status: schema.add_u64_field("status", number.clone()),
            depth: schema.add_u64_field("depth", FAST),
            time: schema.add_u64_field(name::TIME, FAST),
            year: schema.add_u64_field(name::YEAR, number.clone()),
            fetched: schema.add_u64_field(name::FETCHED, FAST),
            published: schema.add_u64_field(name::PUBLISHED, FAST),
            page: schema.add_u64_field(name::PAGE, number),
            words: schema.add_u64_field(name::WORDS, FAST),
            title_end: schema.add_u64_field(name::TITLE_END, FAST),
            text_start: schema.add_u64_field(name::TEXT_START, FAST),
            sketch: schema.add_u64_field(name::SKETCH, FAST),
            url: schema.add_text_field(name::URL, shown),
            title: schema.add_text_field("title", STORED),
            description: schema.add_text_field("description", STORED),
            keywords: schema.add_text_field("keywords", STORED),
            text: schema.add_text_field("text", STORED),
        };
        (schema.build(), fields)
    }

    /// A page as a row, read in the language of [`stem_language`].
    pub(crate) fn row(
        &self,
        doc: &IndexDoc,
        stem_language: Option<Language>,
        stems: &mut Stems,
    ) -> TantivyDocument {
        let text = cut(&doc.text, TEXT_BYTES_MAX);
        let language = doc.language.as_deref().filter(|code| !code.is_empty());
        let mut row = TantivyDocument::new();
        row.add_bytes(self.key, &doc.key.to_bytes());
        if let Some(id) = &doc.id {
            row.add_text(self.id, id);
        }
        self.add_words(&mut row, doc, text, stem_language, stems);
        self.add_place(&mut row, &doc.url);
        let code =
            language.map(|code| code.split(['-', '_']).next().unwrap_or(code).to_lowercase());
        let code = code.as_deref().or(stem_language.map(Language::code));
        row.add_text(self.language, code.unwrap_or_default());
        self.add_facts(&mut row, doc);
        row.add_text(self.url, &doc.url);
        row.add_text(self.title, &doc.title);
        row.add_text(self.description, &doc.description);
        row.add_text(self.keywords, &doc.keywords);
        row.add_text(self.text, text);
        row
    }

    fn add_words(
        &self,
        row: &mut TantivyDocument,
        doc: &IndexDoc,
        text: &str,
        language: Option<Language>,
        stems: &mut Stems,
    ) {
        let url_words = readable_url(&doc.url);
        let around = around_text(doc, &url_words);
        let mut reader = DocumentReader::new(language, stems);
        // The dictionary of words as written also serves those who type: titles and descriptions
        // have nearly all words that anybody looks for, and few slips.
        let title = reader.section(&doc.title, Depth::Whole);
        let around = reader.section(&around, Depth::Whole);
        let text = reader.section(text, Depth::Sparse);
        row.add_text(self.exact, reader.written());
        row.add_text(self.title_words, reader.stems_of(&doc.title));
        row.add_text(self.description_words, reader.stems_of(&doc.description));
        row.add_text(self.keyword_words, reader.stems_of(&doc.keywords));
        row.add_text(self.url_words, reader.written_of(&url_words));
        row.add_u64(self.sketch, text.sketch.0);
        row.add_u64(self.words, as_u64(title.content_words + text.content_words));
        row.add_u64(self.title_end, as_u64(title.end));
        // The engine leaves one position free between the values of a field.
        row.add_u64(self.text_start, as_u64(title.end + 1 + around.end + 1));
        for section in [title, around, text] {
            row.add_text(self.body, section.stems);
        }
    }

    fn add_place(&self, row: &mut TantivyDocument, url: &str) {
        let Ok(url) = PageUrl::parse(url) else { return };
        let host = url.host();
        let site = host.site();
        row.add_text(self.site, site.as_str());
        row.add_u64(self.site_number, site_number(site.as_str()));
        // `site:` takes a host or any domain above it.
        let mut domain = host.as_str();
        loop {
            row.add_text(self.host, domain);
            match domain.split_once('.') {
                Some((_, rest)) if rest.contains('.') => domain = rest,
                _ => break,
            }
        }
    }

    fn add_facts(&self, row: &mut TantivyDocument, doc: &IndexDoc) {
        let time = doc.published_at.unwrap_or(doc.fetched_at);
        row.add_text(self.kind, doc.kind.to_lowercase());
        row.add_u64(self.crawl, u64::from(doc.key.crawl.0));
        row.add_u64(self.status, u64::from(doc.status));
        row.add_u64(self.depth, u64::from(doc.depth));
        row.add_u64(self.time, time.0);
        row.add_u64(self.year, year(time));
        row.add_u64(self.fetched, doc.fetched_at.0);
        if let Some(published) = doc.published_at {
            row.add_u64(self.published, published.0);
        }
        row.add_u64(self.page, page_number(doc.key.url.0));
        for word in &doc.has {
            row.add_text(self.has, word.to_lowercase());
        }
        for word in &doc.rights {
            row.add_text(self.rights, word.to_lowercase());
        }
        let mut links: Vec<u64> =
            doc.links.iter().take(LINKS_MAX).map(|link| link_number(&link.url)).collect();
        links.sort_unstable();
        links.dedup();
        for link in links {
            row.add_u64(self.link, link);
        }
    }
}

/// The language whose stems a page is indexed by.
pub(crate) fn stem_language(doc: &IndexDoc) -> Option<Language> {
    match doc.language.as_deref().filter(|code| !code.is_empty()) {
        Some(code) => Language::from_code(code),
        // Short texts without function words are mostly names and titles, in English more often than
        // in any other language; words that are written the same are found either way.
        None => {
            let text = cut(&doc.text, TEXT_BYTES_MAX);
            Language::guess(&format!("{} {text}", doc.title)).or(Language::from_code("en"))
        }
    }
}

fn words_field(schema: &mut SchemaBuilder, name: &str, record: IndexRecordOption) -> Field {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(PIECES)
        .set_index_option(record)
        .set_fieldnorms(record != IndexRecordOption::Basic);
    schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
}

/// What stands around a page's text, as one text.
fn around_text(doc: &IndexDoc, url_words: &str) -> String {
    let mut around = String::new();
    for part in [&doc.description, &doc.keywords].into_iter().chain(&doc.headings) {
        around.push_str(part);
        around.push('\n');
    }
    around.push_str(url_words);
    let end = Words::of(&around).nth(AROUND_WORDS_MAX).map(|word| word.from);
    around.truncate(end.unwrap_or(around.len()));
    around
}

/// An address with its escapes resolved, so that words in it can be found.
pub(crate) fn readable_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned()
}

/// The number under which links to an address are indexed: 40 bits, so that among links to a hundred million
/// addresses one in ten thousand that are looked for has the number of another.
pub(crate) fn link_number(url: &str) -> u64 {
    xxh3_64(url.as_bytes()) >> 24
}

/// The half of a page's key that tells pages apart well enough for link rank.
pub(crate) fn page_number(key: u128) -> u64 {
    u64::try_from(key & u128::from(u64::MAX)).expect("the upper half was masked")
}

/// The number of the site that an address belongs to.
pub(crate) fn site_number_of(url: &str) -> Option<u64> {
    Some(site_number(PageUrl::parse(url).ok()?.host().site().as_str()))
}

fn site_number(site: &str) -> u64 {
    xxh3_64(site.as_bytes())
}

fn year(time: telusur_model::Timestamp) -> u64 {
    time.rfc3339().get(..4).and_then(|year| year.parse().ok()).unwrap_or(1970)
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The beginning of a text, cut between two characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
