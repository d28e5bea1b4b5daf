//! What each rule of a linear crawl means, by the smallest example that shows it.

use telusur_model::{
    Direction, IdOutcome, IdRanges, IdState, LegState, Moment, Rates, Resume, Retry, StripCell,
    Walk, WalkRules,
};

use super::play::{FAILED, Manners, Play, answered, drawn, range, reported, rules, walk};
use crate::linear::{Linear, LinearNext, Opening, WalkState};

/// The state of the id is unknown: it was not asked for after all, or the fault was on this side.
const NOT_COUNTED: IdOutcome = IdOutcome::Failed(Retry::NotCounted);

fn strip(state: &WalkState, cells_max: usize) -> String {
    let cell = |cell: &StripCell| match cell {
        StripCell::Content => 'x',
        StripCell::Missing => '.',
        StripCell::Hole => '!',
        StripCell::Waiting => '?',
        StripCell::Unknown => ' ',
    };
    state.strip(cells_max).map_or_else(String::new, |strip| strip.cells.iter().map(cell).collect())
}

/// Walks one walk to its end, one ask after the other. What is reported, as a picture.
#[track_caller]
fn check(rules: WalkRules, web: &'static str, expect: &str, stop: Option<u64>) {
    for per_host in [1, 2, 7] {
        let web = drawn(web);
        let manners = Manners { per_host, ..Manners::QUIET };
        let mut play = Play::new(vec![walk(rules.clone())], &web, manners, 1);
        let state = play.run_to_end().walk(0);
        assert_eq!(strip(state, 100), expect, "{per_host} at once");
        assert_eq!(state.coverage().legs[0].stop, stop, "{per_host} at once");
    }
}

fn opened(rules: WalkRules) -> WalkState {
    Opening::resume(Resume::All).open(walk(rules), [], Moment(0)).state
}

// ---- bounds and margin ----

#[test]
fn bounds_are_inclusive() {
    check(range(1, 5), "xxxxxxx", "xxxxx", None);
    let web = drawn("xxxxxxx");
    let mut play = Play::new(vec![walk(range(2, 5))], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [2, 3, 4, 5]);
}

#[test]
fn the_picture_of_the_seed() {
    // Margin 3: gaps of one and of two are survived, the third miss in a row is the stop.
    let rules = WalkRules { margin: 3, ..range(1, 20) };
    check(rules, "xxx.xx..xxxx....xx", "xxx.xx..xxxx...", Some(15));
}

#[test]
fn a_hit_resets_the_margin() {
    check(WalkRules { margin: 2, ..range(1, 9) }, ".x.x.x..x", ".x.x.x..", Some(8));
}

#[test]
fn the_margin_can_be_reached_at_the_very_start() {
    check(WalkRules { margin: 2, ..range(1, 9) }, "..xxxx", "..", Some(2));
}

#[test]
fn the_margin_counts_downwards_too() {
    let rules = WalkRules { margin: 2, direction: Some(Direction::Descending), ..range(1, 9) };
    check(rules, "xx.x..x.x", "..x.x", Some(5));
}

#[test]
fn margin_0_with_a_known_bound_never_stops_early() {
    check(range(1, 9), "x........", "x........", None);
}

#[test]
fn what_was_asked_past_the_stop_is_not_reported() {
    let web = drawn("x...xxxxx");
    let rules = WalkRules { margin: 3, ..range(1, 9) };
    let manners = Manners { per_host: 9, ..Manners::QUIET };
    let mut play = Play::new(vec![walk(rules)], &web, manners, 1);
    play.run_to_end();
    assert_eq!(play.log.len(), 9);
    assert_eq!(strip(play.walk(0), 100), "x...");
    let coverage = play.walk(0).coverage();
    assert_eq!((coverage.counts.content, coverage.counts.content_past_stop), (1, 5));
    assert_eq!((coverage.legs[0].stop, coverage.legs[0].next), (Some(4), Some(5)));
}

