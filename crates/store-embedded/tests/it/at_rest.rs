//! Corruption at rest, between power losses: every acknowledged page is readable with its right bytes, or
//! named as damaged with file and byte; and whoever writes on destroys nothing that is whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use telusur_ledger::{Bodies, BodiesEnd, KeptParts, StoreError};
use telusur_model::{BlobRef, Crawl, CrawlNo, PageUrl, RawPage, Timestamp};
use telusur_store_embedded::Segments;
use telusur_testkit::sim_disk::Decayed;
use telusur_testkit::{Dice, SimDisk};

use crate::power_loss::append;

const CRAWL: CrawlNo = CrawlNo(1);
/// The long run sets more: `cargo xtask torture disk`.
const SEEDS_VARIABLE: &str = "TELUSUR_DISK_SEEDS";
const SEEDS: u64 = 300;
const LIVES: u64 = 4;

/// What was acknowledged.
struct Acknowledged {
    end: BodiesEnd,
    pages: Vec<(BlobRef, Vec<u8>)>,
}

#[test]
fn no_page_is_lost_silently() {
    let seeds = std::env::var(SEEDS_VARIABLE).map_or(SEEDS, |text| text.parse().unwrap());
    let crawl = telusur_ledger::conformance::crawl(&["http://a.test/"]);
    let (mut damaged, mut whole) = (0, 0);
    for seed in 0..seeds {
        let (bad, good) = live_through(seed, &crawl);
        damaged += bad;
        whole += good;
    }
    println!(
        "{seeds} seeds: {whole} looks at whole pages, {damaged} at pages that are named as damaged"
    );
    assert!(damaged > 0 && whole > damaged, "{damaged} {whole}: the disk did nothing");
}

/// Several lives on one disk. Gives how many looks found damaged and whole pages.
fn live_through(seed: u64, crawl: &Crawl) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let mut disk = SimDisk::new();
    let mut acknowledged = Acknowledged { end: BodiesEnd::default(), pages: Vec::new() };
    let mut decayed: Vec<Decayed> = Vec::new();
    let (mut bad, mut good) = (0, 0);
    for life in 0..LIVES {
        let before = readable(&disk, &acknowledged);
        write_on(&disk, &mut acknowledged, crawl, &mut dice, life);
        let after = readable(&disk, &acknowledged);
        for (place, body) in &before {
            assert_eq!(after.get(place), Some(body), "seed {seed}: a writer destroyed {place:?}");
        }
        disk = disk.crash(dice.bits());
        for _ in 0..dice.below(3) {
            decayed.extend(disk.decay(&mut dice));
        }
        let (in_bad, in_good) = check(&disk, &acknowledged, &decayed, seed);
        bad += in_bad;
        good += in_good;
    }
    (bad, good)
}

/// Appends some pages, each group acknowledged once it is synced; the last one is not.
fn write_on(
    disk: &SimDisk,
    acknowledged: &mut Acknowledged,
    crawl: &Crawl,
    dice: &mut Dice,
    life: u64,
) {
    let segments = Segments::new(Arc::new(disk.clone()));
    let groups = 1 + dice.below(4);
    for group in 0..groups {
        let bodies: Vec<Vec<u8>> = (0..=dice.below(3)).map(|_| body(dice)).collect();
        let packed: Vec<Vec<u8>> = bodies
            .iter()
            .enumerate()
            .map(|(at, body)| {
                pack(&segments, crawl, &format!("http://a.test/{life}/{group}/{at}"), body)
            })
            .collect();
        let parts: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
        let (places, end) = append(&segments, acknowledged.end, &parts).unwrap();
        if group + 1 == groups && dice.chance(0.5) {
            return;
        }
        acknowledged.end = end;
        acknowledged.pages.extend(places.into_iter().zip(bodies));
    }
}

fn pack(segments: &Segments, crawl: &Crawl, url: &str, body: &[u8]) -> Vec<u8> {
    let raw = RawPage {
        url: PageUrl::parse(url).unwrap(),
        status: 200,
        headers: Vec::new(),
        body: body.to_vec().into(),
        truncated: false,
        wire_bytes: body.len() as u64,
    };
    let kept = KeptParts { crawl, at: Timestamp(1), url, answer: Some(&raw), extract: None };
    segments.pack(&kept).unwrap()
}

/// Half of it cannot be compressed, so that records are of all sizes.
fn body(dice: &mut Dice) -> Vec<u8> {
    let len = dice.below(3_000);
    (0..len).map(|at| if at % 2 == 0 { b'x' } else { dice.bits() as u8 }).collect()
}

/// The pages that can be read.
fn readable(disk: &SimDisk, acknowledged: &Acknowledged) -> BTreeMap<(u32, u64), Vec<u8>> {
    let segments = Segments::new(Arc::new(disk.clone()));
    let read = |(place, _): &(BlobRef, Vec<u8>)| {
        let body = segments.answer(CRAWL, *place).ok()?;
        Some(((place.segment, place.offset), body.bytes))
    };
    acknowledged.pages.iter().filter_map(read).collect()
}

/// Every acknowledged page: its right bytes, or its file and byte, and that only where the disk did something.
fn check(
    disk: &SimDisk,
    acknowledged: &Acknowledged,
    decayed: &[Decayed],
    seed: u64,
) -> (u64, u64) {
    let segments = Segments::new(Arc::new(disk.clone()));
    let (mut bad, mut good) = (0, 0);
    for (place, body) in &acknowledged.pages {
        let file = format!("crawl_1/{:08}.warc.zst", place.segment);
        let is_hit = decayed.iter().any(|hit| {
            hit.path == file
                && hit.from < place.offset + u64::from(place.len)
                && hit.to > place.offset
        });
        match segments.answer(CRAWL, *place) {
            Ok(read) => {
                assert_eq!(read.bytes, *body, "seed {seed}: wrong bytes at {place:?}");
                good += 1;
            }
            Err(StoreError::Damaged(what)) => {
                let named = format!("bodies/{file} at byte {}", place.offset);
                assert!(what.contains(&named), "seed {seed}: {what}");
                assert!(is_hit, "seed {seed}: nothing happened to {place:?}: {what}");
                bad += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    (bad, good)
}
