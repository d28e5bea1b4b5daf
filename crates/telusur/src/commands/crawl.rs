//! `telusur crawl`: turns what the user typed into a request, and runs it or shows it.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use serde_json::json;
use telusur_engine::control::StartCrawl;
use telusur_engine::request::{CrawlRequest, LoginRequest};
use telusur_model::{Crawl, HttpVersion, Limits, QueryParams, RobotsRules};

use super::run::{self, RunJob};
use super::{Outcome, Session, detach};
use crate::cli::CrawlArgs;
use crate::crawl_request::{crawl_of, crawl_request, fail_on};
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
    // What is wrong with it is said before anything is opened.
    let crawl = crawl_of(&request)?;
    if arguments.dry_run {
        return dry_run(session, &crawl, &settings, output);
    }
    if arguments.detach && !session.target(&settings)?.is_served() {
        return detach::detach(session, &settings, output);
    }
    if request.fetch.allow_private.is_empty() && settings.text(Key::Contact).is_empty() {
        session.talk.note(
            "site owners cannot reach you: name a page or mail address with --contact, or once and \
             for all as identity.contact in telusur.toml",
        );
    }
    let start = StartCrawl { request, or_resume: !arguments.new };
    let job = RunJob {
        output: arguments.output.as_deref(),
        fail_on: fail_on(&settings),
        is_detached: arguments.detach,
    };
    run::run(session, &settings, &start, &job, output, |_, _| Ok(()))
}

pub(super) fn dry_run(
    session: &Session,
    crawl: &Crawl,
    settings: &Settings,
    output: &mut dyn Write,
) -> Outcome {
    if session.global.json {
        // It has neither a number nor an id.
        let mut answer = json!({
            "name": crawl.name, "seeds": crawl.seeds, "scope": crawl.scope,
            "politeness": crawl.politeness, "limits": crawl.limits, "keep": crawl.keep,
            "topic": crawl.topic, "keep_tracking": crawl.keep_tracking, "sitemaps": crawl.sitemaps,
        });
        // A dry run is often pasted into a bug report.
        answer["fetch"] = json!(crawl.fetch.without_secrets());
        answer["fetch"]["headers"] = settings.value(Key::Headers).json();
        answer["fail_on"] = json!(fail_on(settings).to_string());
        write_json_line(output, &answer)?;
    } else {
        show(crawl, settings, output)?;
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
    let sitemaps = settings.list(Key::Sitemaps).iter().map(|url| Ok(start.read(url)?.to_string()));
    let sitemaps = sitemaps.collect::<Result<Vec<String>, Message>>()?;
    let pages = if sitemaps.is_empty() { start.finish()? } else { start.urls };
    if !settings.switch(Key::Robots) {
        session.talk.warning("robots.txt is ignored: ask only sites that are yours");
    }
    let mut request = CrawlRequest {
        name: arguments.name.clone(),
        urls: pages.iter().map(ToString::to_string).collect(),
        sitemaps,
        ..crawl_request(settings)
    };
    add_secrets(session, settings, &mut request)?;
    Ok(request)
}

/// Adds the passwords and cookies, which are read from the environment and the disk.
pub(super) fn add_secrets(
    session: &Session,
    settings: &Settings,
    request: &mut CrawlRequest,
) -> Result<(), Message> {
    request.fetch.basic_auth = logins(session, settings)?;
    request.fetch.cookies_txt = cookies_txt(settings)?;
    Ok(())
}

/// The logins, with their passwords from the environment.
fn logins(session: &Session, settings: &Settings) -> Result<Vec<LoginRequest>, Message> {
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
        Ok(LoginRequest {
            host: login.host.clone(),
            user: login.user.clone(),
            password: password.to_owned(),
        })
    };
    logins.iter().map(read).collect()
}

/// The text of the cookie file, if one is named.
fn cookies_txt(settings: &Settings) -> Result<Option<String>, Message> {
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
    Ok(Some(text))
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

fn show(request: &Crawl, settings: &Settings, output: &mut dyn Write) -> io::Result<()> {
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

fn show_scope(request: &Crawl, row: &mut Row<'_>) -> io::Result<()> {
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

pub(super) fn show_limits(request: &Crawl, row: &mut Row<'_>) -> io::Result<()> {
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

fn show_manners(request: &Crawl, row: &mut Row<'_>) -> io::Result<()> {
    let manners = &request.politeness;
    row("delay", &format!("{} per host", write_duration_ms(manners.delay_ms)))?;
    row("at once", &format!("{} per host, {} in all", manners.per_host, manners.workers))?;
    if let Some(rate) = manners.rate_per_second {
        row("rate", &format!("{rate}/s"))?;
    }
    row("adaptive", if manners.adaptive { "yes" } else { "no" })?;
    row("fairness", manners.fairness.word())?;
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
