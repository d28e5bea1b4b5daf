//! Any bytes under any label give text in an encoding that exists, without a NUL.
//!
//! `cargo +nightly fuzz run charset`. What stands before the first line feed is the label, the rest
//! is the body.

#![no_main]

mod page;

use libfuzzer_sys::fuzz_target;
use telusur_parse::{ParseLimits, parse};

use crate::page::raw_page;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let label = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let body = parts.next().unwrap_or_default();
    for essence in ["text/html", "text/plain"] {
        let page = raw_page(&format!("{essence}; charset={label}"), body);
        let parsed = parse(&page, &ParseLimits::default());
        assert!(!parsed.visible_text.contains('\0'));
        let is_read = !parsed.charset.is_empty();
        assert!(is_read || essence == "text/plain" || !body.is_empty());
    }
});
