//! `cargo xtask torture damage`: damages one file of each of many copies of a data directory.
//! `cargo xtask torture disk`: corruption at rest on the simulated disk.

use std::process::Command;

use anyhow::{Context, bail};
use telusur_testkit::{DamageTorture, DamagedFiles};

use crate::build::{Scratch, release_program};

/// The directory that is damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Directory {
    /// Every kind of file, few pages.
    Small,
    /// Above 64 MB of changes, after which the state database begins another journal.
    Rotated,
}

/// `only`: the number of the one copy that is looked at, and stays.
pub(crate) fn damage(
    directory: Directory,
    copies: usize,
    seed: u64,
    only: Option<usize>,
) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("torture-damage")?;
    let (pages, links, files) = match directory {
        Directory::Small => (120, 140, DamagedFiles::All),
        Directory::Rotated => (1_100, 400, DamagedFiles::OfState),
    };
    println!("{directory:?}: crawls of {pages} pages with {links} links each");
    let dir = scratch.path().to_owned();
    let torture = DamageTorture { program, scratch: dir, copies, seed, pages, links, files, only };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(torture.run(|line| println!("{line}")));
    let report = report.map_err(|error| anyhow::anyhow!("{error}"))?;
    println!("{report}");
    if only.is_some() {
        println!("kept for a look: {}", scratch.path().display());
    } else {
        scratch.delete()?;
    }
    if !report.wrong.is_empty() {
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
