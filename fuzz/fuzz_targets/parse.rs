//! Any bytes give a page, always the same one, within its limits.
//!
//! `cargo +nightly fuzz run parse`. The first byte chooses the label and the limits, the rest is
//! the body.

#![no_main]

mod page;

use libfuzzer_sys::fuzz_target;
use telusur_parse::{ParseLimits, parse};

use crate::page::{raw_page, tight_limits};

const CONTENT_TYPES: [&str; 7] = [
    "text/html",
    "text/html; charset=utf-8",
    "text/html; charset=shift_jis",
    "application/xhtml+xml",
    "text/plain",
    "application/rss+xml",
    "application/octet-stream",
];

fuzz_target!(|data: &[u8]| {
    let Some((label, body)) = data.split_first() else { return };
    let content_type = CONTENT_TYPES[usize::from(*label) % CONTENT_TYPES.len()];
    let page = raw_page(content_type, body);
    let limits = if *label < 128 { ParseLimits::default() } else { tight_limits() };
    let parsed = parse(&page, &limits);
    assert_eq!(parsed, parse(&page, &limits), "the same bytes gave two pages");
    if content_type != "application/rss+xml" {
        assert!(parsed.links.len() <= limits.links_max);
        assert!(parsed.visible_text.len() <= limits.text_bytes_max);
    }
    assert!(!parsed.visible_text.contains('\0'));
});
