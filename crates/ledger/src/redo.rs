//! Steps that are in the bodies and not in the rows are done again.
//!
//! Each step has its record behind its bodies before the rows are changed. So after a kill in between, the
//! rows lack the last step; and if the rows are lost as a whole, the records of all steps give them
//! back ([`Ledger::recover`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use telusur_model::{
    BlobRef, Crawl, CrawlId, CrawlNo, Digest, FetchRules, Keep, Limits, PageRecord, PageUrl,
    Politeness, ScopeRules, Seeds, SitemapRules, Timestamp, UrlKeyer,
};

use crate::base_records::page_event;
use crate::crawls::read_row;
use crate::event::Event;
use crate::fold::{Fold, RecordedStep};
use crate::layout::{self, UrlRow};
use crate::memory::{Memory, committed_end};
use crate::step_record::{StepRecord, encode_record};
use crate::storage::{Bodies, BodiesEnd, BytesRange, Rows, Scanned, Storage, Table, WriteRows};
use crate::{Asking, CrawlAccepted, CrawlStore, Ledger, StateDamage, StoreError};

/// Events that are folded into one batch: few enough to be held in memory, many enough that a sync is
/// no matter.
const EVENTS_PER_BATCH: usize = 20_000;
/// Bodies without a record that are stored in one step.
const UNCLAIMED_PER_STEP: usize = 500;

/// What was rebuilt from bodies, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Crawls that are there again.
    pub crawls: u64,
    /// Steps that were done again.
    pub steps: u64,
    /// Pages that are there again.
    pub pages: u64,
    /// Pages whose bodies cannot be read: their URLs are asked again.
    pub lost: Vec<LostPage>,
    /// Bytes that are neither a body nor the record of a step.
    pub unreadable: Vec<UnreadableBytes>,
    /// Whole bodies that no record of a step mentions. Those of pages that were not known otherwise are stored
    /// with what they say of themselves, and nothing is read out of them.
    pub unclaimed: Vec<(CrawlNo, BlobRef)>,
    /// Pages that are there again only by their bodies, per crawl: they must be parsed.
    pub unread: BTreeMap<CrawlNo, u64>,
    /// Crawls with bodies whose settings are lost: they have the usual ones, and no start URL.
    pub without_settings: Vec<CrawlNo>,
}

/// A page whose body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPage {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// Its address.
    pub url: String,
    /// Where its body is.
    pub place: BlobRef,
    /// Whether its URL is asked again. One of an imported document cannot be.
    pub is_asked_again: bool,
}

/// Bytes of a segment that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableBytes {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// Which.
    pub bytes: BytesRange,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverProgress {
    /// Bodies of crawls are read.
    Reading {
        /// Crawls that have been read.
        crawls: u64,
        /// Of so many.
        of: u64,
    },
    /// Steps are done again.
    Folding {
        /// Steps that are done.
        steps: u64,
        /// Of so many.
        of: u64,
    },
}

/// A record of a step, in the bodies of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RecordAt {
    step: u64,
    crawl: CrawlNo,
    place: BlobRef,
}

impl RecordAt {
    fn end(&self) -> BodiesEnd {
        let BlobRef { segment, offset, len } = self.place;
        BodiesEnd { segment, len: offset + u64::from(len) }
    }
}

