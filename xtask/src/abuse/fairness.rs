//! Costly feeds, on a few hosts and on many, silent hosts and dead crawls beside good crawls of one service: what the good ones
//! keep of their pages, how quickly the service answers, and how soon it ends.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use telusur_testkit::bad_server::Step;
use telusur_testkit::fake_web::{DelayRange, PageCounts};
use telusur_testkit::{CostlyFeeds, Crowd, FakeWebSpec};

use super::table::Table;
use super::{Field, Target, dead_url};
use crate::load_client::Client;

const NAME: &str = "fairness";
const HOSTS_GOOD: usize = 100;
const CRAWLS_GOOD: usize = 4;
/// Three in ten of all hosts that are crawled.
const HOSTS_SILENT: usize = 43;
const HOSTS_FEEDS: usize = 4;
/// Hosts of one more crawl whose feeds are costly: together they bring more than the parser can read,
/// and would fill the pipeline if they had no share of it.
const HOSTS_FLOOD: usize = 60;
const CRAWLS_DEAD: usize = 8;
/// All of them run at once: the good ones do not have to wait for a place.
const CRAWLS_RUNNING: &str = "15";
/// Robots.txt and sitemaps of all hosts come first.
const WARM_UP: Duration = Duration::from_secs(15);
const SPAN: Duration = Duration::from_secs(45);
const STATS_PAUSE: Duration = Duration::from_millis(50);

/// Least share of their pages that the good crawls keep, in percent.
const KEPT_PERCENT_MIN: f64 = 80.0;
const STATS_P95_MS_MAX: f64 = 100.0;
const END_S_MAX: f64 = 10.0;

struct Measured {
    pages: usize,
    stats_p95_ms: f64,
    end: Duration,
}

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    let alone = measure(field, "alone", false).await?;
    let attacked = measure(field, "attacked", true).await?;
    let kept = 100.0 * attacked.pages as f64 / alone.pages as f64;
    table.told(NAME, "pages of good hosts, alone", alone.pages as f64);
    table.told(NAME, "pages of good hosts, under attack", attacked.pages as f64);
    table.at_least(NAME, "share that the good crawls keep, %", kept, KEPT_PERCENT_MIN);
    table.at_most(
        NAME,
        "/api/v1/stats under attack, p95 in ms",
        attacked.stats_p95_ms,
        STATS_P95_MS_MAX,
    );
    table.at_most(
        NAME,
        "SIGTERM under attack, s until the end",
        attacked.end.as_secs_f64(),
        END_S_MAX,
    );
    Ok(())
}

async fn measure(field: &Field, name: &str, is_attacked: bool) -> anyhow::Result<Measured> {
    let spec = FakeWebSpec {
        hosts: HOSTS_SILENT + HOSTS_GOOD,
        pages: PageCounts::Even { total: 1_000_000 },
        links_per_page: 12,
        page_bytes: 5_000,
        other_host_share: 0.0,
        delay_ms: DelayRange { min: 5, max: 50 },
        ..FakeWebSpec::default()
    };
    let crowd = Crowd::with_script(spec, HOSTS_SILENT, vec![Step::ReadRequest, Step::Hang]).await?;
    let feeds = CostlyFeeds::serve(HOSTS_SILENT + HOSTS_GOOD, HOSTS_FEEDS).await?;
    let after = HOSTS_SILENT + HOSTS_GOOD + HOSTS_FEEDS;
    let flood = CostlyFeeds::serve(after, HOSTS_FLOOD).await?;
    let target = field.service(name, &["--delay", "1s", "--max-running", CRAWLS_RUNNING])?;
    let seeds: Vec<String> = crowd.web().seeds().iter().map(ToString::to_string).collect();
    let (silent, good) = seeds.split_at(HOSTS_SILENT);
    if is_attacked {
        for number in 0..CRAWLS_DEAD {
            crawl(&target, &format!("dead-{number}"), &[dead_url(number)]).await?;
        }
        crawl(&target, "feeds", &feeds.seeds()).await?;
        crawl(&target, "flood", &flood.seeds()).await?;
        crawl(&target, "silent", silent).await?;
    }
    for (number, hosts) in good.chunks(HOSTS_GOOD / CRAWLS_GOOD).enumerate() {
        crawl(&target, &format!("good-{number}"), hosts).await?;
    }
    tokio::time::sleep(WARM_UP).await;
    let good_hosts = HOSTS_SILENT..HOSTS_SILENT + HOSTS_GOOD;
    let before = crowd.pages_asked(good_hosts.clone());
    let stats_p95_ms = watch_stats(&target).await?;
    let pages = crowd.pages_asked(good_hosts) - before;
    let end = target.service.end().context("end the service")?;
    Ok(Measured { pages, stats_p95_ms, end })
}

async fn crawl(target: &Target, name: &str, urls: &[String]) -> anyhow::Result<()> {
    let body = json!({ "name": name, "urls": urls, "scope": { "kind": "host" } });
    target.post("/api/v1/crawls", &body).await.map(drop)
}

/// Asks for the totals again and again for the whole span.
async fn watch_stats(target: &Target) -> anyhow::Result<f64> {
    let end = Instant::now() + SPAN;
    let mut client = Client::connect(target.service.address).await?;
    let mut ms = Vec::new();
    while Instant::now() < end {
        let asked = Instant::now();
        client.get("/api/v1/stats").await.context("ask for the totals")?;
        ms.push(asked.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(STATS_PAUSE).await;
    }
    ms.sort_by(f64::total_cmp);
    Ok(ms[ms.len() * 95 / 100])
}
