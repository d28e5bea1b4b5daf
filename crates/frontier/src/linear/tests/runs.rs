//! Runs against a map of single ids.

use std::collections::BTreeMap;

use telusur_model::{IdState, Moment, Run};

use super::play::Dice;
use crate::linear::cooling::Cooling;
use crate::linear::runs::{Runs, Totals};

const STATES: [IdState; 5] = [
    IdState::Content,
    IdState::Missing,
    IdState::Hole,
    IdState::Waiting { attempts: 1 },
    IdState::Waiting { attempts: 2 },
];

/// Lays runs over each other around `origin`, and compares after each.
fn check(seed: u64, origin: u64) {
    let mut dice = Dice(seed);
    let (mut runs, mut naive) = (Runs::default(), BTreeMap::new());
    for _ in 0..60 {
        let first = origin + dice.below(30);
        let last = first.saturating_add(dice.pick(&[0, 0, 0, 1, 2, 9]));
        if dice.one_in(12) {
            runs.forget_misses(first, last);
            naive.retain(|id, state| *state != IdState::Missing || *id < first || *id > last);
        } else {
            let state = dice.pick(&STATES);
            runs.set(Run { first, last, state });
            naive.extend((first..=last).map(|id| (id, state)));
        }
        compare(&runs, &naive);
        let beyond: Vec<(u64, IdState)> = runs
            .beyond(first)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .flat_map(|run| (run.first..=run.last).map(move |id| (id, run.state)))
            .collect();
        assert!(
            beyond.iter().copied().eq(naive
                .range(first..)
                .skip_while(|(id, _)| **id == first)
                .map(|(id, state)| (*id, *state)))
        );
    }
}

fn compare(runs: &Runs, naive: &BTreeMap<u64, IdState>) {
    let all: Vec<Run> = runs.iter().collect();
    for pair in all.windows(2) {
        let adjoin = pair[0].last + 1 == pair[1].first;
        assert!(pair[0].last < pair[1].first && !(adjoin && pair[0].state == pair[1].state));
    }
    let ids = all.iter().flat_map(|run| (run.first..=run.last).map(|id| (id, run.state)));
    assert!(ids.eq(naive.iter().map(|(id, state)| (*id, *state))), "{all:?}");
    for (id, state) in naive {
        assert_eq!(runs.at(*id).map(|run| run.state), Some(*state));
    }
    let mut totals = Totals::default();
    for state in naive.values() {
        match state {
            IdState::Content => totals.content += 1,
            IdState::Missing => totals.missing += 1,
            IdState::Hole => totals.holes += 1,
            IdState::Waiting { .. } => totals.waiting += 1,
        }
    }
    assert_eq!(runs.totals(), totals);
}

#[test]
fn runs_equal_single_ids() {
    for seed in 0..300 {
        check(seed, [0, 1000, u64::MAX - 29][usize::try_from(seed % 3).unwrap()]);
    }
}

#[test]
fn a_range_of_all_ids_is_one_run() {
    let mut runs = Runs::default();
    runs.set(Run { first: 0, last: u64::MAX, state: IdState::Missing });
    runs.set(Run { first: 5, last: 5, state: IdState::Content });
    runs.set(Run { first: 5, last: 5, state: IdState::Missing });
    assert_eq!(runs.iter().count(), 1);
    assert!(runs.at(0).is_some() && runs.at(u64::MAX).is_some());
}

#[test]
fn an_outage_costs_a_few_stretches() {
    let mut cooling = Cooling::new(600_000);
    for id in 0..100_000 {
        cooling.push(id, 1, Moment(id * 10));
    }
    // A thousand seconds of failures, in stretches of a sixteenth of ten minutes.
    assert!(cooling.stretches() < 30, "{}", cooling.stretches());
    // No id waits longer than a sixteenth more than the cool-down.
    for id in 0..100_000 {
        let waited_ms = cooling.due().unwrap().ms_since(Moment(id * 10));
        assert!((600_000..=637_500).contains(&waited_ms), "{waited_ms}");
        assert_eq!(cooling.take(), Some((id, 1)));
    }
    assert!(cooling.is_empty());
}
