//! Measures link rank: a made-up web in which few pages get most links.
//!
//!     cargo run --release -p telusur-index --example link_rank -- PAGES LINKS

use std::error::Error;
use std::fs;
use std::time::Instant;

use telusur_index::{LinkGraphBuilder, Ranks};
use telusur_model::UrlKey;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let pages: u64 = args.next().ok_or("how many pages?")?.parse()?;
    let links: u64 = args.next().ok_or("how many links?")?.parse()?;
    let start = Instant::now();
    let mut builder = LinkGraphBuilder::default();
    let mut state = 7;
    for _ in 0..links {
        let from = random(&mut state) % pages;
        // Half of the links stay near, the others prefer small numbers.
        let share = random(&mut state) as f64 / u64::MAX as f64;
        let to = if random(&mut state).is_multiple_of(2) {
            (from + random(&mut state) % 50) % pages
        } else {
            (share.powi(4) * pages as f64) as u64
        };
        builder.link(key(from), key(to.min(pages - 1)));
    }
    let graph = builder.build();
    println!(
        "{} pages, {} links, built in {:?}",
        graph.pages().len(),
        graph.link_count(),
        start.elapsed()
    );
    let start = Instant::now();
    let ranks = graph.page_ranks();
    println!("ranked in {:?}", start.elapsed());
    let kept = Ranks::of(graph.pages(), &ranks);
    println!("page 0 is {:.1} powers of ten above the average", kept.power(key(0)));
    let status = fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}

/// Real keys are hashes: neighbours are spread over all numbers.
fn key(page: u64) -> UrlKey {
    let mut state = page;
    UrlKey(u128::from(random(&mut state)) << 64 | u128::from(random(&mut state)))
}

/// SplitMix64: the same web on every machine.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
