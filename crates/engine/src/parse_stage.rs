//! Reads what came back: from a fetched visit to the [`Ending`] that is committed.
//!
//! Runs on threads of its own: parsing and packing are heavy, and the async threads must stay free
//! to talk to hosts.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_fetch::robots::directives;
use telusur_frontier::{COSTLY_PARSE_MS, Disposition, PageCost};
use telusur_model::{
    Answer, Change, Clock, Digest, Discovery, FetchOutcome, Fetched, Findings, Keep, NotFoundLook,
    PageRecord, PageUrl, ParsedPage, Purpose, RawPage, Reason, Retry, SearchPage, Timestamp,
    UrlKey, Via, Visit, matches_topic,
};
use telusur_parse_pool::{Parser, PoolError, ReadPage, Reading, VisibleText};
use telusur_store::{Ending, How, IdEnding, PageToStore, Store};
use tokio::sync::mpsc;

use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;
use crate::crawl_task::Event;
use crate::error::EngineError;
use crate::faults::Faults;
use crate::id_looks::text_of;
use crate::id_visits::{WalkContext, is_of_walk};
use crate::page_source::may_be_found;
use crate::parse_queue::ParseQueue;
use crate::robots_reading::{ErrandEnd, robots_end};
use crate::shelf::Shelf;
use crate::sitemap_reading::read_sitemap;
use crate::soft_404::look_of;
use crate::stored_page::{earlier_page, stored_answer};
use crate::trap_watch::Seen;

/// A visit whose fetch has ended.
pub(crate) struct ParseWork {
    pub(crate) visit: Visit,
    pub(crate) fetched: Fetched,
    pub(crate) disposition: Disposition,
    pub(crate) context: Arc<CrawlContext>,
    /// Whether the host's last page was costly: what this one costs is told in any case.
    pub(crate) is_cost_watched: bool,
}

/// Starts the threads. They end when the sender of work is gone.
pub(crate) fn start(
    threads: usize,
    work: &Arc<ParseQueue>,
    reader: &Reader,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..threads)
        .map(|index| {
            let (work, reader) = (Arc::clone(work), reader.clone());
            std::thread::Builder::new()
                .name(format!("parse-{index}"))
                .spawn(move || reader.run_watched(&work))
        })
        .collect()
}

/// What every thread needs.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) parser: Arc<dyn Parser>,
    pub(crate) commit: SyncSender<CommitWork>,
    /// For the news that no page can be read any more.
    pub(crate) events: mpsc::Sender<Event>,
    /// Where pages wait for the index, if there is one.
    pub(crate) shelf: Option<Arc<Shelf>>,
    pub(crate) faults: Arc<Faults>,
}

/// What was read out of a page.
struct PageRead {
    parsed: ParsedPage,
    /// What a search goes by, if the page is likely to be searched.
    findings: Option<Findings>,
}

impl PageRead {
    fn of(reading: Reading<ParsedPage>) -> Reading<Self> {
        reading.map(|parsed| Self { parsed, findings: None })
    }

    fn for_search(reading: Reading<SearchPage>) -> Reading<Self> {
        reading.map(|page| Self { parsed: page.parsed, findings: Some(page.findings) })
    }
}

/// A page that was parsed before its turn, and what that took.
struct Ahead {
    reading: Reading<PageRead>,
    cpu: Duration,
    deaths: u32,
}

impl Ahead {
    fn of<T>(page: ReadPage<T>, read: impl FnOnce(Reading<T>) -> Reading<PageRead>) -> Self {
        let ReadPage { reading, cpu, deaths } = page;
        Self { reading: read(reading), cpu, deaths }
    }
}

impl Reader {
    /// A thread that is silently gone would make the crawls whose pages it had wait for ever.
    fn run_watched(&self, queue: &ParseQueue) {
        let run = std::panic::AssertUnwindSafe(|| self.run(queue));
        if let Err(panic) = std::panic::catch_unwind(run) {
            // If nobody listens, the engine has ended already.
            let _ = self.events.blocking_send(Event::StageDied("parse"));
            std::panic::resume_unwind(panic);
        }
    }

