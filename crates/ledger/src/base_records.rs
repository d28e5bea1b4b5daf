//! Records for a storage whose last writer kept none: what the rows say of each crawl, written down as
//! events that would lead to it. From then on the rows can be rebuilt from the bodies.

use telusur_model::{
    CrawlNo, Lane, PageRecord, PageUrl, Purpose, QueuePlace, Timestamp, Via, Visit,
};

use crate::crawls::read_stats;
use crate::event::{CrawlAccepted, CrawlChange, Event, VisitEnded, VisitOutcome};
use crate::fold::{CrawlRow, decode_row, read_runs};
use crate::layout::{self, QueueRow, UrlRow, decode, encode};
use crate::memory::committed_end;
use crate::step_record::encode_record;
use crate::storage::{Batch, Bodies, BodiesEnd, Rows, Storage, Table, WriteRows};
use crate::{Ledger, StoreError, UrlRecord, UrlState};

/// Events in one record.
const EVENTS_PER_RECORD: usize = 1_000;

/// Where visits stand that are told of: the fold finds or gives them a place of their own.
const NO_PLACE: QueuePlace = QueuePlace { lane: Lane::Plain, order: 0, seq: 0 };

impl<S: Storage> Ledger<S> {
    /// Writes down what the rows say of all crawls.
    pub fn record_rows(&self) -> Result<(), StoreError> {
        let rows: Vec<CrawlRow> = self
            .rows()
            .prefix(Table::Crawls, [])
            .map(|row| decode_row(&row?.1))
            .collect::<Result<_, _>>()?;
        for row in rows.into_iter().filter(|row| !row.removing) {
            self.record_crawl(row)?;
        }
        Ok(())
    }

    fn record_crawl(&self, row: CrawlRow) -> Result<(), StoreError> {
        let mut memory = self.memory();
        let crawl = row.crawl.no;
        let (step, end) = (memory.step, committed_end(self.rows(), crawl)?);
        let mut writer =
            RecordWriter { bodies: self.bodies(), crawl, step, end, events: Vec::new() };
        let key_seed = row.keyer(self.key_seed()).seed;
        let accepted = CrawlAccepted { crawl: row.crawl.clone(), key_seed };
        writer.push(Event::CrawlAccepted(Box::new(accepted.clone())))?;
        self.write_pages(&row, &mut writer)?;
        self.write_urls(crawl, &mut writer)?;
        self.write_rest(&row, &mut writer)?;
        writer.flush()?;
        let (step, end) = (writer.step, writer.end);
        self.put_settings(&accepted)?;
        let mut batch = Batch::default();
        batch.insert(Table::Meta, layout::meta_bodies_end(crawl), encode(&end));
        batch.insert(Table::Meta, layout::META_STEP, step.to_be_bytes());
        self.rows().commit(batch)?;
        memory.step = step;
        memory.forget(crawl);
        Ok(())
    }

    fn write_pages(
        &self,
        row: &CrawlRow,
        writer: &mut RecordWriter<'_, S::Bodies>,
    ) -> Result<(), StoreError> {
        let has_queue = !row.crawl.seeds.urls().is_empty();
        for page in self.rows().prefix(Table::Pages, layout::crawl_key(row.crawl.no)) {
            let page: PageRecord = decode(&page?.1, "pages")?;
            // Pages of ids and imported documents were in no queue.
            writer.push(if has_queue && page.via != Via::Linear {
                page_event(page)
            } else {
                Event::DocumentImported(Box::new(page))
            })?;
        }
        Ok(())
    }

    fn write_urls(
        &self,
        crawl: CrawlNo,
        writer: &mut RecordWriter<'_, S::Bodies>,
    ) -> Result<(), StoreError> {
        for row in self.rows().prefix(Table::Urls, layout::crawl_key(crawl)) {
            let (key, row) = row?;
            let UrlRow::Settled(record) = decode(&row, "urls")? else { continue };
            let key = layout::key_of_url_row(&key)?;
            if let Some(event) = settled_event(crawl, key, *record) {
                writer.push(event)?;
            }
        }
        for row in self.rows().prefix(Table::Queue, layout::crawl_key(crawl)) {
            let row: QueueRow = decode(&row?.1, "queue")?;
            writer.push(Event::AskedAgain(Box::new(row.into_queued(crawl, NO_PLACE).visit)))?;
        }
        Ok(())
    }