impl<S: Storage> Ledger<S> {
    /// Does the steps again that the rows lack. After a kill that is one at most; rows that were set back to an
    /// earlier state lack more. If a step in between is gone as well, nothing is changed.
    pub(crate) fn redo_missing(&self) -> Result<(), StoreError> {
        let done = self.memory().step;
        let mut missing = Vec::new();
        for crawl in self.numbers_of_bodies()? {
            match self.find_missing(crawl, done, &mut missing) {
                // Bodies or rows that cannot be read are that crawl's trouble, and are met when it runs.
                Err(error) if error.is_of_rows() || matches!(error, StoreError::Io { .. }) => {
                    tracing::error!(%crawl, %error, "whether a crawl lacks a step cannot be told");
                }
                looked => looked?,
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        self.refuse_gap(done, &missing)?;
        let steps = missing.last().map_or(0, |last| last.step - done);
        tracing::info!(steps, "steps of the bodies are not in the rows, and are done again");
        self.redo(&missing, &mut Recovered::default(), &mut |_| {})
    }

    /// Up to where the bodies of each crawl were committed.
    pub fn bodies_ends(&self) -> Result<Vec<(CrawlNo, BodiesEnd)>, StoreError> {
        let crawls = self.crawls()?;
        let ends = crawls.iter().map(|crawl| {
            let no = crawl.crawl.no;
            Ok((no, committed_end(self.rows(), no)?))
        });
        ends.collect()
    }

    fn find_missing(
        &self,
        crawl: CrawlNo,
        done: u64,
        missing: &mut Vec<RecordAt>,
    ) -> Result<(), StoreError> {
        let end = committed_end(self.rows(), crawl)?;
        if !self.bodies().has_more(crawl, end)? {
            return Ok(());
        }
        let row = read_row(self.rows(), crawl)?;
        if row.as_ref().is_some_and(|row| row.removing) {
            return Ok(());
        }
        self.bodies().scan(crawl, end, &mut |scanned| {
            let Scanned::Step(place) = scanned else { return Ok(ControlFlow::Continue(())) };
            let step = StepRecord::step_of(&self.bodies().step_record(crawl, place)?)?;
            if step > done {
                missing.push(RecordAt { step, crawl, place });
            } else if row.is_none() {
                // It was forgotten by a later step.
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn refuse_gap(&self, done: u64, missing: &[RecordAt]) -> Result<(), StoreError> {
        let mut last = done;
        for record in missing {
            if record.step > last + 1 {
                return Err(StoreError::StateDamaged(Box::new(StateDamage {
                    data: self.storage().location(),
                    file: "state".to_owned(),
                    byte: None,
                    what: format!(
                        "it has come to step {done}, bodies hold records up to step {}, and those of step {} are gone",
                        missing.last().map_or(0, |last| last.step),
                        last + 1
                    ),
                    is_torn_copy: false,
                })));
            }
            last = record.step;
        }
        Ok(())
    }

    /// Rebuilds all rows from the bodies, into a storage without rows.
    pub fn recover(
        storage: S,
        progress: &mut dyn FnMut(RecoverProgress),
    ) -> Result<(Self, Recovered), StoreError> {
        let ledger = Self::load(storage)?;
        let mut recovered = Recovered::default();
        let crawls = ledger.numbers_of_bodies()?;
        let mut records = Vec::new();
        for (read, crawl) in crawls.iter().enumerate() {
            let of = crawls.len() as u64;
            progress(RecoverProgress::Reading { crawls: read as u64, of });
            ledger.find_records(*crawl, &mut records, &mut recovered)?;
        }
        records.sort_unstable();
        for crawl in crawls {
            ledger.accept_again(crawl, &records, &mut recovered)?;
        }
        ledger.redo(&records, &mut recovered, progress)?;
        ledger.take_in_unclaimed(&mut recovered)?;
        // When hosts were asked last is lost, and requests may have been under way.
        ledger.set_closed(false)?;
        let crawls = ledger.crawls()?;
        for crawl in &crawls {
            ledger.set_asking(crawl.crawl.no, Some(Asking::Now))?;
        }
        recovered.crawls = crawls.len() as u64;
        recovered.pages = crawls.iter().map(|crawl| crawl.stats.pages).sum();
        Ok((ledger, recovered))
    }

    /// Finds all records of a crawl, what cannot be read, and bodies that no record mentions.
    fn find_records(
        &self,
        crawl: CrawlNo,
        records: &mut Vec<RecordAt>,
        recovered: &mut Recovered,
    ) -> Result<(), StoreError> {
        let mut pending: BTreeSet<BlobRef> = BTreeSet::new();
        self.bodies().scan(crawl, BodiesEnd::default(), &mut |scanned| {
            match scanned {
                Scanned::Blob(place) => {
                    pending.insert(place);
                }
                Scanned::Unreadable(bytes) => {
                    recovered.unreadable.push(UnreadableBytes { crawl, bytes });
                }
                Scanned::Step(place) => {
                    let record = StepRecord::decode(&self.bodies().step_record(crawl, place)?)?;
                    for (_, mut event) in record.events {
                        if let Some(claimed) = body_of(&mut event) {
                            pending.remove(&claimed.place);
                        }
                    }
                    records.push(RecordAt { step: record.step, crawl, place });
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        recovered.unclaimed.extend(pending.into_iter().map(|place| (crawl, place)));
        Ok(())
    }

    /// Accepts a crawl by the settings beside its bodies if its first record is lost.
    fn accept_again(
        &self,
        crawl: CrawlNo,
        records: &[RecordAt],
        recovered: &mut Recovered,
    ) -> Result<(), StoreError> {
        if let Some(first) = records.iter().find(|record| record.crawl == crawl) {
            let record = StepRecord::decode(&self.bodies().step_record(crawl, first.place)?)?;
            if record.events.iter().any(|(_, event)| matches!(event, Event::CrawlAccepted(_))) {
                return Ok(());
            }
        }
        let settings = self.bodies().settings(crawl)?;
        let accepted =
            settings.and_then(|json| serde_json::from_slice::<CrawlAccepted>(&json).ok());
        let accepted = accepted.filter(|accepted| accepted.crawl.no == crawl);
        let accepted = accepted.unwrap_or_else(|| {
            recovered.without_settings.push(crawl);
            CrawlAccepted { crawl: crawl_without_settings(crawl), key_seed: self.key_seed() }
        });
        self.put_settings(&accepted)?;
        let mut memory = self.memory();
        let (step, seq) = (memory.step, memory.seq);
        let events = vec![Event::CrawlAccepted(Box::new(accepted))];
        let steps = vec![RecordedStep { step, seq, events }];
        self.commit_again(&mut memory, RedoBatch { steps, ..RedoBatch::default() })
    }

    /// Folds records, which are in the order of their steps.
    fn redo(
        &self,
        records: &[RecordAt],
        recovered: &mut Recovered,
        progress: &mut dyn FnMut(RecoverProgress),
    ) -> Result<(), StoreError> {
        let of = records.chunk_by(|a, b| a.step == b.step).count() as u64;
        let mut batch = RedoBatch::default();
        for records in records.chunk_by(|a, b| a.step == b.step) {
            batch.steps.push(self.read_step(records, recovered)?);
            batch.ends.extend(records.iter().map(|record| (record.crawl, record.end())));
            batch.events += batch.steps.last().map_or(0, |step| step.events.len());
            if batch.events >= EVENTS_PER_BATCH {
                recovered.steps += batch.steps.len() as u64;
                self.commit_again(&mut self.memory(), std::mem::take(&mut batch))?;
                progress(RecoverProgress::Folding { steps: recovered.steps, of });
            }
        }
        recovered.steps += batch.steps.len() as u64;
        self.commit_again(&mut self.memory(), batch)?;
        progress(RecoverProgress::Folding { steps: recovered.steps, of });
        Ok(())
    }

    /// The events of a step out of its records, one for each crawl. A page whose body cannot be read is left
    /// out: its URL stays in the queue.
    fn read_step(
        &self,
        records: &[RecordAt],
        recovered: &mut Recovered,
    ) -> Result<RecordedStep, StoreError> {
        let mut events = Vec::new();
        let mut seq = 0;
        for at in records {
            let record = self.bodies().step_record(at.crawl, at.place)?;
            let record = StepRecord::decode(&record)?;
            seq = record.seq.max(seq);
            for (place, mut event) in record.events {
                if let Some(claimed) = body_of(&mut event)
                    && !self.bodies().is_whole(at.crawl, claimed.place)?
                {
                    recovered.lost.push(LostPage { crawl: at.crawl, ..claimed });
                    continue;
                }
                events.push((place, event));
            }
        }
        events.sort_by_key(|(place, _)| *place);
        let events = events.into_iter().map(|(_, event)| event).collect();
        Ok(RecordedStep { step: records.first().map_or(0, |record| record.step), seq, events })
    }

    /// Stores bodies that no record mentions, unless their pages are known: steps whose records are damaged, and
    /// directories of older formats, which have none.
    fn take_in_unclaimed(&self, recovered: &mut Recovered) -> Result<(), StoreError> {
        for together in recovered.unclaimed.chunks(UNCLAIMED_PER_STEP) {
            let mut memory = self.memory();
            let mut events = Vec::new();
            for (crawl, blob) in together {
                let Some(known) = memory.crawl(*crawl, self.rows())? else { continue };
                let page = self.page_of_blob(*crawl, *blob, known.keyer)?;
                let Some(page) = page.filter(|page| !self.is_page(page).unwrap_or(true)) else {
                    continue;
                };
                *recovered.unread.entry(*crawl).or_default() += 1;
                let row = read_row(self.rows(), *crawl)?;
                let has_queue = row.is_some_and(|row| !row.crawl.is_import());
                events.push(if has_queue {
                    page_event(page)
                } else {
                    Event::DocumentImported(Box::new(page))
                });
            }
            self.write_again(&mut memory, events)?;
        }
        Ok(())
    }

    fn is_page(&self, page: &PageRecord) -> Result<bool, StoreError> {
        let row = self.rows().get(Table::Urls, layout::url_key(page.crawl, page.key))?;
        let row = row.map(|row| layout::decode(&row, "urls")).transpose()?;
        Ok(matches!(row, Some(UrlRow::Page { .. })))
    }

    /// What a body says of its page.
    fn page_of_blob(
        &self,
        crawl: CrawlNo,
        blob: BlobRef,
        keyer: UrlKeyer,
    ) -> Result<Option<PageRecord>, StoreError> {
        let Some(origin) = self.bodies().origin(crawl, blob)? else { return Ok(None) };
        let Ok(url) = PageUrl::parse(&origin.url) else { return Ok(None) };
        let mut page = PageRecord::bare(crawl, keyer.key(&url), url, origin.at);
        page.parsed = origin.has_extract.then_some(blob);
        if origin.has_body {
            let body = self.bodies().answer(crawl, blob)?;
            let mut lines = body.head.lines();
            let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
            page.status = status.unwrap_or(page.status);
            let fields = lines.filter_map(|line| line.split_once(": "));
            let mut types = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            page.content_type = types.next().map(|(_, value)| value.to_owned());
            page.bytes = body.bytes.len() as u64;
            page.digest = Digest(*blake3::hash(&body.bytes).as_bytes());
            page.body = Some(blob);
        }
        Ok(Some(page))
    }

    /// Makes events durable that are found out during a recovery.
    fn write_again(&self, memory: &mut Memory, events: Vec<Event>) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut by_crawl: BTreeMap<CrawlNo, Vec<&Event>> = BTreeMap::new();
        for event in &events {
            if let Some(crawl) = event.crawl() {
                by_crawl.entry(crawl).or_default().push(event);
            }
        }
        let (step, seq) = (memory.step + 1, memory.seq);
        let mut ends = HashMap::new();
        for (crawl, events) in by_crawl {
            let known = memory.crawl(crawl, self.rows())?;
            let end = known.map_or_else(BodiesEnd::default, |known| known.bodies_end);
            let places = (0..).take(events.len()).collect();
            let record = |_: &[BlobRef]| encode_record(step, seq, places, &events);
            ends.insert(crawl, self.bodies().append(crawl, end, &[], record)?);
        }
        let steps = vec![RecordedStep { step, seq, events }];
        self.commit_again(memory, RedoBatch { steps, ends, ..RedoBatch::default() })
    }

    /// Folds steps and makes their rows durable.
    fn commit_again(&self, memory: &mut Memory, batch: RedoBatch) -> Result<(), StoreError> {
        if batch.steps.is_empty() {
            return Ok(());
        }
        let mut fold = Fold::new(self.rows(), memory, self.recent()).with_ends(batch.ends);
        for step in &batch.steps {
            fold.look_up_links(&step.events)?;
        }
        let rows = fold.fold_again(batch.steps)?;
        self.rows().commit(rows)?;
        memory.broken = false;
        Ok(())
    }

    /// The numbers of the crawls that have bodies.
    pub(crate) fn numbers_of_bodies(&self) -> Result<BTreeSet<CrawlNo>, StoreError> {
        let aliases = self.bodies().crawls()?;
        let number = |alias: &String| alias.strip_prefix("crawl_")?.parse().ok().map(CrawlNo);
        Ok(aliases.iter().filter_map(number).collect())
    }
}

/// A crawl of which nothing is known but that it has pages.
fn crawl_without_settings(no: CrawlNo) -> Crawl {
    Crawl {
        no,
        id: CrawlId::new(Timestamp(0), u128::from(no.0)),
        name: Some(format!("recovered {no}")),
        created_at: Timestamp(0),
        seeds: Seeds::Links(Vec::new()),
        scope: ScopeRules::default(),
        politeness: Politeness::default(),
        limits: Limits::default(),
        fetch: FetchRules::default(),
        keep: Keep::default(),
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules::default(),
        recrawl_of: None,
        labels: BTreeMap::new(),
    }
}

/// Steps that are folded together.
#[derive(Default)]
struct RedoBatch {
    steps: Vec<RecordedStep>,
    events: usize,
    ends: HashMap<CrawlNo, BodiesEnd>,
}

/// The page that an event brings a body for, as it is lost if that cannot be read.
fn body_of(event: &mut Event) -> Option<LostPage> {
    let is_asked_again = !matches!(event, Event::DocumentImported(_));
    let page = event.page_mut()?;
    let place = page.body.or(page.parsed)?;
    Some(LostPage { crawl: page.crawl, url: page.url.to_string(), place, is_asked_again })
}
