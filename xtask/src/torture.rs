//! `cargo xtask torture`: kills a crawl of 5,000 pages over 20 hosts, or of 20,000 numbers over two,
//! again and again. `cargo xtask torture follow` kills small crawls, imports, removals and the indexer
//! beside them.

use anyhow::Context;
use telusur_testkit::fake_web::{DelayRange, FaultShares, PageCounts};
use telusur_testkit::{Along, FakeWebSpec, Torture};

use crate::build::{Scratch, release_program};

pub(crate) fn torture(along: Along, kills: u32, seed: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("torture")?;
    let torture = Torture {
        program,
        web: match along {
            Along::Links => links(seed),
            Along::Numbers => numbers(seed),
        },
        kills,
        seed,
        life_ms_max: 600,
        workers: 32,
        scratch: scratch.path().to_owned(),
        along,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(torture.run(|line| println!("{line}")));
    let report = report.map_err(|broken| {
        anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.path().display())
    })?;
    println!(
        "{} kills, {} pages, verified {} times, {} requests repeated ({:.1} per kill)",
        report.kills,
        report.pages,
        report.verified,
        report.refetches,
        report.refetches as f64 / f64::from(report.kills.max(1))
    );
    scratch.delete()
}

/// Kills whatever writes a directory, and in half of the cases the process that has its index.
pub(crate) fn torture_following(kills: u32, seed: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("torture-follow")?;
    let torture = Torture {
        program,
        web: FakeWebSpec {
            seed,
            hosts: 3,
            pages: PageCounts::Even { total: 60 },
            links_per_page: 8,
            page_bytes: 2_000,
            delay_ms: DelayRange { min: 5, max: 40 },
            ..FakeWebSpec::default()
        },
        kills,
        seed,
        life_ms_max: 150,
        workers: 8,
        scratch: scratch.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let since = std::time::Instant::now();
    let report = runtime.block_on(torture.run_following(|line| println!("{line}")));
    let report = report.map_err(|broken| {
        anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.path().display())
    })?;
    println!(
        "{} kills and {} of the indexer in {} s, {} removals, {} reparses, {} imports, verified {} times, {} documents",
        report.kills,
        report.indexer_kills,
        since.elapsed().as_secs(),
        report.removals,
        report.reparses,
        report.imports,
        report.verified,
        report.documents
    );
    scratch.delete()
}

/// Deletes the state of crawls that were killed, and copies directories that are in use.
pub(crate) fn torture_recovering(rounds: u32, seed: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("torture-recover")?;
    let torture = Torture {
        program,
        web: FakeWebSpec {
            seed,
            hosts: 8,
            pages: PageCounts::Even { total: 800 },
            links_per_page: 10,
            page_bytes: 3_000,
            delay_ms: DelayRange { min: 10, max: 60 },
            ..FakeWebSpec::default()
        },
        kills: rounds,
        seed,
        life_ms_max: 1_200,
        workers: 16,
        scratch: scratch.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(torture.run_recovering(|line| println!("{line}")));
    let report = report.map_err(|broken| {
        anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.path().display())
    })?;
    println!(
        "{} directories recovered ({} acknowledged pages), {} recoveries cut; {} copies of running directories, {} of them by rsync: all opened, {} with a state of different moments",
        report.recovered,
        report.acknowledged,
        report.cut,
        report.copies,
        report.copies_by_rsync,
        report.copies_rebuilt
    );
    scratch.delete()
}

/// Cuts removals of crawls short.
pub(crate) fn torture_removing(kills: u32, seed: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("torture-rm")?;
    let torture = Torture {
        program,
        web: FakeWebSpec {
            seed,
            hosts: 3,
            pages: PageCounts::Even { total: 600 },
            links_per_page: 8,
            page_bytes: 2_000,
            ..FakeWebSpec::default()
        },
        kills,
        seed,
        life_ms_max: 0,
        workers: 8,
        scratch: scratch.path().to_owned(),
        along: Along::Links,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(torture.run_removing(|line| println!("{line}")));
    let report = report.map_err(|broken| {
        anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.path().display())
    })?;
    println!(
        "{} removals cut short ({} were over before), {} times the next command as well: {} crawls gone, {} all there",
        report.cuts, report.whole, report.second_cuts, report.gone, report.kept
    );
    scratch.delete()
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

/// A web of numbered pages, of which some do not exist and some fail once.
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
            reset_once: 0.01,
            ..FaultShares::default()
        },
        ..FakeWebSpec::default()
    }
}
