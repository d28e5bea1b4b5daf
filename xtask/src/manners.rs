//! `cargo xtask manners`: gives a crawl every occasion to be rude, and reads the server's log.

use anyhow::Context;
use telusur_testkit::fake_web::{DelayRange, FaultShares, PageCounts};
use telusur_testkit::{FakeWebSpec, MannersProof};

use crate::build::{Scratch, release_program};

pub(crate) fn manners(kills: usize) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("manners")?;
    let proof = MannersProof {
        program,
        scratch: scratch.path().to_owned(),
        web: FakeWebSpec {
            hosts: 40,
            pages: PageCounts::Even { total: 2_400 },
            links_per_page: 10,
            page_bytes: 3_000,
            other_host_share: 0.2,
            delay_ms: DelayRange { min: 5, max: 120 },
            faults: FaultShares {
                error_once: 0.05,
                reset_once: 0.05,
                dead_links: 0.02,
                redirects: 0.1,
                ..FaultShares::default()
            },
            ..FakeWebSpec::default()
        },
        delay_ms: 400,
        kills,
        requests_per_life: 250,
        slack_ms: 20,
    };
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let report = runtime.block_on(proof.run(|line| println!("{line}")));
    let report = report.map_err(|broken| {
        anyhow::anyhow!("{broken}\nkept for a look: {}", scratch.path().display())
    })?;
    println!(
        "{} requests, {kills} kills: the closest two came {} ms after the delay was over, as the \
         server saw it; {} at a time; the shortest gap that the program noted is {} ms of {}",
        report.requests,
        report.spare_ms_min,
        report.at_once_max,
        report.noted_ms_min,
        proof.delay_ms
    );
    scratch.delete()
}
