//! A fresh service whose first crawls all lead nowhere: those behind them must run all the same.

use std::time::{Duration, Instant};

use serde_json::json;
use telusur_testkit::fake_web::PageCounts;
use telusur_testkit::{FakeWeb, FakeWebSpec, serve};

use super::table::Table;
use super::{Field, LOOK_PAUSE, dead_url};

const NAME: &str = "outage";
const CRAWLS_DEAD: usize = 8;
const CRAWLS_GOOD: usize = 50;
const PAGES_EACH: u64 = 5;
/// How long the good ones are waited for: dead hosts are tried several times first.
const WAIT_MAX: Duration = Duration::from_secs(240);

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    let spec = FakeWebSpec {
        hosts: CRAWLS_GOOD,
        pages: PageCounts::Even { total: 5_000 },
        page_bytes: 3_000,
        other_host_share: 0.0,
        ..FakeWebSpec::default()
    };
    let web = serve(&FakeWeb::new(spec)?, None).await?;
    let target = field.service("data", &["--delay", "0s"])?;
    for number in 0..CRAWLS_DEAD {
        target.post("/api/v1/crawls", &json!({ "urls": [dead_url(number)] })).await?;
    }
    for seed in web.web().seeds() {
        let body = json!({
            "name": "good", "urls": [seed.to_string()], "limits": { "max_pages": PAGES_EACH },
        });
        target.post("/api/v1/crawls", &body).await?;
    }
    let begun = Instant::now();
    let mut completed = 0;
    while completed < CRAWLS_GOOD && begun.elapsed() < WAIT_MAX {
        tokio::time::sleep(LOOK_PAUSE).await;
        let is_done = |crawl: &&serde_json::Value| {
            crawl["name"] == "good"
                && crawl["state"] == "completed"
                && crawl["stats"]["ok"].as_u64() >= Some(PAGES_EACH)
        };
        completed = target.crawls().await?.iter().filter(is_done).count();
    }
    table.at_least(
        NAME,
        "good crawls that complete behind 8 dead ones, of 50",
        completed as f64,
        CRAWLS_GOOD as f64,
    );
    table.told(NAME, "s until they were all complete", begun.elapsed().as_secs_f64());
    Ok(())
}
