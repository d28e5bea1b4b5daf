//! The suite of followers: on the search index, on a follower that keeps its pages in a file, and on some
//! that are wrong on purpose, which it must find out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use telusur_engine::follower_conformance::{
    COMMON_WORD, FollowerBench, HeldPage, PAGES_MAX, broken_promise, check_all,
};
use telusur_engine::{ChangeBatch, FollowError, FollowedChange, Follower, IndexFollower};
use telusur_index::{DocKey, IndexLimits, Query, SearchIndex};
use telusur_model::{CrawlNo, UrlKey};

struct IndexBench {
    dir: tempfile::TempDir,
    index: Mutex<Option<Arc<SearchIndex>>>,
}

impl IndexBench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), index: Mutex::default() }
    }
}

impl FollowerBench for IndexBench {
    fn open(&self) -> Box<dyn Follower> {
        let mut index = self.index.lock().unwrap();
        *index = None;
        let limits = IndexLimits { writer_bytes: 15 << 20 };
        let opened = Arc::new(SearchIndex::open(&self.dir.path().join("index"), limits).unwrap());
        *index = Some(Arc::clone(&opened));
        Box::new(IndexFollower::new(opened))
    }

    fn pages(&self) -> Vec<HeldPage> {
        let index = self.index.lock().unwrap();
        let index = index.as_ref().unwrap();
        let found = index.search(&Query::batch(COMMON_WORD, PAGES_MAX)).unwrap();
        let titles: BTreeMap<DocKey, String> =
            found.hits.into_iter().map(|hit| (hit.key, hit.title)).collect();
        let mut pages = Vec::new();
        index
            .each_key(&mut |key| {
                let title = titles.get(&key).cloned().unwrap_or_default();
                pages.push(HeldPage { crawl: key.crawl, key: key.url, title });
            })
            .unwrap();
        pages
    }
}

#[test]
fn the_index_keeps_every_promise_of_a_follower() {
    check_all(IndexBench::new);
}

/// What may be wrong with a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Its place is written before its pages.
    PlaceFirst,
    /// Its pages are written before its place.
    PagesFirst,
    /// A new version of a page comes beside the old one.
    Adds,
    /// Crawls that were removed stay.
    KeepsRemoved,
    /// Only what was committed is taken out when a crawl is removed.
    KeepsFresh,
    /// Pages that lost their content stay.
    KeepsContent,
    /// It says that it has committed and has not.
    CommitsNothing,
}

/// Pages in a file that is replaced whole.
struct FileFollower {
    path: PathBuf,
    fault: Fault,
    committed: Kept,
    fresh: Kept,
    /// What its place would be if it wrote it first.
    place_ahead: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept {
    place: u64,
    pages: Vec<(CrawlNo, UrlKey, String)>,
}

impl FileFollower {
    fn open(path: PathBuf, fault: Fault) -> Self {
        let committed = read(&path);
        let (fresh, place_ahead) = (committed.clone(), committed.place);
        Self { path, fault, committed, fresh, place_ahead }
    }

    fn write(&self, kept: &Kept) {
        let new = self.path.with_extension("new");
        fs::write(&new, serde_json::to_vec(kept).unwrap()).unwrap();
        fs::rename(new, &self.path).unwrap();
    }
}

fn read(path: &PathBuf) -> Kept {
    fs::read(path).map(|json| serde_json::from_slice(&json).unwrap()).unwrap_or_default()
}

impl Follower for FileFollower {
    fn name(&self) -> &'static str {
        "file"
    }

    fn place(&self) -> u64 {
        if self.fault == Fault::PlaceFirst { self.place_ahead } else { self.committed.place }
    }

    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError> {
        for change in batch.changes {
            match change {
                FollowedChange::Page(page) => {
                    let (crawl, key) = (page.record.crawl, page.record.key);
                    let is_other = |it: &(CrawlNo, UrlKey, String)| (it.0, it.1) != (crawl, key);
                    match page.content {
                        Some(content) => {
                            if self.fault != Fault::Adds {
                                self.fresh.pages.retain(is_other);
                            }
                            let title = content.page.parsed.title.unwrap_or_default();
                            self.fresh.pages.push((crawl, key, title));
                        }
                        None if self.fault == Fault::KeepsContent => {}
                        None => self.fresh.pages.retain(is_other),
                    }
                }
                FollowedChange::Removed { .. } if self.fault == Fault::KeepsRemoved => {}
                FollowedChange::Removed { crawl, .. } => {
                    let is_committed = |it: &(CrawlNo, UrlKey, String)| {
                        self.committed.pages.iter().any(|known| known.1 == it.1)
                    };
                    let keeps_fresh = self.fault == Fault::KeepsFresh;
                    self.fresh
                        .pages
                        .retain(|it| it.0 != crawl || (keeps_fresh && !is_committed(it)));
                }
            }
        }
        self.fresh.place = batch.upto;
        match self.fault {
            Fault::PlaceFirst => {
                self.place_ahead = batch.upto;
                self.write(&Kept { place: batch.upto, ..self.committed.clone() });
            }
            Fault::PagesFirst => {
                self.write(&Kept { place: self.committed.place, ..self.fresh.clone() });
            }
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        self.committed = self.fresh.clone();
        if self.fault != Fault::CommitsNothing {
            self.write(&self.committed);
        }
        Ok(())
    }

    fn reopen(&mut self, _why: &FollowError) -> Result<(), FollowError> {
        *self = Self::open(self.path.clone(), self.fault);
        Ok(())
    }
}

struct FileBench {
    dir: tempfile::TempDir,
    fault: Fault,
}

impl FileBench {
    fn new(fault: Fault) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), fault }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("pages.json")
    }
}

impl FollowerBench for FileBench {
    fn open(&self) -> Box<dyn Follower> {
        Box::new(FileFollower::open(self.path(), self.fault))
    }

    fn pages(&self) -> Vec<HeldPage> {
        let pages = read(&self.path()).pages.into_iter();
        pages.map(|(crawl, key, title)| HeldPage { crawl, key, title }).collect()
    }
}

#[test]
fn a_file_keeps_every_promise_of_a_follower() {
    check_all(|| FileBench::new(Fault::None));
}

#[test]
fn the_suite_finds_out_wrong_followers() {
    let check = |fault, expect| {
        assert_eq!(broken_promise(|| FileBench::new(fault)), Some(expect), "{fault:?}");
    };
    check(Fault::PlaceFirst, "a kill costs what was not committed");
    check(Fault::PagesFirst, "a kill costs what was not committed");
    check(Fault::CommitsNothing, "it holds what it was handed, once, after a commit");
    check(Fault::Adds, "a page replaces the one with its key");
    check(Fault::KeepsContent, "nothing stays of a page without content");
    check(Fault::KeepsRemoved, "nothing stays of a removed crawl");
    check(Fault::KeepsFresh, "nothing stays of a removed crawl");
}
