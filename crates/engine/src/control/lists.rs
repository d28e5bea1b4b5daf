//! What a crawl holds: pages, errors, skipped URLs, changes since the crawl before, hosts, the queue.

use serde::{Deserialize, Serialize};
use telusur_ledger::{NewlyQueued, QueueRange, Store, UrlRecord, UrlState};
use telusur_model::{
    Change, CrawlNo, Host, HostRow, Lane, PageRecord, ParkedHost, QueuePlace, Reason, UrlKey,
};

use super::crawl_view::host_state;
use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use super::page::page_view;
use super::part::{Part, no_cursor};
use crate::error::RequestError;
use crate::json::{ChangedView, ErrorView, HostView, ListEnd, PageView, QueuedView, SkippedView};

/// Records read at once.
const BATCH: usize = 1000;

macro_rules! lists {
    ($($(#[doc = $doc:literal])+ $list:ident { $($(#[doc = $field_doc:literal])+ $field:ident),* })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $list {
            /// Which crawl.
            pub crawl: String,
            $($(#[doc = $field_doc])+ pub $field: Option<String>,)*
            /// Only what is behind this place of the list.
            pub after: Option<String>,
            /// How many, at most.
            pub limit: Option<usize>,
        }
    )+};
}

lists! {
    /// The pages of a crawl, oldest first.
    ListPages {}
    /// The URLs of a crawl that answered with an error, then those without an answer.
    ListErrors {}
    /// The URLs of a crawl that were never asked for.
    ListSkipped {
        /// Only those with this reason.
        reason
    }
    /// The hosts of a crawl, by name.
    ListHosts {}
    /// The URLs of a crawl that wait, host by host, each in the order of its queue.
    ListQueue {}
    /// The pages of a crawl that are not as they were in the crawl that it repeats: new and changed ones, then those
    /// that are gone.
    ListChanges {}
}

impl Operation for ListPages {
    const KIND: OperationKind = OperationKind::ListPages;
    const LENGTH: Length = Length::Long;
    type Item = PageView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, PageView>) -> Result<ListEnd, RequestError> {
        let record = control.find(&self.crawl)?;
        let mut part = Part::new(self.limit, each);
        let mut seq = match &self.after {
            Some(after) => part.cursor(after.parse::<u64>())?,
            None => 0,
        };
        loop {
            let pages = control.store.pages_after(record.crawl.no, seq, part.room(BATCH))?;
            let Some(last) = pages.last() else { break };
            seq = last.seq;
            let mut views = pages.into_iter().map(|page| (page.seq, page_view(page)));
            if !views.all(|(seq, view)| part.give(view, || seq.to_string())) {
                break;
            }
        }
        Ok(part.end(Some(record.stats.pages)))
    }
}

impl Operation for ListErrors {
    const KIND: OperationKind = OperationKind::ListErrors;
    const LENGTH: Length = Length::Long;
    type Item = ErrorView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, ErrorView>) -> Result<ListEnd, RequestError> {
        let record = control.find(&self.crawl)?;
        let (no, store) = (record.crawl.no, control.store.as_ref());
        let mut part = Part::new(self.limit, each);
        let (mut seq, mut key) = (Some(0), None);
        match self.after.as_deref().map(|after| after.split_once(' ')) {
            None => {}
            Some(Some(("page", at))) => seq = Some(part.cursor(at.parse::<u64>())?),
            Some(Some(("url", at))) => (seq, key) = (None, Some(read_key(at)?)),
            Some(Some(_) | None) => return Err(no_cursor()),
        }
        let mut goes_on = true;
        while let Some(from) = seq.filter(|_| goes_on) {
            let pages = store.pages_after(no, from, BATCH)?;
            seq = pages.last().map(|page| page.seq);
            let mut errors = pages.into_iter().filter(PageRecord::is_error);
            goes_on = errors.all(|page| {
                let seq = page.seq;
                part.give(error_page(page), || format!("page {seq}"))
            });
        }
        if goes_on {
            store.settled_urls_after(no, key, &mut |key, url| {
                failed_url(url).is_none_or(|view| part.give(view, || format!("url {key}")))
            })?;
        }
        Ok(part.end(Some(record.stats.errors() - record.stats.ids.holes)))
    }
}

impl Operation for ListSkipped {
    const KIND: OperationKind = OperationKind::ListSkipped;
    const LENGTH: Length = Length::Long;
    type Item = SkippedView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, SkippedView>) -> Result<ListEnd, RequestError> {
        let record = control.find(&self.crawl)?;
        let wanted = self.reason.as_deref().map(reason).transpose()?;
        let total = match wanted {
            Some(reason) => record.stats.skips.get(&reason).copied().unwrap_or(0),
            None => record.stats.skipped,
        };
        let mut part = Part::new(self.limit, each);
        let after = self.after.as_deref().map(read_key).transpose()?;
        control.store.settled_urls_after(record.crawl.no, after, &mut |key, url| {
            skipped_url(url, wanted).is_none_or(|view| part.give(view, || key.to_string()))
        })?;
        Ok(part.end(Some(total)))
    }
}

