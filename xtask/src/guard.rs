//! `cargo xtask guard`: the proof that no page leads the program to an address that is not public,
//! with the delays that users get. It takes some minutes.

use std::path::Path;

use anyhow::{Context, bail};
use telusur_testkit::island::{GuardProof, MEANS, on_island};

use crate::build::{Scratch, release_program};

/// The task that runs on the island.
pub(crate) const INSIDE: &str = "guard-inside";

pub(crate) fn guard() -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("guard")?;
    let own = std::env::current_exe().context("find this program")?;
    let mut command = on_island(&own);
    command.arg(INSIDE).arg(program).arg(scratch.path());
    if !command.status().context(MEANS)?.success() {
        bail!("kept for a look: {}", scratch.path().display());
    }
    scratch.delete()
}

pub(crate) fn on_the_island(program: &str, scratch: &str) -> anyhow::Result<()> {
    let proof = GuardProof {
        program: Path::new(program).to_owned(),
        scratch: Path::new(scratch).to_owned(),
        is_thorough: true,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(proof.run(|line| println!("{line}")));
    let report = report.map_err(|broken| anyhow::anyhow!("{broken}"))?;
    println!(
        "{} runs, {} lures refused, {} requests to public addresses, no connection to any other",
        report.runs, report.refused, report.requests
    );
    Ok(())
}
