//! Whole pages in, whole results out.

mod content;
mod hostile;
mod links;
mod main_content;
mod page;
mod search;
mod tree;
mod visible_text;

use bytes::Bytes;
use telusur_model::{PageUrl, ParsedPage, RawPage};

use crate::{ParseLimits, parse};

pub(crate) fn raw_page(content_type: &str, body: &[u8]) -> RawPage {
    RawPage {
        url: PageUrl::parse("http://a.org/dir/page").unwrap(),
        status: 200,
        headers: vec![("content-type".to_owned(), content_type.to_owned())],
        body: Bytes::copy_from_slice(body),
        truncated: false,
        wire_bytes: body.len() as u64,
    }
}

fn parse_html(html: &str) -> ParsedPage {
    let page = raw_page("text/html; charset=utf-8", html.as_bytes());
    parse(&page, &ParseLimits::default())
}