    /// Ids and how the crawl stands. What is known of traps is learned again.
    fn write_rest(
        &self,
        row: &CrawlRow,
        writer: &mut RecordWriter<'_, S::Bodies>,
    ) -> Result<(), StoreError> {
        let crawl = row.crawl.no;
        for (number, walk) in row.crawl.seeds.walks().iter().enumerate() {
            let site = walk.rules().template.host().site();
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            for run in read_runs(self.rows(), crawl, number)? {
                writer.push(Event::IdsMarked { crawl, site: site.clone(), walk: number, run })?;
            }
        }
        let active_ms = read_stats(self.rows(), crawl)?.active_ms;
        writer.push(Event::CrawlRan { crawl, active_ms })?;
        let change = CrawlChange::State(row.state, row.state_since);
        writer.push(Event::CrawlChanged { crawl, change })
    }
}

/// Writes records of one crawl.
struct RecordWriter<'a, B> {
    bodies: &'a B,
    crawl: CrawlNo,
    step: u64,
    end: BodiesEnd,
    events: Vec<Event>,
}

impl<B: Bodies> RecordWriter<'_, B> {
    fn push(&mut self, event: Event) -> Result<(), StoreError> {
        self.events.push(event);
        if self.events.len() < EVENTS_PER_RECORD { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let events = std::mem::take(&mut self.events);
        let places = (0..).take(events.len()).collect();
        let events: Vec<&Event> = events.iter().collect();
        self.step += 1;
        let step = self.step;
        self.end = self
            .bodies
            .append(self.crawl, self.end, &[], |_| encode_record(step, 0, places, &events))?;
        Ok(())
    }
}

/// The end of the visit that brought a page, as far as its record tells.
pub(crate) fn page_event(page: PageRecord) -> Event {
    let visit = Visit {
        crawl: page.crawl,
        purpose: Purpose::Page,
        url: page.url.clone(),
        key: page.key,
        place: NO_PLACE,
        depth: page.depth,
        hops_outside: 0,
        via: page.via,
        found_at: page.found_at,
        referrer: page.referrer.clone(),
        redirects: page.redirects.clone(),
        lastmod: page.lastmod,
        attempt: page.attempts,
    };
    let (at, requested_at) = (page.fetched_at, page.requested_at);
    let how = VisitOutcome::Page(Box::new(page));
    Event::VisitEnded(Box::new(VisitEnded { visit, how, at, requested_at, other_schemes: 0 }))
}

/// How a URL without a page came to its state; `None` for one that cannot be asked for.
fn settled_event(crawl: CrawlNo, key: telusur_model::UrlKey, record: UrlRecord) -> Option<Event> {
    let mut attempt = 1;
    let (how, at) = match record.state {
        UrlState::Sitemap { entries, dropped, trouble, at } => {
            (VisitOutcome::Sitemap { entries, dropped, trouble }, at)
        }
        UrlState::Redirected { status, to, at } => (VisitOutcome::Redirected { status, to }, at),
        UrlState::Failed { reason, detail, attempts, at } => {
            attempt = attempts;
            (VisitOutcome::Failed { reason, detail }, at)
        }
        UrlState::Skipped { reason, rule } => {
            (VisitOutcome::Skipped { reason, rule }, record.found_at)
        }
        UrlState::Queued { .. } | UrlState::Page { .. } => return None,
    };
    let purpose = match how {
        VisitOutcome::Sitemap { .. } => Purpose::Sitemap { nesting: 0 },
        _ => Purpose::Page,
    };
    let visit = Visit {
        crawl,
        purpose,
        url: PageUrl::parse(&record.url).ok()?,
        key,
        place: NO_PLACE,
        depth: record.depth,
        hops_outside: 0,
        via: record.via,
        found_at: record.found_at,
        referrer: record.referrer,
        redirects: record.redirects,
        lastmod: record.lastmod,
        attempt,
    };
    let requested_at: Option<Timestamp> = None;
    Some(Event::VisitEnded(Box::new(VisitEnded { visit, how, at, requested_at, other_schemes: 0 })))
}
