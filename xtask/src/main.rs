//! Tasks of the project itself: `cargo xtask torture [linear] [KILLS] [SEED]`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use telusur_testkit::fake_web::{DelayRange, FaultShares, PageCounts};
use telusur_testkit::{Along, FakeWebSpec, Torture};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("torture") => torture(&arguments[1..]),
        _ => {
            eprintln!("usage: cargo xtask torture [linear] [KILLS] [SEED]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Kills a crawl of 5,000 pages over 20 hosts, or of 20,000 numbers over two, again and again.
fn torture(arguments: &[String]) -> anyhow::Result<()> {
    let is_linear = arguments.first().is_some_and(|argument| argument == "linear");
    let arguments = &arguments[usize::from(is_linear)..];
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text.parse().with_context(|| format!("{text:?} is not a number")),
        None => Ok(default),
    };
    let kills = u32::try_from(number(0, 200)?).context("too many kills")?;
    let seed = number(1, 1)?;
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "telusur"])
        .status()
        .context("run cargo")?;
    if !built.success() {
        bail!("the program does not build");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let scratch = std::env::temp_dir().join(format!("telusur-torture-{}", std::process::id()));
    std::fs::create_dir(&scratch).context("make a scratch directory")?;
    let torture = Torture {
        program: target.join("release/telusur"),
        web: if is_linear { numbers(seed) } else { links(seed) },
        kills,
        seed,
        life_ms_max: 600,
        workers: 32,
        scratch: scratch.clone(),
        along: if is_linear { Along::Numbers } else { Along::Links },
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(torture.run(|line| println!("{line}")));
    let report = report
        .map_err(|broken| anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.display()))?;
    println!(
        "{} kills, {} pages, verified {} times, {} requests repeated ({:.1} per kill)",
        report.kills,
        report.pages,
        report.verified,
        report.refetches,
        report.refetches as f64 / f64::from(report.kills.max(1))
    );
    std::fs::remove_dir_all(&scratch).context("delete the scratch directory")
}

/// A web of links, slow enough that the crawl is still running at the last kill.
fn links(seed: u64) -> FakeWebSpec {
    FakeWebSpec {
        seed,
        hosts: 20,
        pages: PageCounts::Even { total: 5_000 },
        links_per_page: 20,
        page_bytes: 5_000,
        delay_ms: DelayRange { min: 100, max: 400 },
        ..FakeWebSpec::default()
    }
}

/// A web of numbered pages, of which some do not exist and some fail: once, or for ever.
fn numbers(seed: u64) -> FakeWebSpec {
    FakeWebSpec {
        seed,
        hosts: 2,
        pages: PageCounts::Even { total: 20_000 },
        links_per_page: 5,
        page_bytes: 2_000,
        delay_ms: DelayRange { min: 20, max: 60 },
        faults: FaultShares {
            gaps: 0.2,
            error_once: 0.02,
            reset_always: 0.005,
            ..FaultShares::default()
        },
        ..FakeWebSpec::default()
    }
}
