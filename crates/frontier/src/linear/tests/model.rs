//! Any web, any timing, any kills: what is reported equals the sequential crawl.

use std::collections::BTreeMap;

use telusur_model::{
    Direction, IdOutcome, IdRanges, IdState, LegState, Rates, Resume, Retry, Walk, WalkRules,
};

use super::play::{Dice, FAILED, Manners, Play, mix, reported, rules, walk};
use crate::linear::{Opening, WalkState};

/// The sequential crawl of one direction. Returns what it found, and where it stopped.
fn sequential(
    ids: impl Iterator<Item = u64>,
    margin: u64,
    fate: impl Fn(u64) -> IdState,
) -> (BTreeMap<u64, IdState>, Option<u64>) {
    let (mut found, mut misses) = (BTreeMap::new(), 0);
    for id in ids {
        let state = fate(id);
        found.insert(id, state);
        misses = if state == IdState::Content { 0 } else { misses + 1 };
        if margin > 0 && misses == margin {
            return (found, Some(id));
        }
    }
    (found, None)
}

/// What an id turns out to be if it is asked until its attempts are used up.
fn fate(attempts_before: u8, attempts: u8, answer: impl Fn(u8) -> IdOutcome) -> IdState {
    for attempt in attempts_before + 1..=attempts.max(attempts_before + 1) {
        match answer(attempt) {
            IdOutcome::Content => return IdState::Content,
            IdOutcome::Missing => return IdState::Missing,
            IdOutcome::Failed(Retry::Never) => return IdState::Hole,
            IdOutcome::Failed(_) => {}
        }
    }
    IdState::Hole
}

/// The ids of a direction, by the definition of its rules and by nothing else.
fn ids(rules: &WalkRules, direction: Direction) -> Box<dyn Iterator<Item = u64>> {
    let (min, max) = (rules.min.unwrap_or(0), rules.max.unwrap_or(u64::MAX));
    if let Some(list) = &rules.ids {
        let is_up = direction == Direction::Ascending;
        let start = rules.start.unwrap_or(if is_up { 0 } else { u64::MAX });
        let both = rules.direction.is_none();
        let belongs = move |id: &u64| match direction {
            _ if *id < min || *id > max => false,
            Direction::Ascending => *id >= start,
            Direction::Descending => *id < start || !both && *id == start,
        };
        let ranges = list.as_slice().to_vec().into_iter();
        let all = ranges.flat_map(|(first, last)| first..=last).filter(belongs);
        return match is_up {
            true => Box::new(all),
            false => Box::new(all.collect::<Vec<_>>().into_iter().rev()),
        };
    }
    let step = rules.step;
    match direction {
        Direction::Ascending => {
            let first = rules.start.or(rules.min).unwrap();
            let following = move |id: &u64| id.checked_add(step).filter(|id| *id <= max);
            Box::new(std::iter::successors(Some(first), following))
        }
        Direction::Descending => {
            let first = rules.start.or(rules.max).unwrap();
            let following = move |id: &u64| id.checked_sub(step).filter(|id| *id >= min);
            let skipped = usize::from(rules.direction.is_none());
            Box::new(std::iter::successors(Some(first), following).skip(skipped))
        }
    }
}

/// A walk, and the range in which pages of it may exist.
fn random_walk(dice: &mut Dice) -> Option<(Walk, (u64, u64))> {
    let span = dice.below(30);
    let min = dice.pick(&[0, 1, 17, u64::MAX / 2, u64::MAX - 40, u64::MAX - span]);
    let max = min.saturating_add(span);
    let margin = dice.below(6);
    let attempts = 1 + u8::try_from(dice.below(3)).unwrap();
    let mut rules = WalkRules {
        min: Some(min),
        max: Some(max),
        margin,
        attempts,
        cooldown_ms: dice.pick(&[0, 10, 1000]),
        step: dice.pick(&[1, 1, 1, 2, 3]),
        rates: Rates {
            ascending: 1 + u32::try_from(dice.below(3)).unwrap(),
            descending: 1 + u32::try_from(dice.below(3)).unwrap(),
        },
        ..rules(dice.pick(&["a.org", "b.org"]))
    };
    match dice.below(4) {
        0 => rules.direction = Some(Direction::Ascending),
        1 => rules.direction = Some(Direction::Descending),
        2 => rules.start = Some(min + dice.below(max - min + 1)),
        _ => {
            rules.start = Some(min + dice.below(max - min + 1));
            rules.direction = Some(dice.pick(&[Direction::Ascending, Direction::Descending]));
        }
    }
    if dice.one_in(5) {
        rules.step = 1;
        let mut range = || {
            let first = min + dice.below(max - min + 1);
            (first, first.saturating_add(dice.below(4)))
        };
        rules.ids = Some(IdRanges::new((0..4).map(|_| range()).collect()));
    } else if margin > 0 && dice.one_in(3) && rules.start.is_some() {
        // Unknown ends: it is the margin that ends these.
        rules.max = None;
        if rules.start.is_some_and(|start| start < u64::MAX / 2) {
            rules.min = None;
        }
    }
    Some((Walk::new(rules).ok()?, (min, max)))
}

