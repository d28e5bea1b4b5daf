//! A tiny web to search in.

use telusur_index::{DocKey, IndexDoc, IndexLimits, OutLink, Query, Results, SearchIndex};
use telusur_model::{CrawlNo, Timestamp, UrlKey};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_128;

/// The key of an address in the first crawl.
pub(crate) fn key(url: &str) -> DocKey {
    DocKey { url: UrlKey(xxh3_128(url.as_bytes())), crawl: CrawlNo(1) }
}

/// A page with a title and a text.
pub(crate) fn page(url: &str, title: &str, text: &str) -> IndexDoc {
    IndexDoc {
        title: title.to_owned(),
        text: text.to_owned(),
        ..IndexDoc::new(key(url), url, Timestamp(1_700_000_000_000))
    }
}

/// A link with some words.
pub(crate) fn link(url: &str, anchor: &str) -> OutLink {
    let page = key(url).url;
    OutLink { url: url.to_owned(), page, anchor: anchor.to_owned(), nofollow: false }
}

/// An index that holds some pages.
pub(crate) struct Web {
    pub(crate) index: SearchIndex,
    _dir: TempDir,
}

impl Web {
    pub(crate) fn of(pages: &[IndexDoc]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
        index.apply(pages, &[], 1).unwrap();
        Self { index, _dir: dir }
    }

    pub(crate) fn search(&self, text: &str) -> Results {
        self.index.search(&Query::new(text)).unwrap()
    }

    /// The paths of the hits, in order.
    pub(crate) fn paths(&self, text: &str) -> Vec<String> {
        paths(&self.search(text))
    }

    #[track_caller]
    pub(crate) fn check(&self, text: &str, expect: &[&str]) {
        assert_eq!(self.paths(text), expect, "{text}");
    }

    /// Like `check`, in any order.
    #[track_caller]
    pub(crate) fn check_set(&self, text: &str, expect: &[&str]) {
        let mut paths = self.paths(text);
        paths.sort();
        assert_eq!(paths, expect, "{text}");
    }
}

pub(crate) fn paths(results: &Results) -> Vec<String> {
    let path = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
    results.hits.iter().map(|hit| path(&hit.url)).collect()
}
