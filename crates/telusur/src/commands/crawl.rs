//! `telusur crawl`: turns what the user typed into a request, and runs it or shows it.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_ledger::{CrawlRecord, NewCrawl, StoreError};
use telusur_model::{
    BasicAuth, CrawlNo, CrawlState, FinishReason, HttpVersion, Limits, PageUrl, QueryParams,
    RobotsRules, Secret,
};

use super::run::{self, RunJob};
use super::{Outcome, Session, detach};
use crate::backend::{self, OpenStore};
use crate::cli::CrawlArgs;
use crate::crawl_request::{CrawlRequest, Start, fail_on};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::new_file::refuse_existing;
use crate::settings::{Key, Login, Settings, Value};
use crate::start_urls::StartUrls;
use crate::units::{show_count, write_duration_ms, write_size};

/// Start URLs that a dry run lists; of the others it gives the number.
const SEEDS_SHOWN_MAX: usize = 10;

pub(super) fn crawl(session: &Session, arguments: &CrawlArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.given())?.settings;
    let request = request(session, arguments, &settings)?;
    if let Some(path) = &arguments.output {
        refuse_existing(path, arguments.overwrite)?;
    }
    check_name(arguments.name.as_deref())?;
    if arguments.dry_run {
        return dry_run(session, &request, &settings, output);
    }
    if arguments.detach {
        return detach::detach(session, &settings, output);
    }
    let open = backend::open(backend::data_dir(&settings))?;
    if request.fetch.allow_private.is_empty() && settings.text(Key::Contact).is_empty() {
        session.talk.note(
            "site owners cannot reach you: name a page or mail address with --contact, or once and \
             for all as identity.contact in telusur.toml",
        );
    }
    let (crawl, is_resumed) = accept(&open, request, arguments.new)?;
    if is_resumed {
        session.talk.note(&format!("{crawl} was interrupted and goes on; --new starts over"));
    }
    let job = RunJob { crawl, output: arguments.output.as_deref(), fail_on: fail_on(&settings) };
    run::run(session, &settings, open, &job, output)
}

/// Takes the request in as a new crawl, or goes on with an interrupted one of the same start URLs.
fn accept(
    open: &OpenStore,
    request: CrawlRequest,
    start_over: bool,
) -> Result<(CrawlNo, bool), Message> {
    let refuse = |error: StoreError| backend::store_message(&error);
    let earlier = open.store.crawls().map_err(refuse)?.into_iter().rev().find(|record| {
        record.crawl.seeds == request.seeds
            && record.crawl.sitemaps.urls == request.sitemaps.urls
            && record.crawl.name == request.name
    });
    if let Some(record) = earlier.filter(|record| !start_over && is_interrupted(record)) {
        let mut crawl = request.into_crawl(record.crawl.created_at);
        // A time limit counts anew from where the crawl goes on.
        let ran_ms = record.stats.active_ms;
        crawl.limits.duration_ms_max = crawl.limits.duration_ms_max.map(|limit| limit + ran_ms);
        crawl.no = record.crawl.no;
        crawl.id = record.crawl.id;
        open.store.change(&crawl).map_err(refuse)?;
        return Ok((crawl.no, true));
    }
    let now = telusur_model::Clock::wall(&SystemClock::new());
    let new = NewCrawl { crawl: request.into_crawl(now), random: random()? };
    let record = open.store.create(new).map_err(refuse)?;
    Ok((record.crawl.no, false))
}

/// Killed, stopped, paused, or out of time: there is something to go on with.
fn is_interrupted(record: &CrawlRecord) -> bool {
    record.stats.queued > 0
        && match record.state {
            CrawlState::Running | CrawlState::Paused { .. } => true,
            CrawlState::Finished { why } => {
                matches!(why, FinishReason::Stopped | FinishReason::MaxDuration)
            }
        }
}

/// 128 random bits.
pub(super) fn random() -> Result<u128, Message> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| io::Read::read_exact(&mut file, &mut bytes))
        .map_err(|error| Message::new(Code::Storage, format!("read /dev/urandom: {error}")))?;
    Ok(u128::from_le_bytes(bytes))
}

pub(super) fn dry_run(
    session: &Session,
    request: &CrawlRequest,
    settings: &Settings,
    output: &mut dyn Write,
) -> Outcome {
    if session.global.json {
        let mut answer = json!(request);
        // A dry run is often pasted into a bug report.
        answer["fetch"] = json!(request.fetch.without_secrets());
        answer["fetch"]["headers"] = settings.value(Key::Headers).json();
        answer["fail_on"] = json!(fail_on(settings).to_string());
        write_json_line(output, &answer)?;
    } else {
        show(request, settings, output)?;
    }
    Ok(0)
}

