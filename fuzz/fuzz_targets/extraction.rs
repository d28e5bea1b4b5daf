//! Everything that is taken from a page stays within its limits, is the same every time, and the
//! main content is made of what the page says.
//!
//! `cargo +nightly fuzz run extraction`. The first byte chooses the label and the limits.

#![no_main]

mod page;

use libfuzzer_sys::fuzz_target;
use telusur_parse::{ContentLimits, read_page};

use crate::page::{raw_page, tight_content_limits};

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let content_type = ["text/html", "text/html; charset=utf-8", "application/atom+xml"]
        [usize::from(*choice) % 3];
    let page = raw_page(content_type, body);
    let limits = if *choice < 128 { ContentLimits::default() } else { tight_content_limits() };
    let content = read_page(&page, &limits);
    assert_eq!(content, read_page(&page, &limits), "the same bytes gave two pages");
    assert!(content.headings.len() <= limits.headings_max);
    assert!(content.images.len() <= limits.images_max);
    assert!(content.tables.len() <= limits.tables_max);
    let cells = content.tables.iter().flat_map(|table| &table.rows).map(Vec::len).sum::<usize>();
    assert!(cells <= limits.cells_max);
    assert!(content.tables.iter().all(|table| table.html.len() <= limits.table_html_bytes_max));
    assert!(content.lists.len() <= limits.lists_max);
    assert!(content.forms.len() <= limits.forms_max);
    assert!(content.feed_entries.len() <= limits.feed_entries_max);
    if content.feed_entries.is_empty() && content.json_ld.is_empty() {
        assert!(content.markdown.len() <= limits.markdown_bytes_max);
        assert!(content.text.len() <= limits.parse.text_bytes_max);
    }
    assert!(!content.text.contains('\0') && !content.markdown.contains('\0'));
});
