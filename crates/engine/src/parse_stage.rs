//! Reads what came back: from a fetched visit to the [`Ending`] that is committed.
//!
//! Runs on threads of its own: parsing and packing are heavy, and the async threads must stay free
//! to talk to hosts.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use telusur_frontier::Disposition;
use telusur_model::{
    Clock, Digest, Discovery, FetchOutcome, Fetched, PageRecord, PageUrl, ParsedPage, RawPage,
    Reason, Timestamp, Via, Visit, matches_topic,
};
use telusur_parse::ParseLimits;
use telusur_store::{Ending, How, PageToStore, Store};

use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;

/// Pages that a thread takes at once when many are waiting: a lock and a wake-up for each would cost
/// as much as a small page.
const TAKEN_MAX: usize = 4;

/// A visit whose fetch has ended.
pub(crate) struct ParseWork {
    pub(crate) visit: Visit,
    pub(crate) fetched: Fetched,
    pub(crate) disposition: Disposition,
    pub(crate) context: Arc<CrawlContext>,
}

/// Starts the threads. They end when the last sender of work is gone.
pub(crate) fn start(
    threads: usize,
    work: Receiver<ParseWork>,
    commit: &SyncSender<CommitWork>,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    let work = Arc::new(Mutex::new(work));
    (0..threads)
        .map(|index| {
            let (work, commit) = (Arc::clone(&work), commit.clone());
            let reader = Reader { store: Arc::clone(store), clock: Arc::clone(clock) };
            std::thread::Builder::new()
                .name(format!("parse-{index}"))
                .spawn(move || reader.run(&work, &commit))
        })
        .collect()
}

struct Reader {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Reader {
    fn run(&self, work: &Mutex<Receiver<ParseWork>>, commit: &SyncSender<CommitWork>) {
        let mut taken = Vec::with_capacity(TAKEN_MAX);
        loop {
            {
                // Waiting while holding the lock is the queue for whoever is next to get work.
                let work = work.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(first) = work.recv() else { return };
                taken.push(first);
                taken.extend(work.try_iter().take(TAKEN_MAX - 1));
            }
            for next in taken.drain(..) {
                let body_bytes = next.fetched.body_bytes();
                let ending = Box::new(self.read(next));
                if commit.send(CommitWork::Ending { ending, body_bytes }).is_err() {
                    return;
                }
            }
        }
    }

    fn read(&self, work: ParseWork) -> Ending {
        let ParseWork { visit, fetched, disposition, context } = work;
        let at = self.clock.wall();
        let requested_at = fetched
            .requested_at
            .map(|moment| Timestamp(at.0.saturating_sub(self.clock.now().ms_since(moment))));
        let mut found = Found::default();
        let how = match disposition {
            Disposition::Retry { after_ms, counted } => {
                later(&fetched.outcome, at, after_ms, counted)
            }
            Disposition::Settle => {
                let asked = Asked { visit: &visit, context: &context, at, requested_at };
                self.settle(&asked, fetched, &mut found)
            }
        };
        Ending {
            visit,
            how,
            at,
            requested_at,
            discoveries: found.links,
            scope: Arc::clone(&context.scope),
            other_schemes: found.other_schemes,
        }
    }

    fn settle(&self, asked: &Asked<'_>, fetched: Fetched, found: &mut Found) -> How {
        match fetched.outcome {
            FetchOutcome::Page(page) => {
                How::Page(Box::new(self.page(asked, page, fetched.took_ms, found)))
            }
            FetchOutcome::Redirected { status, to } => redirect(asked, status, to, found),
            FetchOutcome::Refused { why, detail } | FetchOutcome::Failed { why, detail, .. } => {
                How::Failed { reason: why, detail }
            }
            FetchOutcome::NotModified => How::Failed {
                reason: Reason::ProtocolError,
                detail: "304 in answer to an unconditional request".into(),
            },
        }
    }

    fn page(
        &self,
        asked: &Asked<'_>,
        page: RawPage,
        took_ms: u64,
        found: &mut Found,
    ) -> PageToStore {
        let mut parsed = telusur_parse::parse(&page, &ParseLimits::default());
        let packed = self.store.pack(&asked.context.crawl, &page, &parsed, asked.at);
        let record = record(asked, &page, &parsed, took_ms);
        // The links of an error page lead nowhere that the site itself does not lead to.
        if record.is_ok() {
            found.other_schemes = parsed.links_other_scheme;
            found.links = discoveries(asked.context, &mut parsed);
        }
        PageToStore { record, packed }
    }
}

/// A visit and its surroundings.
struct Asked<'a> {
    visit: &'a Visit,
    context: &'a CrawlContext,
    at: Timestamp,
    requested_at: Option<Timestamp>,
}

#[derive(Default)]
struct Found {
    links: Vec<Discovery>,
    other_schemes: u32,
}

fn discoveries(context: &CrawlContext, parsed: &mut ParsedPage) -> Vec<Discovery> {
    let refresh = parsed.refresh.take().map(|url| (url, String::new()));
    let links = parsed.links.drain(..).map(|link| (link.url, link.anchor));
    links
        .chain(refresh)
        .map(|(url, anchor)| {
            let url = context.scope.treat_query(url);
            let hot = matches_topic(&context.topic, &url, &anchor);
            Discovery { key: context.keyer.key(&url), url, hot, via: Via::Link }
        })
        .collect()
}

fn redirect(asked: &Asked<'_>, status: u16, to: PageUrl, found: &mut Found) -> How {
    let keyer = &asked.context.keyer;
    let key = keyer.key(&to);
    let earlier = asked.visit.redirects.iter().filter_map(|url| PageUrl::parse(url).ok());
    if key == asked.visit.key || earlier.map(|url| keyer.key(&url)).any(|seen| seen == key) {
        return How::Failed { reason: Reason::RedirectLoop, detail: format!("redirects to {to}") };
    }
    let redirects_max = asked.context.crawl.fetch.redirects_max;
    if asked.visit.redirects.len() >= usize::from(redirects_max) {
        let detail = format!("more than {redirects_max} in a row, the next is {to}");
        return How::Failed { reason: Reason::TooManyRedirects, detail };
    }
    let target = to.to_string();
    // A redirected topic page is as hot as its link was.
    let hot = asked.visit.place.lane == telusur_model::Lane::Hot;
    found.links.push(Discovery { url: to, key, hot, via: Via::Redirect });
    How::Redirected { status, to: target }
}

fn later(outcome: &FetchOutcome, at: Timestamp, after_ms: u64, counted: bool) -> How {
    let (reason, status, detail) = match outcome {
        FetchOutcome::Page(page) => {
            (Reason::HttpError, Some(page.status), format!("status {}", page.status))
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
        link_count: u32::try_from(parsed.links.len()).unwrap_or(u32::MAX),
        body: None,
        parsed: None,
    }
}

/// A validator that is sent back with the next request; an absurdly long one is not worth it.
fn short_header(page: &RawPage, name: &str) -> Option<String> {
    const VALIDATOR_BYTES_MAX: usize = 256;
    page.header(name).filter(|value| value.len() <= VALIDATOR_BYTES_MAX).map(str::to_owned)
}
