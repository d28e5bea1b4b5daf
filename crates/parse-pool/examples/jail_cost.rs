//! What the jail costs: CPU per page in this process, and in parent and child together.
//!
//! `cargo run --release -p telusur-parse-pool --example jail_cost`. The goal is at most 15 % more.
//! Figures of a busy machine are worse than they should be: a process that waits for another one gets
//! its caches back cold.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use telusur_model::{PageUrl, RawPage};
use telusur_parse_pool::{InProcess, Parser, ParserPool, PoolSettings, Reading, VisibleText};

// The allocator of the real program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Different ones: a page that is read again and again would be found in the caches.
const PAGES_PER_TURN: u32 = 320;
/// Both ways take turns; of each, the fastest counts, since nothing but noise makes a turn slower.
const TURNS: u32 = 60;
const PAGE_BYTES: usize = 20_000;
/// Pages that are handed over at once: one when the crawl is idle, several under load.
const BATCHES: [usize; 3] = [1, 4, 16];

fn main() -> ExitCode {
    if let Some(code) = telusur_parse_pool::child_if_asked() {
        return code;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn Error>> {
    let pages: Vec<_> = (0..PAGES_PER_TURN).map(typical_page).collect();
    for batch in BATCHES {
        let pool = ParserPool::start(PoolSettings::new(1)?)?;
        let (mut in_process, mut jailed) = (Duration::MAX, Duration::MAX);
        for _ in 0..TURNS {
            in_process = in_process.min(cost(&InProcess::default(), &pages, batch, &[])?);
            jailed = jailed.min(cost(&pool, &pages, batch, &pool.resting_pids())?);
        }
        println!(
            "batches of {batch:2}: {:5.1} us per page in this process, {:5.1} us jailed: {:.3} times",
            per_page(in_process),
            per_page(jailed),
            jailed.as_secs_f64() / in_process.as_secs_f64(),
        );
    }
    Ok(())
}

/// The CPU that a turn takes, in this thread and in these processes.
fn cost(
    parser: &dyn Parser,
    pages: &[RawPage],
    batch: usize,
    pids: &[u32],
) -> Result<Duration, Box<dyn Error>> {
    let before = cpu(pids)?;
    for batch in pages.chunks(batch) {
        let batch: Vec<_> = batch.iter().collect();
        for outcome in parser.parse_all(&batch, VisibleText::Taken)? {
            if let Reading::Failed { why } = outcome.reading {
                return Err(why.into());
            }
        }
    }
    Ok(cpu(pids)?.saturating_sub(before))
}

fn per_page(cpu: Duration) -> f64 {
    cpu.as_secs_f64() * 1e6 / f64::from(PAGES_PER_TURN)
}

/// The CPU time of the calling thread and of these processes. The first number of `schedstat` is
/// exact to the nanosecond, unlike the ticks of `stat`.
fn cpu(pids: &[u32]) -> Result<Duration, Box<dyn Error>> {
    let mut paths = vec!["/proc/thread-self/schedstat".to_owned()];
    paths.extend(pids.iter().map(|pid| format!("/proc/{pid}/schedstat")));
    let mut nanos = 0;
    for path in paths {
        let text = std::fs::read_to_string(path)?;
        nanos += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// 20 KB with a head, 50 links and paragraphs of text.
fn typical_page(number: u32) -> RawPage {
    let mut html = String::from(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>A typical page</title>\
         <meta name=description content='What many pages look like'></head><body><nav><ul>",
    );
    for link in 0..50 {
        html.push_str(&format!(
            "<li class='item'><a href='/section/{}/page-{number}-{link}.html'>Page {link}</a></li>",
            link % 7
        ));
    }
    html.push_str("</ul></nav><article>");
    while html.len() < PAGE_BYTES {
        html.push_str(
            "<p class=text>Lorem ipsum dolor sit amet, <em>consectetur</em> adipiscing elit &amp; \
             sed do eiusmod tempor <b>incididunt</b> ut labore et dolore magna aliqua.</p>\n",
        );
    }
    html.push_str("</article></body></html>");
    RawPage {
        url: PageUrl::parse("http://a.org/dir/page").expect("a plain URL"),
        status: 200,
        headers: vec![
            ("content-type".to_owned(), "text/html; charset=utf-8".to_owned()),
            ("server".to_owned(), "example".to_owned()),
            ("last-modified".to_owned(), "Mon, 02 Nov 2026 10:00:00 GMT".to_owned()),
        ],
        wire_bytes: html.len() as u64,
        body: Bytes::from(html),
        truncated: false,
    }
}
