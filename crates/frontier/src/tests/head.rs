//! Reads of the store that cross with discoveries and commits, one race at a time.

use std::collections::BTreeSet;

use telusur_model::{CrawlNo, Lane, Purpose, QueuePlace, Timestamp, UrlKey, Via, Visit};

use super::sim::url;
use crate::head::{Head, Waiting};

fn place(seq: u64) -> QueuePlace {
    QueuePlace { lane: Lane::Plain, order: 0, seq }
}

fn waiting(seq: u64) -> Waiting {
    let visit = Visit {
        crawl: CrawlNo(1),
        purpose: Purpose::Page,
        url: url("a.com", seq),
        key: UrlKey(0),
        place: place(seq),
        depth: 0,
        hops_outside: 0,
        via: Via::Link,
        found_at: Timestamp(0),
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    };
    Waiting { visit, due: None }
}

fn waitings<const N: usize>(seqs: [u64; N]) -> Vec<Waiting> {
    seqs.map(waiting).into()
}

/// A head of at most three that has begun a read after these places.
fn reading_after<const N: usize>(seqs: [u64; N]) -> Head {
    let mut head = Head::new(true);
    assert!(head.wants_read(3));
    head.begin_read();
    assert!(head.refill(waitings(seqs), false, 3, |_| false));
    while head.take_first().is_some() {}
    assert!(head.wants_read(3));
    assert_eq!(head.begin_read(), seqs.last().map(|seq| place(*seq)));
    head
}

#[track_caller]
fn check(mut head: Head, expect: &[u64]) {
    let mut seqs = Vec::new();
    while let Some(visit) = head.take_first() {
        seqs.push(visit.place.seq);
    }
    assert_eq!(seqs, expect);
}

#[test]
fn an_answer_is_taken_in_order() {
    let mut head = reading_after([1]);
    assert!(head.refill(waitings([5, 3, 4]), true, 3, |_| false));
    check(head, &[3, 4, 5]);
}

#[test]
fn an_answer_that_nobody_asked_for_is_ignored() {
    let mut head = Head::new(false);
    assert!(!head.refill(waitings([1]), true, 3, |_| false));
    assert!(head.is_drained());
}

#[test]
fn what_is_outstanding_is_not_taken_again() {
    let outstanding = BTreeSet::from([place(4)]);
    let mut head = reading_after([1]);
    head.refill(waitings([3, 4, 5]), true, 3, |place| outstanding.contains(place));
    check(head, &[3, 5]);
}

#[test]
fn what_was_committed_during_the_read_is_not_taken_again() {
    let mut head = reading_after([1]);
    head.committed(place(4));
    head.refill(waitings([3, 4, 5]), true, 3, |_| false);
    check(head, &[3, 5]);
}

#[test]
fn a_discovery_during_the_read_is_not_lost() {
    let mut head = reading_after([1]);
    head.discovered(waiting(4), 3);
    head.refill(waitings([3]), true, 3, |_| false);
    check(head, &[3, 4]);
}

#[test]
fn of_two_discoveries_during_the_read_the_second_is_left_to_the_store() {
    let mut head = reading_after([1]);
    head.discovered(waiting(6), 9);
    head.discovered(waiting(4), 9);
    head.refill(waitings([3, 5, 7]), true, 9, |_| false);
    assert!(!head.clone().is_drained());
    assert_eq!(head.clone().begin_read(), Some(place(5)), "six and seven are read again");
    check(head, &[3, 4, 5]);
}

#[test]
fn a_head_that_was_cut_during_the_read_ignores_the_answer() {
    let mut head = reading_after([7]);
    for seq in [3, 4, 5, 6] {
        head.discovered(waiting(seq), 3);
    }
    assert!(head.refill(waitings([8, 9]), true, 3, |_| false));
    assert_eq!(head.clone().begin_read(), Some(place(5)), "six is read again");
    check(head, &[3, 4, 5]);
}

#[test]
fn a_place_beyond_the_head_stays_in_the_store() {
    let mut head = Head::new(false);
    for seq in [1, 2, 3, 4, 5] {
        head.discovered(waiting(seq), 3);
    }
    assert!(!head.wants_read(3), "three are in memory");
    check(head.clone(), &[1, 2, 3]);
    while head.take_first().is_some() {}
    assert!(!head.is_drained());
    assert!(head.wants_read(3));
    assert!(!head.wants_read(3), "said once");
    assert_eq!(head.begin_read(), Some(place(3)));
}
