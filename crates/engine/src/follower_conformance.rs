//! The suite that every follower passes before it follows anything.
//!
//! It panics where a promise is broken, so it unwraps freely. A follower calls [`check_all`] with a way to
//! make an empty one and a way to open it again. That it is killed is played by dropping it: what is not
//! committed is lost then, whatever it has been handed.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test suite")]

mod alone;
mod with_store;

use std::collections::BTreeMap;

use telusur_model::{
    CrawlNo, Findings, PageRecord, PageUrl, ParsedPage, SearchPage, Timestamp, UrlKey, UrlKeyer,
};

use crate::followers::{ChangeBatch, FollowedChange, FollowedPage, Follower, PageContent};

/// A word that is in every page of the suite.
pub const COMMON_WORD: &str = "conformance";

/// A follower, and how to open it again after it was dropped.
pub trait FollowerBench {
    /// Opens the follower: empty at first, and later with everything that was committed.
    fn open(&self) -> Box<dyn Follower>;
    /// The pages in the last commit, each as often as it is there, in any order. Asked for while a follower
    /// is open, and never of more than [`PAGES_MAX`].
    fn pages(&self) -> Vec<HeldPage>;
}

/// Pages that a follower of the suite ever holds.
pub const PAGES_MAX: usize = 900;

/// A page that a follower holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldPage {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// Its key.
    pub key: UrlKey,
    /// Its title: every version of a page has another.
    pub title: String,
}

/// A promise in words, and what checks it.
type Promise = (&'static str, fn(&dyn FollowerBench));

/// Every promise, one after the other, each on a bench of its own.
pub fn check_all<B: FollowerBench>(new_bench: impl Fn() -> B) {
    for (promise, check) in promises() {
        println!("follower: {promise}");
        check(&new_bench());
    }
}

/// The first promise that a follower breaks, in words, for tests of the suite itself.
pub fn broken_promise<B: FollowerBench>(new_bench: impl Fn() -> B) -> Option<&'static str> {
    let is_broken = |check: fn(&dyn FollowerBench)| {
        let bench = new_bench();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&bench))).is_err()
    };
    let broken = promises().into_iter().find(|(_, check)| is_broken(*check));
    broken.map(|(promise, _)| promise)
}

fn promises() -> Vec<Promise> {
    vec![
        ("it begins with nothing, at place 0", alone::begins_with_nothing),
        ("it holds what it was handed, once, after a commit", alone::holds_what_it_was_handed),
        ("a kill costs what was not committed", alone::loses_what_was_not_committed),
        ("a place is never ahead of its pages", alone::place_is_never_ahead),
        ("a page replaces the one with its key", alone::replaces_pages),
        ("of two versions in one batch the later stays", alone::keeps_the_later_version),
        ("nothing stays of a page without content", alone::forgets_content),
        ("nothing stays of a removed crawl", alone::takes_out_removed_crawls),
        ("what is opened again after a failure goes on from the last commit", alone::reopens),
        ("any order of batches, commits and kills", alone::survives_any_order),
        ("it catches up when it is far behind", with_store::catches_up),
        ("every third commit fails: each page once", with_store::survives_failing_commits),
        ("replaced, read again and removed meanwhile", with_store::follows_changes_meanwhile),
        ("one that is broken keeps up no other", with_store::stands_alone),
    ]
}

/// What a follower should hold after these changes.
fn expected<'a>(changes: impl IntoIterator<Item = &'a FollowedChange>) -> Vec<HeldPage> {
    let mut pages = BTreeMap::new();
    for change in changes {
        match change {
            FollowedChange::Page(page) => {
                let (crawl, key) = (page.record.crawl, page.record.key);
                match &page.content {
                    Some(content) => {
                        let title = content.page.parsed.title.clone().unwrap();
                        pages.insert((crawl, key), HeldPage { crawl, key, title });
                    }
                    None => _ = pages.remove(&(crawl, key)),
                }
            }
            FollowedChange::Removed { crawl, .. } => pages.retain(|(other, _), _| other != crawl),
        }
    }
    pages.into_values().collect()
}

/// Checks that a follower holds what its place says, of these changes.
#[track_caller]
fn assert_holds(bench: &dyn FollowerBench, follower: &dyn Follower, changes: &[FollowedChange]) {
    let place = follower.place();
    let seen = changes.iter().filter(|change| change.seq() <= place);
    assert_eq!(held(bench), expected(seen), "at place {place}");
}

/// What a follower holds, in order.
fn held(bench: &dyn FollowerBench) -> Vec<HeldPage> {
    let mut pages = bench.pages();
    pages.sort();
    pages
}

/// A version of a page. The place is part of its title.
fn page(seq: u64, crawl: u32, number: u64) -> FollowedChange {
    let url = PageUrl::parse(&format!("http://site{crawl}.test/{number}")).unwrap();
    let keyer = UrlKeyer { seed: 7, drop_tracking: true };
    let record = PageRecord::bare(CrawlNo(crawl), keyer.key(&url), url, Timestamp(seq));
    let parsed = ParsedPage {
        charset: "UTF-8".to_owned(),
        title: Some(title_of(seq, number)),
        ..ParsedPage::default()
    };
    let text = format!("{COMMON_WORD} of page {number}, version{seq}");
    let page = SearchPage { parsed, findings: Findings { text, ..Findings::default() } };
    let content = Some(PageContent { page, rights: Vec::new(), keyer });
    let record = telusur_model::PageRecord { seq, ..record };
    FollowedChange::Page(Box::new(FollowedPage { record, content }))
}

fn title_of(version: u64, number: u64) -> String {
    format!("Page {number} as of {version}")
}

fn removed(seq: u64, crawl: u32) -> FollowedChange {
    FollowedChange::Removed { seq, crawl: CrawlNo(crawl) }
}

fn batch(changes: &[FollowedChange]) -> ChangeBatch {
    let upto = changes.last().unwrap().seq();
    ChangeBatch { changes: changes.to_vec(), upto }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }
}
