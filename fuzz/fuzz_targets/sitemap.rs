//! Any bytes are a sitemap or a word about what they are instead, within the limits of a sitemap.
//!
//! `cargo +nightly fuzz run sitemap`. The bytes are the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use telusur_fetch::sitemap::{self, ENTRIES_MAX};

fuzz_target!(|data: &[u8]| {
    let read = sitemap::read(data);
    assert!(read.entries.len() <= 2 * ENTRIES_MAX, "pages and what belongs to them");
    for entry in &read.entries {
        assert_eq!(entry.loc, entry.loc.trim(), "addresses are trimmed");
        assert!(!entry.loc.is_empty(), "an entry has an address");
    }
    assert_eq!(sitemap::read(data), read, "the same bytes are the same sitemap");
});