    fn run(&self, queue: &ParseQueue) {
        while let Some(mut batch) = queue.take(|| self.clock.now()) {
            let works = std::mem::take(&mut batch.works);
            let ahead = match self.parse_ahead(&works) {
                Ok(ahead) => ahead,
                // The engine ends, and waits for nobody: these visits stay queued.
                Err(PoolError::Interrupted) => return,
                Err(error) => return self.give_up(error),
            };
            let (mut ended, mut costs) = (Vec::with_capacity(works.len()), Vec::new());
            for (work, ahead) in works.into_iter().zip(ahead) {
                let (crawl, host) = (work.visit.crawl, work.visit.url.host());
                let (is_watched, purpose) = (work.is_cost_watched, work.visit.purpose);
                let deaths = ahead.as_ref().map_or(0, |ahead| ahead.deaths);
                let read = self.faults.watch(&[crawl], || self.read(work, ahead));
                let ReadWork { done, cpu } = match read {
                    Ok(read) => read,
                    Err(PoolError::Interrupted) => return,
                    Err(error) => return self.give_up(error),
                };
                ended.push(done);
                costs.push(cpu);
                let cost_ms = cpu.map(|cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX));
                // A probe teaches how unknown URLs look, and nothing else.
                if let Some(cpu_ms) = cost_ms
                    && purpose != Purpose::Probe
                    && (is_watched || cpu_ms >= COSTLY_PARSE_MS || deaths > 0)
                {
                    // Before the page is committed: the host's next visit waits for that.
                    let cost = PageCost { cpu_ms, has_killed: deaths > 0 };
                    let _ = self.events.blocking_send(Event::Parsed { host, cost });
                }
            }
            queue.ended(&batch, &costs);
            for done in ended {
                if self.commit.send(done).is_err() {
                    return;
                }
            }
        }
    }

    fn give_up(&self, error: PoolError) {
        // If nobody listens, the engine has ended already.
        let _ = self.events.blocking_send(Event::Broken(EngineError::Parser(error)));
    }

    /// Parses the pages that will be asked for, all at once: a child is woken once for many.
    fn parse_ahead(&self, taken: &[ParseWork]) -> Result<Vec<Option<Ahead>>, PoolError> {
        let is_searched = |work: &ParseWork| self.shelf.is_some() && is_likely_searched(work);
        let (mut searched, mut others) = (Vec::new(), Vec::new());
        for work in taken {
            if let Some(page) = page_to_parse(work) {
                if is_searched(work) { searched.push(page) } else { others.push(page) }
            }
        }
        let needs_text = taken.iter().any(needs_text);
        let text = if needs_text { VisibleText::Taken } else { VisibleText::Left };
        let mut searched = self.parser.read_for_search(&searched, text)?.into_iter();
        let mut others = self.parser.parse_all(&others, text)?.into_iter();
        let of_work = |work| {
            page_to_parse(work)?;
            match is_searched(work) {
                true => searched.next().map(|page| Ahead::of(page, PageRead::for_search)),
                false => others.next().map(|page| Ahead::of(page, PageRead::of)),
            }
        };
        Ok(taken.iter().map(of_work).collect())
    }

    /// What is in a page, which is parsed now if it was not before. Adds to what the visit took.
    fn reading(
        &self,
        page: &RawPage,
        ahead: Option<Reading<PageRead>>,
        cpu: &Cell<Option<Duration>>,
    ) -> Result<Reading<PageRead>, PoolError> {
        if let Some(reading) = ahead {
            return Ok(reading);
        }
        let mut read = self.parser.parse_all(&[page], VisibleText::Taken)?;
        let ReadPage { reading, cpu: taken, .. } = read.pop().expect("every page has a reading");
        cpu.set(Some(cpu.get().unwrap_or_default() + taken));
        Ok(PageRead::of(reading))
    }

    fn read(&self, work: ParseWork, ahead: Option<Ahead>) -> Result<ReadWork, PoolError> {
        let cpu = Cell::new(ahead.as_ref().map(|ahead| ahead.cpu));
        let done = self.read_and_count(work, ahead.map(|ahead| ahead.reading), &cpu)?;
        Ok(ReadWork { done, cpu: cpu.get() })
    }

    fn read_and_count(
        &self,
        work: ParseWork,
        ahead: Option<Reading<PageRead>>,
        cpu: &Cell<Option<Duration>>,
    ) -> Result<CommitWork, PoolError> {
        let ParseWork { visit, fetched, disposition, context, is_cost_watched: _ } = work;
        let body_bytes = fetched.body_bytes();
        // In this order: if time passes in between, the request seems later than it was, and its host
        // is left alone for longer.
        let now = self.clock.now();
        let at = self.clock.wall();
        let requested_at =
            fetched.requested_at.map(|moment| Timestamp(at.0.saturating_sub(now.ms_since(moment))));
        if visit.purpose.is_errand() {
            let end = if visit.purpose == Purpose::Probe && visit.via == Via::Linear {
                let parsed = match &ahead {
                    Some(Reading::Read(read)) => Some(&read.parsed),
                    Some(Reading::Failed { .. }) | None => None,
                };
                context.walk_probed(visit.place.order, &fetched, parsed);
                ErrandEnd::Probe(None)
            } else if visit.purpose == Purpose::Probe {
                ErrandEnd::Probe(self.not_found_look(&fetched, ahead, cpu)?)
            } else {
                let token = &context.product_token;
                ErrandEnd::Robots(robots_end(&visit, fetched, disposition, token, at))
            };
            let (visit, end) = (Box::new(visit), Box::new(end));
            return Ok(CommitWork::Errand { visit, requested_at, body_bytes, end });
        }
        if visit.place.id().is_some() {
            let asked = Asked { visit: &visit, context: &context, at, requested_at, cpu };
            let (how, id, found) = self.read_id(&asked, fetched, disposition, ahead)?;
            let ending = ending(visit, &context, how, id, found, at, requested_at);
            return Ok(CommitWork::Ending { ending: Box::new(ending), body_bytes });
        }
        let mut found = Found::default();
        let how = match disposition {
            Disposition::Retry { after_ms, counted } => later(&fetched, at, after_ms, counted),
            Disposition::Settle => {
                let asked = Asked { visit: &visit, context: &context, at, requested_at, cpu };
                self.settle(&asked, fetched, ahead, &mut found)?
            }
        };
        let ending = ending(visit, &context, how, None, found, at, requested_at);
        Ok(CommitWork::Ending { ending: Box::new(ending), body_bytes })
    }

    /// What an id answered, and what is kept of it.
    fn read_id(
        &self,
        asked: &Asked<'_>,
        fetched: Fetched,
        disposition: Disposition,
        ahead: Option<Reading<PageRead>>,
    ) -> Result<(How, Option<IdEnding>, Found), PoolError> {
        let mut found = Found::default();
        let (mut why, status) = trouble(&fetched.outcome);
        let is_excused = matches!(disposition, Disposition::Retry { counted: false, .. });
        let (answer, how) = match fetched.outcome {
            // Not its own failure: it is asked again, and no attempt is used up.
            _ if is_excused => (Answer::Failed(Retry::NotCounted), How::NoPage { status }),
            FetchOutcome::NotModified => {
                match self.unchanged(asked, fetched.took_ms, &mut found)? {
                    how @ How::Page(_) => (Answer::Content, how),
                    _ => (Answer::Failed(Retry::Never), How::NoPage { status }),
                }
            }
            FetchOutcome::Page(page) => {
                let reading = match page.status {
                    200..300 => self.reading(&page, ahead, asked.cpu)?,
                    _ => PageRead::of(Reading::Read(Box::default())),
                };
                let body = page.body.clone();
                let text = match &reading {
                    Reading::Read(read) => text_of(&body, Some(&read.parsed)),
                    Reading::Failed { .. } => text_of(&body, None),
                };
                let outcome = FetchOutcome::Page(page);
                let mut answer = asked.judge(&outcome, &text);
                let FetchOutcome::Page(page) = outcome else { unreachable!("made above") };
                if answer == Answer::Content && self.only_pretends(asked, &page, &reading, &text) {
                    (answer, why) = (Answer::Missing, Some(Reason::SoftNotFound));
                }
                let how = match answer {
                    Answer::Content => How::Page(Box::new(self.page(
                        asked,
                        page,
                        reading,
                        fetched.took_ms,
                        &mut found,
                    ))),
                    Answer::Missing | Answer::Failed(_) => How::NoPage { status },
                };
                (answer, how)
            }
            outcome => (asked.judge(&outcome, ""), How::NoPage { status }),
        };
        if !asked.context.crawl.follows_links() {
            found = Found::default();
        }
        Ok((how, asked.context.id_ending(asked.visit, answer, why), found))
    }

    /// Whether an id that answered looks like one that does not exist. Asks for a probe of its
    /// template when it is time to find out.
    fn only_pretends(
        &self,
        asked: &Asked<'_>,
        page: &RawPage,
        reading: &Reading<PageRead>,
        text: &str,
    ) -> bool {
        let walk = asked.visit.place.id().and_then(|(walk, _)| usize::try_from(walk).ok());
        let (Some(walk), Reading::Read(read)) = (walk, reading) else { return false };
        let Some(looks) = asked.context.walks.get(walk).map(|walk| &walk.looks) else {
            return false;
        };
        let digest = Digest(*blake3::hash(&page.body).as_bytes());
        let verdict = looks.judge(&asked.visit.url, &read.parsed, text, digest);
        if verdict.wants_probe {
            let crawl = asked.visit.crawl;
            // If nobody listens, the engine has ended already.
            let _ = self.events.blocking_send(Event::ProbeWalk { crawl, walk });
        }
        verdict.is_missing
    }

    fn settle(
        &self,
        asked: &Asked<'_>,
        fetched: Fetched,
        ahead: Option<Reading<PageRead>>,
        found: &mut Found,
    ) -> Result<How, PoolError> {
        Ok(match fetched.outcome {
            FetchOutcome::Page(page) if let Purpose::Sitemap { nesting } = asked.visit.purpose => {
                let reading = read_sitemap(asked.visit, &page, nesting, asked.context);
                found.links = reading.discoveries;
                reading.how
            }
            FetchOutcome::Page(page) => {
                let reading = self.reading(&page, ahead, asked.cpu)?;
                if let Some(rule) = trap_rule(asked, &page, &reading) {
                    return Ok(How::Skipped { reason: Reason::TrapSuspected, rule });
                }
                How::Page(Box::new(self.page(asked, page, reading, fetched.took_ms, found)))
            }
            FetchOutcome::Redirected { status, to } => redirect(asked, status, to, found),
            FetchOutcome::Refused { why, detail } | FetchOutcome::Failed { why, detail, .. } => {
                How::Failed { reason: why, detail }
            }
            FetchOutcome::NotModified => self.unchanged(asked, fetched.took_ms, found)?,
        })
    }

    /// A page that the server did not send again: what the earlier crawl stored is its content.
    fn unchanged(
        &self,
        asked: &Asked<'_>,
        took_ms: u64,
        found: &mut Found,
    ) -> Result<How, PoolError> {
        let earlier = self
            .earlier(asked)
            .and_then(|page| stored_answer(self.store.as_ref(), &page).ok().flatten());
        let Some(page) = earlier else {
            let detail =
                "the server says it is unchanged, but what it was is not stored".to_owned();
            return Ok(How::Failed { reason: Reason::ProtocolError, detail });
        };
        let reading = self.reading(&page, None, asked.cpu)?;
        let mut stored = self.page(asked, page, reading, took_ms, found);
        stored.record.change = Some(Change::NotSent);
        stored.record.wire_bytes = 0;
        Ok(How::Page(Box::new(stored)))
    }

    /// The page that the repeated crawl has for this URL.
    fn earlier(&self, asked: &Asked<'_>) -> Option<PageRecord> {
        let base = asked.context.crawl.recrawl_of?;
        earlier_page(self.store.as_ref(), base, &asked.visit.url).ok().flatten()
    }

    fn page(
        &self,
        asked: &Asked<'_>,
        page: RawPage,
        reading: Reading<PageRead>,
        took_ms: u64,
        found: &mut Found,
    ) -> PageToStore {
        let (PageRead { mut parsed, findings }, parse_failed) = match reading {
            Reading::Read(read) => (*read, None),
            Reading::Failed { why } => {
                (PageRead { parsed: ParsedPage::default(), findings: None }, Some(why))
            }
        };
        let extract = parse_failed.is_none().then_some(&parsed);
        let packed = self.store.pack(&asked.context.crawl, &page, extract, asked.at);
        let mut record = record(asked, &page, &parsed, took_ms);
        record.parse_failed = parse_failed;
        record.change = asked.context.crawl.recrawl_of.map(|_| match self.earlier(asked) {
            None => Change::New,
            Some(earlier) if earlier.digest == record.digest => Change::Same,
            Some(_) => Change::Changed,
        });
        // The links of an error page lead nowhere that the site itself does not lead to.
        if record.is_ok() {
            found.other_schemes = parsed.links_other_scheme;
            found.links = discoveries(asked.context, record.directives.nofollow, &parsed);
        }
        if let (Some(shelf), Some(findings)) = (&self.shelf, findings)
            && may_be_found(&record)
        {
            parsed.visible_text = String::new();
            shelf.put(&record, SearchPage { parsed, findings });
        }
        PageToStore { record, packed }
    }

    /// How an origin answered for a page that does not exist.
    fn not_found_look(
        &self,
        fetched: &Fetched,
        ahead: Option<Reading<PageRead>>,
        cpu: &Cell<Option<Duration>>,
    ) -> Result<Option<NotFoundLook>, PoolError> {
        Ok(match &fetched.outcome {
            FetchOutcome::Page(page) => match self.reading(page, ahead, cpu)? {
                Reading::Read(read) => look_of(page, &read.parsed),
                Reading::Failed { .. } => None,
            },
            FetchOutcome::Redirected { .. } => Some(NotFoundLook::Honest),
            _ => None,
        })
    }
}

