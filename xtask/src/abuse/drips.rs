//! Good hosts beside many that drip their headers, in one crawl: the network is not down while
//! somebody answers, and the good hosts keep their rate.

use std::time::Duration;

use serde_json::json;
use telusur_testkit::bad_server::Step;
use telusur_testkit::fake_web::{DelayRange, PageCounts};
use telusur_testkit::{Crowd, FakeWebSpec};

use super::Field;
use super::table::Table;

const NAME: &str = "drips";
const HOSTS_GOOD: usize = 40;
const HOSTS_DRIPPING: usize = 60;
const WARM_UP: Duration = Duration::from_secs(10);
const SPAN: Duration = Duration::from_secs(30);
const KEPT_PERCENT_MIN: f64 = 80.0;

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    let alone = pages(field, "alone", false).await?;
    let among = pages(field, "among", true).await?;
    table.told(NAME, "pages of good hosts, alone", alone as f64);
    let kept = 100.0 * among as f64 / alone as f64;
    table.at_least(NAME, "share that they keep beside dripping hosts, %", kept, KEPT_PERCENT_MIN);
    Ok(())
}

async fn pages(field: &Field, name: &str, with_dripping: bool) -> anyhow::Result<usize> {
    let spec = FakeWebSpec {
        hosts: HOSTS_DRIPPING + HOSTS_GOOD,
        pages: PageCounts::Even { total: 500_000 },
        links_per_page: 12,
        page_bytes: 3_000,
        other_host_share: 0.0,
        delay_ms: DelayRange { min: 5, max: 50 },
        ..FakeWebSpec::default()
    };
    let drip = Step::Drip {
        bytes: "HTTP/1.1 200 OK\r\nx: y\r\n".repeat(10).into(),
        every: Duration::from_secs(1),
    };
    let crowd = Crowd::with_script(spec, HOSTS_DRIPPING, vec![Step::ReadRequest, drip]).await?;
    let seeds: Vec<String> = crowd.web().seeds().iter().map(ToString::to_string).collect();
    let first = if with_dripping { 0 } else { HOSTS_DRIPPING };
    let target = field.service(name, &["--delay", "1s"])?;
    let body = json!({ "urls": seeds[first..], "scope": { "kind": "host" } });
    target.post("/api/v1/crawls", &body).await?;
    let good = HOSTS_DRIPPING..HOSTS_DRIPPING + HOSTS_GOOD;
    tokio::time::sleep(WARM_UP).await;
    let before = crowd.pages_asked(good.clone());
    tokio::time::sleep(SPAN).await;
    Ok(crowd.pages_asked(good) - before)
}
