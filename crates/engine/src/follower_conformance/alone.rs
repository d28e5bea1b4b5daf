//! A follower by itself, handed batches by the suite.

use super::{Dice, FollowerBench, assert_holds, batch, held, page, removed};
use crate::followers::{FollowError, FollowedChange};

pub(super) fn begins_with_nothing(bench: &dyn FollowerBench) {
    let follower = bench.open();
    assert_eq!(follower.place(), 0);
    assert_eq!(held(bench), []);
    let name = follower.name();
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
}

pub(super) fn holds_what_it_was_handed(bench: &dyn FollowerBench) {
    let mut follower = bench.open();
    let changes = [page(3, 1, 1), page(4, 1, 2), page(9, 2, 1), page(11, 1, 3)];
    follower.take_in(batch(&changes[..2])).unwrap();
    follower.take_in(batch(&changes[2..])).unwrap();
    follower.commit().unwrap();
    assert_eq!(follower.place(), 11);
    assert_eq!(held(bench).len(), 4);
    assert_holds(bench, &*follower, &changes);
    // Also for those who open it later, and with nothing more to commit.
    follower.commit().unwrap();
    drop(follower);
    let follower = bench.open();
    assert_eq!(follower.place(), 11);
    assert_holds(bench, &*follower, &changes);
}

pub(super) fn loses_what_was_not_committed(bench: &dyn FollowerBench) {
    let changes = [page(1, 1, 1), page(2, 1, 2), page(3, 1, 3)];
    let mut follower = bench.open();
    follower.take_in(batch(&changes[..1])).unwrap();
    follower.commit().unwrap();
    follower.take_in(batch(&changes[1..])).unwrap();
    drop(follower);
    let mut follower = bench.open();
    assert_holds(bench, &*follower, &changes);
    // It is handed again what it has not committed, and nothing else.
    let place = follower.place();
    let rest: Vec<_> = changes.iter().filter(|change| change.seq() > place).cloned().collect();
    follower.take_in(batch(&rest)).unwrap();
    follower.commit().unwrap();
    assert_eq!(follower.place(), 3);
    assert_holds(bench, &*follower, &changes);
}

pub(super) fn place_is_never_ahead(bench: &dyn FollowerBench) {
    let changes: Vec<_> = (1..=20).map(|seq| page(seq, 1, seq)).collect();
    let mut follower = bench.open();
    for change in &changes {
        follower.take_in(batch(std::slice::from_ref(change))).unwrap();
        assert_holds(bench, &*follower, &changes);
        if change.seq() % 5 == 0 {
            follower.commit().unwrap();
            assert_eq!(follower.place(), change.seq());
            assert_holds(bench, &*follower, &changes);
        }
    }
}

pub(super) fn replaces_pages(bench: &dyn FollowerBench) {
    let changes = [page(1, 1, 1), page(2, 1, 2), page(3, 1, 1), page(4, 2, 1), page(5, 1, 1)];
    let mut follower = bench.open();
    for some in [&changes[..2], &changes[2..3], &changes[3..]] {
        follower.take_in(batch(some)).unwrap();
        follower.commit().unwrap();
        assert_holds(bench, &*follower, &changes);
    }
    assert_eq!(held(bench).len(), 3);
}

pub(super) fn keeps_the_later_version(bench: &dyn FollowerBench) {
    let changes = [page(1, 1, 1), without_content(page(2, 1, 2)), page(3, 1, 1), page(4, 1, 2)];
    let mut follower = bench.open();
    follower.take_in(batch(&changes)).unwrap();
    follower.commit().unwrap();
    assert_eq!(held(bench).len(), 2);
    assert_holds(bench, &*follower, &changes);
}

pub(super) fn forgets_content(bench: &dyn FollowerBench) {
    let changes = [page(1, 1, 1), page(2, 1, 2), without_content(page(3, 1, 1))];
    let mut follower = bench.open();
    follower.take_in(batch(&changes[..2])).unwrap();
    follower.commit().unwrap();
    follower.take_in(batch(&changes[2..])).unwrap();
    follower.commit().unwrap();
    assert_holds(bench, &*follower, &changes);
}

