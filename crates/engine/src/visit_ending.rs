//! What a fetched visit means for the store: from what came back, and what was read in it, to the
//! [`Ending`] that is committed.

use std::cell::Cell;
use std::time::Duration;

use telusur_fetch::robots::directives;
use telusur_frontier::Disposition;
use telusur_ledger::Event::TrapNoted;
use telusur_ledger::{Ending, IdEnding, LinkSource, Packed, VisitOutcome};
use telusur_model::{
    Change, Digest, Discovery, Door, FetchOutcome, Fetched, IdOutcome, NotFoundLook, PageRecord,
    PageUrl, ParsedPage, Purpose, RawPage, Reason, Retry, SearchPage, Timestamp, UrlKey, Verdict,
    Via, Visit, matches_topic,
};
use telusur_parse_pool::{PoolError, Reading};

use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;
use crate::crawl_task::Event;
use crate::id_looks::text_of;
use crate::id_visits::{WalkContext, is_of_walk};
use crate::page_source::may_be_found;
use crate::parse_stage::{PageRead, ParseWork, ParseWorker};
use crate::robots_reading::{PrerequisiteEnd, robots_end};
use crate::sitemap_reading::read_sitemap;
use crate::soft_404::look_of;
use crate::stored_page::stored_answer;
use crate::trap_watch::{LINKS_MAX, Noted, Seen};

impl ParseWorker {
    pub(crate) fn read_and_count(
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
        if visit.purpose.is_prerequisite() {
            let end = if visit.purpose == Purpose::Probe && visit.via == Via::Linear {
                let parsed = match &ahead {
                    Some(Reading::Read(read)) => Some(&read.parsed),
                    Some(Reading::Failed { .. }) | None => None,
                };
                context.walk_probed(visit.place.order, &fetched, parsed);
                PrerequisiteEnd::Probe(None)
            } else if visit.purpose == Purpose::Probe {
                PrerequisiteEnd::Probe(self.not_found_look(&fetched, ahead, cpu)?)
            } else {
                let token = &context.product_token;
                PrerequisiteEnd::Robots(robots_end(&visit, fetched, disposition, token, at))
            };
            let (visit, end) = (Box::new(visit), Box::new(end));
            return Ok(CommitWork::Prerequisite { visit, requested_at, body_bytes, end });
        }
        if visit.place.id().is_some() {
            let asked = Asked::new(&visit, &context, at, requested_at, cpu);
            let (how, id, found) = self.read_id(&asked, fetched, disposition, ahead)?;
            let ending = self.ending(visit, &context, how, id, found, at, requested_at);
            return Ok(CommitWork::Ending { ending: Box::new(ending), body_bytes });
        }
        let mut found = Found::default();
        let how = match disposition {
            Disposition::Retry { after_ms, counted } => later(&fetched, at, after_ms, counted),
            Disposition::Settle => {
                let asked = Asked::new(&visit, &context, at, requested_at, cpu);
                self.settle(&asked, fetched, ahead, &mut found)?
            }
        };
        let ending = self.ending(visit, &context, how, None, found, at, requested_at);
        Ok(CommitWork::Ending { ending: Box::new(ending), body_bytes })
    }

