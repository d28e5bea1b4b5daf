//! `telusur demo`: serves the site that is built in, crawls it, and shows what to try next.

use std::io::Write;

use telusur_engine::control::StartCrawl;
use telusur_engine::request::{CrawlRequest, LinearRequest};
use telusur_model::PageUrl;
use telusur_testkit::serve_demo;

use super::run::{self, RunJob};
use super::{Outcome, Session};
use crate::cli::SpaceArgs;
use crate::crawl_request::crawl_request;
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
    let request = CrawlRequest {
        name: Some("demo".to_owned()),
        urls: vec![start.to_string()],
        ..crawl_request(&settings)
    };
    let code = run_new(session, &settings, request, output)?;
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
    let linear = LinearRequest {
        template: Some(format!("{site}item/{{id}}")),
        start: Some(30),
        min: Some(1),
        margin: Some(5),
        ..LinearRequest::default()
    };
    let request = CrawlRequest {
        name: Some("demo-items".to_owned()),
        linear: Some(linear),
        ..crawl_request(settings)
    };
    run_new(session, settings, request, output)
}

fn run_new(
    session: &Session,
    settings: &Settings,
    request: CrawlRequest,
    output: &mut dyn Write,
) -> Outcome {
    let job = RunJob { output: None, fail_on: FailOn::None, is_detached: false };
    let start = StartCrawl { request, or_resume: false };
    run::run(session, settings, &start, &job, output, |_, _| Ok(()))
}
