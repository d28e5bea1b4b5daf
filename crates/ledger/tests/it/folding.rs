//! The same events give the same rows, however they are cut into batches and wherever the process ends
//! in between.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::test_runner::Config;
use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{
    CrawlStore, Event, FrontierStore, Ledger, Owner, Step, decode_events, encode_events,
};
use telusur_model::{CrawlNo, CrawlStats, QueuePlace, Seeds, Site, UrlKey};

use crate::script::{Action, Author, script};

/// So many cases, or as many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> Config {
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { usual };
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Folds events in batches of these sizes, over and over; after a batch with an odd number the process
/// is killed.
fn fold(events: &[Event], cuts: &[u8]) -> InMemory {
    let storage = InMemory::default();
    let mut ledger = Ledger::open(storage.clone()).unwrap();
    let mut left = events;
    for cut in cuts.iter().cycle() {
        if left.is_empty() {
            break;
        }
        let len = (usize::from(cut / 2) + 1).min(left.len());
        let (batch, rest) = left.split_at(len);
        left = rest;
        ledger.commit(batch.iter().cloned().collect()).unwrap();
        if cut % 2 == 1 {
            drop(ledger);
            ledger = Ledger::open(storage.clone()).unwrap();
        }
    }
    storage
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    fn rows_do_not_depend_on_cuts_and_kills(
        script in script(),
        cuts in prop::collection::vec(any::<u8>(), 1..6),
    ) {
        let author = Author::write(&script);
        let sent = decode_events(&encode_events(&author.events)).unwrap();
        prop_assert_eq!(&sent, &author.events);
        // Cut and killed at will, and all at once.
        for cuts in [&cuts[..], &[u8::MAX - 1]] {
            let folded = fold(&sent, cuts);
            let is_equal = folded.hash() == author.storage.hash();
            prop_assert!(is_equal, "{:#?}", folded.differences(&author.storage));
        }
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Whatever happens, the promises about a store's content hold afterwards.
    #[test]
    fn what_was_folded_is_sound(script in script()) {
        let author = Author::write(&script);
        let ledger = Ledger::open(author.storage).unwrap();
        let report = ledger.verify(&|_| Ok(Vec::new())).unwrap();
        let broken: Vec<_> = report.checks.iter().filter(|check| check.broken > 0).collect();
        prop_assert!(broken.is_empty(), "{:#?}", broken);
    }
}

/// A script without what is learned again after a recovery: notes about hosts and origins.
fn without_notes(script: Vec<Action>) -> Vec<Action> {
    let is_note = |action: &Action| matches!(action, Action::Note { .. } | Action::Origin { .. });
    script.into_iter().filter(|action| !is_note(action)).collect()
}

fn recover(storage: &InMemory) -> InMemory {
    let rows = storage.without_rows();
    Ledger::recover(rows.clone(), &mut |_| {}).unwrap();
    rows
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Rows that are lost are given back by the records of the steps, however they were cut.
    #[test]
    fn records_of_steps_give_the_same_rows(
        script in script(),
        cuts in prop::collection::vec(any::<u8>(), 1..6),
    ) {
        let author = Author::write(&without_notes(script));
        let folded = fold(&author.events, &cuts);
        let recovered = recover(&folded);
        let is_equal = recovered.hash() == author.storage.hash();
        prop_assert!(is_equal, "{:#?}", recovered.differences(&author.storage));
    }

    /// If records are lost as well, the rest makes sound rows.
    #[test]
    fn what_is_left_of_records_gives_sound_rows(
        script in script(),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let author = Author::write(&script);
        let steps = author.events.len();
        let lost: Vec<usize> = lost.iter().map(|index| index.index(steps)).collect();
        author.storage.damage(|_, number| lost.contains(&number));
        let ledger = Ledger::open(recover(&author.storage)).unwrap();
        let report = ledger.verify(&|_| Ok(Vec::new())).unwrap();
        let broken: Vec<_> = report.checks.iter().filter(|check| check.broken > 0).collect();
        prop_assert!(broken.is_empty(), "{:#?}", broken);
    }
}

/// The part of a crawl that one slot has.
struct SlotPart {
    ledger: Ledger<InMemory>,
    /// Where URLs stand in its queues.
    places: HashMap<(CrawlNo, UrlKey), QueuePlace>,
}

impl SlotPart {
    fn new() -> Self {
        let ledger = Ledger::open(InMemory::default()).unwrap();
        Self { ledger, places: HashMap::new() }
    }

    /// Folds an event of the whole crawl.
    fn fold(&mut self, site: &Site, mut event: Event) {
        match &mut event {
            Event::CrawlAccepted(accepted) => {
                if let Seeds::Links(urls) = &mut accepted.crawl.seeds {
                    urls.retain(|url| url.host().site() == *site);
                }
                accepted.crawl.sitemaps.urls.retain(|url| url.host().site() == *site);
            }
            Event::VisitEnded(ended) => {
                let visit = &mut ended.visit;
                visit.place = self.places[&(visit.crawl, visit.key)];
            }
            _ => {}
        }
        for queued in self.ledger.commit(Step::of(event)).unwrap().queued {
            let visit = queued.visit;
            self.places.insert((visit.crawl, visit.key), visit.place);
        }
    }

    fn stats(&self, crawl: CrawlNo) -> CrawlStats {
        self.ledger.crawl(crawl).unwrap().unwrap().stats
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// The counters of a crawl are the sums over slots, each of which folds the events of its own sites.
    #[test]
    fn counters_add_up_over_slots(script in script()) {
        // These name places and numbers that each slot gives out by itself.
        let of_one_slot = |action: &Action| {
            matches!(action, Action::EndAgain | Action::ReadAgain { .. })
        };
        let script: Vec<_> = script.into_iter().filter(|it| !of_one_slot(it)).collect();
        let author = Author::write(&script);
        let sites = ["a.test", "c.test", "out.test"].map(Site::of_host);
        let mut parts: BTreeMap<Site, SlotPart> =
            sites.iter().map(|site| (site.clone(), SlotPart::new())).collect();
        for event in author.events {
            match event.owner() {
                Owner::Site(site) => parts.get_mut(&site).unwrap().fold(&site, event),
                Owner::EverySlot => {
                    parts.iter_mut().for_each(|(site, part)| part.fold(site, event.clone()));
                }
                Owner::AnySlot => parts.get_mut(&sites[1]).unwrap().fold(&sites[1], event),
            }
        }
        let whole = Ledger::open(author.storage).unwrap();
        for crawl in [CrawlNo(1), CrawlNo(2)] {
            let mut sum = CrawlStats::default();
            parts.values().for_each(|part| sum += &part.stats(crawl));
            prop_assert_eq!(sum, whole.crawl(crawl).unwrap().unwrap().stats);
        }
    }
}
