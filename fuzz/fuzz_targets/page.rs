//! What all targets share: how bytes become a page, and limits that small inputs meet all the time.

use bytes::Bytes;
use telusur_model::{PageUrl, RawPage};
use telusur_parse::{ContentLimits, ParseLimits};

/// A page with this label.
pub fn raw_page(content_type: &str, body: &[u8]) -> RawPage {
    RawPage {
        url: PageUrl::parse("http://a.org/dir/page").expect("a plain URL"),
        status: 200,
        headers: vec![("content-type".to_owned(), content_type.to_owned())],
        body: Bytes::copy_from_slice(body),
        truncated: false,
        wire_bytes: body.len() as u64,
    }
}

/// Tight limits for a crawl.
#[allow(dead_code, reason = "not every target needs both")]
pub fn tight_limits() -> ParseLimits {
    ParseLimits {
        depth_max: 8,
        attributes_max: 2,
        repairs_max: 3,
        links_max: 2,
        title_bytes_max: 8,
        anchor_bytes_max: 8,
        meta_bytes_max: 8,
        text_bytes_max: 64,
    }
}

/// Tight limits for everything.
#[allow(dead_code, reason = "not every target needs both")]
pub fn tight_content_limits() -> ContentLimits {
    ContentLimits {
        parse: tight_limits(),
        headings_max: 1,
        heading_bytes_max: 4,
        images_max: 1,
        tables_max: 1,
        cells_max: 5,
        cell_bytes_max: 4,
        table_html_bytes_max: 20,
        lists_max: 1,
        items_max: 2,
        item_bytes_max: 4,
        forms_max: 1,
        fields_max: 1,
        code_bytes_max: 8,
        json_ld_max: 1,
        json_ld_bytes_max: 8,
        feed_entries_max: 1,
        entry_bytes_max: 8,
        markdown_bytes_max: 64,
        ..ContentLimits::default()
    }
}
