//! The tree is the same at both depths: a crawl and a full reading find the same links, the same
//! title and the same visible text.
//!
//! `cargo +nightly fuzz run tree`. The bytes are the body; the first one chooses the limits.

#![no_main]

mod page;

use libfuzzer_sys::fuzz_target;
use telusur_parse::{ContentLimits, parse, read_page};

use crate::page::{raw_page, tight_content_limits};

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let page = raw_page("text/html; charset=utf-8", body);
    let limits = if *choice < 128 { ContentLimits::default() } else { tight_content_limits() };
    let crawled = parse(&page, &limits.parse);
    let whole = read_page(&page, &limits);
    assert_eq!(crawled.title, whole.title);
    assert_eq!(crawled.links, whole.links);
    assert_eq!(crawled.visible_text, whole.visible_text);
    assert_eq!(crawled.canonical, whole.canonical);
});
