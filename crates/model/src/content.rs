//! [`PageContent`]: everything that is in a page, for commands that read single pages.
//!
//! A crawl goes by [`ParsedPage`](crate::ParsedPage), which is cheaper to make. What is here is
//! bounded: each kind of content has a limit, and what lies beyond is counted in [`Dropped`].

use serde::{Deserialize, Serialize};

use crate::{Link, PageUrl, Warning};

/// Everything that is in a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageContent {
    /// The character encoding that the page was read in, by its WHATWG name; empty if the page was
    /// not read, because it is neither HTML nor a feed nor plain text.
    pub charset: String,
    /// Bytes of the body.
    pub bytes: u64,
    /// Whether the page has an `<article>`.
    pub html5: bool,
    /// The content of `<title>`.
    pub title: Option<String>,
    /// `<meta name=description>`, else what Open Graph says.
    pub description: Option<String>,
    /// `<meta name=keywords>`.
    pub keywords: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was published, as the page writes it (most often RFC 3339).
    pub published: Option<String>,
    /// When it was last changed, as the page writes it.
    pub modified: Option<String>,
    /// The language of the text as an ISO 639-1 code: the detected one, else the declared one.
    pub language: Option<String>,
    /// The language that the page declares (`<html lang>`), as written.
    pub language_declared: Option<String>,
    /// The language that the main text is written in, if there is enough of it to tell.
    pub language_detected: Option<String>,
    /// `<link rel=canonical>`, resolved.
    pub canonical: Option<PageUrl>,
    /// `<meta name=robots>` as written.
    pub robots: Option<String>,
    /// `<meta name=telusur>` as written: rules for this crawler alone.
    pub robots_own: Option<String>,
    /// Where `<meta http-equiv=refresh>` leads.
    pub refresh: Option<PageUrl>,
    /// The main content as plain text, without what stands around it.
    pub text: String,
    /// The visible text of `<article>`, else of `<body>`.
    pub visible_text: String,
    /// The main content as Markdown.
    pub markdown: String,
    /// `<meta property="og:…">` and its like.
    pub open_graph: Vec<MetaProperty>,
    /// The headings, in the order of the page.
    pub headings: Vec<Heading>,
    /// The links that can be followed, each URL once.
    pub links: Vec<Link>,
    /// The images, each URL once.
    pub images: Vec<Image>,
    /// The tables, those inside others behind them.
    pub tables: Vec<Table>,
    /// The lists; those inside others are part of them.
    pub lists: Vec<List>,
    /// The forms.
    pub forms: Vec<Form>,
    /// The scripts.
    pub scripts: Vec<Script>,
    /// The style sheets.
    pub styles: Vec<Style>,
    /// The pieces of JSON-LD.
    pub json_ld: Vec<JsonLd>,
    /// The feeds that the page names.
    pub feeds: Vec<Feed>,
    /// The same page in other languages.
    pub alternates: Vec<Alternate>,
    /// The entries, if the page is itself a feed.
    pub feed_entries: Vec<FeedEntry>,
    /// What was left out.
    pub dropped: Dropped,
    /// What went wrong on the way.
    pub warnings: Vec<Warning>,
}

/// A name and a value, as in `<meta property="og:type" content="article">`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaProperty {
    /// `og:type`.
    pub name: String,
    /// `article`.
    pub value: String,
}

/// A heading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// From 1 to 6.
    pub level: u8,
    /// Its text.
    pub text: String,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it is; of several sizes, the largest.
    pub url: PageUrl,
    /// What it shows, for those who cannot see it.
    pub alt: String,
    /// The width that the page gives it.
    pub width: Option<u32>,
    /// The height that the page gives it.
    pub height: Option<u32>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What stands above it.
    pub caption: Option<String>,
    /// Its cells; a cell that spans several places is in all of them.
    pub rows: Vec<Vec<Cell>>,
    /// Its markup, of the outermost table only.
    pub html: String,
    /// Whether cells or markup beyond the limits were left out.
    pub truncated: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Whether it is a heading of its row or column.
    pub header: bool,
    /// Whether it only repeats a cell that spans several places.
    pub spanned: bool,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Whether its items are numbered.
    pub ordered: bool,
    /// Its items, with those of the lists inside them.
    pub items: Vec<ListItem>,
}

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListItem {
    /// How many lists are around its own.
    pub level: u32,
    /// Its text, without that of the lists inside it.
    pub text: String,
}

/// A form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// Where it is sent: the page itself if it does not say.
    pub action: Option<PageUrl>,
    /// `get`, `post` or `dialog`.
    pub method: String,
    /// Its fields.
    pub fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// `text`, `password`, `select`, `textarea`, `submit` …
    pub kind: String,
    /// What it holds before anybody types; never that of a password.
    pub value: String,
    /// Whether it must be filled in.
    pub required: bool,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Where it is, if it is not in the page.
    pub url: Option<PageUrl>,
    /// What the page says that it is, such as `module`.
    pub kind: String,
    /// The script itself if it is in the page, cut at a limit.
    pub text: String,
    /// Its whole length in bytes.
    pub bytes: u64,
}

/// A style sheet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Style {
    /// Where it is, if it is not in the page.
    pub url: Option<PageUrl>,
    /// The screens or printers that it is for.
    pub media: String,
    /// The style sheet itself if it is in the page, cut at a limit.
    pub text: String,
    /// Its whole length in bytes.
    pub bytes: u64,
}

/// A piece of JSON-LD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonLd {
    /// The piece as written, cut at a limit.
    pub text: String,
    /// Whether it is JSON.
    pub valid: bool,
}

/// A feed that a page names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// Where it is.
    pub url: PageUrl,
    /// What the page calls it.
    pub title: String,
    /// `application/rss+xml`, `application/atom+xml` or `application/feed+json`.
    pub kind: String,
}

/// The same page in another language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternate {
    /// Where it is.
    pub url: PageUrl,
    /// Which language: `id`, `en-GB`, `x-default`.
    pub language: String,
}

/// An entry of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEntry {
    /// Its title.
    pub title: String,
    /// Where it leads.
    pub url: Option<PageUrl>,
    /// When it was published, as the feed writes it.
    pub published: Option<String>,
    /// Its text, or what the feed gives of it.
    pub text: String,
}

/// How many of each kind lay beyond its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Open Graph properties.
    pub open_graph: u32,
    /// Headings.
    pub headings: u32,
    /// Links.
    pub links: u32,
    /// Images.
    pub images: u32,
    /// Tables.
    pub tables: u32,
    /// Lists.
    pub lists: u32,
    /// Forms.
    pub forms: u32,
    /// Scripts.
    pub scripts: u32,
    /// Style sheets.
    pub styles: u32,
    /// Pieces of JSON-LD.
    pub json_ld: u32,
    /// Feeds.
    pub feeds: u32,
    /// Alternates.
    pub alternates: u32,
    /// Entries of a feed.
    pub feed_entries: u32,
}
