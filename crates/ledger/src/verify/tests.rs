//! Each check, on rows that are damaged one at a time.

use telusur_model::{CrawlNo, Host, HostRow, Timestamp, UrlKey};

use crate::conformance::{crawl, first, step};
use crate::in_memory::InMemory;
use crate::layout::{self, encode};
use crate::storage::{Batch, Rows, Table, WriteRows};
use crate::{
    CrawlRecord, CrawlStore, Event, FrontierStore, Ledger, NewCrawl, Step, TrapMark, VerifyReport,
};

const NO: CrawlNo = CrawlNo(1);

/// A crawl with a name, a stored page, a link in the queue, two that a budget left out, and a trap.
fn store() -> Ledger<InMemory> {
    let store = Ledger::open(InMemory::default()).unwrap();
    let mut crawl = crawl(&["http://a.test/"]);
    crawl.name = Some("news".into());
    crawl.limits.urls_per_host_max = 2;
    let record = store.create(NewCrawl { crawl, random: 1 }).unwrap();
    let links = ["http://a.test/1", "http://a.test/2", "http://a.test/3"];
    store_page(&store, &record, &links);
    let mark = TrapMark { shape: 7, run: 3, rule: None };
    let site = telusur_model::Site::of_host("a.test");
    store.commit(Step::of(Event::TrapNoted { crawl: NO, site, mark })).unwrap();
    assert!(verify(&store).holds(), "{:#?}", verify(&store));
    store
}

fn store_page(store: &Ledger<InMemory>, record: &CrawlRecord, links: &[&str]) {
    let visit = first(store, record, "a.test");
    store.commit(step(store, record, visit, 200, links)).unwrap();
}

fn verify(store: &Ledger<InMemory>) -> VerifyReport {
    store.verify(&|page| Ok(vec![page.url.clone()])).unwrap()
}

/// The only row of a table of the first crawl, or of all.
fn only(store: &Ledger<InMemory>, table: Table) -> (Vec<u8>, Vec<u8>) {
    let mut rows = store.rows().prefix(table, []);
    rows.next().expect("there is one").unwrap()
}

/// Changes rows behind the ledger's back, and checks which promises are then broken.
#[track_caller]
fn check(damage: impl FnOnce(&Ledger<InMemory>, &mut Batch), broken: &[&str], note: &str) {
    let store = store();
    let mut batch = Batch::default();
    damage(&store, &mut batch);
    store.rows().commit(batch).unwrap();
    let report = verify(&store);
    let found = report.checks.iter().filter(|check| check.broken > 0);
    let (ids, notes): (Vec<_>, Vec<_>) =
        found.map(|check| (check.id.as_str(), check.notes.join("\n"))).unzip();
    assert_eq!(ids, broken, "{report:#?}");
    assert!(notes.iter().any(|notes| notes.contains(note)), "{notes:#?}");
}

fn page_seq(store: &Ledger<InMemory>) -> u64 {
    layout::seq_of(&only(store, Table::Order).0).unwrap()
}

#[test]
fn a_page_without_its_place_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Order, only(store, Table::Order).0);
    };
    check(damage, &["I11"], "http://a.test/ is not in the order of pages");
}

#[test]
fn a_place_of_another_crawl_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Order, only(store, Table::Order).0, layout::crawl_key(CrawlNo(9)));
    };
    check(damage, &["I11"], "crawl_9 has no page at");
}

#[test]
fn a_place_without_its_page_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Order, layout::order_key(1), layout::crawl_key(NO));
    };
    check(damage, &["I11"], "crawl_1 has no page at 1");
}

/// Pages stored later would get places before it, and followers of the order would miss them.
#[test]
fn a_place_beyond_the_last_one_given_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let before_page = page_seq(store) - 1;
        batch.insert(Table::Meta, layout::META_SEQ, before_page.to_be_bytes());
    };
    check(damage, &["I8"], "the last one given is");
}

#[test]
fn a_crawl_beyond_the_last_number_given_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Meta, layout::META_CRAWLS, 0_u64.to_be_bytes());
    };
    check(damage, &["I8"], "crawl_1 is there");
}

#[test]
fn bodies_that_are_too_short_are_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        let end = crate::BodiesEnd { segment: 1, len: 1 << 40 };
        batch.insert(Table::Meta, layout::meta_bodies_end(NO), encode(&end));
    };
    check(damage, &["I8"], "segment 1 is shorter");
}

#[test]
fn a_missing_name_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Names, layout::name_key("news", NO));
    };
    check(damage, &["I11"], "crawl_1 is not found as news");
}

#[test]
fn a_missing_id_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let id = store.crawl(NO).unwrap().unwrap().crawl.id;
        batch.remove(Table::Names, layout::name_key(id.as_str(), NO));
    };
    check(damage, &["I11"], "crawl_1 is not found as");
}

#[test]
fn a_name_of_nobody_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Names, layout::name_key("olds", NO), []);
        batch.insert(Table::Names, layout::name_key("news", CrawlNo(9)), []);
    };
    check(damage, &["I11"], "is no name of crawl_9");
}

#[test]
fn a_held_link_that_is_not_known_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let (key, _) = only(store, Table::Held);
        let held = (UrlKey(5), false, false, 0_u8);
        batch.insert(Table::Held, key, encode(&held));
    };
    check(damage, &["I12"], "a link of a.test waits for a budget, and is not marked so");
}

#[test]
fn a_held_link_that_is_lost_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Held, only(store, Table::Held).0);
    };
    check(damage, &["I12"], "host a.test counts 2 held links, 1 are held");
}