/// Answers by the dice: runs of content, of misses and of failures, of different lengths.
fn random_web(
    seed: u64,
    density: u64,
    trouble: u64,
    spans: Vec<(u64, u64)>,
) -> impl Fn(usize, u64, u8) -> IdOutcome {
    let roll = move |number: u64, sides: u64| mix(mix(seed) ^ number) % sides;
    move |walk, id, attempt| {
        let (min, max) = spans[walk];
        let walk = walk as u64;
        let block = roll((id / 3) << 8 | walk, 100);
        let own = roll(mix(id) ^ walk, 100);
        if roll(mix(id) ^ (u64::from(attempt) << 16 | walk << 32 | 1), 100) < trouble {
            let is_final = roll(mix(id) ^ 7, 10) == 0;
            return if is_final { IdOutcome::Failed(Retry::Never) } else { FAILED };
        }
        if (min..=max).contains(&id) && (block + own) / 2 < density {
            IdOutcome::Content
        } else {
            IdOutcome::Missing
        }
    }
}

/// Compares what is reported with the sequential crawl, in every respect.
#[track_caller]
fn check_walk(state: &WalkState, fate: impl Fn(u64) -> IdState) {
    let rules = state.walk().rules();
    let coverage = state.coverage();
    let mut expected = BTreeMap::new();
    for leg in &coverage.legs {
        let mut found_upto = ids(rules, leg.direction);
        let (found, stop) = sequential(&mut found_upto, rules.margin, &fate);
        let next = found_upto.next();
        assert_eq!((leg.stop, leg.next), (stop, next), "{:?} of {rules:?}", leg.direction);
        let end = if stop.is_some() { LegState::Stopped } else { LegState::Complete };
        assert_eq!((leg.state, leg.retry_at), (end, None));
        let in_order = ids(rules, leg.direction).take(found.len());
        let misses = in_order.fold(0, |misses, id| match found[&id] {
            IdState::Content => 0,
            _ => misses + 1,
        });
        assert_eq!(leg.misses_in_row, misses);
        expected.extend(found);
    }
    assert_eq!(reported(state), expected, "{rules:?}");
    let of = |wanted| expected.values().filter(|state| **state == wanted).count() as u64;
    let counts = coverage.counts;
    assert_eq!(counts.content, of(IdState::Content));
    assert_eq!(counts.missing, of(IdState::Missing));
    assert_eq!((counts.holes, counts.waiting), (of(IdState::Hole), 0));
}

/// Runs are as long as they can be.
fn check_runs_are_joined(state: &WalkState) {
    let runs: Vec<_> = state.runs().collect();
    let step = state.walk().rules().step;
    for pair in runs.windows(2) {
        assert!(pair[0].last < pair[1].first);
        let adjoin = pair[0].last + step == pair[1].first;
        assert!(!adjoin || pair[0].state != pair[1].state, "{pair:?}");
    }
}

fn check_case(seed: u64) {
    let mut dice = Dice(seed);
    let count = 1 + dice.below(3);
    let (walks, spans): (Vec<Walk>, Vec<(u64, u64)>) =
        std::iter::repeat_with(|| random_walk(&mut dice))
            .flatten()
            .take(usize::try_from(count).unwrap())
            .unzip();
    let manners = Manners {
        per_host: usize::try_from(1 + dice.below(6)).unwrap(),
        response_ms: dice.pick(&[0, 5, 300]),
        kill_odds: dice.pick(&[0, 0, 15, 100]),
        mishap_odds: dice.pick(&[0, 0, 20]),
    };
    let (density, trouble) = (dice.below(101), dice.pick(&[0, 0, 10, 40]));
    let web = random_web(seed, density, trouble, spans.clone());
    let mut play = Play::new(walks.clone(), &web, manners, seed);
    if dice.one_in(3) {
        // Cut off somewhere, for the second run to go on with.
        (0..dice.below(100)).take_while(|_| play.step()).for_each(drop);
    } else {
        play.run_to_end();
        check_first_run(&play, &walks, manners, trouble, &web);
    }
    check_second_run(play, &walks, spans, manners, &mut dice);
}

