//! What a crawl holds, in pages that stay in step while it runs: pages, errors, skipped URLs, hosts, the
//! queue, the ids of a linear crawl. A cursor names the last thing that was shown, never a count.

use data_encoding::BASE64URL_NOPAD;
use telusur_engine::control::{CoverageItem, CoveredRun, ReadCoverage};
use telusur_ledger::{NewlyQueued, QueueRange, UrlRecord, UrlState};
use telusur_model::{
    CrawlNo, Host, HostRow, Lane, LegCoverage, PageRecord, ParkedHost, QueuePlace, Reason, UrlKey,
    WalkCoverage,
};

use super::Service;
use super::pages::page_view;
use super::view::host_state;
use crate::json::{
    CountsView, CoverageView, ErrorView, HostView, LegView, PageView, Paged, QueuedView, RunView,
    SkippedView,
};
use crate::problem::{Code, Problem};

/// Records read at once while error pages are looked for among all pages.
const SCAN_BATCH: usize = 1000;

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Reads a cursor as a client sends it back.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let cursor = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(Self);
        cursor.ok_or_else(Self::unusable)
    }

    /// The cursor as a client gets it.
    pub fn text(&self) -> String {
        BASE64URL_NOPAD.encode(self.0.as_bytes())
    }

    pub(crate) fn of_number(number: u64) -> Self {
        Self(number.to_string())
    }

    pub(crate) fn number(&self) -> Result<u64, Problem> {
        self.0.parse().map_err(|_| Self::unusable())
    }

    /// Two parts with a space between them.
    fn parts(&self) -> Result<(&str, &str), Problem> {
        self.0.split_once(' ').ok_or_else(Self::unusable)
    }

    fn unusable() -> Problem {
        Problem::new(Code::InvalidField, "this is no cursor of this list").at("cursor")
    }
}

/// What a list is read with.
type ListAsk = (usize, Option<Cursor>);

