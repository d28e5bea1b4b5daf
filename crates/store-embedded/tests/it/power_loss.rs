//! Power loss: unsynced writes are dropped, reordered and torn. What was acknowledged survives, and
//! the segments always open again.

use std::sync::Arc;

use telusur_ledger::{Bodies, BodiesEnd};
use telusur_model::{BlobRef, CrawlNo};
use telusur_store_embedded::{Disk, Segments};
use telusur_testkit::sim_disk::{DiskCall, DiskFailure, DiskFault};
use telusur_testkit::{Dice, SimDisk};

const SEEDS: u64 = 10_000;
const CRAWL: CrawlNo = CrawlNo(1);

/// What the commit made durable: the end of the segments and the places of the blobs.
#[derive(Clone, Default)]
struct Acknowledged {
    end: BodiesEnd,
    blobs: Vec<(BlobRef, Vec<u8>)>,
}

#[test]
fn acknowledged_blobs_survive_any_power_loss() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut disk = SimDisk::new();
        let mut acknowledged = Acknowledged::default();
        // Several lives: each writes after what the last one left, torn tail included.
        for _life in 0..3 {
            acknowledged = live(&disk, acknowledged, &mut dice);
            disk = disk.crash(dice.below(u64::MAX));
            let segments = Segments::new(Arc::new(disk.clone()));
            for (place, blob) in &acknowledged.blobs {
                let read = segments.read(CRAWL, *place);
                assert_eq!(read.ok().as_ref(), Some(blob), "seed {seed}: {place:?}");
            }
        }
    }
}

/// Appends some groups, each acknowledged once it is synced, and dies in the middle of one: its
/// bytes may be written and synced, but no commit points at them.
fn live(disk: &SimDisk, mut acknowledged: Acknowledged, dice: &mut Dice) -> Acknowledged {
    let segments = Segments::new(Arc::new(disk.clone()));
    let groups = dice.below(4);
    for group in 0..=groups {
        let blobs: Vec<Vec<u8>> = (0..=dice.below(3)).map(|_| blob(dice)).collect();
        let parts: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
        let dies_before_the_commit = group == groups;
        if dies_before_the_commit && dice.below(2) == 0 {
            fail_next(disk, DiskCall::Sync, DiskFailure::Device);
        }
        let appended = segments.append(CRAWL, acknowledged.end, &parts);
        if dies_before_the_commit {
            return acknowledged;
        }
        let (places, end) = appended.expect("only the last group meets a fault");
        acknowledged.end = end;
        acknowledged.blobs.extend(places.into_iter().zip(blobs));
    }
    acknowledged
}

fn fail_next(disk: &SimDisk, call: DiskCall, failure: DiskFailure) {
    disk.fail(DiskFault { call, nth: disk.calls(call) + 1, lasting: false, failure });
}

fn blob(dice: &mut Dice) -> Vec<u8> {
    let len = 1 + dice.below(3_000);
    let fill = u8::try_from(dice.below(256)).expect("a byte");
    (0..len).map(|index| fill ^ u8::try_from(index % 251).expect("a byte")).collect()
}

#[test]
fn a_torn_tail_is_cut_by_the_next_writer() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (_, end) = segments.append(CRAWL, BodiesEnd::default(), &[b"first"]).unwrap();
    segments.append(CRAWL, end, &[b"never acknowledged, and longer than the next"]).unwrap();
    let (places, end) = segments.append(CRAWL, end, &[b"second"]).unwrap();
    assert_eq!(segments.read(CRAWL, places[0]).unwrap(), b"second");
    let file = disk.open("crawl_1/00000001.warc.zst").unwrap();
    assert_eq!(file.len().unwrap(), end.len);
}

#[test]
fn a_segment_that_lost_acknowledged_bytes_is_damage_and_not_silence() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (places, end) = segments.append(CRAWL, BodiesEnd::default(), &[b"first"]).unwrap();
    disk.open("crawl_1/00000001.warc.zst").unwrap().truncate(2).unwrap();
    assert!(segments.read(CRAWL, places[0]).is_err());
    assert!(segments.append(CRAWL, end, &[b"second"]).is_err());
}

#[test]
fn a_full_disk_is_said_to_be_full_and_nothing_moves() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (_, end) = segments.append(CRAWL, BodiesEnd::default(), &[b"first"]).unwrap();
    fail_next(&disk, DiskCall::Write, DiskFailure::NoSpace);
    let error = segments.append(CRAWL, end, &[b"second"]).unwrap_err();
    assert!(matches!(error, telusur_ledger::StoreError::DiskFull(_)), "{error}");
    let (places, _) = segments.append(CRAWL, end, &[b"second"]).unwrap();
    assert_eq!(segments.read(CRAWL, places[0]).unwrap(), b"second");
}