fn check_first_run(
    play: &Play,
    walks: &[Walk],
    manners: Manners,
    trouble: u64,
    web: &impl Fn(usize, u64, u8) -> IdOutcome,
) {
    for (index, walk) in walks.iter().enumerate() {
        let state = play.walk(index);
        let attempts = walk.rules().attempts;
        check_walk(state, |id| fate(0, attempts, |attempt| web(index, id, attempt)));
        check_runs_are_joined(state);
        if manners.per_host == 1 && manners.kill_odds + manners.mishap_odds + trouble == 0 {
            let mut asked = play.ids_asked(index);
            asked.sort_unstable();
            assert!(asked.iter().eq(reported(state).keys()), "more asked than needed");
        }
    }
}

/// The same walks once more, some of them changed, on a web that has changed too.
fn check_second_run(
    first: Play,
    walks: &[Walk],
    spans: Vec<(u64, u64)>,
    manners: Manners,
    dice: &mut Dice,
) {
    let resume = dice.pick(&[Resume::All, Resume::New, Resume::Holes]);
    let changed: Vec<Walk> = walks.iter().map(|walk| changed(walk, dice)).collect();
    let before = first.store.clone();
    let web = random_web(dice.below(1 << 40), dice.below(101), 20, spans);
    let opening = Opening::resume(resume);
    let mut play =
        Play::resume(changed.clone(), first.store, &opening, &web, manners, dice.below(1 << 40));
    play.run_to_end();
    for (index, walk) in changed.iter().enumerate() {
        let attempts = walk.rules().attempts;
        let fate_after = |id, had| fate(had, attempts, |attempt| web(index, id, attempt));
        let fate_now = |id| match before[index].get(&walk.position_of(id).unwrap()) {
            Some(IdState::Hole) if resume != Resume::New => fate_after(id, 0),
            Some(IdState::Waiting { attempts: had }) => fate_after(id, *had),
            Some(known) => *known,
            None => fate_after(id, 0),
        };
        if resume == Resume::Holes {
            check_holes(&play, index, &before[index], fate_now);
        } else {
            check_walk(play.walk(index), fate_now);
        }
    }
}

/// Only what had failed was asked, and all of it that is reported.
fn check_holes(
    play: &Play,
    index: usize,
    before: &BTreeMap<u64, IdState>,
    fate: impl Fn(u64) -> IdState,
) {
    let state = play.walk(index);
    for id in play.ids_asked(index) {
        let known = before.get(&state.walk().position_of(id).unwrap());
        assert!(matches!(known, Some(IdState::Hole | IdState::Waiting { .. })), "{id}: {known:?}");
    }
    for (id, found) in reported(state) {
        assert_eq!(found, fate(id), "{id}");
    }
}

fn changed(old: &Walk, dice: &mut Dice) -> Walk {
    let mut rules = old.rules().clone();
    if dice.one_in(2) {
        rules.margin = dice.below(8).max(u64::from(rules.min.is_none() || rules.max.is_none()));
    }
    if dice.one_in(3) && rules.step == 1 {
        rules.min = rules.min.map(|min| min.saturating_sub(dice.below(10)));
        rules.max = rules.max.map(|max| max.saturating_add(dice.below(10)));
    }
    if dice.one_in(3) && rules.step == 1 {
        rules.start = rules.start.map(|start| {
            let lowest = rules.min.unwrap_or(0);
            start.saturating_sub(dice.below(10)).max(lowest)
        });
    }
    Walk::new(rules).ok().filter(|new| new.has_positions_of(old)).unwrap_or_else(|| old.clone())
}

#[test]
fn the_report_equals_the_sequential_crawl() {
    (0..10_000).for_each(check_case);
}

#[test]
#[ignore = "half a minute without optimisation"]
fn the_report_equals_the_sequential_crawl_in_a_hundred_thousand_cases() {
    (1_000_000..1_100_000).for_each(check_case);
}

#[test]
fn kills_lose_nothing_and_repeat_little() {
    let web = random_web(5, 60, 10, vec![(1, 5_000)]);
    let rules = WalkRules { attempts: 2, cooldown_ms: 50, ..super::play::range(1, 5_000) };
    let walks = vec![walk(rules)];
    let manners = Manners { per_host: 8, response_ms: 20, kill_odds: 100, mishap_odds: 0 };
    let mut play = Play::new(walks, &web, manners, 7);
    play.run_to_end();
    check_walk(play.walk(0), |id| fate(0, 2, |attempt| web(0, id, attempt)));
    let asks_needed = {
        let mut calm = Play::new(vec![play.walk(0).walk().clone()], &web, Manners::QUIET, 7);
        calm.run_to_end().log.len()
    };
    // About 120 kills, each of which loses at most what was in flight.
    let repeated = play.log.len() - asks_needed;
    assert!(repeated > 0 && repeated < 8 * 200, "{repeated} asks were repeated");
}
