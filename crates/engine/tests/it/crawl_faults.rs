//! What of one crawl cannot be read or written is that crawl's trouble: it pauses with the reason, and
//! everything else runs, now and after the next start.

use std::fs;
use std::sync::Arc;

use telusur_engine::control::Verify;
use telusur_engine::{Engine, EngineOptions, EngineParts};
use telusur_ledger::{Batch, CrawlStore, PageStore, Rows, Storage, Table, WriteRows};
use telusur_model::{CrawlNo, CrawlState, PauseReason};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, crawl, finished, page, run, until, url};
use crate::short_disk::ShortDisk;

const PAGES: u64 = 300;

/// Every page has two more.
fn endless(path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    page(&[&format!("/{}", 2 * number + 1), &format!("/{}", 2 * number + 2)])
}

fn some_pages(host: &str) -> telusur_model::Crawl {
    let mut crawl = crawl(vec![url(&format!("http://{host}/"))]);
    crawl.scope.include = vec![".*".to_owned()];
    crawl.limits.pages_max = Some(PAGES);
    crawl
}

/// Replaces the rows of a crawl in a table by bytes that are no row.
fn damage_rows(store: &EmbeddedStore, table: Table, crawl: CrawlNo) {
    let rows = store.storage().rows();
    let keys: Vec<_> =
        rows.prefix(table, crawl.0.to_be_bytes()).map(|row| row.unwrap().0).collect();
    assert!(!keys.is_empty(), "{} has no row of {crawl}", table.name());
    let mut batch = Batch::default();
    for key in keys {
        batch.insert(table, &*key, *b"\xff\xff no row");
    }
    rows.commit(batch).unwrap();
}

