//! `cargo xtask misbehave`: what good hosts lose when three in ten of their neighbours misbehave.
//! Two crawls of the same web for the same time, one of them with misbehaving hosts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use telusur_testkit::fake_web::{DelayRange, PageCounts};
use telusur_testkit::{Crowd, FakeWebSpec};

use crate::build::{Scratch, release_program};
use crate::process::{Held, look};

const HOSTS: usize = 1_000;
const HOSTS_BAD: usize = 300;
/// Least share of their rate that good hosts must keep.
const KEPT_MIN: f64 = 0.8;
/// How often memory and connections are looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// The first requests to a thousand hosts, for their rules and sitemaps, come in waves.
const WARM_UP_S: u64 = 20;
/// What limits a crawl while nobody misbehaves.
struct Load {
    name: &'static str,
    delay: &'static str,
    answer_ms: DelayRange,
}

const LOADS: [Load; 2] = [
    Load { name: "limited by its delay", delay: "6s", answer_ms: DelayRange { min: 20, max: 100 } },
    Load {
        name: "limited by its workers",
        delay: "1s",
        answer_ms: DelayRange { min: 100, max: 300 },
    },
];

pub(crate) fn misbehave(seconds: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("misbehave")?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let mut is_kept = true;
    for load in &LOADS {
        let measure = |bad| runtime.block_on(run(&program, scratch.path(), load, bad, seconds));
        let (alone, among_bad) = (measure(0)?, measure(HOSTS_BAD)?);
        let kept = among_bad.rate / alone.rate;
        is_kept &= kept >= KEPT_MIN;
        println!(
            "{}: good hosts {:.1} pages/s without, {:.1} pages/s with {HOSTS_BAD} of {HOSTS} \
             misbehaving: {:.1} %",
            load.name,
            alone.rate,
            among_bad.rate,
            100.0 * kept
        );
        println!(
            "  memory {} and {} MB, file descriptors {} and {} at most, CPU {:.1} and {:.1} s",
            alone.memory_mb_max,
            among_bad.memory_mb_max,
            alone.files_max,
            among_bad.files_max,
            alone.cpu_seconds,
            among_bad.cpu_seconds
        );
    }
    if !is_kept {
        bail!("good hosts must keep {:.0} % of their rate", 100.0 * KEPT_MIN);
    }
    scratch.delete()
}

#[derive(Default)]
struct Measured {
    /// Pages per second of the hosts that behave in both crawls.
    rate: f64,
    memory_mb_max: u64,
    files_max: usize,
    cpu_seconds: f64,
}

impl Measured {
    fn add(&mut self, held: Held) {
        self.cpu_seconds = held.cpu_seconds;
        self.memory_mb_max = self.memory_mb_max.max(held.memory_mb);
        self.files_max = self.files_max.max(held.files);
    }
}

async fn run(
    program: &Path,
    scratch: &Path,
    load: &Load,
    bad: usize,
    seconds: u64,
) -> anyhow::Result<Measured> {
    let spec = FakeWebSpec {
        hosts: HOSTS,
        pages: PageCounts::Even { total: 2_000_000 },
        links_per_page: 12,
        page_bytes: 3_000,
        delay_ms: load.answer_ms,
        ..FakeWebSpec::default()
    };
    let crowd = Crowd::gather(spec, bad).await?;
    let seeds: Vec<String> = crowd.web().seeds().iter().map(ToString::to_string).collect();
    std::fs::write(scratch.join("seeds"), seeds.join("\n")).context("write the start URLs")?;
    let data = scratch.join(format!("{}-{bad}", load.delay));
    let mut child = Command::new(program)
        .args(["--no-config", "-v", "--no-progress", "--log-file"])
        .arg(data.with_extension("log"))
        .arg("--data")
        .arg(&data)
        .args(["crawl", "--scope", "any", "--min-free-disk", "0B", "--delay", load.delay])
        .args(["--allow-private", "127.0.0.0/8", "-i"])
        .arg(scratch.join("seeds"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("start the program")?;
    let mut measured = Measured::default();
    let mut asked_at_start = 0;
    for second in 1..=WARM_UP_S + seconds {
        tokio::time::sleep(LOOK_PAUSE).await;
        measured.add(look(child.id()));
        if second == WARM_UP_S {
            asked_at_start = crowd.pages_asked(HOSTS_BAD..HOSTS);
        }
    }
    if let Some(status) = child.try_wait().context("look at the program")? {
        bail!("the crawl ended: {status}");
    }
    let asked = crowd.pages_asked(HOSTS_BAD..HOSTS) - asked_at_start;
    measured.rate = asked as f64 / seconds as f64;
    println!(
        "  {bad} misbehaving: {asked_at_start} pages in the first {WARM_UP_S} s, then {asked}"
    );
    child.kill().context("end the program")?;
    child.wait().context("end the program")?;
    Ok(measured)
}