/// A visit that is ready for the store, and the CPU that its page took, if it had one.
struct ReadWork {
    done: CommitWork,
    cpu: Option<Duration>,
}

/// The page that will have to be parsed, if there is one.
pub(crate) fn page_to_parse(work: &ParseWork) -> Option<&RawPage> {
    let FetchOutcome::Page(page) = &work.fetched.outcome else { return None };
    let is_wanted = match work.visit.purpose {
        Purpose::Robots | Purpose::Sitemap { .. } => false,
        Purpose::Probe => true,
        Purpose::Page if work.visit.place.id().is_some() => (200..300).contains(&page.status),
        Purpose::Page => matches!(work.disposition, Disposition::Settle),
    };
    is_wanted.then_some(page)
}

/// Whether a page will be searched, as far as can be told before it is read. Only a page whose body is
/// kept is read for that: of others the index knows what the store keeps, and no more.
fn is_likely_searched(work: &ParseWork) -> bool {
    let FetchOutcome::Page(page) = &work.fetched.outcome else { return false };
    work.visit.purpose == Purpose::Page
        && (200..300).contains(&page.status)
        && matches!(work.context.crawl.keep, Keep::Html | Keep::Raw)
}

/// Whether anybody will look at the text of a page now.
fn needs_text(work: &ParseWork) -> bool {
    let ParseWork { visit, context, .. } = work;
    context.crawl.keep == Keep::Text
        || visit.purpose == Purpose::Probe
        || visit.place.id().is_some()
        || context.soft_404.is_known(&visit.url)
        || context.learned.traps.wants_text()
}

