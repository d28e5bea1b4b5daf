//! `telusur fetch`: one page, in the form that the user wants. The process that owns the data directory
//! fetches it, if there is one, so that its crawls and this command share the delays of hosts; else an engine
//! of this command, which stores nothing.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;
use telusur_engine::control::{Control, FetchOutcome, FetchPage, FetchedPage};
use telusur_engine::{Engine, EngineOptions, EngineParts, RequestError, SystemClock};
use telusur_fetch::{FetchSettings, WebFetcher};
use telusur_ledger::Ledger;
use telusur_ledger::in_memory::InMemory;
use telusur_model::{Clock, PageUrl, RawPage, RobotsRules};
use telusur_parse_pool::Parser;

use super::{Outcome, Session, crawl};
use crate::backend;
use crate::cli::FetchArgs;
use crate::crawl_request::{crawl_request, settings_of};
use crate::foreground::parsers;
use crate::message::{Code, Message, shown};
use crate::page_view::{PageForm, PageView};
use crate::parsing::{not_parsed, parser_when_needed};
use crate::settings::Settings;
use crate::start_urls::StartUrls;
use crate::units::write_duration_ms;

/// Longest that the command waits for a host before a request: a delay of robots.txt is obeyed up to this by
/// default.
const WAIT_MS_MAX: u64 = 60_000;

pub(super) fn fetch(session: &Session, arguments: &FetchArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.given())?.settings;
    let url = start_url(session, &settings, &arguments.url)?;
    let mut request = crawl_request(&settings);
    crawl::add_secrets(session, &settings, &mut request)?;
    let request = settings_of(&request)?;
    if request.politeness.robots == RobotsRules::Ignore {
        session.talk.warning("robots.txt is ignored: ask only sites that are yours");
    }
    let operation = FetchPage {
        url: url.to_string(),
        fetch: request.fetch,
        politeness: request.politeness,
        body_bytes_max: request.limits.body_bytes_max,
        wait_ms_max: WAIT_MS_MAX,
    };
    let outcome = match backend::ask_owner(&session.target(&settings)?, &operation)? {
        Some(outcome) => outcome,
        None => fetch_alone(&operation, parser_when_needed(parsers(&settings))?)?,
    };
    let page = match outcome {
        FetchOutcome::Fetched(page) => *page,
        FetchOutcome::NotFetched { url, why, detail } => {
            let what = format!("cannot fetch {}: {why} ({})", shown(&url), shown(&detail));
            let hint = format!("That is: {}", why.help());
            return Err(Message::new(Code::NotFetched, what).hint(hint).into());
        }
        FetchOutcome::MustWait { host, retry_after_ms } => {
            let wait = write_duration_ms(retry_after_ms);
            let what = format!("{} is not to be asked again for {wait}", shown(&host));
            return Err(Message::new(Code::NotFetched, what).hint("Try again then").into());
        }
    };
    show(session, arguments.form, &page, output)?;
    if (200..300).contains(&page.status) {
        return Ok(0);
    }
    output.flush()?;
    let what = format!("{} answered {}", shown(page.url.as_str()), page.status);
    Err(Message::new(Code::NotFetched, what).into())
}

/// Reads the URL as a crawl would.
fn start_url(session: &Session, settings: &Settings, text: &str) -> Result<PageUrl, Message> {
    let mut start = StartUrls::new(settings.openings(), session.terminal.is_attended, false);
    start.add(text)?;
    for note in &start.notes {
        session.talk.note(note);
    }
    Ok(start.urls.remove(0))
}

/// Fetches a page with an engine of our own, whose store is gone with it.
fn fetch_alone(operation: &FetchPage, parser: Arc<dyn Parser>) -> Result<FetchOutcome, Message> {
    let refuse = |what: String| Message::new(Code::NotFetched, what);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| refuse(format!("start the runtime: {error}")))?;
    let (engine, control) = {
        let _inside = runtime.enter();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let fetcher = WebFetcher::new(FetchSettings::default(), Arc::clone(&clock))
            .map_err(|error| refuse(error.to_string()))?;
        let store = Ledger::open(InMemory::default());
        let store = Arc::new(store.map_err(|error| backend::store_message(&error))?);
        let parts = EngineParts {
            store: Arc::clone(&store) as _,
            fetcher: Arc::new(fetcher),
            clock,
            parser,
            index: None,
            followers: Vec::new(),
        };
        let engine = Engine::start(parts, &EngineOptions { parse_threads: 1, free_bytes_min: 0 })
            .map_err(|error| refuse(format!("start the engine: {error}")))?;
        let control = Control::of_engine(store, engine.handle());
        (engine, control)
    };
    let fetched = control.run(operation, &mut |_| true);
    let ended = runtime.block_on(engine.shutdown());
    // Lookups that hang must not hold up the end.
    runtime.shutdown_background();
    match (fetched, ended) {
        // The engine says better than the request why it stopped.
        (Err(RequestError::Stopped), Err(error)) => Err(backend::engine_message(&error)),
        (fetched, _) => Ok(fetched?),
    }
}

/// What the JSON form says besides the content.
#[derive(Serialize)]
struct About<'a> {
    url: &'a str,
    status: u16,
    redirects: &'a [String],
    content_type: Option<String>,
    took_ms: u64,
    wire_bytes: u64,
    truncated: bool,
    headers: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_failed: Option<&'a str>,
}

fn show(
    session: &Session,
    form: PageForm,
    page: &FetchedPage,
    output: &mut dyn Write,
) -> Result<(), super::Failure> {
    let raw: RawPage = page.raw();
    let kind = raw.content_type();
    let is_as_it_came = matches!(form, PageForm::Html | PageForm::Headers | PageForm::Json);
    if let Some(why) = page.parse_failed.as_deref().filter(|_| !is_as_it_came) {
        return Err(not_parsed(page.url.as_str(), why).into());
    }
    let mut rows: Vec<(&str, String)> =
        page.redirects.iter().map(|url| ("redirected", format!("from {url}"))).collect();
    rows.push(("status", page.status.to_string()));
    rows.push(("type", kind.clone().unwrap_or_else(|| "not said".to_owned())));
    rows.push(("took", format!("{} ms", page.took_ms)));
    let about = About {
        url: page.url.as_str(),
        status: page.status,
        redirects: &page.redirects,
        content_type: kind,
        took_ms: page.took_ms,
        wire_bytes: page.wire_bytes,
        truncated: page.truncated,
        headers: &page.headers,
        parse_failed: page.parse_failed.as_deref(),
    };
    let content = page.content.clone().unwrap_or_default();
    let view = PageView {
        url: page.url.as_str(),
        crawl: "",
        rows,
        about,
        headers: &page.headers,
        body: &raw.body,
        content: &content,
    };
    if page.truncated {
        session.talk.warning("the page was cut at --max-body");
    }
    if let Some(why) = view.silence(form).filter(|_| page.parse_failed.is_none()) {
        session.talk.warning(why);
    }
    Ok(view.write(form, session.global.json, output)?)
}
