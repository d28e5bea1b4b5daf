//! Bytes from the web to what is in a page: charset, title, links, text, and everything else.
//!
//! Pure and total: nothing here does I/O, reads a clock, starts a thread or can fail. The same bytes
//! give the same answer; what went wrong on the way is in its warnings. There are three depths:
//! [`parse`] takes what a crawl goes by, [`read_for_search`] also what a search goes by, [`read_page`]
//! takes everything.
//!
//! The way of a page, one module each: `kind` decides whether it is read at all, `charset`
//! makes text of it, `tokens` cuts the text into tags and characters, `guard` keeps hostile
//! nesting away from html5ever's tree builder, and `tree` is the arena that the builder fills.
//! From the tree, `extract` takes title, links and visible text in one walk, with `links` and
//! `text` at hand. That is a [`ParsedPage`]. For a [`PageContent`], `content` takes all kinds of
//! content in one more walk, `main_content` finds what the page is about, and `markdown` writes it.

mod limits;

mod kind;

mod charset;
mod prescan;

mod tokens;

mod guard;
mod tree;

mod extract;
mod links;
mod meta;
mod roles;
mod text;

mod content;
mod language;
mod main_content;
mod markdown;

mod search;

#[cfg(test)]
mod tests;

use telusur_model::{Link, LinkKind, PageContent, ParsedPage, RawPage, SearchPage, Warning};

pub use crate::kind::{PageKind, is_parsed};
pub use crate::limits::{ContentLimits, ParseLimits};

use crate::charset::{Decoded, QueryCharset};
use crate::content::{Base, ReadFeed};
use crate::guard::Spent;
use crate::main_content::{MainContent, PageSigns};
use crate::tokens::{Detail, Document, Syntax};

/// Reads what a crawl goes by: title, rules, links and visible text. Pages that are no HTML, no feed
/// and no plain text come back empty, with a warning.
pub fn parse(page: &RawPage, limits: &ParseLimits) -> ParsedPage {
    let mut parsed = match PageText::of(page) {
        Some(PageText::Html(decoded, syntax)) => parse_html(&decoded, page, syntax, limits),
        Some(PageText::Feed(decoded)) => {
            let limits = ContentLimits { parse: limits.clone(), ..ContentLimits::default() };
            parsed_page(read_feed_page(&decoded, page, &limits))
        }
        Some(PageText::Plain(decoded)) => parse_plain_text(&decoded, limits),
        None => ParsedPage { warnings: vec![Warning::UnsupportedType], ..ParsedPage::default() },
    };
    parsed.warnings.extend(delivery_warnings(page));
    parsed
}

/// Reads everything that is in a page. Costs about three times as much as [`parse`].
pub fn read_page(page: &RawPage, limits: &ContentLimits) -> PageContent {
    let mut content = match PageText::of(page) {
        Some(PageText::Html(decoded, syntax)) => read_html(&decoded, page, syntax, limits),
        Some(PageText::Feed(decoded)) => read_feed_page(&decoded, page, limits),
        Some(PageText::Plain(decoded)) => read_plain_text(&decoded, limits),
        None => PageContent { warnings: vec![Warning::UnsupportedType], ..PageContent::default() },
    };
    content.bytes = page.body.len() as u64;
    content.warnings.extend(delivery_warnings(page));
    content
}

/// Reads what a crawl goes by, exactly as [`parse`] does, and what a search goes by, at once. Costs
/// about twice as much as [`parse`]; what `limits` must allow is [`ContentLimits::for_search`].
pub fn read_for_search(page: &RawPage, limits: &ContentLimits) -> SearchPage {
    let mut read = match PageText::of(page) {
        Some(PageText::Html(decoded, syntax)) => search::html(&decoded, page, syntax, limits),
        Some(PageText::Feed(decoded)) => search::feed(read_feed_page(&decoded, page, limits)),
        Some(PageText::Plain(decoded)) => {
            search::plain_text(parse_plain_text(&decoded, &limits.parse))
        }
        None => {
            let warnings = vec![Warning::UnsupportedType];
            SearchPage::from(ParsedPage { warnings, ..ParsedPage::default() })
        }
    };
    read.parsed.warnings.extend(delivery_warnings(page));
    read
}

/// Warnings about how a page was delivered, independent of its content.
fn delivery_warnings(page: &RawPage) -> impl Iterator<Item = Warning> {
    let warnings =
        [(page.truncated, Warning::Truncated), (page.has_unknown_coding(), Warning::UnknownCoding)];
    warnings.into_iter().filter(|(seen, _)| *seen).map(|(_, warning)| warning)
}