/// Takes note of how a page looks that links led to. Gives a rule if it is one more look-alike in a
/// trap: some dozens of them are stored, and no more.
fn trap_rule(asked: &Asked<'_>, page: &RawPage, reading: &Reading<PageRead>) -> Option<String> {
    let Asked { visit, context, .. } = asked;
    let Reading::Read(read) = reading else { return None };
    let is_named = visit.depth == 0 || context.scope.is_included(&visit.url);
    if is_named || !(200..300).contains(&page.status) {
        return None;
    }
    let found = read.findings.as_ref().map(|findings| findings.text.as_str());
    let text = found.filter(|text| !text.is_empty()).unwrap_or(&read.parsed.visible_text);
    context.learned.traps.note(Seen {
        url: &visit.url,
        referrer: visit.referrer.as_deref(),
        title: read.parsed.title.as_deref().unwrap_or_default(),
        text,
        is_soft_404: context.soft_404.is_one(page, &read.parsed),
    })
}

/// A visit and its surroundings.
struct Asked<'a> {
    visit: &'a Visit,
    context: &'a CrawlContext,
    at: Timestamp,
    requested_at: Option<Timestamp>,
    /// What its page took to parse so far.
    cpu: &'a Cell<Option<Duration>>,
}

impl Asked<'_> {
    /// The walk of the id that was asked for.
    fn walk(&self) -> Option<&WalkContext> {
        let (walk, _) = self.visit.place.id()?;
        self.context.walks.get(usize::try_from(walk).ok()?)
    }

    /// What an outcome says about the id that was asked for.
    fn judge(&self, outcome: &FetchOutcome, text: &str) -> Answer {
        let walk = self.walk();
        // A redirect that is followed does not come here.
        let answer = walk.and_then(|walk| walk.missing.judge(outcome, text));
        answer.unwrap_or(Answer::Failed(Retry::Never))
    }
}

