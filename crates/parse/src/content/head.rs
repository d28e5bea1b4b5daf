//! What a page says about itself: Open Graph, dates, author, JSON-LD, feeds, and the same page in
//! other languages.

use html5ever::local_name;
use telusur_model::{Alternate, Feed, JsonLd, MetaProperty, PageContent};

use crate::ContentLimits;
use crate::content::json_ld::Facts;
use crate::content::{Base, push_bounded, short};
use crate::main_content::{PageSigns, Telling};
use crate::meta::has_rel;
use crate::text::{cut, one_line};
use crate::tree::{ElementRef, NodeId, Tree};

/// Where pages say when they were published, in the order of how much they are to be believed.
const PUBLISHED_NAMES: [&str; 12] = [
    "article:published_time",
    "og:published_time",
    "datepublished",
    "date",
    "pubdate",
    "publishdate",
    "publish_date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "parsely-pub-date",
    "citation_publication_date",
];

/// Where pages say when they were changed.
const MODIFIED_NAMES: [&str; 7] = [
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "last-modified",
    "lastmod",
    "dcterms.modified",
    "dc.date.modified",
];

/// Where pages say who wrote them.
const AUTHOR_NAMES: [&str; 6] = [
    "author",
    "article:author",
    "dc.creator",
    "dcterms.creator",
    "parsely-author",
    "citation_author",
];

/// Longest date that is kept; RFC 2822 dates with a comment are the longest that make sense.
const DATE_BYTES_MAX: usize = 64;

/// A value, and how much it is to be believed: less is more.
type Ranked = Option<(usize, String)>;

/// What a page says about itself, as far as it was read.
pub(super) struct Head<'t> {
    base: Base<'t>,
    limits: &'t ContentLimits,
    published: Ranked,
    modified: Ranked,
    author: Ranked,
    /// The first `<time>`, which is better than no date at all.
    first_time: Option<String>,
    open_graph: Vec<MetaProperty>,
    open_graph_dropped: u32,
    json_ld: Vec<JsonLd>,
    json_ld_dropped: u32,
    feeds: Vec<Feed>,
    feeds_dropped: u32,
    alternates: Vec<Alternate>,
    alternates_dropped: u32,
    /// The text of the article, for pages that show it by script alone.
    article_body: Option<String>,
}

impl<'t> Head<'t> {
    pub(super) fn new(base: Base<'t>, limits: &'t ContentLimits) -> Self {
        Self {
            base,
            limits,
            published: None,
            modified: None,
            author: None,
            first_time: None,
            open_graph: Vec::new(),
            open_graph_dropped: 0,
            json_ld: Vec::new(),
            json_ld_dropped: 0,
            feeds: Vec::new(),
            feeds_dropped: 0,
            alternates: Vec::new(),
            alternates_dropped: 0,
            article_body: None,
        }
    }

