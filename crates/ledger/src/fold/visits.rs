//! Queued visits: how they end, and how they come back to the queue.

use telusur_model::{CrawlNo, Lane, QueuePlace, Reason, Timestamp, Visit};

use super::{Fold, note_request};
use crate::layout::{self, QueueRow, UrlRow, encode};
use crate::storage::{Rows, Table};
use crate::{Dequeued, NewlyQueued, StoreError, UrlRecord, UrlState, VisitEnded, VisitOutcome};

impl<R: Rows> Fold<'_, R> {
    /// Ends a visit whose queue row is still there. Another one was settled before: taking it again would
    /// store a page twice.
    pub(super) fn end_visit(&mut self, ended: VisitEnded) -> Result<(), StoreError> {
        let VisitEnded { visit, how, at, requested_at, other_schemes } = ended;
        let (crawl, host) = (visit.crawl, visit.url.host());
        let stored_page = matches!(how, VisitOutcome::Page(_));
        let gone =
            Dequeued { crawl, host: host.clone(), place: visit.place, stored_page, id_state: None };
        if !Lane::STORED.contains(&visit.place.lane) {
            // An error of this visit alone: the step holds those of other crawls, too.
            tracing::warn!(%crawl, url = %visit.url, "visit is in no queue, dropped");
            self.dequeued(Dequeued { stored_page: false, ..gone });
            return Ok(());
        }
        let key = layout::queue_key(crawl, &host, visit.place);
        if !self.has(Table::Queue, &key)? {
            self.dequeued(Dequeued { stored_page: false, ..gone });
            return Ok(());
        }
        let uses_no_unit = requested_at.is_none() && self.is_unasked(&visit, &how, &key)?;
        self.batch.remove(Table::Queue, key);
        self.dequeued(gone);
        let is_retry = matches!(how, VisitOutcome::Later { .. });
        let is_error = match &how {
            VisitOutcome::Page(page) => page.is_error(),
            VisitOutcome::Failed { .. } | VisitOutcome::NoPage { .. } => true,
            VisitOutcome::Sitemap { .. }
            | VisitOutcome::Redirected { .. }
            | VisitOutcome::Skipped { .. }
            | VisitOutcome::Later { .. } => false,
        };
        self.update_host(crawl, &host, |row| {
            row.queued -= u64::from(!is_retry);
            row.pages += u64::from(stored_page);
            row.errors += u64::from(is_error);
            note_request(row, requested_at);
        });
        let stats = self.stats(crawl);
        stats.visits += u64::from(!matches!(how, VisitOutcome::Skipped { .. }));
        stats.other_schemes += u64::from(other_schemes);
        stats.queued -= u64::from(!is_retry);
        let (url, purpose) = (visit.url.clone(), visit.purpose);
        self.settle_visit(visit, how, at);
        if uses_no_unit {
            self.give_back(crawl, &url, purpose)?;
        }
        Ok(())
    }

    /// Finds the place of a visit in the queue, which may be another one if steps before are lost. One that
    /// no row knows is queued first, and so is one that failed or was left out. False if it is settled
    /// otherwise: its place may be another one's now.
    pub(super) fn find_place(&mut self, visit: &mut Visit) -> Result<bool, StoreError> {
        let crawl = visit.crawl;
        match self.url_row(crawl, visit.key)? {
            Some(UrlRow::Queued { place }) => visit.place = place,
            Some(UrlRow::Page { .. }) => return Ok(false),
            Some(UrlRow::Settled(record)) => match record.state {
                UrlState::Failed { .. } => {
                    self.ask_again(visit.clone())?;
                    return self.find_place(visit);
                }
                UrlState::Skipped { reason, .. } => {
                    let is_held = reason.budget_flag().is_some();
                    if is_held && !self.unhold(crawl, &visit.url.host(), visit.key)? {
                        return Ok(false);
                    }
                    self.uncount_skip(crawl, reason);
                    self.queue_first(visit);
                }
                UrlState::Redirected { .. }
                | UrlState::Sitemap { .. }
                | UrlState::Queued { .. }
                | UrlState::Page { .. } => return Ok(false),
            },
            None => {
                self.take_unknown(crawl, visit.key);
                self.queue_first(visit);
            }
        }
        Ok(true)
    }

    fn queue_first(&mut self, visit: &mut Visit) {
        let order = u64::from(visit.depth);
        visit.place = QueuePlace { lane: Lane::Plain, order, seq: self.next_seq() };
        self.admit(visit.clone());
    }

    fn settle_visit(&mut self, visit: Visit, how: VisitOutcome, at: Timestamp) {
        let crawl = visit.crawl;
        match how {
            VisitOutcome::Page(page) => self.store_page(*page),
            VisitOutcome::Later { due, counted, reason, .. } => {
                self.retry(visit, due, counted, reason);
            }
            VisitOutcome::Redirected { status, to } => {
                let stats = self.stats(crawl);
                stats.redirected += 1;
                *stats.statuses.entry(status).or_default() += 1;
                self.settle(visit, UrlState::Redirected { status, to, at });
            }
            VisitOutcome::Sitemap { entries, dropped, trouble } => {
                self.stats(crawl).sitemaps += 1;
                self.settle(visit, UrlState::Sitemap { entries, dropped, trouble, at });
            }
            VisitOutcome::Failed { reason, detail } => self.fail(visit, reason, detail, at),
            // Only ids end so. A queued visit that did has failed, and says so.
            VisitOutcome::NoPage { .. } => {
                self.fail(visit, Reason::ProtocolError, "it brought no page".to_owned(), at);
            }
            VisitOutcome::Skipped { reason, rule } => {
                self.count_skip(crawl, reason);
                self.settle(visit, UrlState::Skipped { reason, rule });
            }
        }
    }

    /// Whether a queued URL is settled without any request: the rules of robots.txt became known, or the
    /// user excluded it. One that was asked before and waited for another attempt has used its unit; its
    /// attempt does not tell, since an answer such as 429 counts as none.
    fn is_unasked(
        &self,
        visit: &Visit,
        how: &VisitOutcome,
        queue_key: &[u8],
    ) -> Result<bool, StoreError> {
        if visit.attempt > 1 || !matches!(how, VisitOutcome::Skipped { .. }) {
            return Ok(false);
        }
        let row: Option<QueueRow> = self.read(Table::Queue, queue_key)?;
        Ok(row.is_some_and(|row| row.last_failure.is_none()))
    }

    /// A visit ended for good without a page.
    pub(super) fn fail(&mut self, visit: Visit, reason: Reason, detail: String, at: Timestamp) {
        let stats = self.stats(visit.crawl);
        stats.failed += 1;
        *stats.failures.entry(reason).or_default() += 1;
        let attempts = visit.attempt;
        self.settle(visit, UrlState::Failed { reason, detail, attempts, at });
    }

    /// A URL that failed has another state now.
    pub(super) fn uncount_failure(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = self.stats(crawl);
        stats.failed -= 1;
        if let Some(count) = stats.failures.get_mut(&reason) {
            *count = count.saturating_sub(1);
        }
        stats.failures.retain(|_, count| *count > 0);
    }

    fn retry(&mut self, mut visit: Visit, due: Timestamp, counted: bool, reason: Reason) {
        visit.place = QueuePlace { lane: Lane::Later, order: due.0, seq: self.next_seq() };
        visit.attempt = visit.attempt.saturating_add(u8::from(counted));
        self.enqueue(visit, Some(due), Some(reason));
    }

    pub(super) fn settle(&mut self, visit: Visit, state: UrlState) {
        let record = UrlRecord {
            url: visit.url.to_string(),
            depth: visit.depth,
            via: visit.via,
            found_at: visit.found_at,
            referrer: visit.referrer,
            redirects: visit.redirects,
            lastmod: visit.lastmod,
            state,
        };
        self.put_url(visit.crawl, visit.key, &UrlRow::Settled(Box::new(record)));
    }

    /// A URL that failed goes back to the queue as if nobody had asked for it. Others are passed over.
    pub(super) fn ask_again(&mut self, visit: Visit) -> Result<(), StoreError> {
        let crawl = visit.crawl;
        let Some(UrlRow::Settled(record)) = self.url_row(crawl, visit.key)? else { return Ok(()) };
        let UrlState::Failed { reason, .. } = record.state else { return Ok(()) };
        self.uncount_failure(crawl, reason);
        self.update_host(crawl, &visit.url.host(), |row| {
            row.errors = row.errors.saturating_sub(1);
        });
        self.queue_again(visit, reason);
        Ok(())
    }

    /// A URL that was asked for goes back to the queue. `why` says that it has used its unit.
    pub(super) fn queue_again(&mut self, mut visit: Visit, why: Reason) {
        self.stats(visit.crawl).queued += 1;
        self.update_host(visit.crawl, &visit.url.host(), |row| row.queued += 1);
        let order = u64::from(visit.depth);
        visit.place = QueuePlace { lane: Lane::Plain, order, seq: self.next_seq() };
        visit.attempt = 1;
        self.enqueue(visit, None, Some(why));
    }

    pub(super) fn enqueue(
        &mut self,
        visit: Visit,
        due: Option<Timestamp>,
        last_failure: Option<Reason>,
    ) {
        let row = QueueRow::of_visit(&visit, last_failure);
        let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
        self.batch.insert(Table::Queue, key, encode(&row));
        self.put_url(visit.crawl, visit.key, &UrlRow::Queued { place: visit.place });
        // A host that asked to wait just now is known to have done so.
        self.effects.queued.push(NewlyQueued { visit, due, asked_to_wait: false });
    }
}
