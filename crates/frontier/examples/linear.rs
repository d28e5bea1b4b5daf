//! Measures what an id of a linear crawl costs:
//! `cargo run --release -p telusur-frontier --example linear [IDS]`.
//!
//! A walk over ten million ids, one in a hundred of which exists; eight are under way at a time and
//! answer in any order, one in a thousand fails once. From the decision to the answer, with the URL.
//! Instructions: the same under `valgrind --tool=callgrind`, with two numbers of IDS; the difference
//! has nothing but visits in it.

use std::hint::black_box;
use std::time::Instant;

use telusur_frontier::{Linear, LinearNext, Opening};
use telusur_model::{IdOutcome, IdState, Moment, Resume, Retry, Template, Walk, WalkRules};

const IDS: u64 = 10_000_000;
const IN_FLIGHT: usize = 8;
const ATTEMPTS: u8 = 2;

fn main() {
    let ids = std::env::args().nth(1).map_or(IDS, |text| text.parse().expect("a number of ids"));
    let template = Template::parse("https://example.org/item/{id}").expect("a good template");
    let rules = WalkRules {
        min: Some(1),
        max: Some(ids),
        attempts: ATTEMPTS,
        cooldown_ms: 60_000,
        ..WalkRules::new(template.clone())
    };
    let walk = Walk::new(rules).expect("good rules");
    let opened = Opening::resume(Resume::All).open(walk, [], Moment(0));
    let mut linear = Linear::new(vec![opened.state]);

    let mut in_flight: Vec<(u64, u8)> = Vec::with_capacity(IN_FLIGHT);
    let (mut now, mut visits) = (Moment(0), 0_u64);
    let started = Instant::now();
    loop {
        let is_full = in_flight.len() >= IN_FLIGHT;
        match linear.next(now, |_| !is_full) {
            LinearNext::Ask { id, attempt, .. } => {
                visits += 1;
                black_box(template.url_of(id));
                in_flight.push((id, attempt));
            }
            LinearNext::Wait(_) if !in_flight.is_empty() => {
                now = now.plus_ms(1);
                let random = usize::try_from(mix(visits) >> 32).expect("32 bits") % in_flight.len();
                let (id, attempt) = in_flight.swap_remove(random);
                let state = IdState::after(answer(id, attempt), attempt, ATTEMPTS);
                black_box(linear.became(0, id, state, now));
            }
            LinearNext::Wait(until) => now = until.expect("retries are left"),
            LinearNext::Finished => break,
        }
    }
    let ns = started.elapsed().as_nanos() / u128::from(visits);
    let state = &linear.walks()[0];
    let counts = state.coverage().counts;
    println!("{visits} visits of {ids} ids: {ns} ns per visit, {} runs", state.runs().count());
    println!("content {}, missing {}, holes {}", counts.content, counts.missing, counts.holes);
    let drawing = Instant::now();
    black_box((state.coverage(), state.strip(80)));
    println!("coverage and strip: {} us", drawing.elapsed().as_micros());
    if let Some(peak) = memory_peak() {
        println!("memory at its peak: {peak}");
    }
}

fn answer(id: u64, attempt: u8) -> IdOutcome {
    match mix(id) % 1000 {
        0 if attempt == 1 => IdOutcome::Failed(Retry::Later),
        0..10 => IdOutcome::Content,
        _ => IdOutcome::Missing,
    }
}

/// The last step of splitmix64: a hash that is the same everywhere.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Where the system tells.
fn memory_peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
