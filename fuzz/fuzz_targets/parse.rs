//! Any bytes give a page, always the same one, within its limits.
//!
//! `cargo +nightly fuzz run parse`. The first byte chooses the label and the limits, the rest is
//! the body.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use telusur_model::{PageUrl, RawPage};
use telusur_parse::{ParseLimits, parse};

const CONTENT_TYPES: [&str; 6] = [
    "text/html",
    "text/html; charset=utf-8",
    "text/html; charset=shift_jis",
    "application/xhtml+xml",
    "text/plain",
    "application/octet-stream",
];

fuzz_target!(|data: &[u8]| {
    let Some((label, body)) = data.split_first() else { return };
    let content_type = CONTENT_TYPES[usize::from(*label) % CONTENT_TYPES.len()];
    let page = RawPage {
        url: PageUrl::parse("http://a.org/dir/page").expect("a plain URL"),
        status: 200,
        headers: vec![("content-type".to_owned(), content_type.to_owned())],
        body: Bytes::copy_from_slice(body),
        truncated: false,
        wire_bytes: body.len() as u64,
    };
    let limits = if *label < 128 { ParseLimits::default() } else { tight_limits() };
    let parsed = parse(&page, &limits);
    assert_eq!(parsed, parse(&page, &limits), "the same bytes gave two pages");
    assert!(parsed.links.len() <= limits.links_max);
    assert!(parsed.text.len() <= limits.text_bytes_max);
    assert!(!parsed.text.contains('\0'));
    assert!(parsed.title.is_none_or(|title| title.len() <= limits.title_bytes_max));
});

/// Limits that small inputs meet all the time.
fn tight_limits() -> ParseLimits {
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
