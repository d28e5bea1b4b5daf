//! A step of several crawls, taken apart: what one crawl's rows refuse is not the others' loss.

use std::collections::BTreeMap;

use telusur_model::CrawlNo;

use crate::Step;

impl Step {
    /// The same events by crawl, each in their order. Those that are of no crawl come first.
    pub fn by_crawl(self) -> Vec<(Option<CrawlNo>, Self)> {
        let mut bodies = self.bodies.into_iter().peekable();
        let mut parts: BTreeMap<Option<CrawlNo>, Self> = BTreeMap::new();
        for (place, event) in self.events.into_iter().enumerate() {
            let part = parts.entry(event.crawl()).or_default();
            while let Some((_, packed)) = bodies.next_if(|(of, _)| *of == place) {
                part.bodies.push((part.events.len(), packed));
            }
            part.events.push(event);
        }
        parts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{create, first, step};
    use crate::in_memory::InMemory;
    use crate::{Batch, Event, FrontierStore, Ledger, PageStore, Table, WriteRows};

    #[test]
    fn the_parts_of_a_step_do_what_it_does() {
        let pages_of = |apart: bool| {
            let store = Ledger::open(InMemory::default()).unwrap();
            let (a, b) = (create(&store, &["http://a.test/"]), create(&store, &["http://b.test/"]));
            let mut both = Step::default();
            for (record, host) in [(&a, "a.test"), (&b, "b.test")] {
                let one =
                    step(&store, record, first(&store, record, host), 200, &["http://c.test/x"]);
                let before = both.events.len();
                both.events.extend(one.events);
                both.bodies.extend(one.bodies.into_iter().map(|(at, body)| (before + at, body)));
            }
            both.push(Event::CrawlRan { crawl: a.crawl.no, active_ms: 7 });
            if apart {
                let parts = both.by_crawl();
                let of: Vec<_> = parts.iter().map(|(crawl, _)| *crawl).collect();
                assert_eq!(of, [Some(a.crawl.no), Some(b.crawl.no)]);
                parts.into_iter().for_each(|(_, part)| drop(store.commit(part).unwrap()));
            } else {
                store.commit(both).unwrap();
            }
            [a, b].map(|record| {
                let no = record.crawl.no;
                let pages = store.pages_after(no, 0, 10).unwrap();
                let bodies: Vec<_> =
                    pages.iter().map(|page| store.body(no, page.body.unwrap()).unwrap()).collect();
                let urls: Vec<_> = pages.iter().map(|page| page.url.to_string()).collect();
                (urls, bodies, crate::CrawlStore::crawl(&store, no).unwrap().unwrap().stats)
            })
        };
        assert_eq!(pages_of(true), pages_of(false));
    }

    /// The row that cannot be read is met when half of the step is in memory. That once made every later step
    /// of every crawl fail.
    #[test]
    fn a_step_that_cannot_be_folded_leaves_nothing_behind() {
        let storage = InMemory::default();
        let store = Ledger::open(storage.clone()).unwrap();
        let (a, b) = (create(&store, &["http://a.test/"]), create(&store, &["http://b.test/"]));
        let visit = first(&store, &b, "b.test");
        let mut batch = Batch::default();
        let key = crate::layout::url_key(b.crawl.no, visit.key);
        batch.insert(Table::Urls, key, *b"no row");
        storage.commit(batch).unwrap();
        let page = step(&store, &a, first(&store, &a, "a.test"), 200, &["http://a.test/x"]);
        let mut both = page.clone();
        both.push(Event::AskedAgain(Box::new(visit)));
        let error = store.commit(both).unwrap_err();
        assert!(error.is_of_rows(), "{error}");
        let effects = store.commit(page).unwrap();
        assert_eq!((effects.stored.len(), effects.queued.len()), (1, 1));
        let stats = crate::CrawlStore::crawl(&store, a.crawl.no).unwrap().unwrap().stats;
        assert_eq!((stats.pages, stats.queued, stats.discovered), (1, 1, 2));
    }
}
