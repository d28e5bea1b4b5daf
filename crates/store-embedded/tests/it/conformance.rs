//! The suite of all stores, on this one.

use std::sync::Arc;

use telusur_store::Store;
use telusur_store::conformance::{Bench, check_all};
use telusur_store_embedded::EmbeddedStore;

struct Directory(tempfile::TempDir);

impl Bench for Directory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(EmbeddedStore::open(self.0.path()).unwrap())
    }
}

#[test]
fn keeps_every_promise_of_a_store() {
    check_all(|| Directory(tempfile::tempdir().unwrap()));
}