fn reason(word: &str) -> Result<Reason, RequestError> {
    let none = || RequestError::bad_field("reason", format!("there is no skip reason {word:?}"));
    Reason::from_word(word).ok_or_else(none)
}

impl Operation for ListHosts {
    const KIND: OperationKind = OperationKind::ListHosts;
    const LENGTH: Length = Length::Long;
    type Item = HostView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, HostView>) -> Result<ListEnd, RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        let parked = control.progress(crawl.no).map(|it| it.parked).unwrap_or_default();
        let rows = hosts_by_name(control, crawl.no)?;
        let total = rows.len() as u64;
        let mut part = Part::new(self.limit, each);
        for row in rows {
            let name = row.host.to_string();
            if self.after.as_ref().is_some_and(|after| name <= *after) {
                continue;
            }
            let parked = parked.iter().find(|parked| parked.covers(&name));
            if !part.give(host_view(row, crawl.politeness.delay_ms, parked), || name) {
                break;
            }
        }
        Ok(part.end(Some(total)))
    }
}

impl Operation for ListQueue {
    const KIND: OperationKind = OperationKind::ListQueue;
    const LENGTH: Length = Length::Long;
    type Item = QueuedView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, QueuedView>) -> Result<ListEnd, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        let mut part = Part::new(self.limit, each);
        let (at_host, mut place) = match &self.after {
            Some(after) => {
                let (host, place) = after.split_once(' ').ok_or_else(no_cursor)?;
                (host, Some(read_place(place)?))
            }
            None => ("", None),
        };
        for row in hosts_by_name(control, no)? {
            let name = row.host.as_str();
            if name < at_host || row.queued == 0 {
                continue;
            }
            let after = place.take().filter(|_| name == at_host);
            if !list_queue(control, no, &row.host, after, &mut part)? {
                break;
            }
        }
        Ok(part.end(Some(record.stats.queued)))
    }
}

