//! Opening, reopening, replacing, damage.

use std::fs;

use telusur_index::{IndexError, IndexLimits, Query, SearchIndex};

use crate::web::{key, page};

fn open(dir: &tempfile::TempDir) -> Result<SearchIndex, IndexError> {
    SearchIndex::open(dir.path(), IndexLimits::default())
}

fn count(index: &SearchIndex, text: &str) -> usize {
    index.search(&Query::new(text)).unwrap().hits.len()
}

#[test]
fn a_new_directory_is_an_empty_index() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(&dir).unwrap();
    assert_eq!(index.applied_upto(), 0);
    assert_eq!(index.doc_count(), 0);
    assert_eq!(count(&index, "anything at all"), 0);
}

#[test]
fn documents_and_checkpoint_survive_together() {
    let dir = tempfile::tempdir().unwrap();
    open(&dir).unwrap().apply(&[page("https://a.example/x", "x", "walrus")], &[], 42).unwrap();
    let index = open(&dir).unwrap();
    assert_eq!(index.applied_upto(), 42);
    assert_eq!(count(&index, "walrus"), 1);
}

#[test]
fn a_page_stored_again_replaces_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(&dir).unwrap();
    let url = "https://a.example/x";
    index.apply(&[page(url, "x", "walrus")], &[], 1).unwrap();
    index.apply(&[page(url, "x", "penguin"), page(url, "x", "puffin")], &[], 2).unwrap();
    assert_eq!(index.doc_count(), 1);
    assert_eq!(
        (count(&index, "walrus"), count(&index, "penguin"), count(&index, "puffin")),
        (0, 0, 1)
    );
    index.apply(&[], &[key(url)], 3).unwrap();
    assert_eq!(index.doc_count(), 0);
}

#[test]
fn one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(&dir).unwrap();
    assert!(matches!(open(&dir), Err(IndexError::Locked)));
}

#[test]
fn another_version_asks_to_be_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&dir).unwrap());
    fs::write(dir.path().join("telusur-index.version"), "999\n").unwrap();
    let error = open(&dir).err().unwrap();
    assert!(matches!(error, IndexError::OtherVersion { found: 999, .. }));
    assert!(error.needs_rebuild());
    let index = SearchIndex::create_anew(dir.path(), IndexLimits::default()).unwrap();
    assert_eq!(index.applied_upto(), 0);
}

/// Every file of an index in turn is cut short or removed: opening must ask for a rebuild or work,
/// and never panic or give wrong words.
#[test]
fn damage_asks_for_a_rebuild() {
    let intact = tempfile::tempdir().unwrap();
    open(&intact).unwrap().apply(&[page("https://a.example/x", "x", "walrus")], &[], 1).unwrap();
    let names: Vec<_> =
        fs::read_dir(intact.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let mut asked = 0;
    for name in &names {
        for cut in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            for other in &names {
                fs::copy(intact.path().join(other), dir.path().join(other)).unwrap();
            }
            let victim = dir.path().join(name);
            if cut {
                let bytes = fs::read(&victim).unwrap();
                fs::write(&victim, &bytes[..bytes.len() / 2]).unwrap();
            } else {
                fs::remove_file(&victim).unwrap();
            }
            match open(&dir) {
                Ok(_) => {}
                Err(error) => {
                    assert!(error.needs_rebuild(), "{name:?} cut {cut}: {error}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > names.len(), "{asked} of {}", names.len());
}