/// Why an id failed, if it did, and the status of its answer.
fn trouble(outcome: &FetchOutcome) -> (Option<Reason>, Option<u16>) {
    match outcome {
        FetchOutcome::Page(page) => (Some(Reason::HttpError), Some(page.status)),
        FetchOutcome::Redirected { status, .. } => (Some(Reason::HttpError), Some(*status)),
        FetchOutcome::NotModified => (Some(Reason::ProtocolError), Some(304)),
        FetchOutcome::Failed { why, .. } | FetchOutcome::Refused { why, .. } => (Some(*why), None),
    }
}

fn ending(
    visit: Visit,
    context: &CrawlContext,
    how: How,
    id: Option<IdEnding>,
    found: Found,
    at: Timestamp,
    requested_at: Option<Timestamp>,
) -> Ending {
    Ending {
        visit,
        how,
        at,
        requested_at,
        discoveries: found.links,
        scope: Arc::clone(&context.scope),
        other_schemes: found.other_schemes,
        id,
    }
}

#[derive(Default)]
struct Found {
    links: Vec<Discovery>,
    other_schemes: u32,
}

/// The links of a page. `page_nofollow`: it asks that none of them is followed.
pub(crate) fn discoveries(
    context: &CrawlContext,
    page_nofollow: bool,
    parsed: &ParsedPage,
) -> Vec<Discovery> {
    let obey_rel = context.crawl.politeness.obey_rel_nofollow;
    let refresh = parsed.refresh.iter().map(|url| (url, "", false));
    let links = parsed.links.iter().map(|link| (&link.url, link.anchor.as_str(), link.nofollow));
    links
        .chain(refresh)
        .map(|(url, anchor, rel)| (context.scope.treat_query(url.clone()), anchor, rel))
        // The walk comes there by itself, and keeps what it finds in its runs.
        .filter(|(url, ..)| !is_of_walk(&context.walks, url))
        .map(|(url, anchor, rel_nofollow)| {
            let hot = matches_topic(&context.topic, &url, anchor);
            let nofollow = page_nofollow || obey_rel && rel_nofollow;
            let key = context.keyer.key(&url);
            Discovery { hot, nofollow, ..Discovery::page(url, key, Via::Link) }
        })
        .collect()
}