/// The request that the command line and the settings make.
fn request(
    session: &Session,
    arguments: &CrawlArgs,
    settings: &Settings,
) -> Result<CrawlRequest, Message> {
    let assume_https = session.terminal.is_attended;
    let keep_tracking = settings.switch(Key::KeepTracking);
    let mut start = StartUrls::new(settings.openings(), assume_https, keep_tracking);
    // A list on the command line stands for start URLs from the environment or a file.
    let is_replaced = arguments.input.is_some() && arguments.urls.is_empty();
    let urls = if is_replaced { &[] } else { settings.list(Key::StartUrls) };
    let mut result = urls.iter().try_for_each(|url| start.add(url));
    if let (Ok(()), Some(path)) = (&result, &arguments.input) {
        result = add_list(&mut start, path);
    }
    for note in &start.notes {
        session.talk.note(note);
    }
    for warning in &start.warnings {
        session.talk.warning(warning);
    }
    result?;
    let sitemaps: Vec<PageUrl> =
        settings.list(Key::Sitemaps).iter().map(|url| start.read(url)).collect::<Result<_, _>>()?;
    let pages = if sitemaps.is_empty() { start.finish()? } else { start.urls };
    if !settings.switch(Key::Robots) {
        session.talk.warning("robots.txt is ignored: ask only sites that are yours");
    }
    let mut request =
        CrawlRequest::new(settings, Start { pages, sitemaps }, arguments.name.clone());
    request.fetch.basic_auth = logins(session, settings)?;
    request.fetch.cookies_txt = cookies_txt(settings)?;
    request.check_start()?;
    Ok(request)
}

/// The logins, with their passwords from the environment.
pub(super) fn logins(session: &Session, settings: &Settings) -> Result<Vec<BasicAuth>, Message> {
    let Value::Logins(logins) = settings.value(Key::BasicAuth) else {
        unreachable!("the registry says which kind it is")
    };
    let read = |login: &Login| {
        let password = session.environment.get(&login.variable).and_then(|it| it.to_str());
        let Some(password) = password else {
            let what = format!(
                "there is no variable {} with the password for {}",
                shown(&login.variable),
                shown(&login.host)
            );
            return Err(Message::new(Code::BadArgument, what)
                .hint(format!("Set it: export {}=…", shown(&login.variable))));
        };
        Ok(BasicAuth {
            host: login.host.clone(),
            user: login.user.clone(),
            password: Secret::new(password),
        })
    };
    logins.iter().map(read).collect()
}

/// The text of the cookie file, if one is named.
pub(super) fn cookies_txt(settings: &Settings) -> Result<Option<Secret>, Message> {
    let Value::Path(path) = settings.value(Key::CookiesFile) else {
        unreachable!("the registry says which kind it is")
    };
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let refuse = |why: String| {
        let what = format!("cannot read {}: {why}", shown(&path.to_string_lossy()));
        Message::new(Code::BadArgument, what)
            .hint("Name a cookies.txt file as browsers and curl write it")
    };
    let text = crate::settings::read_small_file(path)?;
    let text = text.ok_or_else(|| refuse("there is no such file".to_owned()))?;
    Ok(Some(Secret::new(text)))
}

fn add_list(start: &mut StartUrls<'_>, path: &Path) -> Result<(), Message> {
    if path == Path::new("-") {
        return start.add_list("standard input", io::stdin().lock());
    }
    let name = path.to_string_lossy();
    let refuse = |why: String| {
        Message::new(Code::StartList, format!("cannot read {}: {why}", shown(&name)))
            .hint("Name a file with one URL per line, or - for standard input")
    };
    if path.is_dir() {
        return Err(refuse("it is a directory".to_owned()));
    }
    // A FIFO is welcome here: `-i <(command)` is one.
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    start.add_list(&name, BufReader::new(file))
}

/// A name must not look like one of the other ways to say which crawl is meant.
pub(super) fn check_name(name: Option<&str>) -> Result<(), Message> {
    let Some(name) = name else { return Ok(()) };
    let is_alias = name.strip_prefix("crawl_").is_some_and(|number| number.parse::<u32>().is_ok());
    if name == "last" || name.is_empty() || name.starts_with("c_") || is_alias {
        let what = format!("\"{}\" cannot be the name of a crawl", shown(name));
        return Err(Message::new(Code::BadArgument, what)
            .hint("last, crawl_N and c_... already mean something; choose another name"));
    }
    Ok(())
}