#[test]
fn nothing_more_is_asked_once_the_stop_is_certain() {
    // 2, 3 and 4 are missing while 1 is still on its way: with either answer for 1, 4 is not passed.
    let mut linear = Linear::new(vec![opened(WalkRules { margin: 3, ..range(1, 99) })]);
    for _ in 1..=4 {
        assert!(matches!(linear.next(Moment(0), |_| true), LinearNext::Ask { .. }));
    }
    for id in 2..=4 {
        answered(&mut linear, 0, (id, 1), IdOutcome::Missing, Moment(1));
    }
    assert_eq!(linear.next(Moment(1), |_| true), LinearNext::Wait(None));
    assert_eq!(linear.walks()[0].coverage().legs[0].state, LegState::Running);
    answered(&mut linear, 0, (1, 1), IdOutcome::Missing, Moment(2));
    assert_eq!(linear.next(Moment(2), |_| true), LinearNext::Finished);
    assert_eq!(linear.walks()[0].coverage().legs[0].stop, Some(3));
}

/// Hands out the first ids of a walk with margin 3, then tells how the later of them answered.
fn after_answers(attempts: u8, handed_out: u64, answers: &[(u64, IdOutcome)]) -> Linear {
    let rules = WalkRules { margin: 3, attempts, ..range(1, 99) };
    let mut linear = Linear::new(vec![opened(rules)]);
    for id in 1..=handed_out {
        let ask = LinearNext::Ask { walk: 0, id, attempt: 1 };
        assert_eq!(linear.next(Moment(0), |_| true), ask);
    }
    for (id, answer) in answers {
        answered(&mut linear, 0, (*id, 1), *answer, Moment(0));
    }
    linear
}

#[test]
fn misses_and_holes_make_a_stop_certain_together() {
    let (missing, hole) = (IdOutcome::Missing, FAILED);
    for answers in [
        [(2, missing), (3, hole), (4, missing)],
        [(4, missing), (3, hole), (2, missing)],
        [(4, hole), (2, hole), (3, missing)],
        [(3, missing), (4, missing), (2, hole)],
    ] {
        let mut linear = after_answers(1, 4, &answers);
        assert_eq!(linear.next(Moment(0), |_| true), LinearNext::Wait(None), "{answers:?}");
    }
}

#[test]
fn nothing_past_a_certain_stop_is_asked_again() {
    let missing = |id| (id, IdOutcome::Missing);
    let answers = [(1, FAILED), (6, FAILED), missing(2), missing(3), missing(4)];
    let mut linear = after_answers(2, 7, &answers);
    answered(&mut linear, 0, (5, 1), NOT_COUNTED, Moment(0));
    answered(&mut linear, 0, (7, 1), FAILED, Moment(0));
    assert_eq!(linear.next(Moment(0), |_| true), LinearNext::Wait(Some(Moment(1000))));
    let again = LinearNext::Ask { walk: 0, id: 1, attempt: 2 };
    assert_eq!(linear.next(Moment(5000), |_| true), again);
    assert_eq!(linear.next(Moment(5000), |_| true), LinearNext::Wait(None));
    answered(&mut linear, 0, (1, 2), IdOutcome::Content, Moment(5000));
    assert_eq!(linear.next(Moment(5000), |_| true), LinearNext::Finished);
}

#[test]
fn an_id_given_back_past_a_certain_stop_is_not_asked() {
    let missing = |id| (id, IdOutcome::Missing);
    let mut linear = after_answers(1, 6, &[]);
    answered(&mut linear, 0, (5, 1), NOT_COUNTED, Moment(0));
    for (id, answer) in [missing(2), missing(3), missing(4)] {
        answered(&mut linear, 0, (id, 1), answer, Moment(0));
    }
    assert_eq!(linear.next(Moment(0), |_| true), LinearNext::Wait(None));
}

// ---- missing and failed ----

