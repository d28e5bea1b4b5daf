//! The suite of all storages, on the one in memory.

use std::sync::Arc;

use telusur_ledger::conformance::{Bench, check_all, check_rows};
use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{Ledger, Store};

struct Memory(InMemory);

impl Bench for Memory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Ledger::open(self.0.clone()).unwrap())
    }
}

#[test]
fn keeps_every_promise_of_a_store() {
    check_all(|| Memory(InMemory::default()));
}

#[test]
fn keeps_rows_as_promised() {
    check_rows(&InMemory::default());
}
