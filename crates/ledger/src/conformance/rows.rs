//! What the ledger takes for granted about tables of rows.

use crate::storage::{Batch, Rows, Table, WriteRows};

/// Checks empty tables; leaves rows in them.
pub fn check_rows(rows: &impl WriteRows) {
    let checks =
        [orders_keys, applies_batches_in_order, ranges_are_of_one_instant, takes_snapshots];
    for check in checks {
        check(rows);
        let mut batch = Batch::default();
        for table in Table::ALL {
            for row in rows.prefix(table, []) {
                batch.remove(table, &*row.unwrap().0);
            }
        }
        rows.commit(batch).unwrap();
    }
}

fn keys(rows: &impl Rows, table: Table, prefix: &[u8]) -> Vec<Vec<u8>> {
    rows.prefix(table, prefix).map(|row| row.unwrap().0.to_vec()).collect()
}

fn put(rows: &impl WriteRows, table: Table, keys: &[&[u8]]) {
    let mut batch = Batch::default();
    for key in keys {
        batch.insert(table, *key, *key);
    }
    rows.commit(batch).unwrap();
}

fn orders_keys(rows: &impl WriteRows) {
    put(rows, Table::Urls, &[b"b", b"a\xff", b"a", b"\xff\xff", b"a\0", b"\xff"]);
    put(rows, Table::Queue, &[b"a"]);
    let all: [&[u8]; 6] = [b"a", b"a\0", b"a\xff", b"b", b"\xff", b"\xff\xff"];
    assert_eq!(keys(rows, Table::Urls, b""), all);
    assert_eq!(keys(rows, Table::Urls, b"a"), all[..3]);
    assert_eq!(keys(rows, Table::Urls, b"\xff"), all[4..]);
    let between = rows.range(Table::Urls, b"a\0".into(), Some(b"b".into()));
    let between: Vec<_> = between.rev().map(|row| row.unwrap().1.to_vec()).collect();
    assert_eq!(between, [all[2], all[1]]);
    assert!(rows.contains(Table::Queue, b"a").unwrap());
    assert!(!rows.contains(Table::Queue, b"b").unwrap());
}

fn applies_batches_in_order(rows: &impl WriteRows) {
    let mut batch = Batch::default();
    batch.insert(Table::Meta, *b"kept", *b"1");
    batch.remove(Table::Meta, *b"kept");
    batch.insert(Table::Meta, *b"kept", *b"2");
    batch.insert(Table::Meta, *b"gone", *b"1");
    batch.remove(Table::Meta, *b"gone");
    rows.commit(batch).unwrap();
    assert_eq!(rows.get(Table::Meta, b"kept").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(rows.get(Table::Meta, b"gone").unwrap().is_none());
}

/// A reader of pages in their order would otherwise see a page before one that comes first.
fn ranges_are_of_one_instant(rows: &impl WriteRows) {
    // Enough rows that an iterator that reads ahead has not read them all.
    put(rows, Table::Order, &[b"1", b"3", b"5", b"7", b"9"]);
    let mut range = rows.prefix(Table::Order, []);
    let first = range.next().unwrap().unwrap().0;
    put(rows, Table::Order, &[b"2", b"4", b"6", b"8"]);
    let rest = range.map(|row| row.unwrap().0);
    let seen: Vec<_> = std::iter::once(first).chain(rest).map(|key| key.to_vec()).collect();
    assert_eq!(seen, [b"1", b"3", b"5", b"7", b"9"]);
}

fn takes_snapshots(rows: &impl WriteRows) {
    put(rows, Table::Pages, &[b"1", b"2"]);
    put(rows, Table::Hosts, &[b"a"]);
    let snapshot = rows.snapshot();
    let mut batch = Batch::default();
    batch.insert(Table::Pages, *b"3", *b"3");
    batch.insert(Table::Pages, *b"2", *b"changed");
    batch.remove(Table::Hosts, *b"a");
    rows.commit(batch).unwrap();
    assert_eq!(keys(&snapshot, Table::Pages, b""), [b"1", b"2"]);
    assert_eq!(snapshot.get(Table::Pages, b"2").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(snapshot.contains(Table::Hosts, b"a").unwrap());
    assert!(snapshot.get(Table::Pages, b"3").unwrap().is_none());
    assert_eq!(keys(&rows.snapshot(), Table::Pages, b""), [b"1", b"2", b"3"]);
    assert!(!rows.contains(Table::Hosts, b"a").unwrap());
}