#[test]
fn a_failure_is_no_miss_while_attempts_are_left() {
    // 2, 3 and 4 fail at first and exist at the second attempt.
    let web = |_, id, attempt| match (id, attempt) {
        (2..=4, 1) => FAILED,
        (1..=6, _) => IdOutcome::Content,
        _ => IdOutcome::Missing,
    };
    let rules = WalkRules { margin: 3, attempts: 2, ..range(1, 20) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4]);
    assert_eq!(strip(play.walk(0), 100), "xxxxxx...");
}

#[test]
fn a_failure_is_a_miss_when_its_attempts_are_used_up() {
    let rules = WalkRules { margin: 3, attempts: 1, ..range(1, 20) };
    check(rules.clone(), "x!.!xx", "x!.!", Some(4));
    // With a second attempt the first pass goes on, until it knows better.
    let rules = WalkRules { attempts: 2, ..rules };
    let web = drawn("x!.!xx");
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 4]);
    assert_eq!(strip(play.walk(0), 100), "x!.!");
    assert_eq!(play.walk(0).coverage().counts.content_past_stop, 2);
}

#[test]
fn a_failure_that_would_repeat_is_a_hole_at_once() {
    let web = |_, id, _| match id {
        2 => IdOutcome::Failed(telusur_model::Retry::Never),
        _ => IdOutcome::Content,
    };
    let rules = WalkRules { attempts: 3, ..range(1, 3) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 3]);
    assert_eq!(strip(play.walk(0), 100), "x!x");
}

// ---- attempts ----

#[test]
fn attempts_come_in_later_rounds_after_the_cooldown() {
    let web = drawn("x!x!xx");
    let rules = WalkRules { attempts: 3, cooldown_ms: 1000, ..range(1, 6) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 3, 4, 5, 6, 2, 4, 2, 4]);
    // Play itself checks that every attempt comes after the cool-down.
    assert!(play.log[6].at.ms_since(play.log[5].at) > 900);
}

#[test]
fn attempts_without_a_cooldown_do_not_hold_up_the_first_pass() {
    let web = drawn("!!x!xx");
    let rules = WalkRules { attempts: 2, cooldown_ms: 0, ..range(1, 6) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 3, 4, 5, 6, 1, 2, 4]);
}

#[test]
fn attempts_do_not_wait_for_the_end_of_an_endless_first_pass() {
    let mut linear = Linear::new(vec![opened(WalkRules {
        attempts: 2,
        cooldown_ms: 60_000,
        ..range(1, 1 << 40)
    })]);
    let mut retried_at = None;
    for second in 0..2_000 {
        let now = Moment(second * 1000);
        let LinearNext::Ask { id, attempt, .. } = linear.next(now, |_| true) else {
            panic!("there is always something to ask");
        };
        let answer = if id == 1 { FAILED } else { IdOutcome::Content };
        answered(&mut linear, 0, (id, attempt), answer, now);
        if attempt == 2 {
            assert_eq!(retried_at.replace(second), None);
        }
    }
    // One minute of cool-down, ten of patience.
    assert_eq!(retried_at, Some(660));
}

#[test]
fn a_crawl_is_finished_when_no_attempt_is_left() {
    let mut linear = Linear::new(vec![opened(WalkRules { attempts: 2, ..range(1, 1) })]);
    let ask = |attempt| LinearNext::Ask { walk: 0, id: 1, attempt };
    assert_eq!(linear.next(Moment(0), |_| true), ask(1));
    assert_eq!(linear.next(Moment(0), |_| true), LinearNext::Wait(None));
    answered(&mut linear, 0, (1, 1), FAILED, Moment(5));
    let leg = linear.walks()[0].coverage().legs[0].clone();
    assert_eq!((leg.state, leg.retry_at), (LegState::Waiting, Some(Moment(1005))));
    assert_eq!(linear.next(Moment(5), |_| true), LinearNext::Wait(Some(Moment(1005))));
    assert_eq!(linear.next(Moment(1005), |_| true), ask(2));
    answered(&mut linear, 0, (1, 2), FAILED, Moment(1006));
    assert_eq!(linear.next(Moment(1006), |_| true), LinearNext::Finished);
    assert_eq!(linear.walks()[0].coverage().counts.holes, 1);
}

