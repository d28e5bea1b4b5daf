//! Bytes from the web to what is in a page: charset, title, links, visible text.
//!
//! Pure and total: [`parse`] does no I/O, reads no clock, starts no thread and cannot fail. The
//! same bytes give the same [`ParsedPage`]; what went wrong on the way is in its warnings.
//!
//! The way of a page, one module each: `kind` decides whether it is read at all, `charset`
//! makes text of it, `tokens` cuts the text into tags and characters, `guard` keeps hostile
//! nesting away from html5ever's tree builder, `tree` is the arena that the builder fills, and
//! `extract` takes everything out of the tree in one walk, with `links` and `text` at hand.

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
mod text;

#[cfg(test)]
mod tests;

use telusur_model::{ParsedPage, RawPage, Warning};

pub use crate::kind::{PageKind, is_parsed};
pub use crate::limits::ParseLimits;

use crate::tokens::Syntax;

/// Reads a page. Pages that are neither HTML nor plain text come back empty.
pub fn parse(page: &RawPage, limits: &ParseLimits) -> ParsedPage {
    let content_type = page.content_type();
    let mut parsed = match is_parsed(content_type.as_deref(), &page.body) {
        PageKind::Html => parse_html(page, Syntax::of(content_type.as_deref()), limits),
        PageKind::PlainText => parse_plain_text(page, limits),
        PageKind::Other => ParsedPage::default(),
    };
    if page.truncated {
        parsed.warnings.push(Warning::Truncated);
    }
    parsed
}

fn parse_html(page: &RawPage, syntax: Syntax, limits: &ParseLimits) -> ParsedPage {
    let decoded = charset::decode_html(page);
    let document = tokens::build_tree(&decoded.text, syntax, limits);
    let mut parsed = extract::extract(&document.tree, &page.url, limits);
    decoded.charset.clone_into(&mut parsed.charset);
    let warnings = [
        (decoded.bad_bytes, Warning::BadBytes),
        (document.too_deep, Warning::TooDeep),
        (document.too_many_attributes, Warning::TooManyAttributes),
    ];
    parsed.warnings.extend(warnings.iter().filter(|(seen, _)| *seen).map(|(_, warning)| warning));
    parsed
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
        text: text::cut(&text, limits.text_bytes_max).to_owned(),
        warnings,
        ..ParsedPage::default()
    }
}
