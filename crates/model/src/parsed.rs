//! [`ParsedPage`]: what is in a page.

use serde::{Deserialize, Serialize};

use crate::PageUrl;

/// What is in a page. Parsing cannot fail: what went wrong is in the warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedPage {
    /// The character encoding that the page was read in, by its WHATWG name.
    pub charset: String,
    /// The content of `<title>`, white space collapsed, cut at 1 KiB.
    pub title: Option<String>,
    /// `<meta name=description>`.
    pub description: Option<String>,
    /// `<meta name=keywords>`.
    pub keywords: Option<String>,
    /// The language that the page declares (`<html lang>`).
    pub language: Option<String>,
    /// `<link rel=canonical>`, resolved.
    pub canonical: Option<PageUrl>,
    /// `<meta name=robots>` as written.
    pub robots: Option<String>,
    /// `<meta name=telusur>`: the same, for this crawler alone.
    pub robots_own: Option<String>,
    /// Where `<meta http-equiv=refresh>` leads.
    pub refresh: Option<PageUrl>,
    /// The links that can be followed, in the order of the page, each URL once.
    pub links: Vec<Link>,
    /// Links beyond the limit, of which only the number is known.
    pub links_dropped: u32,
    /// Links with a scheme that is never fetched (`mailto:`, `javascript:`, `data:` …).
    pub links_other_scheme: u32,
    /// Links that are no valid URL.
    pub links_bad: u32,
    /// The visible text of `<article>`, else of `<body>`.
    pub visible_text: String,
    /// What went wrong on the way.
    pub warnings: Vec<Warning>,
}

/// A link on a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it leads, resolved against `<base>`.
    pub url: PageUrl,
    /// The text of the anchor, white space collapsed, cut at 256 bytes.
    pub anchor: String,
    /// What kind of link it is.
    pub kind: LinkKind,
    /// Whether it carries `rel=nofollow`.
    pub nofollow: bool,
    /// `rel` as written, cut at 64 bytes.
    pub rel: String,
}

/// The elements that lead to other pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// `<a href>` and `<area href>`.
    Anchor,
    /// `<frame src>` and `<iframe src>`.
    Frame,
    /// `<link rel=next|prev|alternate|canonical …>`.
    Relation,
    /// `<meta http-equiv=refresh>`.
    Refresh,
}

/// What went wrong while parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Elements nested deeper than the limit were flattened.
    TooDeep,
    /// A tag had more attributes than the limit.
    TooManyAttributes,
    /// There were more links than the limit.
    TooManyLinks,
    /// There was more text than the limit.
    TooMuchText,
    /// Bytes that do not exist in the page's encoding were replaced.
    BadBytes,
    /// The body was cut before it came here.
    Truncated,
    /// Nothing was read: it is no HTML, no feed and no text, by its label or by its bytes. It is stored,
    /// but has no words and no links.
    UnsupportedType,
    /// The server named a content coding that does not exist; the body was taken as it came.
    UnknownCoding,
}