    pub(super) fn take_meta(&mut self, element: ElementRef<'t>, signs: &mut PageSigns<'_>) {
        let Some(content) = element.attribute(&local_name!("content")) else { return };
        let name = element
            .attribute(&local_name!("property"))
            .or_else(|| element.attribute(&local_name!("name")))
            .or_else(|| element.attribute(&local_name!("itemprop")))
            .unwrap_or_default()
            .trim_ascii();
        if name.is_empty() || name.len() > super::NAME_BYTES_MAX {
            return;
        }
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "og:type" => signs.declare(content),
            "description" | "og:description" | "twitter:description" => {
                signs.told.tell(Telling::Description, content);
            }
            _ => {}
        }
        take_ranked(&mut self.published, &PUBLISHED_NAMES, &name, content);
        take_ranked(&mut self.modified, &MODIFIED_NAMES, &name, content);
        if !content.starts_with("http") {
            // Some put the address of a profile there, which is no name.
            take_ranked(&mut self.author, &AUTHOR_NAMES, &name, content);
        }
        let is_open_graph =
            ["og:", "article:", "product:", "twitter:"].iter().any(|kind| name.starts_with(kind));
        if is_open_graph {
            let value = one_line([content].into_iter(), self.limits.meta_bytes_max);
            let property = MetaProperty { name, value: value.unwrap_or_default() };
            let max = self.limits.open_graph_max;
            push_bounded(&mut self.open_graph, property, max, &mut self.open_graph_dropped);
        }
    }

    /// `<link rel=alternate>`: feeds and other languages.
    pub(super) fn take_link(&mut self, element: ElementRef<'t>) {
        let rel = element.attribute(&local_name!("rel")).unwrap_or_default();
        let Some(href) = element.attribute(&local_name!("href")) else { return };
        if !has_rel(rel, &["alternate"]) || has_rel(rel, &["stylesheet"]) {
            return;
        }
        if let Some(language) = element.attribute(&local_name!("hreflang")) {
            let Some(url) = self.base.join(href) else { return };
            let alternate = Alternate { url, language: short(Some(language)) };
            let max = self.limits.alternates_max;
            push_bounded(&mut self.alternates, alternate, max, &mut self.alternates_dropped);
        }
        let kind = short(element.attribute(&local_name!("type"))).to_ascii_lowercase();
        let is_feed = matches!(
            kind.as_str(),
            "application/rss+xml" | "application/atom+xml" | "application/feed+json"
        );
        if let Some(url) = self.base.join(href).filter(|_| is_feed) {
            let title = short(element.attribute(&local_name!("title")));
            let feed = Feed { url, title, kind };
            push_bounded(&mut self.feeds, feed, self.limits.feeds_max, &mut self.feeds_dropped);
        }
    }

    pub(super) fn take_time(&mut self, element: ElementRef<'t>) {
        let Some(date) = element.attribute(&local_name!("datetime")) else { return };
        let property = element.attribute(&local_name!("itemprop")).unwrap_or_default();
        match property {
            "datePublished" => {
                take_ranked(&mut self.published, &PUBLISHED_NAMES, "datepublished", date)
            }
            "dateModified" => {
                take_ranked(&mut self.modified, &MODIFIED_NAMES, "datemodified", date)
            }
            _ if self.first_time.is_none() => {
                self.first_time = one_line([date].into_iter(), DATE_BYTES_MAX);
            }
            _ => {}
        }
    }

    /// `itemtype` and `itemprop` on any element.
    pub(super) fn take_microdata(
        &mut self,
        element: ElementRef<'t>,
        node: NodeId,
        tree: &Tree,
        signs: &mut PageSigns<'_>,
    ) {
        if let Some(kind) = element.attribute(&local_name!("itemtype")) {
            signs.declare(kind);
        }
        let is_author = element.attribute(&local_name!("itemprop")) == Some("author")
            || element.attribute(&local_name!("rel")).is_some_and(|rel| has_rel(rel, &["author"]));
        if is_author && self.author.is_none() {
            let name = one_line(tree.texts(node), super::NAME_BYTES_MAX);
            self.author = name.map(|name| (AUTHOR_NAMES.len(), name));
        }
    }

    pub(super) fn take_json_ld<'s>(
        &mut self,
        text: impl Iterator<Item = &'s str>,
        signs: &mut PageSigns<'_>,
    ) {
        let text: String = text.collect();
        signs.declare_json_ld(&text);
        let facts = Facts::of(&text, &mut signs.told);
        if self.json_ld.len() >= self.limits.json_ld_max {
            self.json_ld_dropped += 1;
        } else {
            let valid = facts.is_some();
            let text = cut(text.trim_ascii(), self.limits.json_ld_bytes_max).to_owned();
            self.json_ld.push(JsonLd { text, valid });
        }
        let Some(facts) = facts else { return };
        // Structured data is written by programs, so that it is believed more than the rest.
        prefer(&mut self.published, facts.published);
        prefer(&mut self.modified, facts.modified);
        prefer(&mut self.author, facts.author);
        self.article_body = self.article_body.take().or(facts.article_body);
    }

    /// Returns the text of the article, if structured data holds one.
    pub(super) fn finish(self, content: &mut PageContent) -> Option<String> {
        content.published = self.published.map(|(_, date)| date).or(self.first_time);
        content.modified = self.modified.map(|(_, date)| date);
        content.author = self.author.map(|(_, name)| name);
        // Counts if the page has no description of its own.
        let said = |property: &&MetaProperty| property.name == "og:description";
        let property = self.open_graph.iter().find(said);
        content.description = property.map(|property| property.value.clone());
        content.open_graph = self.open_graph;
        content.dropped.open_graph = self.open_graph_dropped;
        content.json_ld = self.json_ld;
        content.dropped.json_ld = self.json_ld_dropped;
        content.feeds = self.feeds;
        content.dropped.feeds = self.feeds_dropped;
        content.alternates = self.alternates;
        content.dropped.alternates = self.alternates_dropped;
        self.article_body
    }
}

/// Takes a value whose name is on the list, unless a better one is held.
fn take_ranked(held: &mut Ranked, names: &[&str], name: &str, value: &str) {
    let Some(rank) = names.iter().position(|known| *known == name) else { return };
    // Structured data has rank 0.
    let rank = rank + 1;
    if held.as_ref().is_none_or(|(held, _)| rank < *held) {
        let value = one_line([value].into_iter(), super::NAME_BYTES_MAX);
        *held = value.map(|value| (rank, value)).or_else(|| held.take());
    }
}

fn prefer(held: &mut Ranked, value: Option<String>) {
    if let Some(value) = value.filter(|_| held.as_ref().is_none_or(|(rank, _)| *rank > 0)) {
        *held = Some((0, value));
    }
}