/// Hands over what waits for one host behind a place. False: nothing more is wanted.
fn list_queue(
    control: &Control,
    crawl: CrawlNo,
    host: &Host,
    after: Option<QueuePlace>,
    part: &mut Part<'_, QueuedView>,
) -> Result<bool, RequestError> {
    for later in [false, true] {
        if !later && after.is_some_and(|place| place.lane == Lane::Later) {
            continue;
        }
        let mut after = after.filter(|place| (place.lane == Lane::Later) == later);
        loop {
            let range = QueueRange { crawl, host, later, after, max: part.room(BATCH) };
            let queued = control.store.queued(range)?;
            let Some(last) = queued.last() else { break };
            after = Some(last.visit.place);
            let goes_on = queued.into_iter().all(|queued| {
                let place = queued.visit.place;
                part.give(queued_view(host, queued), || format!("{host} {}", write_place(place)))
            });
            if !goes_on {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn hosts_by_name(control: &Control, crawl: CrawlNo) -> Result<Vec<HostRow>, RequestError> {
    let mut rows = control.store.hosts(crawl)?;
    rows.sort_by(|left, right| left.host.as_str().cmp(right.host.as_str()));
    Ok(rows)
}

impl Operation for ListChanges {
    const KIND: OperationKind = OperationKind::ListChanges;
    const LENGTH: Length = Length::Long;
    type Item = ChangedView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, ChangedView>) -> Result<ListEnd, RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        let Some(base) = crawl.recrawl_of else {
            let what = format!("{} repeats no other crawl; see: telusur recrawl", crawl.no);
            return Err(RequestError::WrongState(what));
        };
        let store = control.store.as_ref();
        let mut part = Part::new(self.limit, each);
        let (mut own, mut earlier) = (Some(0), 0);
        match self.after.as_deref().map(|after| after.split_once(' ')) {
            None => {}
            Some(Some(("page", at))) => own = Some(part.cursor(at.parse::<u64>())?),
            Some(Some(("gone", at))) => (own, earlier) = (None, part.cursor(at.parse::<u64>())?),
            Some(Some(_) | None) => return Err(no_cursor()),
        }
        let mut goes_on = true;
        if let Some(after) = own {
            goes_on = pages_after(store, crawl.no, after, |page| {
                let change = page.change.filter(|it| matches!(it, Change::New | Change::Changed));
                let Some(change) = change.filter(|_| page.is_ok()) else { return Ok(true) };
                let view =
                    ChangedView { url: page.url.to_string(), change: change.word().to_owned() };
                Ok(part.give(view, || format!("page {}", page.seq)))
            })?;
        }
        if goes_on {
            pages_after(store, base, earlier, |page| {
                let now = store.page_of(crawl.no, &page.url)?;
                if !page.is_ok() || now.is_some_and(|now| now.is_ok()) {
                    return Ok(true);
                }
                let view = ChangedView { url: page.url.to_string(), change: "gone".to_owned() };
                Ok(part.give(view, || format!("gone {}", page.seq)))
            })?;
        }
        Ok(part.end(None))
    }
}

/// Calls `each` with the pages of a crawl behind a place, until it returns false. True if there are no more.
fn pages_after(
    store: &dyn Store,
    crawl: CrawlNo,
    mut after: u64,
    mut each: impl FnMut(PageRecord) -> Result<bool, RequestError>,
) -> Result<bool, RequestError> {
    loop {
        let pages = store.pages_after(crawl, after, BATCH)?;
        let Some(last) = pages.last() else { return Ok(true) };
        after = last.seq;
        for page in pages {
            if !each(page)? {
                return Ok(false);
            }
        }
    }
}

fn read_key(text: &str) -> Result<UrlKey, RequestError> {
    u128::from_str_radix(text, 16).map(UrlKey).map_err(|_| no_cursor())
}

fn write_place(place: QueuePlace) -> String {
    let lane = Lane::STORED.iter().position(|lane| *lane == place.lane).unwrap_or(0);
    format!("{lane}.{}.{}", place.order, place.seq)
}

fn read_place(text: &str) -> Result<QueuePlace, RequestError> {
    let read = || {
        let mut parts = text.splitn(3, '.');
        let lane = *Lane::STORED.get(parts.next()?.parse::<usize>().ok()?)?;
        let order = parts.next()?.parse().ok()?;
        Some(QueuePlace { lane, order, seq: parts.next()?.parse().ok()? })
    };
    read().ok_or_else(no_cursor)
}

fn error_page(page: PageRecord) -> ErrorView {
    let reason = page.parse_failed.as_ref().map(|_| Reason::ParseFailed.word().to_owned());
    ErrorView {
        url: page.url.to_string(),
        status: Some(page.status),
        reason,
        detail: page.parse_failed,
        attempts: page.attempts,
        depth: page.depth,
        referrer: page.referrer,
        at: page.fetched_at.rfc3339(),
    }
}

fn failed_url(url: UrlRecord) -> Option<ErrorView> {
    let UrlState::Failed { reason, detail, attempts, at } = url.state else { return None };
    Some(ErrorView {
        url: url.url,
        status: None,
        reason: Some(reason.word().to_owned()),
        detail: Some(detail),
        attempts,
        depth: url.depth,
        referrer: url.referrer,
        at: at.rfc3339(),
    })
}

fn skipped_url(url: UrlRecord, wanted: Option<Reason>) -> Option<SkippedView> {
    let UrlState::Skipped { reason, rule } = url.state else { return None };
    wanted.is_none_or(|wanted| wanted == reason).then(|| SkippedView {
        url: url.url,
        reason: reason.word().to_owned(),
        help: reason.help().to_owned(),
        rule,
        depth: url.depth,
        referrer: url.referrer,
    })
}

pub(super) fn host_view(row: HostRow, own_ms: u64, parked: Option<&ParkedHost>) -> HostView {
    let state = parked.map_or_else(|| host_state(&row, own_ms), |_| "parked");
    HostView {
        state: state.to_owned(),
        parked: parked.map(ParkedHost::text),
        site: row.host.site().to_string(),
        host: row.host.to_string(),
        fetched: row.pages,
        queued: row.queued,
        errors: row.errors,
        delay_ms: row.delay_ms.unwrap_or(own_ms),
        requests: row.requests.sent,
        gap_ms_min: row.requests.gap_ms_min,
        last_request_at: row.last_request_at.map(|at| at.rfc3339()),
    }
}

fn queued_view(host: &Host, queued: NewlyQueued) -> QueuedView {
    let NewlyQueued { visit, due, asked_to_wait: _ } = queued;
    QueuedView {
        url: visit.url.to_string(),
        host: host.to_string(),
        depth: visit.depth,
        referrer: visit.referrer,
        attempt: visit.attempt,
        due: due.map(|due| due.rfc3339()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_queue_come_back_as_they_went() {
        let place = read_place("2.17.99").unwrap();
        assert_eq!((place.lane, place.order, place.seq), (Lane::Later, 17, 99));
        assert_eq!(write_place(place), "2.17.99");
        for bad in ["", "9", "9.1.1", "1.x.1", "1.1"] {
            assert!(read_place(bad).is_err(), "{bad:?}");
        }
    }
}
