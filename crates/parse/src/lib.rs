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

use crate::charset::Decoded;
use crate::content::{Base, ReadFeed};
use crate::main_content::{MainContent, PageSigns};
use crate::tokens::{Detail, Document, Syntax};

/// Reads what a crawl goes by: title, rules, links and visible text. Pages that are no HTML, no feed
/// and no plain text come back empty.
pub fn parse(page: &RawPage, limits: &ParseLimits) -> ParsedPage {
    let content_type = page.content_type();
    let kind = is_parsed(content_type.as_deref(), &page.body);
    let mut parsed = match kind {
        PageKind::Html => parse_html(page, Syntax::of(content_type.as_deref()), limits),
        PageKind::Feed => {
            let limits = ContentLimits { parse: limits.clone(), ..ContentLimits::default() };
            parsed_page(read_feed_page(page, &limits))
        }
        PageKind::PlainText => parse_plain_text(page, limits),
        PageKind::Other => ParsedPage::default(),
    };
    parsed.warnings.extend(delivery_warnings(page, kind));
    parsed
}

/// Reads everything that is in a page. Costs about three times as much as [`parse`].
pub fn read_page(page: &RawPage, limits: &ContentLimits) -> PageContent {
    let content_type = page.content_type();
    let kind = is_parsed(content_type.as_deref(), &page.body);
    let mut content = match kind {
        PageKind::Html => read_html(page, Syntax::of(content_type.as_deref()), limits),
        PageKind::Feed => read_feed_page(page, limits),
        PageKind::PlainText => read_plain_text(page, limits),
        PageKind::Other => PageContent::default(),
    };
    content.bytes = page.body.len() as u64;
    content.warnings.extend(delivery_warnings(page, kind));
    content
}

/// Reads what a crawl goes by, exactly as [`parse`] does, and what a search goes by, at once. Costs
/// about twice as much as [`parse`]; what `limits` must allow is [`ContentLimits::for_search`].
pub fn read_for_search(page: &RawPage, limits: &ContentLimits) -> SearchPage {
    let content_type = page.content_type();
    let kind = is_parsed(content_type.as_deref(), &page.body);
    let mut read = match kind {
        PageKind::Html => search::html(page, Syntax::of(content_type.as_deref()), limits),
        PageKind::Feed => search::feed(read_feed_page(page, limits)),
        PageKind::PlainText => search::plain_text(parse_plain_text(page, &limits.parse)),
        PageKind::Other => SearchPage::default(),
    };
    read.parsed.warnings.extend(delivery_warnings(page, kind));
    read
}

/// What is to be said about how a page came, whatever is in it.
fn delivery_warnings(page: &RawPage, kind: PageKind) -> impl Iterator<Item = Warning> {
    let warnings = [
        (page.truncated, Warning::Truncated),
        (kind == PageKind::Other, Warning::NotRead),
        (page.has_unknown_coding(), Warning::UnknownCoding),
    ];
    warnings.into_iter().filter(|(seen, _)| *seen).map(|(_, warning)| warning)
}

fn parse_html(page: &RawPage, syntax: Syntax, limits: &ParseLimits) -> ParsedPage {
    let decoded = charset::decode_html(page);
    let document = tokens::build_tree(&decoded.text, syntax, Detail::Crawl, limits);
    let mut parsed = extract::extract(&document.tree, &page.url, limits).page;
    decoded.charset.clone_into(&mut parsed.charset);
    parsed.warnings.extend(warnings(&decoded, &document));
    parsed
}

fn read_html(page: &RawPage, syntax: Syntax, limits: &ContentLimits) -> PageContent {
    let HtmlPage { parsed, content } =
        HtmlPage::read(&charset::decode_html(page), page, syntax, limits);
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
        let extract = extract::extract(tree, &page.url, &limits.parse);
        let base = Base { page: &page.url, base: extract.base.as_ref().unwrap_or(&page.url) };
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

fn parse_plain_text(page: &RawPage, limits: &ParseLimits) -> ParsedPage {
    let decoded = charset::decode_plain_text(page);
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

fn read_plain_text(page: &RawPage, limits: &ContentLimits) -> PageContent {
    let mut content = PageContent::from(parse_plain_text(page, &limits.parse));
    content.text.clone_from(&content.visible_text);
    content.markdown.clone_from(&content.visible_text);
    decide_language(&mut content);
    content
}

/// A feed is a page whose links are its entries and whose text is theirs.
fn read_feed_page(page: &RawPage, limits: &ContentLimits) -> PageContent {
    let decoded = charset::decode_html(page);
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
    for entry in &mut entries {
        // The markup inside is a small page of its own.
        let document = tokens::build_tree(&entry.text, Syntax::Html, Detail::Crawl, &limits.parse);
        entry.text = extract::extract(&document.tree, &page.url, &limits.parse).page.visible_text;
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