/// A page as text, and what it is read as.
enum PageText<'a> {
    Html(Decoded<'a>, Syntax),
    Feed(Decoded<'a>),
    Plain(Decoded<'a>),
}

impl<'a> PageText<'a> {
    /// `None` for a page that is not read: its label says that it is something else, or its bytes do.
    fn of(page: &'a RawPage) -> Option<Self> {
        let content_type = page.content_type();
        let kind = is_parsed(content_type.as_deref(), &page.body);
        let decoded = match kind {
            PageKind::Html | PageKind::Feed => charset::decode_html(page),
            PageKind::PlainText => charset::decode_plain_text(page),
            PageKind::Other => return None,
        };
        if !decoded.is_text() {
            return None;
        }
        match kind {
            PageKind::Html => Some(Self::Html(decoded, Syntax::of(content_type.as_deref()))),
            PageKind::Feed => Some(Self::Feed(decoded)),
            PageKind::PlainText => Some(Self::Plain(decoded)),
            PageKind::Other => None,
        }
    }
}

fn parse_html(
    decoded: &Decoded<'_>,
    page: &RawPage,
    syntax: Syntax,
    limits: &ParseLimits,
) -> ParsedPage {
    let document = tokens::build_tree(&decoded.text, syntax, Detail::Crawl, limits);
    let mut parsed = extract::extract(&document.tree, &page.url, decoded.of_queries, limits).page;
    decoded.charset.clone_into(&mut parsed.charset);
    parsed.warnings.extend(warnings(decoded, &document));
    parsed
}

fn read_html(
    decoded: &Decoded<'_>,
    page: &RawPage,
    syntax: Syntax,
    limits: &ContentLimits,
) -> PageContent {
    let HtmlPage { parsed, content } = HtmlPage::read(decoded, page, syntax, limits);
    content.with(parsed)
}

/// What is in a page of HTML.
struct HtmlPage {
    /// What a crawl goes by.
    parsed: ParsedPage,
    /// Everything else.
    content: PageContent,
}

impl HtmlPage {
    fn read(decoded: &Decoded<'_>, page: &RawPage, syntax: Syntax, limits: &ContentLimits) -> Self {
        let document = tokens::build_tree(&decoded.text, syntax, Detail::Everything, &limits.parse);
        let tree = &document.tree;
        let charset = decoded.of_queries;
        let extract = extract::extract(tree, &page.url, charset, &limits.parse);
        let base = extract.base.as_ref().unwrap_or(&page.url);
        let base = Base { page: &page.url, base, charset };
        let mut parsed = extract.page;
        decoded.charset.clone_into(&mut parsed.charset);
        parsed.warnings.extend(warnings(decoded, &document));

        let mut content = PageContent { html5: extract.has_article, ..PageContent::default() };
        let mut signs = PageSigns::new(&page.url, parsed.title.as_deref());
        let article_body = content::collect(tree, base, limits, &mut signs, &mut content);
        let main = MainContent::of(tree, &signs, limits.parse.text_bytes_max);
        content.text = main.text();
        if limits.markdown_bytes_max > 0 {
            let has_tables = !content.tables.is_empty();
            let markdown =
                markdown::write_markdown(tree, &main, base, has_tables, limits.markdown_bytes_max);
            content.markdown = markdown.text;
            if markdown.truncated && !parsed.warnings.contains(&Warning::TooMuchText) {
                parsed.warnings.push(Warning::TooMuchText);
            }
        }
        if let Some(body) = article_body.filter(|body| is_shown_by_script(&content.text, body)) {
            if limits.markdown_bytes_max > 0 {
                content.markdown.clone_from(&body);
            }
            content.text = body;
        }
        let text = if content.text.is_empty() { &parsed.visible_text } else { &content.text };
        let language = language::language_of(text, parsed.language.as_deref());
        content.language_detected = language.detected.map(str::to_owned);
        content.language = language.decided;
        Self { parsed, content }
    }
}

/// Whether the page itself shows next to nothing of the article that its structured data holds:
/// then a script would have put it there.
fn is_shown_by_script(shown: &str, article_body: &str) -> bool {
    /// A page that shows a third of an article shows it: the rest is for subscribers, or repeated.
    const SHOWN_SHARE_MAX: usize = 3;
    shown.len() * SHOWN_SHARE_MAX < article_body.len()
}

fn decide_language(content: &mut PageContent) {
    let text = if content.text.is_empty() { &content.visible_text } else { &content.text };
    let language = language::language_of(text, content.language_declared.as_deref());
    content.language_detected = language.detected.map(str::to_owned);
    content.language = language.decided;
}

fn warnings(decoded: &Decoded<'_>, document: &Document) -> impl Iterator<Item = Warning> {
    let warnings = [
        (decoded.bad_bytes, Warning::BadBytes),
        (document.too_deep, Warning::TooDeep),
        (document.too_many_attributes, Warning::TooManyAttributes),
    ];
    warnings.into_iter().filter(|(seen, _)| *seen).map(|(_, warning)| warning)
}

/// What a crawl needs of a page's content.
fn parsed_page(content: PageContent) -> ParsedPage {
    ParsedPage {
        charset: content.charset,
        title: content.title,
        description: content.description,
        language: content.language_declared,
        links: content.links,
        links_dropped: content.dropped.links,
        visible_text: content.visible_text,
        warnings: content.warnings,
        ..ParsedPage::default()
    }
}

fn parse_plain_text(decoded: &Decoded<'_>, limits: &ParseLimits) -> ParsedPage {
    let mut warnings = Vec::new();
    if decoded.bad_bytes {
        warnings.push(Warning::BadBytes);
    }
    // PostgreSQL and terminals cannot take a NUL; HTML replaces it as well.
    let text = text::unix_lines(&decoded.text).replace('\0', "\u{fffd}");
    if text.len() > limits.text_bytes_max {
        warnings.push(Warning::TooMuchText);
    }
    ParsedPage {
        charset: decoded.charset.to_owned(),
        visible_text: text::cut(&text, limits.text_bytes_max).to_owned(),
        warnings,
        ..ParsedPage::default()
    }
}

fn read_plain_text(decoded: &Decoded<'_>, limits: &ContentLimits) -> PageContent {
    let mut content = PageContent::from(parse_plain_text(decoded, &limits.parse));
    content.text.clone_from(&content.visible_text);
    content.markdown.clone_from(&content.visible_text);
    decide_language(&mut content);
    content
}

/// A feed is a page whose links are its entries and whose text is theirs.
fn read_feed_page(decoded: &Decoded<'_>, page: &RawPage, limits: &ContentLimits) -> PageContent {
    let text = text::unix_lines(&decoded.text).replace('\0', "\u{fffd}");
    let ReadFeed { title, description, language, mut entries, dropped } =
        content::read_feed(&text, &page.url, limits);
    let mut content = PageContent {
        charset: decoded.charset.to_owned(),
        title,
        description,
        language_declared: language,
        ..PageContent::default()
    };
    content.dropped.feed_entries = dropped;
    let mut spent = Spent::default();
    let mut too_deep = false;
    for entry in &mut entries {
        // The markup inside is a small page of its own, but the work for all of them is that of one.
        let document = tokens::build_piece(
            &entry.text,
            Syntax::Html,
            Detail::Crawl,
            &limits.parse,
            &mut spent,
        );
        too_deep |= document.too_deep;
        let (tree, charset) = (&document.tree, QueryCharset::UTF_8);
        entry.text = extract::extract(tree, &page.url, charset, &limits.parse).page.visible_text;
        if let Some(url) = &entry.url {
            let (url, anchor) = (url.clone(), entry.title.clone());
            content.links.push(Link {
                url,
                anchor,
                kind: LinkKind::Anchor,
                nofollow: false,
                rel: String::new(),
            });
        }
        for line in [&entry.title, &entry.text].into_iter().filter(|line| !line.is_empty()) {
            content.text.push_str(line);
            content.text.push('\n');
        }
        content.markdown.push_str(&entry_markdown(entry));
    }
    content.visible_text.clone_from(&content.text);
    content.feed_entries = entries;
    if decoded.bad_bytes {
        content.warnings.push(Warning::BadBytes);
    }
    if too_deep {
        content.warnings.push(Warning::TooDeep);
    }
    decide_language(&mut content);
    content
}

fn entry_markdown(entry: &telusur_model::FeedEntry) -> String {
    let heading = match &entry.url {
        Some(url) => format!("## [{}]({url})\n\n", entry.title),
        None => format!("## {}\n\n", entry.title),
    };
    if entry.text.is_empty() { heading } else { heading + &entry.text + "\n\n" }
}
