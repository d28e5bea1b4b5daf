//! Requests whose fields are at their limits, or beyond: what one of them costs. Bodies are made up
//! from the service's own description of its fields.

mod bodies;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use telusur_testkit::Dice;

use self::bodies::{BODY_BYTES_MAX, Bodies, known_costly};
use super::table::Table;
use super::{Field, Target};
use crate::load_client::Client;
use crate::process::look;

const NAME: &str = "costs";
const REQUESTS: u64 = 1_000;
const CPU_S_MAX: f64 = 0.5;
const MEMORY_MB_MAX: f64 = 64.0;

#[derive(Default)]
struct Worst {
    cpu_s: f64,
    memory_mb: f64,
    server_errors: u64,
    accepted: u64,
    refused: u64,
    costly: Vec<String>,
}

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    // Nobody is asked: the requests are what is measured, not the crawls.
    let target = field.service("data", &["--delay", "60s"])?;
    let bodies = Bodies::of(target.get("/api/v1/openapi.json").await?)?;
    let mut dice = Dice::new(8);
    let mut worst = Worst::default();
    for body in known_costly() {
        worst.add(&target, "POST", "/api/v1/crawls", &body).await?;
    }
    let crawl = json!({ "urls": ["http://127.9.0.1:9999/"], "manners": { "delay_ms": 60_000 } });
    let crawl = target.post("/api/v1/crawls", &crawl).await?;
    let path = format!("/api/v1/crawls/{}", crawl["id"].as_str().context("a crawl without an id")?);
    for body in known_costly() {
        let change = json!({ "exclude": body["scope"]["exclude"] });
        worst.add(&target, "PATCH", &path, &change).await?;
    }
    for number in 0..REQUESTS {
        let (route, body) = bodies.make_up(number, &mut dice);
        worst.add(&target, route.method, route.path, &body).await?;
    }
    for costly in &worst.costly {
        eprintln!("  costly: {costly}");
    }
    table.told(NAME, "requests that were accepted", worst.accepted as f64);
    table.told(NAME, "requests that were refused", worst.refused as f64);
    table.at_most(NAME, "answers of 500 and above", worst.server_errors as f64, 0.0);
    table.at_most(NAME, "CPU of the costliest request, s", worst.cpu_s, CPU_S_MAX);
    table.at_most(NAME, "memory of the costliest request, MB", worst.memory_mb, MEMORY_MB_MAX);
    Ok(())
}

impl Worst {
    async fn add(
        &mut self,
        target: &Target,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<()> {
        let body = body.to_string();
        let pid = target.service.pid();
        let idle = Peak::forget(pid)?;
        let mut client = Client::connect(target.service.address).await?;
        let Ok(reply) = client.send(method, path, &body).await else {
            // Cut off in the middle of a body that is too large.
            ensure!(body.len() > BODY_BYTES_MAX, "no answer to {} bytes of body", body.len());
            self.refused += 1;
            return Ok(());
        };
        let cpu_s = look(pid).cpu_seconds - idle.cpu_seconds;
        let memory_mb = (peak_kb(pid)?.saturating_sub(idle.resident_kb)) as f64 / 1000.0;
        match reply.status {
            500.. => self.server_errors += 1,
            400.. => self.refused += 1,
            _ => self.accepted += 1,
        }
        if cpu_s > CPU_S_MAX || memory_mb > MEMORY_MB_MAX || reply.status >= 500 {
            let start: String = body.chars().take(160).collect();
            self.costly.push(format!(
                "{} {method} {path}: {cpu_s:.2} s, {memory_mb:.0} MB, {} bytes of body: {start}",
                reply.status,
                body.len()
            ));
        }
        self.cpu_s = self.cpu_s.max(cpu_s);
        self.memory_mb = self.memory_mb.max(memory_mb);
        if reply.status == 202 {
            let crawl: Value = serde_json::from_str(&reply.body).context("read a crawl")?;
            let id = crawl["id"].as_str().context("a crawl without an id")?;
            let path = format!("/api/v1/crawls/{id}");
            let reply = client.send("DELETE", &path, "").await?;
            ensure!(reply.status < 500, "{path}: {} {}", reply.status, reply.body);
        }
        Ok(())
    }
}

/// What a process holds before a request.
struct Peak {
    cpu_seconds: f64,
    resident_kb: u64,
}

impl Peak {
    /// Makes the kernel forget the highest memory of a process so far.
    fn forget(pid: u32) -> anyhow::Result<Self> {
        let file = PathBuf::from(format!("/proc/{pid}/clear_refs"));
        std::fs::write(file, "5").context("reset the highest memory")?;
        Ok(Self { cpu_seconds: look(pid).cpu_seconds, resident_kb: peak_kb(pid)? })
    }
}

/// The highest memory since it was last forgotten.
fn peak_kb(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("look at it")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let text = line.context("its highest memory is not told")?.trim().trim_end_matches(" kB");
    text.parse().context("read its highest memory")
}
