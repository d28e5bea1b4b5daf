//! `telusur linear`: numbered pages from a template.

use std::io::{self, Write};

use telusur_engine::control::StartCrawl;
use telusur_engine::request::CrawlRequest;
use telusur_model::{
    Crawl, Direction, LegPlan, LinearSeeds, PageUrl, Resume, RobotsRules, Template, Walk,
};

use super::run::{self, RunJob};
use super::{Outcome, Session, crawl, detach};
use crate::cli::LinearArgs;
use crate::crawl_request::{crawl_of, crawl_request, fail_on};
use crate::linear_request::LinearOptions;
use crate::message::{Code, Message, shown};
use crate::settings::{Key, Settings};
use crate::start_urls::StartUrls;
use crate::units::{show_count, write_duration_ms};

pub(super) fn linear(session: &Session, arguments: &LinearArgs, output: &mut dyn Write) -> Outcome {
    let shared = &arguments.crawl;
    let settings = session.settings(arguments.given())?.settings;
    let (options, job_name) = options(session, arguments)?;
    let name = shared.name.clone().or(job_name);
    let request = request(session, &options, &settings, name)?;
    // What is wrong with it is said before anything is opened.
    let crawl = crawl_of(&request)?;
    if let Some(path) = &shared.output {
        crate::new_file::refuse_existing(path, shared.overwrite)?;
    }
    if shared.dry_run {
        return dry_run(session, &crawl, &settings, output);
    }
    if shared.detach && !session.target(&settings)?.is_served() {
        return detach::detach(session, &settings, output);
    }
    let start = StartCrawl { request, or_resume: !shared.new };
    let job = RunJob {
        output: shared.output.as_deref(),
        fail_on: fail_on(&settings),
        is_detached: shared.detach,
    };
    run::run(session, &settings, &start, &job, output, |_, _| Ok(()))
}

/// What was said about ids, with the job behind it, and the job's name.
fn options(
    session: &Session,
    arguments: &LinearArgs,
) -> Result<(LinearOptions, Option<String>), Message> {
    let options = LinearOptions::of_flags(arguments);
    let Some(name) = options.job_name().map(str::to_owned) else { return Ok((options, None)) };
    let files = session.sources(Vec::new())?.files;
    let jobs: Vec<_> = files.into_iter().flat_map(|file| file.jobs).collect();
    // A later file wins.
    if let Some(job) = jobs.iter().rev().find(|job| job.name == name) {
        return Ok((options.on_job(job), Some(name)));
    }
    let names: Vec<_> = jobs.iter().map(|job| shown(&job.name)).collect();
    let hint = match names.is_empty() {
        true => "Write a [[job]] with this name into telusur.toml".to_owned(),
        false => format!("There are {}", names.join(", ")),
    };
    let what = format!("there is no job \"{}\"", shown(&name));
    Err(Message::new(Code::NoSuchJob, what).hint(hint))
}

fn request(
    session: &Session,
    options: &LinearOptions,
    settings: &Settings,
    name: Option<String>,
) -> Result<CrawlRequest, Message> {
    let linear = options.request()?;
    let addresses = StartUrls::new(settings.openings(), false, true);
    for text in &linear.templates {
        // One that cannot be read is refused with all that is said about ids.
        if let Ok(template) = Template::parse(text) {
            addresses.read(template.url_of(0).as_str())?;
        }
    }
    if !settings.switch(Key::Robots) {
        session.talk.warning("robots.txt is ignored: ask only sites that are yours");
    }
    let mut request = CrawlRequest { name, linear: Some(linear), ..crawl_request(settings) };
    crawl::add_secrets(session, settings, &mut request)?;
    Ok(request)
}

fn dry_run(
    session: &Session,
    request: &Crawl,
    settings: &Settings,
    output: &mut dyn Write,
) -> Outcome {
    if session.global.json {
        return crawl::dry_run(session, request, settings, output);
    }
    let seeds = request.seeds.linear().expect("made by this command");
    show(request, seeds, output)?;
    Ok(0)
}

fn show(request: &Crawl, seeds: &LinearSeeds, output: &mut dyn Write) -> io::Result<()> {
    let mut row = |name: &str, value: &str| writeln!(output, "{name:<14}{}", shown(value));
    if let Some(name) = &request.name {
        row("name", name)?;
    }
    for walk in &seeds.walks {
        let rules = walk.rules();
        row("template", rules.template.as_str())?;
        row("first page", walk_first(walk).as_str())?;
        for leg in walk.legs() {
            row(leg.direction.word(), &leg_text(walk, leg))?;
        }
    }
    let Some(rules) = seeds.walks.first().map(Walk::rules) else { return Ok(()) };
    let margin = match rules.margin {
        0 => "none: only the bound stops".to_owned(),
        margin => format!("{} missing in a row", show_count(margin)),
    };
    row("margin", &margin)?;
    row(
        "attempts",
        &format!("{}, after {}", rules.attempts, write_duration_ms(rules.cooldown_ms)),
    )?;
    let resume = match seeds.resume {
        Resume::All => "the rest, and what failed",
        Resume::New => "the rest of the range",
        Resume::Holes => "what failed",
    };
    row("resume", resume)?;
    let links = match seeds.follow {
        true => format!("followed, scope {}", request.scope.kind.word()),
        false => "not followed".to_owned(),
    };
    row("links", &links)?;
    crawl::show_limits(request, &mut row)?;
    let manners = &request.politeness;
    row("delay", &format!("{} per host", write_duration_ms(manners.delay_ms)))?;
    row("at once", &format!("{} per host, {} in all", manners.per_host, manners.workers))?;
    let obeys = manners.robots != RobotsRules::Ignore;
    row("robots.txt", if obeys { "obeyed" } else { "not read" })?;
    row("user agent", &request.fetch.user_agent)
}

fn walk_first(walk: &Walk) -> PageUrl {
    let id = walk.legs().first().map_or(0, |leg| first_and_last(walk, leg).0);
    walk.rules().template.url_of(id)
}

/// The ids of a leg, in its direction.
fn leg_text(walk: &Walk, leg: &LegPlan) -> String {
    let (first, last) = first_and_last(walk, leg);
    let rules = walk.rules();
    let is_known = match leg.direction {
        Direction::Ascending => rules.max.is_some() || rules.ids.is_some(),
        Direction::Descending => rules.min.is_some() || rules.ids.is_some(),
    };
    let last = if is_known { last.to_string() } else { "the margin".to_owned() };
    let rate = if leg.rate == 1 { String::new() } else { format!(", rate {}", leg.rate) };
    let step = if rules.step == 1 { String::new() } else { format!(", step {}", rules.step) };
    format!("{first} to {last}{rate}{step}")
}

fn first_and_last(walk: &Walk, leg: &LegPlan) -> (u64, u64) {
    let ranges = leg.positions.as_slice();
    let low = ranges.first().map_or(0, |range| walk.id_at(range.0));
    let high = ranges.last().map_or(0, |range| walk.id_at(range.1));
    match leg.direction {
        Direction::Ascending => (low, high),
        Direction::Descending => (high, low),
    }
}
