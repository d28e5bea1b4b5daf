//! `telusur demo`: serves the site that is built in, crawls it, and shows what to try next.

use std::io::Write;

use telusur_engine::SystemClock;
use telusur_ledger::NewCrawl;
use telusur_model::{Clock, LinearSeeds, PageUrl, Resume, Seeds, Template, Walk, WalkRules};
use telusur_testkit::serve_demo;

use super::run::{self, RunJob};
use super::{Outcome, Session};
use crate::backend;
use crate::cli::SpaceArgs;
use crate::crawl_request::CrawlRequest;
use crate::message::{Code, Message};
use crate::settings::{FailOn, Given, Key, Raw, Settings};

/// Searches to try: a word, a phrase, a word in pages of one language.
const SEARCHES: [&str; 3] = ["cloves", "'\"stone jumping\"'", "pulau lang:id"];

pub(super) fn demo(session: &Session, space: &SpaceArgs, output: &mut dyn Write) -> Outcome {
    let refuse = |what: String| Message::new(Code::Storage, format!("serve the demo site: {what}"));
    // The site answers on threads of its own, beside the crawl.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| refuse(error.to_string()))?;
    let site = runtime.block_on(serve_demo(None)).map_err(|error| refuse(error.to_string()))?;
    let address = format!("127.0.0.1:{}", site.port());
    let list = |items: &[&str]| Raw::List(items.iter().map(|item| (*item).to_owned()).collect());
    let mut given = vec![
        // The only exception from "public addresses only": this one port of this machine.
        Given { key: Key::AllowPrivate, flag: "--allow-private", raw: list(&[&address]) },
        Given { key: Key::Delay, flag: "--delay", raw: Raw::Untyped("0s".into()) },
        Given { key: Key::PerHost, flag: "--per-host", raw: Raw::Untyped("8".into()) },
        Given { key: Key::MaxDepth, flag: "--depth", raw: Raw::Untyped("12".into()) },
        Given { key: Key::Retries, flag: "--retries", raw: Raw::Untyped("1".into()) },
    ];
    given.extend(space.given());
    let settings = session.settings(given)?.settings;
    let start =
        PageUrl::parse(&format!("http://{address}/")).map_err(|error| refuse(error.to_string()))?;
    session.talk.note(&format!("the demo site is served on http://{address}/ while it is crawled"));
    let open = backend::open(backend::data_dir(&settings))?;
    let request = CrawlRequest::new(&settings, vec![start.clone()], Some("demo".into()));
    let crawl = request.into_crawl(SystemClock::new().wall());
    let record = open
        .store
        .create(NewCrawl { crawl, random: u128::from(std::process::id()) })
        .map_err(|error| backend::store_message(&error))?;
    let job = RunJob { crawl: record.crawl.no, output: None, fail_on: FailOn::None };
    let code = run::run(session, &settings, open, &job, output)?;
    let code = if code == 0 { items(session, &settings, &start, output)? } else { code };
    if !session.global.json && code == 0 {
        for words in SEARCHES {
            writeln!(output, "    Search    telusur search {words}")?;
        }
        writeln!(output, "    Browse    telusur serve")?;
        writeln!(output, "    Why       telusur explain {start}oddities")?;
        writeln!(output, "    Skipped   telusur show demo --skipped")?;
        writeln!(output, "    Numbers   telusur coverage demo-items")?;
        writeln!(output, "    Yours     telusur crawl https://example.org")?;
    }
    runtime.block_on(site.stop());
    Ok(code)
}

/// The numbered pages of the site, as a linear crawl: it finds where they end by itself.
fn items(
    session: &Session,
    settings: &Settings,
    site: &PageUrl,
    output: &mut dyn Write,
) -> Outcome {
    let refuse = |what: String| Message::new(Code::Template, what);
    let template = Template::parse(&format!("{site}item/{{id}}"))
        .map_err(|error| refuse(error.to_string()))?;
    let rules = WalkRules { start: Some(30), min: Some(1), margin: 5, ..WalkRules::new(template) };
    let walk = Walk::new(rules).map_err(|error| refuse(error.to_string()))?;
    let mut request = CrawlRequest::new(settings, Vec::<PageUrl>::new(), Some("demo-items".into()));
    request.sitemaps.discover = false;
    request.keep_tracking = true;
    request.seeds =
        Seeds::Linear(LinearSeeds { walks: vec![walk], resume: Resume::All, follow: false });
    let open = backend::open(backend::data_dir(settings))?;
    let crawl = request.into_crawl(SystemClock::new().wall());
    let record = open
        .store
        .create(NewCrawl { crawl, random: u128::from(std::process::id()) + 1 })
        .map_err(|error| backend::store_message(&error))?;
    let job = RunJob { crawl: record.crawl.no, output: None, fail_on: FailOn::None };
    run::run(session, settings, open, &job, output)
}
