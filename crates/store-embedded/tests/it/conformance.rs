//! The suite of all stores, on this one.

use std::sync::Arc;

use telusur_ledger::conformance::{Bench, check_all, check_rows};
use telusur_ledger::{Storage, Store};

struct Directory(tempfile::TempDir);

impl Bench for Directory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(telusur_store_embedded::open(self.0.path()).unwrap())
    }
}

#[test]
fn keeps_every_promise_of_a_store() {
    check_all(|| Directory(tempfile::tempdir().unwrap()));
}

#[test]
fn keeps_rows_as_promised() {
    let directory = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(directory.path()).unwrap();
    check_rows(store.storage().rows());
}
