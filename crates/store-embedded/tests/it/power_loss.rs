//! Power loss: unsynced writes are dropped, reordered and torn. What was acknowledged survives, and
//! the segments always open again.

use std::sync::Arc;

use telusur_ledger::{Bodies, BodiesEnd, StoreError};
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

/// Appends blobs and the record of their step. Gives their places and the new end.
pub(crate) fn append(
    segments: &Segments,
    end: BodiesEnd,
    blobs: &[&[u8]],
) -> Result<(Vec<BlobRef>, BodiesEnd), StoreError> {
    let mut places = Vec::new();
    let end = segments.append(CRAWL, end, blobs, |given| {
        places = given.to_vec();
        b"what happened".to_vec()
    })?;
    Ok((places, end))
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
        let appended = append(&segments, acknowledged.end, &parts);
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
    let (_, end) = append(&segments, BodiesEnd::default(), &[b"first"]).unwrap();
    append(&segments, end, &[b"never acknowledged, and longer than the next"]).unwrap();
    let (places, end) = append(&segments, end, &[b"second"]).unwrap();
    assert_eq!(segments.read(CRAWL, places[0]).unwrap(), b"second");
    let file = disk.open("crawl_1/00000001.warc.zst").unwrap();
    assert_eq!(file.len().unwrap(), end.len);
}

/// It once kept the crawl from ever going on.
#[test]
fn a_segment_that_lost_acknowledged_bytes_stays_as_it_is_and_a_new_one_begins() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (places, end) = append(&segments, BodiesEnd::default(), &[b"first"]).unwrap();
    disk.open("crawl_1/00000001.warc.zst").unwrap().truncate(2).unwrap();
    assert!(segments.read(CRAWL, places[0]).is_err());
    let (places, end) = append(&segments, end, &[b"second"]).unwrap();
    assert_eq!((places[0].segment, end.segment), (2, 2));
    assert_eq!(segments.read(CRAWL, places[0]).unwrap(), b"second");
    assert_eq!(disk.content("crawl_1/00000001.warc.zst").unwrap(), b"fi");
}

#[test]
fn a_segment_that_is_gone_is_not_made_by_reading() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let blob = telusur_model::BlobRef { segment: 1, offset: 0, len: 5 };
    disk.create_dir("crawl_1").unwrap();
    assert!(segments.read(CRAWL, blob).is_err());
    assert_eq!(disk.paths(), Vec::<String>::new());
    let (places, _) = append(&segments, BodiesEnd { segment: 1, len: 5 }, &[b"x"]).unwrap();
    assert_eq!(places[0].segment, 2);
}

/// A journal that was rolled back once made the next writer cut pages away that had been committed.
#[test]
fn whole_records_behind_the_committed_end_are_never_cut() {
    let page = |url: &str| {
        let raw = telusur_model::RawPage {
            url: telusur_model::PageUrl::parse(url).unwrap(),
            status: 200,
            headers: Vec::new(),
            body: b"a page".to_vec().into(),
            truncated: false,
            wire_bytes: 6,
        };
        let crawl = telusur_ledger::conformance::crawl(&[url]);
        let kept = telusur_ledger::KeptParts {
            crawl: &crawl,
            at: telusur_model::Timestamp(1),
            url,
            answer: Some(&raw),
            extract: None,
        };
        Segments::new(Arc::new(SimDisk::new())).pack(&kept).unwrap()
    };
    let (first, second) = (page("http://a.test/1"), page("http://a.test/2"));
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (_, end) = append(&segments, BodiesEnd::default(), &[&first]).unwrap();
    append(&segments, end, &[b"torn", &second]).unwrap();
    let before = disk.content("crawl_1/00000001.warc.zst").unwrap();
    // Another process, with rows that know of the first page only.
    let segments = Segments::new(Arc::new(disk.clone()));
    let (places, end) = append(&segments, end, &[&second]).unwrap();
    assert_eq!(places[0].segment, 2);
    assert_eq!(disk.content("crawl_1/00000001.warc.zst").unwrap(), before);
    // What it wrote itself and did not commit is its own to cut.
    append(&segments, end, &[&first]).unwrap();
    let (places, _) = append(&segments, end, &[&second]).unwrap();
    assert_eq!((places[0].segment, places[0].offset), (2, end.len));
    // The same for a segment that was begun and not committed.
    let segments = Segments::new(Arc::new(disk.clone()));
    let (places, _) = append(&segments, BodiesEnd { segment: 1, len: 1 << 30 }, &[&first]).unwrap();
    assert_eq!(places[0].segment, 3);
}

#[test]
fn a_full_disk_is_said_to_be_full_and_nothing_moves() {
    let disk = SimDisk::new();
    let segments = Segments::new(Arc::new(disk.clone()));
    let (_, end) = append(&segments, BodiesEnd::default(), &[b"first"]).unwrap();
    fail_next(&disk, DiskCall::Write, DiskFailure::NoSpace);
    let error = append(&segments, end, &[b"second"]).unwrap_err();
    assert!(matches!(error, telusur_ledger::StoreError::DiskFull(_)), "{error}");
    let (places, _) = append(&segments, end, &[b"second"]).unwrap();
    assert_eq!(segments.read(CRAWL, places[0]).unwrap(), b"second");
}

/// They were once overwritten in place: torn, nothing could be said of the crawl.
#[test]
fn settings_are_the_old_or_the_new_ones_after_any_power_loss() {
    let settings = |letter: u8| vec![letter; 2_000];
    for call in [DiskCall::Write, DiskCall::Sync, DiskCall::RenameFile, DiskCall::SyncDir] {
        for seed in 0..200 {
            let disk = SimDisk::new();
            let segments = Segments::new(Arc::new(disk.clone()));
            append(&segments, BodiesEnd::default(), &[]).unwrap();
            segments.put_settings(CRAWL, &settings(b'a')).unwrap();
            fail_next(&disk, call, DiskFailure::Device);
            segments.put_settings(CRAWL, &settings(b'b')).unwrap_err();
            let after = Segments::new(Arc::new(disk.crash(seed)));
            let found = after.settings(CRAWL).unwrap();
            assert!(
                [b'a', b'b'].map(|letter| Some(settings(letter))).contains(&found),
                "{call:?} {seed}"
            );
            // What was left of the attempt is in nobody's way.
            after.put_settings(CRAWL, &settings(b'c')).unwrap();
            assert_eq!(after.settings(CRAWL).unwrap(), Some(settings(b'c')));
        }
    }
}