#[test]
fn trouble_of_our_own_is_no_attempt() {
    let mut linear = Linear::new(vec![opened(range(1, 1))]);
    for moment in [0, 1000, 2000] {
        let ask = LinearNext::Ask { walk: 0, id: 1, attempt: 1 };
        assert_eq!(linear.next(Moment(moment), |_| true), ask);
        answered(&mut linear, 0, (1, 1), NOT_COUNTED, Moment(moment));
    }
}

#[test]
fn events_about_ids_that_are_not_in_flight_are_ignored() {
    let mut linear = Linear::new(vec![opened(range(1, 9))]);
    for (walk, id) in [(0, 1), (0, 99), (7, 1)] {
        assert_eq!(answered(&mut linear, walk, (id, 1), IdOutcome::Content, Moment(0)), None);
    }
    assert!(linear.walks()[0].coverage().counts.is_nothing_known());
}

// ---- interleaving ----

fn order(play: &Play, asks: usize) -> String {
    let name = |asked: &super::play::Asked| ["A", "b", "C"][asked.walk];
    play.log.iter().take(asks).map(name).collect()
}

#[test]
fn interleaving_is_exact() {
    let web = drawn("xxxxxxxxx");
    for (host, per_host) in [("a.org", 1), ("a.org", 3), ("b.org", 9)] {
        let twice = Rates { ascending: 2, descending: 1 };
        let second = WalkRules { min: Some(1), max: Some(9), rates: twice, ..rules(host) };
        let manners = Manners { per_host, ..Manners::QUIET };
        let mut play = Play::new(vec![walk(range(1, 9)), walk(second)], &web, manners, 1);
        play.run_to_end();
        assert_eq!(order(&play, 9), "AbbAbbAbb", "{host}, {per_host} at once");
    }
}