fn without_content(change: FollowedChange) -> FollowedChange {
    match change {
        FollowedChange::Page(mut page) => {
            page.content = None;
            FollowedChange::Page(page)
        }
        removed @ FollowedChange::Removed { .. } => removed,
    }
}

pub(super) fn takes_out_removed_crawls(bench: &dyn FollowerBench) {
    let changes = [
        page(1, 1, 1),
        page(2, 2, 1),
        page(3, 1, 2),
        // Committed, and taken in just now; of a crawl that has nothing, and once more.
        page(4, 1, 3),
        removed(5, 1),
        page(6, 2, 2),
        removed(7, 9),
        page(8, 3, 1),
        removed(9, 1),
        removed(10, 3),
        page(11, 4, 1),
    ];
    let mut follower = bench.open();
    follower.take_in(batch(&changes[..3])).unwrap();
    follower.commit().unwrap();
    follower.take_in(batch(&changes[3..])).unwrap();
    assert_holds(bench, &*follower, &changes);
    follower.commit().unwrap();
    assert_eq!(follower.place(), 11);
    assert_eq!(held(bench).len(), 3);
    assert_holds(bench, &*follower, &changes);
    drop(follower);
    let follower = bench.open();
    assert_eq!(follower.place(), 11);
    assert_holds(bench, &*follower, &changes);
}

pub(super) fn reopens(bench: &dyn FollowerBench) {
    let changes = [page(1, 1, 1), page(2, 1, 2), page(3, 1, 3)];
    let mut follower = bench.open();
    follower.take_in(batch(&changes[..1])).unwrap();
    follower.commit().unwrap();
    follower.take_in(batch(&changes[1..2])).unwrap();
    follower.reopen(&FollowError::Failed("the suite says so".into())).unwrap();
    let place = follower.place();
    assert!(place >= 1, "it went back to {place}");
    assert_holds(bench, &*follower, &changes);
    let rest: Vec<_> = changes.iter().filter(|change| change.seq() > place).cloned().collect();
    follower.take_in(batch(&rest)).unwrap();
    follower.commit().unwrap();
    assert_eq!(follower.place(), 3);
    assert_holds(bench, &*follower, &changes);
}

pub(super) fn survives_any_order(bench: &dyn FollowerBench) {
    let mut dice = Dice(14);
    let (mut changes, mut seq, mut first_crawl) = (Vec::new(), 0, 1);
    while changes.len() < 150 {
        // The store's numbers have gaps.
        seq += 1 + dice.below(3);
        let crawl = first_crawl + u32::try_from(dice.below(3)).unwrap();
        let change = match dice.below(12) {
            0 => {
                first_crawl += 1;
                removed(seq, first_crawl - 1)
            }
            1 => without_content(page(seq, crawl, dice.below(10))),
            _ => page(seq, crawl, dice.below(10)),
        };
        changes.push(change);
    }
    let mut follower = bench.open();
    let (mut taken, mut committed) = (0, 0);
    while committed < changes.len() {
        let before = follower.place();
        match dice.below(8) {
            0 => {
                drop(follower);
                follower = bench.open();
            }
            1 => follower.reopen(&FollowError::Panicked).unwrap(),
            2 => {
                follower.commit().unwrap();
                committed = taken;
            }
            _ if taken < changes.len() => {
                let end = (taken + 1 + dice.below(12) as usize).min(changes.len());
                follower.take_in(batch(&changes[taken..end])).unwrap();
                taken = end;
                assert!(follower.place() >= before, "its place went back");
                continue;
            }
            _ => continue,
        }
        assert!(follower.place() >= before, "its place went back");
        assert_holds(bench, &*follower, &changes);
        taken = changes.partition_point(|change| change.seq() <= follower.place());
        assert!(taken >= committed, "it lost what was committed");
    }
    assert_eq!(follower.place(), seq);
}