#[test]
fn held_links_of_a_host_without_a_count_are_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Held, layout::held_count_key(NO, &Host::new("a.test")));
    };
    check(damage, &["I12"], "host a.test counts 0 held links, 2 are held");
}

#[test]
fn a_count_without_held_links_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let count = layout::held_count_key(NO, &Host::new("a.test"));
        let value = store.rows().get(Table::Held, count).unwrap().unwrap();
        batch.insert(Table::Held, layout::held_count_key(NO, &Host::new("z.test")), value);
    };
    check(damage, &["I12"], "host z.test counts 2 held links, 0 are held");
}

/// Earlier versions wrote no counts, and counted these links among the refused ones.
#[test]
fn held_links_of_earlier_versions_are_no_damage() {
    let store = store();
    let host = Host::new("a.test");
    let mut batch = Batch::default();
    batch.remove(Table::Held, layout::held_count_key(NO, &host));
    let row = HostRow { refused: 2, queued: 1, ..HostRow::new(host.clone()) };
    batch.insert(Table::Hosts, layout::host_key(NO, &host), encode(&row));
    store.rows().commit(batch).unwrap();
    assert!(verify(&store).holds(), "{:#?}", verify(&store));
}

#[test]
fn a_trap_of_nobody_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let (_, value) = only(store, Table::Traps);
        batch.insert(Table::Traps, layout::trap_key(CrawlNo(9), 7), value);
    };
    check(damage, &["I9"], "rows of traps belong to crawl_9");
}

#[test]
fn a_trap_that_cannot_be_read_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Traps, only(store, Table::Traps).0, *b"\xff\xff\xff\xff\xff\xff");
    };
    check(damage, &["I2"], "a row of traps cannot be read");
}

#[test]
fn rows_of_nobody_are_found() {
    for table in Table::OF_CRAWL.into_iter().chain([Table::Stats]) {
        let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
            batch.insert(table, layout::crawl_key(CrawlNo(9)), *b"x");
        };
        check(damage, &["I9"], &format!("rows of {} belong to crawl_9", table.name()));
    }
}

#[test]
fn an_end_of_bodies_of_nobody_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Meta, layout::meta_bodies_end(CrawlNo(9)), *b"x");
    };
    check(damage, &["I9"], "segment_end/9 belongs to no known crawl");
}

#[test]
fn a_page_that_no_url_points_at_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        let (_, value) = only(store, Table::Pages);
        let last = layout::decode_u64(
            &store.rows().get(Table::Meta, layout::META_SEQ).unwrap().unwrap(),
            "seq",
        );
        // A place that was given to a link: the last one is the page's own.
        let seq = last.unwrap() - 1;
        let mut page: telusur_model::PageRecord = layout::decode(&value, "pages").unwrap();
        page.seq = seq;
        batch.insert(Table::Pages, layout::page_key(NO, seq), encode(&page));
        batch.insert(Table::Order, layout::order_key(seq), layout::crawl_key(NO));
    };
    check(damage, &["I6"], "http://a.test/ is stored but not marked so");
}

#[test]
fn a_url_without_its_page_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Pages, only(store, Table::Pages).0);
        batch.remove(Table::Order, only(store, Table::Order).0);
    };
    check(damage, &["I6"], "1 URLs are marked as pages, 0 are stored");
}

#[test]
fn a_url_without_its_row_in_the_queue_is_found() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Queue, only(store, Table::Queue).0);
    };
    check(damage, &["I2", "I7"], "1 URLs are marked queued, 0 are in the queue");
}

#[test]
fn a_queue_of_a_host_that_is_not_known_is_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.remove(Table::Hosts, layout::host_key(NO, &Host::new("a.test")));
    };
    check(damage, &["I7"], "host a.test counts 0 waiting URLs, 1 wait");
}

#[test]
fn a_row_that_cannot_be_read_does_not_end_the_look_at_others() {
    let damage = |store: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Queue, only(store, Table::Queue).0, *b"\xff");
        batch.remove(Table::Names, layout::name_key("news", NO));
    };
    check(damage, &["I2", "I11"], "a row of queue cannot be read");
}

#[test]
fn runs_of_a_walk_that_a_crawl_does_not_have_are_found() {
    let damage = |_: &Ledger<InMemory>, batch: &mut Batch| {
        batch.insert(Table::Runs, layout::run_key(NO, 0, 1), *b"x");
    };
    check(damage, &["I10"], "crawl_1: runs of ids are kept for more than its 0 walks");
}

#[test]
fn two_requests_within_the_delay_are_found() {
    let store = Ledger::open(InMemory::default()).unwrap();
    let record = store.create(NewCrawl { crawl: crawl(&["http://a.test/"]), random: 1 }).unwrap();
    let ask = |at: u64, links: &[&str]| {
        let mut step = step(&store, &record, first(&store, &record, "a.test"), 200, links);
        let page = step.events.iter_mut().find_map(Event::page_mut).expect("a page");
        page.requested_at = Some(Timestamp(at));
        store.commit(step).unwrap();
    };
    ask(50_000, &["http://a.test/1", "http://a.test/2"]);
    ask(10_000, &[]);
    assert!(verify(&store).holds());
    ask(10_001, &[]);
    let report = verify(&store);
    let gaps = report.checks.iter().find(|check| check.id == "I5").unwrap();
    assert_eq!((gaps.looked_at, gaps.broken), (2, 1), "{gaps:#?}");
}
