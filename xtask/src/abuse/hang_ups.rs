//! Clients that hang up at a random byte of their request, or right after it: each crawl exists once
//! or not at all, the list equals the store, and each `Idempotency-Key` makes one crawl.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use telusur_testkit::fake_web::PageCounts;
use telusur_testkit::{Dice, FakeWeb, FakeWebSpec, serve};
use tokio::io::AsyncWriteExt;

use super::table::Table;
use super::{Field, LOOK_PAUSE, Target, until_idle};
use crate::load_client::{Client, open};

const NAME: &str = "hang-ups";
const REQUESTS: u64 = 2_000;
/// Every so many requests, one is sent again in full with the same key.
const REPEATED_EVERY: u64 = 4;
/// Requests after which the service may catch up, so that it does not refuse for want of room.
const BURST: u64 = 200;
/// Longest that a client waits before it hangs up behind a whole request.
const STAY_MS_MAX: u64 = 20;

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    let spec = FakeWebSpec {
        hosts: 4,
        pages: PageCounts::Even { total: 40 },
        page_bytes: 2_000,
        other_host_share: 0.0,
        ..FakeWebSpec::default()
    };
    let web = serve(&FakeWeb::new(spec)?, None).await?;
    let target = field.service("data", &["--delay", "0s"])?;
    let seed = web.web().seeds()[0].to_string();
    let mut dice = Dice::new(12);
    let mut repeated = BTreeSet::new();
    for number in 0..REQUESTS {
        let request = Request::new(target.service.address, &seed, number);
        request.hang_up(&mut dice).await?;
        if number % REPEATED_EVERY == 0 {
            request.send_whole().await?;
            repeated.insert(request.key);
        }
        if number % BURST == BURST - 1 {
            until_idle(&target).await?;
        }
    }
    until_idle(&target).await?;
    judge_keys(&target, &repeated, table).await?;
    let ordered = order_about(&target, &mut dice).await?;
    table.told(NAME, "orders about them that were hung up on", ordered as f64);
    until_idle(&target).await?;
    judge_list(field, target, table).await
}

/// Each key has made one crawl at most, and exactly one where its request came through.
async fn judge_keys(
    target: &Target,
    repeated: &BTreeSet<String>,
    table: &mut Table,
) -> anyhow::Result<()> {
    let listed = target.crawls().await?;
    let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
    for crawl in &listed {
        *by_key.entry(crawl["name"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let doubled = by_key.values().filter(|count| **count > 1).count();
    let missing = repeated.iter().filter(|key| !by_key.contains_key(key.as_str())).count();
    table.told(NAME, "crawls that were made by 2,000 requests", listed.len() as f64);
    table.at_most(NAME, "keys that made more than one crawl", doubled as f64, 0.0);
    table.at_most(NAME, "keys that were repeated in full and made none", missing as f64, 0.0);
    Ok(())
}

/// Compares what the service lists with what the store holds once it has ended.
async fn judge_list(field: &Field, target: Target, table: &mut Table) -> anyhow::Result<()> {
    let listed = target.crawls().await?;
    let unfinished = listed.iter().filter(|crawl| crawl["state"] != "completed").count();
    let Target { service, data } = target;
    service.end()?;
    let stored = ids(field.ask(&data, &["ls"])?.as_array().context("a list of crawls")?);
    let apart = ids(&listed).symmetric_difference(&stored).count();
    table.at_most(NAME, "crawls that are listed or stored, not both", apart as f64, 0.0);
    table.at_most(NAME, "crawls that did not run to their end", unfinished as f64, 0.0);
    Ok(())
}

fn ids(crawls: &[Value]) -> BTreeSet<String> {
    let id = |crawl: &Value| crawl["id"].as_str().map(ToOwned::to_owned);
    crawls.iter().filter_map(id).collect()
}

/// Hangs up on orders about crawls that exist: retries and deletions.
async fn order_about(target: &Target, dice: &mut Dice) -> anyhow::Result<usize> {
    let crawls = target.crawls().await?;
    let mut ordered = 0;
    for (number, crawl) in crawls.iter().enumerate().filter(|(number, _)| number % 4 == 1) {
        let id = crawl["id"].as_str().context("a crawl without an id")?;
        let line = match number % 8 {
            1 => format!("DELETE /api/v1/crawls/{id}"),
            _ => format!("POST /api/v1/crawls/{id}/retry"),
        };
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            target.service.address
        );
        hang_up(target.service.address, head.as_bytes(), dice).await?;
        ordered += 1;
    }
    Ok(ordered)
}

/// One request for a crawl. Its key is the name of the crawl.
struct Request {
    address: SocketAddr,
    key: String,
    body: String,
    head: String,
}

impl Request {
    fn new(address: SocketAddr, seed: &str, number: u64) -> Self {
        let key = format!("key-{number}");
        let body = json!({ "name": key, "urls": [seed], "limits": { "max_pages": 1 } }).to_string();
        let head = format!(
            "POST /api/v1/crawls HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Idempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Self { address, key, body, head }
    }

    async fn hang_up(&self, dice: &mut Dice) -> anyhow::Result<()> {
        let whole = format!("{}{}", self.head, self.body);
        hang_up(self.address, whole.as_bytes(), dice).await
    }

    async fn send_whole(&self) -> anyhow::Result<()> {
        loop {
            let mut client = Client::connect(self.address).await?;
            let reply = client.ask(&format!("{}{}", self.head, self.body)).await?;
            match reply.status {
                200 | 202 => return Ok(()),
                429 => tokio::time::sleep(LOOK_PAUSE).await,
                status => {
                    ensure!(status < 500, "{status} {}", reply.body);
                    anyhow::bail!("refused: {status} {}", reply.body);
                }
            }
        }
    }
}

/// Sends a request in part, or as a whole, and is gone a moment later. Half of all clients send it as
/// a whole: the service is busy with it when they go.
async fn hang_up(address: SocketAddr, whole: &[u8], dice: &mut Dice) -> anyhow::Result<()> {
    let sent = if dice.chance(0.5) { whole.len() } else { dice.index(whole.len()) };
    let mut stream = open(address).await.context("connect")?;
    stream.write_all(&whole[..sent]).await.context("send")?;
    let stay = Duration::from_micros(dice.below(STAY_MS_MAX * 1_000));
    tokio::time::sleep(stay).await;
    Ok(())
}