    /// What an id answered, and what is kept of it.
    fn read_id(
        &self,
        asked: &Asked<'_>,
        fetched: Fetched,
        disposition: Disposition,
        ahead: Option<Reading<PageRead>>,
    ) -> Result<(VisitOutcome, Option<IdEnding>, Found), PoolError> {
        let mut found = Found::default();
        let (mut why, status) = trouble(&fetched.outcome);
        let is_excused = matches!(disposition, Disposition::Retry { counted: false, .. });
        let (answer, how) = match fetched.outcome {
            // Not its own failure: it is asked again, and no attempt is used up.
            _ if is_excused => {
                (IdOutcome::Failed(Retry::NotCounted), VisitOutcome::NoPage { status })
            }
            FetchOutcome::NotModified => {
                match self.unchanged(asked, fetched.took_ms, &mut found)? {
                    how @ VisitOutcome::Page(_) => (IdOutcome::Content, how),
                    _ => (IdOutcome::Failed(Retry::Never), VisitOutcome::NoPage { status }),
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
                if answer == IdOutcome::Content && self.only_pretends(asked, &page, &reading, &text)
                {
                    (answer, why) = (IdOutcome::Missing, Some(Reason::SoftNotFound));
                }
                let how = match answer {
                    IdOutcome::Content => VisitOutcome::Page(Box::new(self.page(
                        asked,
                        page,
                        reading,
                        fetched.took_ms,
                        &mut found,
                    ))),
                    IdOutcome::Missing | IdOutcome::Failed(_) => VisitOutcome::NoPage { status },
                };
                (answer, how)
            }
            outcome => (asked.judge(&outcome, ""), VisitOutcome::NoPage { status }),
        };
        if !asked.context.crawl.follows_links() {
            found.links.clear();
            found.other_schemes = 0;
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
    ) -> Result<VisitOutcome, PoolError> {
        Ok(match fetched.outcome {
            FetchOutcome::Page(page) if let Purpose::Sitemap { nesting } = asked.visit.purpose => {
                let reading = read_sitemap(asked.visit, &page, nesting, asked.context);
                found.links = reading.discoveries;
                reading.how
            }
            FetchOutcome::Page(page) => {
                let reading = self.reading(&page, ahead, asked.cpu)?;
                let noted = self.note_look(asked, &page, &reading);
                if !noted.marks.is_empty() {
                    let crawl = asked.visit.crawl;
                    let site = asked.visit.url.host().site();
                    let marks = noted.marks.into_iter();
                    let noted = marks.map(|mark| TrapNoted { crawl, site: site.clone(), mark });
                    // If nobody listens, the engine has ended already.
                    let _ = self.commit.send(CommitWork::Events(noted.collect()));
                }
                if let Some(rule) = noted.rule {
                    return Ok(VisitOutcome::Skipped { reason: Reason::TrapSuspected, rule });
                }
                let asked = &Asked { is_repeated: noted.is_repeated, ..*asked };
                VisitOutcome::Page(Box::new(self.page(
                    asked,
                    page,
                    reading,
                    fetched.took_ms,
                    found,
                )))
            }
            FetchOutcome::Redirected { status, to } => redirect(asked, status, to, found),
            FetchOutcome::Refused { why, detail } | FetchOutcome::Failed { why, detail, .. } => {
                VisitOutcome::Failed { reason: why, detail }
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
    ) -> Result<VisitOutcome, PoolError> {
        let earlier = self
            .earlier(asked)
            .and_then(|page| stored_answer(self.store.as_ref(), &page).ok().flatten());
        let Some(page) = earlier else {
            let detail =
                "the server says it is unchanged, but what it was is not stored".to_owned();
            return Ok(VisitOutcome::Failed { reason: Reason::ProtocolError, detail });
        };
        let reading = self.reading(&page, None, asked.cpu)?;
        let mut stored = self.page(asked, page, reading, took_ms, found);
        stored.change = Some(Change::NotSent);
        stored.wire_bytes = 0;
        Ok(VisitOutcome::Page(Box::new(stored)))
    }

    /// The page that the repeated crawl has for this URL.
    fn earlier(&self, asked: &Asked<'_>) -> Option<PageRecord> {
        let base = asked.context.crawl.recrawl_of?;
        self.store.page_of(base, &asked.visit.url).ok().flatten()
    }

    fn page(
        &self,
        asked: &Asked<'_>,
        page: RawPage,
        reading: Reading<PageRead>,
        took_ms: u64,
        found: &mut Found,
    ) -> PageRecord {
        let (PageRead { mut parsed, findings }, parse_failed) = match reading {
            Reading::Read(read) => (*read, None),
            Reading::Failed { why } => {
                (PageRead { parsed: ParsedPage::default(), findings: None }, Some(why))
            }
        };
        let extract = parse_failed.is_none().then_some(&parsed);
        found.packed = Some(self.store.pack(&asked.context.crawl, &page, extract, asked.at));
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
        if let (Some(fresh_pages), Some(findings)) = (&self.fresh_pages, findings)
            && may_be_found(&record)
        {
            parsed.visible_text = String::new();
            fresh_pages.put(&record, SearchPage { parsed, findings });
        }
        record
    }

    /// Judges the links that are not known already, and puts everything together.
    #[expect(clippy::too_many_arguments, reason = "the parts of one value")]
    fn ending(
        &self,
        visit: Visit,
        context: &CrawlContext,
        how: VisitOutcome,
        id: Option<IdEnding>,
        found: Found,
        at: Timestamp,
        requested_at: Option<Timestamp>,
    ) -> Ending {
        let Found { mut links, other_schemes, packed } = found;
        self.store.drop_known(visit.crawl, &mut links);
        let found = LinkSource::of_visit(&visit, at).judge(links, &context.scope);
        Ending { visit, how, at, requested_at, found, other_schemes, id, packed }
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

    /// Takes note of how a page looks that links led to: of the look-alikes in a trap a few are
    /// indexed, some dozens are stored, and no more.
    fn note_look(&self, asked: &Asked<'_>, page: &RawPage, reading: &Reading<PageRead>) -> Noted {
        let Asked { visit, context, .. } = asked;
        let Reading::Read(read) = reading else { return Noted::default() };
        let is_named = visit.depth == 0 || context.scope.is_included(&visit.url);
        if is_named || !(200..300).contains(&page.status) {
            return Noted::default();
        }
        let found = read.findings.as_ref().map(|findings| findings.text.as_str());
        let text = found.filter(|text| !text.is_empty()).unwrap_or(&read.parsed.visible_text);
        let seen = Seen {
            url: &visit.url,
            referrer: visit.referrer.as_deref(),
            title: read.parsed.title.as_deref().unwrap_or_default(),
            text,
            is_soft_404: context.soft_404.is_one(page, &read.parsed),
        };
        let (host, door) = (visit.url.host(), Door::of(&visit.url));
        let obey_rel = context.crawl.politeness.obey_rel_nofollow;
        let links = read.parsed.links.iter().filter(|link| !(obey_rel && link.nofollow));
        let links = links.map(|link| &link.url).chain(&read.parsed.refresh);
        let of_origin = links.filter(|link| Door::of(link) == door && link.host() == host);
        let is_followed = |link: &PageUrl| {
            let judged = context.scope.judge(link, visit.depth.saturating_add(1), 0);
            judged.verdict == Verdict::Admit
                && context.scope.learned_refusal(link, || judged.is_included).is_none()
        };
        // A store that cannot be read ends the engine soon; until then nothing is suspected.
        let is_new = |link: &PageUrl| {
            is_followed(link) && matches!(self.store.url(visit.crawl, link), Ok(None))
        };
        let asked_for = of_origin.map(|link| context.scope.treat_query(link.clone()));
        context.learned.traps.note(seen, asked_for.take(LINKS_MAX).filter(is_new))
    }
}

/// A visit and its surroundings.
struct Asked<'a> {
    visit: &'a Visit,
    context: &'a CrawlContext,
    at: Timestamp,
    requested_at: Option<Timestamp>,
    /// What its page took to parse so far.
    cpu: &'a Cell<Option<Duration>>,
    /// Its page is one of many look-alikes.
    is_repeated: bool,
}

impl<'a> Asked<'a> {
    fn new(
        visit: &'a Visit,
        context: &'a CrawlContext,
        at: Timestamp,
        requested_at: Option<Timestamp>,
        cpu: &'a Cell<Option<Duration>>,
    ) -> Self {
        Self { visit, context, at, requested_at, cpu, is_repeated: false }
    }

    /// The walk of the id that was asked for.
    fn walk(&self) -> Option<&WalkContext> {
        let (walk, _) = self.visit.place.id()?;
        self.context.walks.get(usize::try_from(walk).ok()?)
    }

    /// What an outcome says about the id that was asked for.
    fn judge(&self, outcome: &FetchOutcome, text: &str) -> IdOutcome {
        let walk = self.walk();
        // A redirect that is followed does not come here.
        let answer = walk.and_then(|walk| walk.missing.judge(outcome, text));
        answer.unwrap_or(IdOutcome::Failed(Retry::Never))
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

/// What a visit found beside its outcome.
#[derive(Default)]
struct Found {
    links: Vec<Discovery>,
    other_schemes: u32,
    /// What is kept of its page.
    packed: Option<Packed>,
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

fn redirect(asked: &Asked<'_>, status: u16, to: PageUrl, found: &mut Found) -> VisitOutcome {
    if let Some((reason, detail)) = redirect_fault(asked.visit, asked.context, &to) {
        return VisitOutcome::Failed { reason, detail };
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
    VisitOutcome::Redirected { status, to: target }
}

fn later(fetched: &Fetched, at: Timestamp, after_ms: u64, counted: bool) -> VisitOutcome {
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
    VisitOutcome::Later { due, counted, reason, status, detail }
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
        soft_404: visit.depth > 0
            && (asked.is_repeated || asked.context.soft_404.is_one(page, parsed)),
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