#[test]
fn a_finished_walk_leaves_the_rotation() {
    let web = drawn("xxxxxxxxx");
    let walks = vec![walk(range(1, 6)), walk(range(1, 2))];
    let mut play = Play::new(walks, &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(order(&play, 99), "AbAbAAAA");
}

#[test]
fn both_ways_from_a_start() {
    let web = drawn("xxxxxxxxx");
    let rates = Rates { ascending: 1, descending: 2 };
    let rules = WalkRules { start: Some(6), rates, ..range(1, 9) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [6, 5, 4, 7, 3, 2, 8, 1, 9]);
    assert_eq!(play.walk(0).runs().count(), 1, "one run on both sides of the start");
}

#[test]
fn each_direction_has_its_own_margin() {
    let web = drawn("xx..x.xx..xx");
    let rules = WalkRules { start: Some(6), margin: 2, ..range(1, 12) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    let coverage = play.run_to_end().walk(0).coverage();
    let stops: Vec<_> =
        coverage.legs.iter().map(|leg| (leg.direction, leg.stop, leg.next)).collect();
    assert_eq!(
        stops,
        [(Direction::Ascending, Some(10), Some(11)), (Direction::Descending, Some(3), Some(2)),]
    );
    assert_eq!(strip(play.walk(0), 100), "..x.xx..");
}

#[test]
fn a_host_that_must_wait_does_not_block_another() {
    let other = WalkRules { min: Some(1), max: Some(9), ..rules("b.org") };
    let mut linear = Linear::new(vec![opened(range(1, 9)), opened(other)]);
    let mut asks = |is_ready: fn(usize) -> bool, count: usize| -> Vec<(usize, u64)> {
        let asks = (0..count).map(|_| match linear.next(Moment(0), is_ready) {
            LinearNext::Ask { walk, id, .. } => (walk, id),
            other => panic!("{other:?}"),
        });
        asks.collect()
    };
    assert_eq!(asks(|walk| walk == 1, 3), [(1, 1), (1, 2), (1, 3)]);
    assert_eq!(asks(|_| true, 4), [(0, 1), (1, 4), (0, 2), (1, 5)]);
    assert_eq!(linear.next(Moment(0), |_| false), LinearNext::Wait(None));
}

// ---- ids ----

#[test]
fn nothing_wraps_around_at_either_end() {
    let web = |_, _, _| IdOutcome::Content;
    let top = WalkRules { start: Some(u64::MAX - 1), margin: 1, ..rules("a.org") };
    let top = WalkRules { direction: Some(Direction::Ascending), ..top };
    let bottom = WalkRules {
        start: Some(1),
        margin: 1,
        direction: Some(Direction::Descending),
        ..rules("a.org")
    };
    let mut play = Play::new(vec![walk(top), walk(bottom)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [u64::MAX - 1, u64::MAX]);
    assert_eq!(play.ids_asked(1), [1, 0]);
    for index in [0, 1] {
        let leg = &play.walk(index).coverage().legs[0];
        assert_eq!((leg.state, leg.next), (LegState::Complete, None));
    }
}

#[test]
fn steps_and_lists() {
    let web = drawn("xxxxxxxxxxxxxxxxxxxx");
    let steps = WalkRules { start: Some(10), step: 4, ..range(1, 20) };
    let list = WalkRules {
        ids: Some(IdRanges::parse("3\n7-8\n15").unwrap()),
        direction: Some(Direction::Descending),
        ..rules("a.org")
    };
    let mut play = Play::new(vec![walk(steps), walk(list)], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [10, 6, 14, 2, 18]);
    assert_eq!(play.ids_asked(1), [15, 8, 7, 3]);
    let runs: Vec<_> = play.walk(0).runs().map(|run| (run.first, run.last, run.count)).collect();
    assert_eq!(runs, [(2, 18, 5)]);
    let runs: Vec<_> = play.walk(1).runs().map(|run| (run.first, run.count)).collect();
    assert_eq!(runs, [(3, 1), (7, 2), (15, 1)]);
}

#[test]
fn the_margin_of_a_list_counts_its_own_ids() {
    let web = drawn("x...x");
    let ids = Some(IdRanges::parse("1\n2\n4\n5").unwrap());
    let list = |margin| WalkRules { ids: ids.clone(), margin, ..rules("a.org") };
    let mut play = Play::new(vec![walk(list(2)), walk(list(3))], &web, Manners::QUIET, 1);
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [1, 2, 4]);
    assert_eq!(play.ids_asked(1), [1, 2, 4, 5]);
}

#[test]
fn a_range_of_a_million_millions_costs_no_memory() {
    let mut linear = Linear::new(vec![opened(WalkRules { attempts: 2, ..range(0, 1 << 40) })]);
    for number in 0..10_000 {
        let LinearNext::Ask { id, .. } = linear.next(Moment(0), |_| true) else {
            panic!("there is always something to ask");
        };
        let answer = if number < 5_000 { IdOutcome::Missing } else { FAILED };
        answered(&mut linear, 0, (id, 1), answer, Moment(0));
    }
    let walk = &linear.walks()[0];
    assert_eq!(walk.runs().count(), 2);
    assert_eq!(walk.leg(0).stretches(), 1);
    assert_eq!(walk.coverage().counts.unknown, Some((1 << 40) + 1 - 10_000));
}

#[test]
fn a_site_that_alternates_between_misses_costs_no_more_per_id() {
    // If each answer looked at the whole row, this test would take minutes.
    let rules = WalkRules { margin: 1 << 20, ..range(0, 1 << 40) };
    let mut linear = Linear::new(vec![opened(rules)]);
    for _ in 0..30_000 {
        let LinearNext::Ask { id, .. } = linear.next(Moment(0), |_| true) else {
            panic!("there is always something to ask");
        };
        let answer = if id % 2 == 0 { IdOutcome::Missing } else { FAILED };
        answered(&mut linear, 0, (id, 1), answer, Moment(0));
    }
    assert_eq!(linear.walks()[0].coverage().legs[0].misses_in_row, 30_000);
}

// ---- what is shown ----

#[test]
fn counts_and_runs() {
    let web = drawn("xx.!!xx");
    let rules = WalkRules { margin: 9, ..range(1, 100) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    let state = play.run_to_end().walk(0);
    let runs: Vec<_> = state.runs().map(|run| (run.first, run.count, run.state.word())).collect();
    assert_eq!(
        runs,
        [
            (1, 2, "content"),
            (3, 1, "missing"),
            (4, 2, "hole"),
            (6, 2, "content"),
            (8, 9, "missing"),
        ]
    );
    let coverage = state.coverage();
    let counts = coverage.counts;
    assert_eq!((counts.content, counts.missing, counts.holes, counts.waiting), (4, 10, 2, 0));
    assert_eq!(counts.unknown, Some(84));
    let leg = &coverage.legs[0];
    assert_eq!((leg.state, leg.misses_in_row, leg.margin), (LegState::Stopped, 9, 9));
    assert_eq!((leg.stop, leg.next), (Some(16), Some(17)));
}

#[test]
fn an_unknown_bound_leaves_the_rest_uncounted() {
    let state = opened(WalkRules { max: None, margin: 3, ..range(1, 1) });
    assert_eq!(state.coverage().counts.unknown, None);
    assert_eq!(state.strip(10), None);
}

#[test]
fn everything_there_is_can_be_counted() {
    let all = Walk::new(range(0, u64::MAX)).unwrap();
    let state = Opening::resume(Resume::All).open(all, [], Moment(0)).state;
    assert_eq!(state.coverage().counts.unknown, Some(1 << 64));
}

#[test]
fn the_strip_shows_what_most_ids_of_a_cell_are() {
    let web = drawn("xxxx..xx...xx!!!");
    let mut play = Play::new(vec![walk(range(1, 16))], &web, Manners::QUIET, 1);
    let state = play.run_to_end().walk(0);
    assert_eq!(strip(state, 99), "xxxx..xx...xx!!!");
    assert_eq!(strip(state, 8), "xx.x.xx!");
    assert_eq!(strip(state, 4), "xx.!");
    assert_eq!(strip(state, 3), "x.!");
    assert_eq!(strip(state, 1), "x");
    assert_eq!(strip(state, 0), "x");
}

#[test]
fn the_strip_of_both_ways_marks_the_start() {
    let web = drawn("xxx.xxxxxx");
    let rules = WalkRules { start: Some(4), ..range(1, 10) };
    let mut play = Play::new(vec![walk(rules)], &web, Manners::QUIET, 1);
    let state = play.run_to_end().walk(0);
    let drawn = state.strip(20).unwrap();
    assert_eq!((drawn.first, drawn.last, drawn.start), (1, 10, Some(3)));
    assert_eq!(strip(state, 20), "xxx.xxxxxx");
    assert_eq!(state.strip(5).unwrap().start, Some(1));
    assert_eq!(reported(state).len(), 10);
}

#[test]
fn the_strip_of_a_huge_range() {
    let all = Walk::new(range(0, u64::MAX)).unwrap();
    let run = |first, last, state| telusur_model::Run { first, last, state };
    let runs = [
        run(0, 1 << 63, IdState::Content),
        run((1 << 63) + 1, u64::MAX - 1, IdState::Waiting { attempts: 1 }),
        run(u64::MAX, u64::MAX, IdState::Missing),
    ];
    let state = Opening::resume(Resume::All).open(all, runs, Moment(0)).state;
    assert_eq!(strip(&state, 8), "xxxx????");
}

#[test]
fn no_more_ids_are_under_way_than_a_margin_may_waste() {
    let asked = |margin: u64| {
        let rules = WalkRules { margin, ..range(1, 1000) };
        let mut linear = Linear::new(vec![opened(rules)]);
        let mut asked = 0;
        while asked < 100 && matches!(linear.next(Moment(0), |_| true), LinearNext::Ask { .. }) {
            asked += 1;
        }
        asked
    };
    assert_eq!([0, 3, 20].map(asked), [100, 8, 20]);
}