/// Why a redirect cannot be followed.
pub(crate) fn redirect_fault(
    visit: &Visit,
    context: &CrawlContext,
    to: &PageUrl,
) -> Option<(Reason, String)> {
    let key = key_for(visit.purpose, context, to);
    let earlier = visit.redirects.iter().filter_map(|url| PageUrl::parse(url).ok());
    let mut seen = earlier.chain([visit.url.clone()]);
    if seen.any(|url| key_for(visit.purpose, context, &url) == key) {
        return Some((Reason::RedirectLoop, format!("redirects to {to}")));
    }
    let redirects_max = context.crawl.fetch.redirects_max;
    let is_too_many = visit.redirects.len() >= usize::from(redirects_max);
    is_too_many.then(|| {
        let detail = format!("more than {redirects_max} in a row, the next is {to}");
        (Reason::TooManyRedirects, detail)
    })
}

fn key_for(purpose: Purpose, context: &CrawlContext, url: &PageUrl) -> UrlKey {
    match purpose {
        Purpose::Sitemap { .. } => context.keyer.sitemap_key(url),
        Purpose::Page | Purpose::Robots | Purpose::Probe => context.keyer.key(url),
    }
}

fn redirect(asked: &Asked<'_>, status: u16, to: PageUrl, found: &mut Found) -> How {
    if let Some((reason, detail)) = redirect_fault(asked.visit, asked.context, &to) {
        return How::Failed { reason, detail };
    }
    let purpose = asked.visit.purpose;
    let key = key_for(purpose, asked.context, &to);
    let target = to.to_string();
    // A redirected topic page is as hot as its link was.
    let hot = asked.visit.place.lane == telusur_model::Lane::Hot;
    let lastmod = asked.visit.lastmod;
    found.links.push(Discovery {
        hot,
        purpose,
        lastmod,
        ..Discovery::page(to, key, Via::Redirect)
    });
    How::Redirected { status, to: target }
}