impl Service {
    /// The pages of a crawl, oldest first.
    pub async fn pages(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<PageView>, Problem> {
        self.read(move |service| {
            let total = service.record(no)?.stats.pages;
            let after = cursor.map_or(Ok(0), |cursor| cursor.number())?;
            let mut pages = service.inner().store.pages_after(no, after, limit + 1)?;
            let has_more = pages.len() > limit;
            pages.truncate(limit);
            let last = pages.last().map(|page| Cursor::of_number(page.seq).text());
            let items = pages.into_iter().map(page_view).collect();
            Ok(Paged { items, next_cursor: last.filter(|_| has_more), total: Some(total) })
        })
        .await
    }

    /// The URLs of a crawl that answered with an error, then those that did not answer.
    pub async fn errors(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<ErrorView>, Problem> {
        self.read(move |service| service.errors_now(no, (limit, cursor))).await
    }

    fn errors_now(&self, no: CrawlNo, ask: ListAsk) -> Result<Paged<ErrorView>, Problem> {
        let (limit, cursor) = ask;
        let stats = self.record(no)?.stats;
        let mut found: Vec<(ErrorView, String)> = Vec::new();
        let (mut seq, mut after) = (Some(0), None);
        if let Some(cursor) = cursor {
            match cursor.parts()? {
                ("page", at) => seq = Some(at.parse().map_err(|_| Cursor::unusable())?),
                ("url", at) => (seq, after) = (None, Some(read_key(at)?)),
                _ => return Err(Cursor::unusable()),
            }
        }
        while let Some(from) = seq.filter(|_| found.len() <= limit) {
            let pages = self.inner().store.pages_after(no, from, SCAN_BATCH)?;
            seq = pages.last().map(|page| page.seq);
            let errors = pages.into_iter().filter(PageRecord::is_error);
            found.extend(errors.map(|page| {
                let cursor = format!("page {}", page.seq);
                (error_page(page), cursor)
            }));
        }
        if found.len() <= limit {
            self.inner().store.settled_urls_after(no, after, &mut |key, url| {
                found.extend(failed_url(url).map(|view| (view, format!("url {key}"))));
                found.len() <= limit
            })?;
        }
        Ok(cut(found, limit, Some(stats.errors() - stats.ids.holes)))
    }

    /// The URLs of a crawl that were never asked for; those with one reason, if one is named.
    pub async fn skipped(
        &self,
        no: CrawlNo,
        reason: Option<String>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<SkippedView>, Problem> {
        let wanted = match reason {
            Some(word) => Some(Reason::from_word(&word).ok_or_else(|| {
                Problem::new(Code::InvalidField, "there is no such reason").at("reason")
            })?),
            None => None,
        };
        self.read(move |service| {
            let stats = service.record(no)?.stats;
            let total = match wanted {
                Some(reason) => stats.skips.get(&reason).copied().unwrap_or(0),
                None => stats.skipped,
            };
            let after = cursor.map(|cursor| read_key(&cursor.0)).transpose()?;
            let mut found = Vec::new();
            service.inner().store.settled_urls_after(no, after, &mut |key, url| {
                let view = skipped_url(url, wanted);
                found.extend(view.map(|view| (view, key.to_string())));
                found.len() <= limit
            })?;
            Ok(cut(found, limit, Some(total)))
        })
        .await
    }

    /// The hosts of a crawl, by name.
    pub async fn hosts(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<HostView>, Problem> {
        self.read(move |service| {
            let own_ms = service.record(no)?.crawl.politeness.delay_ms;
            let parked = service.progress(no).map(|progress| progress.parked).unwrap_or_default();
            let rows = service.hosts_by_name(no)?;
            let total = rows.len() as u64;
            let after = cursor.map(|cursor| cursor.0).unwrap_or_default();
            let rows = rows.into_iter().filter(|row| row.host.as_str() > after.as_str());
            let found = rows.take(limit + 1).map(|row| {
                let name = row.host.to_string();
                let parked = parked.iter().find(|parked| parked.covers(&name));
                (host_view(row, own_ms, parked), name)
            });
            Ok(cut(found.collect(), limit, Some(total)))
        })
        .await
    }

    fn hosts_by_name(&self, no: CrawlNo) -> Result<Vec<HostRow>, Problem> {
        let mut rows = self.inner().store.hosts(no)?;
        rows.sort_by(|left, right| left.host.as_str().cmp(right.host.as_str()));
        Ok(rows)
    }

    /// The URLs that wait, host by host, each in the order of its queue.
    pub async fn frontier(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<QueuedView>, Problem> {
        self.read(move |service| service.frontier_now(no, (limit, cursor))).await
    }

    fn frontier_now(&self, no: CrawlNo, ask: ListAsk) -> Result<Paged<QueuedView>, Problem> {
        let (limit, cursor) = ask;
        let total = self.record(no)?.stats.queued;
        let (mut at_host, mut place) = (String::new(), None);
        if let Some(cursor) = cursor {
            let (host, rest) = cursor.parts()?;
            (at_host, place) = (host.to_owned(), Some(read_place(rest)?));
        }
        let mut found: Vec<(QueuedView, String)> = Vec::new();
        for row in self.hosts_by_name(no)? {
            if row.host.as_str() < at_host.as_str() || row.queued == 0 {
                continue;
            }
            let after = place.take().filter(|_| row.host.as_str() == at_host);
            for later in [false, true] {
                let room = (limit + 1).saturating_sub(found.len());
                let is_behind = after.is_some_and(|place| place.lane == Lane::Later && !later);
                if room == 0 || is_behind {
                    continue;
                }
                let after = after.filter(|place| (place.lane == Lane::Later) == later);
                let request = QueueRange { crawl: no, host: &row.host, later, after, max: room };
                for queued in self.inner().store.queued(request)? {
                    let cursor = format!("{} {}", row.host, write_place(queued.visit.place));
                    found.push((queued_view(&row.host, queued), cursor));
                }
            }
            if found.len() > limit {
                break;
            }
        }
        Ok(cut(found, limit, Some(total)))
    }

    /// What is known of the ids of a linear crawl: its templates, each with some of its runs.
    pub async fn coverage(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<CoverageView>, Problem> {
        self.read(move |service| service.coverage_now(no, (limit, cursor))).await
    }

    fn coverage_now(&self, no: CrawlNo, ask: ListAsk) -> Result<Paged<CoverageView>, Problem> {
        let (limit, cursor) = ask;
        if self.record(no)?.crawl.seeds.linear().is_none() {
            return Err(Problem::new(Code::WrongState, format!("{no} is no linear crawl")));
        }
        let (walk_from, first_from) = match &cursor {
            Some(cursor) => {
                let (walk, first) = cursor.parts()?;
                let read = |text: &str| text.parse::<u64>().map_err(|_| Cursor::unusable());
                (read(walk)?, read(first)?)
            }
            None => (0, 0),
        };
        let (mut items, mut next_cursor, mut runs) = (Vec::<CoverageView>::new(), None, 0);
        let mut walks = 0;
        self.inner().control.run(&ReadCoverage { crawl: no.to_string() }, &mut |item| {
            match item {
                CoverageItem::Walk(walk) => {
                    if u64::from(walks) >= walk_from {
                        items.push(coverage_view(*walk, walks));
                    }
                    walks += 1;
                }
                CoverageItem::Runs(lines) => {
                    let Some(view) = items.last_mut() else { return true };
                    for CoveredRun { run, why } in lines {
                        let is_shown = u64::from(view.walk) == walk_from && run.first < first_from;
                        if is_shown {
                            continue;
                        }
                        if runs == limit {
                            next_cursor = Some(Cursor(format!("{} {}", view.walk, run.first)));
                            return false;
                        }
                        runs += 1;
                        view.runs.push(RunView {
                            first: run.first,
                            last: run.last,
                            count: run.count,
                            state: run.state.word().to_owned(),
                            reason: why.map(|why| why.word().to_owned()),
                        });
                    }
                }
            }
            next_cursor.is_none()
        })?;
        let next_cursor = next_cursor.map(|cursor| cursor.text());
        Ok(Paged { items, next_cursor, total: None })
    }
}

/// As many as were asked for; one more tells that there are more.
fn cut<T>(mut found: Vec<(T, String)>, limit: usize, total: Option<u64>) -> Paged<T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().map(|(_, cursor)| Cursor(cursor.clone()).text());
    let items = found.into_iter().map(|(item, _)| item).collect();
    Paged { items, next_cursor: last.filter(|_| has_more), total }
}

fn read_key(text: &str) -> Result<UrlKey, Problem> {
    u128::from_str_radix(text, 16).map(UrlKey).map_err(|_| Cursor::unusable())
}

fn write_place(place: QueuePlace) -> String {
    let lane = Lane::STORED.iter().position(|lane| *lane == place.lane).unwrap_or(0);
    format!("{lane}.{}.{}", place.order, place.seq)
}

fn read_place(text: &str) -> Result<QueuePlace, Problem> {
    let read = || {
        let mut parts = text.splitn(3, '.');
        let lane = *Lane::STORED.get(parts.next()?.parse::<usize>().ok()?)?;
        let order = parts.next()?.parse().ok()?;
        Some(QueuePlace { lane, order, seq: parts.next()?.parse().ok()? })
    };
    read().ok_or_else(Cursor::unusable)
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

fn host_view(row: HostRow, own_ms: u64, parked: Option<&ParkedHost>) -> HostView {
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

fn coverage_view(walk: WalkCoverage, number: u32) -> CoverageView {
    let counts = &walk.coverage.counts;
    CoverageView {
        walk: number,
        min: walk.min,
        max: walk.max,
        start: walk.start,
        counts: CountsView {
            content: counts.content,
            missing: counts.missing,
            missing_by_look: walk.missing_by_look,
            holes: counts.holes,
            pending_retry: counts.waiting,
            unknown: counts.unknown.and_then(|unknown| u64::try_from(unknown).ok()),
        },
        legs: walk.coverage.legs.iter().map(leg_view).collect(),
        template: walk.template,
        runs: Vec::new(),
    }
}

fn leg_view(leg: &LegCoverage) -> LegView {
    LegView {
        direction: leg.direction.word().to_owned(),
        state: leg.state.word().to_owned(),
        next: leg.next,
        misses_in_row: leg.misses_in_row,
        margin: leg.margin,
        rate: leg.rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_as_they_went() {
        let cursor = Cursor("host.test 2.17.99".to_owned());
        let back = Cursor::read(&cursor.text()).unwrap();
        assert_eq!(back, cursor);
        let (host, place) = back.parts().unwrap();
        assert_eq!(host, "host.test");
        let place = read_place(place).unwrap();
        assert_eq!((place.lane, place.order, place.seq), (Lane::Later, 17, 99));
        assert_eq!(write_place(place), "2.17.99");
        for bad in ["%%%", "9", "", "bm8"] {
            let read = Cursor::read(bad).and_then(|cursor| cursor.number());
            assert!(read.is_err(), "{bad:?}");
        }
    }
}