/// Two crawls of which the second is damaged before the engine starts. It pauses, the first runs to its end, and
/// so does a third in the next engine.
async fn check(why: &str, damage: impl Fn(&Bench, &EmbeddedStore, CrawlNo)) {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let store = bench.open();
    let (good, bad) =
        (accept(&store, some_pages("good.test")), accept(&store, some_pages("bad.test")));
    damage(&bench, &store, bad);
    drop(store);
    let store = bench.open_again().await;
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let (begun, refused) = tokio::join!(handle.run(good), handle.run(bad));
    begun.unwrap();
    let text = match refused {
        Err(error) => error.to_string(),
        Ok(()) => {
            let aside = CrawlState::Paused { why: PauseReason::EngineStopped };
            until(&engine, bad, |progress| progress.state == aside).await;
            let record = store.crawl(bad).unwrap().unwrap();
            assert_eq!(record.state, aside);
            record.fault.unwrap().text()
        }
    };
    assert!(text.contains(why), "{text:?} does not say {why:?}");
    assert_eq!(finished(&engine, good).await.stats.pages, PAGES);
    engine.shutdown().await.unwrap();
    drop((handle, store));

    let store = bench.open_again().await;
    let listed: Vec<_> = store.crawls().unwrap().into_iter().map(|it| it.crawl.no).collect();
    assert!(listed.contains(&good), "{listed:?}");
    let engine = bench.engine(&store);
    let third = accept(&store, some_pages("third.test"));
    engine.handle().run(third).await.unwrap();
    assert_eq!(finished(&engine, third).await.stats.pages, PAGES);
    engine.shutdown().await.unwrap();
    // Whatever follows the pages comes to those behind the damage.
    let last = store.last_change().unwrap();
    assert_eq!(store.changes_after(last - 1, 10).unwrap().len(), 1);
    assert!(store.changes_after(0, 10_000).unwrap().len() as u64 >= 2 * PAGES);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_written_pause_their_crawl() {
    check("crawl_2", |bench, _, bad| {
        let bodies = bench.dir.path().join("bodies").join(bad.to_string());
        fs::remove_dir_all(&bodies).unwrap();
        fs::write(bodies, "no directory").unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_the_place_of_a_segment_pauses_its_crawl() {
    check("crawl_2", |bench, _, bad| {
        let dir = bench.dir.path().join("bodies").join(bad.to_string());
        fs::remove_file(dir.join("00000001.warc.zst")).unwrap();
        for segment in ["00000001.warc.zst", "00000002.warc.zst"] {
            fs::create_dir(dir.join(segment)).unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_host_row_is_its_crawls() {
    check("hosts", |_, store, bad| damage_rows(store, Table::Hosts, bad)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_queue_is_its_crawls() {
    check("queue", |_, store, bad| damage_rows(store, Table::Queue, bad)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_counters_are_their_crawls() {
    check("stats", |_, store, bad| damage_rows(store, Table::Stats, bad)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_of_a_crawl_is_its_own() {
    check("a crawl cannot be read", |_, store, bad| damage_rows(store, Table::Crawls, bad)).await;
}

/// The row that is damaged is that of a page which is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_passed_over_by_what_follows() {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let (store, record) = bench.crawl(some_pages("bad.test")).await;
    damage_rows(&store, Table::Pages, record.crawl.no);
    let engine = bench.engine(&store);
    let good = accept(&store, some_pages("good.test"));
    engine.handle().run(good).await.unwrap();
    finished(&engine, good).await;
    engine.shutdown().await.unwrap();
    assert_eq!(store.changes_after(0, 10_000).unwrap().len() as u64, PAGES);
}

/// `verify` names a row that cannot be read with everything else that it finds.
#[test]
fn verify_names_a_damaged_crawl_and_checks_the_others() {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let store = bench.open();
    let (good, bad) =
        (accept(&store, some_pages("good.test")), accept(&store, some_pages("bad.test")));
    damage_rows(&store, Table::Crawls, bad);
    let (_, report) = run(&store, &Verify {});
    assert!(!report.holds());
    assert_eq!(report.counts.crawls, 1, "{good} was checked");
    let notes: Vec<_> = report.checks.iter().flat_map(|check| &check.notes).collect();
    assert!(notes.iter().any(|note| note.contains(&bad.to_string())), "{notes:?}");
}

/// `verify` once ended at a segment that cannot be opened.
#[tokio::test(flavor = "multi_thread")]
async fn verify_names_a_segment_that_cannot_be_opened() {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let (store, record) = bench.crawl(some_pages("bad.test")).await;
    drop(store);
    let bodies = bench.dir.path().join("bodies").join(record.crawl.no.to_string());
    fs::remove_file(bodies.join("00000001.warc.zst")).unwrap();
    fs::create_dir(bodies.join("00000001.warc.zst")).unwrap();
    let store = bench.open_again().await;
    let (_, report) = run(&store, &Verify {});
    let broken = |id: &str| report.checks.iter().find(|check| check.id == id).unwrap().broken;
    assert_eq!((broken("I1"), broken("I8")), (PAGES, 1), "{report:?}");
}

/// The storage engine reports a bad block as an error of its own.
async fn check_disk(why: &str, disk: impl Fn(&Arc<EmbeddedStore>, CrawlNo) -> ShortDisk) {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let store = bench.open();
    let (good, bad) =
        (accept(&store, some_pages("good.test")), accept(&store, some_pages("bad.test")));
    let parts = EngineParts { store: Arc::new(disk(&store, bad)), ..bench.parts(&store) };
    let engine =
        Engine::start(parts, &EngineOptions { parse_threads: 2, free_bytes_min: 0 }).unwrap();
    engine.handle().run(good).await.unwrap();
    engine.handle().run(bad).await.unwrap();
    let aside = CrawlState::Paused { why: PauseReason::EngineStopped };
    until(&engine, bad, |progress| progress.state == aside).await;
    assert_eq!(finished(&engine, good).await.stats.pages, PAGES);
    engine.shutdown().await.unwrap();
    let record = store.crawl(bad).unwrap().unwrap();
    assert_eq!(record.state, aside);
    let text = record.fault.unwrap().text();
    assert!(text.contains(why), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_whose_queue_cannot_be_read_pauses() {
    let disk = |store: &Arc<EmbeddedStore>, bad| ShortDisk {
        unreadable: Some(bad),
        ..ShortDisk::of(store)
    };
    check_disk("checksum mismatch", disk).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_whose_rows_cannot_be_read_in_a_step_pauses() {
    let disk = |store: &Arc<EmbeddedStore>, bad| ShortDisk {
        unreadable_in_steps: Some(bad),
        ..ShortDisk::of(store)
    };
    check_disk("checksum mismatch", disk).await;
}
