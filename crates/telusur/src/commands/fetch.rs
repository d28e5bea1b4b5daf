//! `telusur fetch`: one page, with the manners of a crawl, in the form that the user wants.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;
use telusur_engine::{Arrived, NotFetched, SingleFetch, SystemClock};
use telusur_fetch::{FetchProfile, FetchSettings, WebFetcher};
use telusur_model::{PageContent, PageUrl, RobotsRules};
use telusur_parse_pool::Reading;

use super::{Outcome, Session, crawl};
use crate::cli::FetchArgs;
use crate::crawl_request::CrawlRequest;
use crate::message::{Code, Message, shown};
use crate::page_view::PageView;
use crate::parsing::{no_parser, not_parsed, parser_when_needed};
use crate::settings::Settings;
use crate::start_urls::StartUrls;

pub(super) fn fetch(session: &Session, arguments: &FetchArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.given())?.settings;
    let url = start_url(session, &settings, &arguments.url)?;
    let mut request = CrawlRequest::new(&settings, vec![url.clone()], None);
    request.fetch.basic_auth = crawl::logins(session, &settings)?;
    request.fetch.cookies_txt = crawl::cookies_txt(&settings)?;
    if request.politeness.robots == RobotsRules::Ignore {
        session.talk.warning("robots.txt is ignored: ask only sites that are yours");
    }
    let arrived = ask(&request, url)?;
    let page = &arrived.page;
    let parser = parser_when_needed(&settings)?;
    let content = match parser.read(page).map_err(|error| no_parser(&error))? {
        Reading::Read(content) => content,
        Reading::Failed { why } => return Err(not_parsed(page.url.as_str(), &why).into()),
    };
    show(session, arguments, &arrived, &content, output)?;
    let status = arrived.page.status;
    if (200..300).contains(&status) {
        return Ok(0);
    }
    output.flush()?;
    let what = format!("{} answered {status}", shown(arrived.page.url.as_str()));
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

fn ask(request: &CrawlRequest, url: PageUrl) -> Result<Arrived, Message> {
    let refuse = |what: String| Message::new(Code::NotFetched, what);
    let profile =
        FetchProfile::new(&request.fetch, request.limits.body_bytes_max, vec![url.origin()])
            .map_err(|error| Message::new(Code::BadArgument, error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refuse(format!("start the runtime: {error}")))?;
    let arrived = runtime.block_on(async {
        let fetcher = WebFetcher::new(FetchSettings::default(), Arc::new(SystemClock::new()))
            .map_err(|error| refuse(error.to_string()))?;
        let redirects_max = usize::from(request.fetch.redirects_max);
        let robots = request.politeness.robots;
        let mut single = SingleFetch::new(&fetcher, profile, robots, redirects_max);
        single.fetch(url).await.map_err(|failed| not_fetched_message(&failed))
    });
    // Lookups that hang must not hold up the end.
    runtime.shutdown_background();
    arrived
}

fn not_fetched_message(failed: &NotFetched) -> Message {
    let NotFetched { url, why, detail } = failed;
    let what = format!("cannot fetch {}: {why} ({})", shown(url), shown(detail));
    Message::new(Code::NotFetched, what).hint(format!("That is: {}", why.help()))
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
}

fn show(
    session: &Session,
    arguments: &FetchArgs,
    arrived: &Arrived,
    content: &PageContent,
    output: &mut dyn Write,
) -> std::io::Result<()> {
    let page = &arrived.page;
    let kind = page.content_type();
    let mut rows: Vec<(&str, String)> =
        arrived.redirects.iter().map(|url| ("redirected", format!("from {url}"))).collect();
    rows.push(("status", page.status.to_string()));
    rows.push(("type", kind.clone().unwrap_or_else(|| "not said".to_owned())));
    rows.push(("took", format!("{} ms", arrived.took_ms)));
    let about = About {
        url: page.url.as_str(),
        status: page.status,
        redirects: &arrived.redirects,
        content_type: kind,
        took_ms: arrived.took_ms,
        wire_bytes: page.wire_bytes,
        truncated: page.truncated,
        headers: &page.headers,
    };
    let view = PageView {
        url: page.url.as_str(),
        crawl: "",
        rows,
        about,
        headers: &page.headers,
        body: &page.body,
        content,
    };
    if page.truncated {
        session.talk.warning("the page was cut at --max-body");
    }
    if let Some(why) = view.silence(arguments.form) {
        session.talk.warning(why);
    }
    view.write(arguments.form, session.global.json, output)
}