fn later(fetched: &Fetched, at: Timestamp, after_ms: u64, counted: bool) -> How {
    let (reason, status, detail) = match &fetched.outcome {
        FetchOutcome::Page(page) => {
            // The next process must know that the host itself chose the time.
            let is_asked_for = fetched.retry_after_ms == Some(after_ms);
            let reason = if is_asked_for { Reason::RetryAfter } else { Reason::HttpError };
            (reason, Some(page.status), format!("status {}", page.status))
        }
        FetchOutcome::Failed { why, detail, .. } | FetchOutcome::Refused { why, detail } => {
            (*why, None, detail.clone())
        }
        FetchOutcome::Redirected { status, .. } => {
            (Reason::HttpError, Some(*status), String::new())
        }
        FetchOutcome::NotModified => (Reason::HttpError, Some(304), String::new()),
    };
    let due = at.plus(std::time::Duration::from_millis(after_ms));
    How::Later { due, counted, reason, status, detail }
}

fn record(asked: &Asked<'_>, page: &RawPage, parsed: &ParsedPage, took_ms: u64) -> PageRecord {
    let visit = asked.visit;
    PageRecord {
        seq: 0,
        crawl: visit.crawl,
        key: visit.key,
        url: visit.url.clone(),
        redirects: visit.redirects.clone(),
        status: page.status,
        content_type: page.content_type(),
        title: parsed.title.clone(),
        via: visit.via,
        found_at: visit.found_at,
        referrer: visit.referrer.clone(),
        depth: visit.depth,
        requested_at: asked.requested_at,
        fetched_at: asked.at,
        took_ms,
        attempts: visit.attempt,
        bytes: page.body.len() as u64,
        wire_bytes: page.wire_bytes,
        truncated: page.truncated,
        digest: Digest(*blake3::hash(&page.body).as_bytes()),
        etag: short_header(page, "etag"),
        last_modified: short_header(page, "last-modified"),
        lastmod: visit.lastmod,
        directives: directives(page, metas(parsed), &asked.context.product_token),
        // Whatever the user named exists for the user.
        soft_404: visit.depth > 0 && asked.context.soft_404.is_one(page, parsed),
        parse_failed: None,
        change: None,
        link_count: u32::try_from(parsed.links.len()).unwrap_or(u32::MAX),
        body: None,
        parsed: None,
    }
}

/// The agent, beside `robots`, whose metas the parser looks for.
const OWN_NAME: &str = "telusur";

/// The robots metas of a page, each with the agent that it is for.
pub(crate) fn metas(parsed: &ParsedPage) -> impl Iterator<Item = (&str, &str)> {
    let general = parsed.robots.iter().map(|content| ("robots", content.as_str()));
    general.chain(parsed.robots_own.iter().map(|content| (OWN_NAME, content.as_str())))
}

/// A validator that is sent back with the next request; an absurdly long one is not worth it.
fn short_header(page: &RawPage, name: &str) -> Option<String> {
    const VALIDATOR_BYTES_MAX: usize = 256;
    page.header(name).filter(|value| value.len() <= VALIDATOR_BYTES_MAX).map(str::to_owned)
}
