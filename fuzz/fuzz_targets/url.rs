//! Any text is a URL or an error, and the short way to plain URLs leads where the standard leads.
//!
//! `cargo +nightly fuzz run url`. The text is a link, and the address of the page behind a line break.

#![no_main]

use libfuzzer_sys::fuzz_target;
use telusur_model::PageUrl;
use url::Url;

fuzz_target!(|text: &str| {
    let (link, base) = text.split_once('\n').unwrap_or((text, "https://a.example:8443/x/y?z"));
    check(PageUrl::parse(link).ok(), Url::parse(link).ok());
    let Ok(page) = PageUrl::parse(base) else { return };
    // Links with more than two slashes in front are read as the standard says, not as the crate does.
    let is_odd = link.trim_start_matches(|c: char| c <= ' ').starts_with(['/', '\\'])
        && link.matches(['/', '\\']).count() > 2;
    if !is_odd {
        let base = Url::parse(page.as_str()).expect("a page's address is a URL");
        check(page.join(link).ok(), base.join(link).ok());
    }
});

/// Holds what we read against what the url crate reads.
fn check(ours: Option<PageUrl>, theirs: Option<Url>) {
    let Some(ours) = ours else { return };
    let mut theirs = theirs.expect("what we read is a URL");
    theirs.set_fragment(None);
    let _ = theirs.set_username("");
    let _ = theirs.set_password(None);
    assert_eq!(ours.as_str(), theirs.as_str());
    assert_eq!(ours.scheme(), theirs.scheme());
    assert_eq!(Some(ours.host_str()), theirs.host_str());
    assert_eq!(Some(ours.port()), theirs.port_or_known_default());
    assert_eq!(ours.path(), theirs.path());
    assert_eq!(ours.query(), theirs.query());
    assert_eq!(ours.origin(), theirs.origin().ascii_serialization());
}