fn show(request: &CrawlRequest, settings: &Settings, output: &mut dyn Write) -> io::Result<()> {
    let mut row = |name: &str, value: &str| writeln!(output, "{name:<14}{}", shown(value));
    let seeds = request.seeds.urls();
    if let Some(name) = &request.name {
        row("name", name)?;
    }
    for (index, seed) in seeds.iter().take(SEEDS_SHOWN_MAX).enumerate() {
        row(if index == 0 { "start" } else { "" }, seed.as_str())?;
    }
    if seeds.len() > SEEDS_SHOWN_MAX {
        let more = show_count((seeds.len() - SEEDS_SHOWN_MAX) as u64);
        row("", &format!("and {more} more"))?;
    }
    show_scope(request, &mut row)?;
    show_limits(request, &mut row)?;
    show_manners(request, &mut row)?;
    row("user agent", &request.fetch.user_agent)?;
    row("timeout", &write_duration_ms(request.fetch.timeout_ms))?;
    row("redirects", &request.fetch.redirects_max.to_string())?;
    for (name, _) in &request.fetch.headers {
        row("header", &format!("{name}: ***"))?;
    }
    match request.fetch.http {
        HttpVersion::Auto => {}
        HttpVersion::One => row("http", "1.1 only")?,
        HttpVersion::Two => row("http", "2 only")?,
    }
    if let Some(proxy) = settings.value(Key::Proxy).json().as_str().filter(|it| !it.is_empty()) {
        row("proxy", proxy)?;
    }
    for auth in &request.fetch.basic_auth {
        row("login", &format!("{} at {}", auth.user, auth.host))?;
    }
    if !request.fetch.cookies {
        row("cookies", "none")?;
    }
    for host in &request.fetch.insecure_hosts {
        row("not verified", host.as_str())?;
    }
    if !request.fetch.allow_private.is_empty() {
        row("not public", &format!("{} allowed", request.fetch.allow_private.join(", ")))?;
    }
    row("keep", settings.word(Key::Keep))?;
    row("fail on", &fail_on(settings).to_string())
}

/// Writes one line of a dry run: a name and its value.
pub(super) type Row<'a> = dyn FnMut(&str, &str) -> io::Result<()> + 'a;

fn show_scope(request: &CrawlRequest, row: &mut Row<'_>) -> io::Result<()> {
    let scope = &request.scope;
    let mut line = scope.kind.word().to_owned();
    if scope.extra_hops > 0 {
        line.push_str(&format!(" and {} hops beyond", scope.extra_hops));
    }
    row("scope", &line)?;
    for host in &scope.allow_hosts {
        row("also host", host)?;
    }
    for pattern in &scope.include {
        row("include", pattern)?;
    }
    for pattern in &scope.exclude {
        row("exclude", pattern)?;
    }
    match &scope.query_params {
        QueryParams::Keep => {}
        QueryParams::DropAll => row("query", "dropped")?,
        QueryParams::Drop(names) => row("query", &format!("without {}", names.join(", ")))?,
    }
    if request.keep_tracking {
        row("tracking", "kept")?;
    }
    if !request.topic.is_empty() {
        row("topic", &request.topic.join(" "))?;
    }
    Ok(())
}

pub(super) fn show_limits(request: &CrawlRequest, row: &mut Row<'_>) -> io::Result<()> {
    let limits = &request.limits;
    let all = [
        limits.pages_max.map(|pages| format!("{} pages", show_count(pages))),
        limits.depth_max.map(|depth| format!("depth {depth}")),
        limits.duration_ms_max.map(write_duration_ms),
        limits.bytes_max.map(write_size),
        limits.errors_max.map(|errors| format!("{} errors", show_count(errors))),
    ];
    let set: Vec<String> = all.into_iter().flatten().collect();
    row("limits", &if set.is_empty() { "none".to_owned() } else { set.join(", ") })?;
    let (host, site) = (show_count(limits.urls_per_host_max), show_count(limits.urls_per_site_max));
    row("budgets", &format!("{host} URLs per host, {site} per site"))?;
    if limits.patience_ms != Limits::default().patience_ms {
        let patience = write_duration_ms(limits.patience_ms);
        row("patience", &format!("{patience} of nothing but Retry-After"))?;
    }
    row("page size", &format!("{} read", write_size(limits.body_bytes_max)))
}

fn show_manners(request: &CrawlRequest, row: &mut Row<'_>) -> io::Result<()> {
    let manners = &request.politeness;
    row("delay", &format!("{} per host", write_duration_ms(manners.delay_ms)))?;
    row("at once", &format!("{} per host, {} in all", manners.per_host, manners.workers))?;
    if let Some(rate) = manners.rate_per_second {
        row("rate", &format!("{rate}/s"))?;
    }
    row("adaptive", if manners.adaptive { "yes" } else { "no" })?;
    row("fairness", &format!("{:?}", manners.fairness).to_lowercase())?;
    row("attempts", &manners.attempts_max.to_string())?;
    let robots = match manners.robots {
        RobotsRules::Obey => "obeyed",
        RobotsRules::UnreachableAllows => "obeyed; one that cannot be read allows everything",
        RobotsRules::Ignore => "not read",
    };
    row("robots.txt", robots)?;
    let sitemaps = &request.sitemaps;
    row("sitemaps", if sitemaps.discover { "read" } else { "not looked for" })?;
    for url in &sitemaps.urls {
        row("", url.as_str())?;
    }
    if manners.obey_rel_nofollow {
        row("rel=nofollow", "obeyed")?;
    }
    Ok(())
}
