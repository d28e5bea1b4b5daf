//! `cargo xtask torture damage`: damages one file of each of many copies of a data directory.
//! `cargo xtask torture disk`: corruption at rest on the simulated disk.

use std::process::Command;

use anyhow::{Context, bail};
use telusur_testkit::{DamageTorture, DamagedFiles};

use crate::build::{Scratch, release_program};

/// `only`: the number of the one copy that is looked at, and stays.
pub(crate) fn damage(copies: usize, seed: u64, only: Option<&str>) -> anyhow::Result<()> {
    let only = only.map(str::parse).transpose().context("the number of a copy")?;
    let program = release_program()?;
    let scratch = Scratch::new("torture-damage")?;
    // A small directory for most copies, and one whose journals were rotated: above 64 MB of changes.
    let rotated = copies / 8;
    let mut is_broken = false;
    for (name, copies, pages, links, files) in [
        ("small", copies - rotated, 120, 140, DamagedFiles::All),
        ("rotated", rotated, 420, 400, DamagedFiles::OfState),
    ] {
        let dir = scratch.path().join(name);
        std::fs::create_dir(&dir).context("make a scratch directory")?;
        let torture = DamageTorture {
            program: program.clone(),
            scratch: dir,
            copies,
            seed,
            pages,
            links,
            files,
            only,
        };
        println!("{name}: crawls of {pages} pages with {links} links each");
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        let report = runtime.block_on(torture.run(|line| println!("{line}")));
        let report = report.map_err(|error| anyhow::anyhow!("{error}"))?;
        println!("{report}");
        is_broken |= !report.wrong.is_empty();
    }
    if is_broken || only.is_some() {
        println!("kept for a look: {}", scratch.path().display());
    } else {
        scratch.delete()?;
    }
    if is_broken {
        bail!("promises were broken");
    }
    Ok(())
}

/// The property test of the simulated disk, with more seeds than in every test run.
pub(crate) fn disk(seeds: u64) -> anyhow::Result<()> {
    let test = ["test", "--package", "telusur-store-embedded", "--test", "it"];
    let ran = Command::new(env!("CARGO"))
        .args(test)
        .args(["at_rest::", "--", "--nocapture"])
        .env("TELUSUR_DISK_SEEDS", seeds.to_string())
        .status()
        .context("run cargo")?;
    if !ran.success() {
        bail!("promises were broken");
    }
    Ok(())
}
