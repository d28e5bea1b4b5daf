//! What a second run makes of the first.

use std::collections::BTreeMap;

use telusur_model::{
    Direction, IdOutcome, IdState, LegState, Moment, Resume, Run, Walk, WalkRules,
};

use super::play::{Manners, Play, Web, answered, drawn, range, reported, walk};
use crate::linear::{Linear, LinearNext, Opening, ResumeNote};

type Kept = BTreeMap<u64, IdState>;

/// What the store keeps of a run of one walk, stopped after some asks.
fn first_run(rules: &WalkRules, web: &Web, asks_max: usize) -> Kept {
    let mut play = Play::new(vec![walk(rules.clone())], web, Manners::QUIET, 1);
    while play.log.len() < asks_max && play.step() {}
    play.store.remove(0)
}

/// The ids that a second run asks for, and what it leaves.
fn second_run(rules: &WalkRules, kept: Kept, opening: &Opening, web: &Web) -> (Vec<u64>, Kept) {
    let walks = vec![walk(rules.clone())];
    let mut play = Play::resume(walks, vec![kept], opening, web, Manners::QUIET, 1);
    play.run_to_end();
    (play.ids_asked(0), reported(play.walk(0)))
}

fn asked(rules: &WalkRules, kept: &Kept, resume: Resume, web: &Web) -> Vec<u64> {
    second_run(rules, kept.clone(), &Opening::resume(resume), web).0
}

fn notes(rules: &WalkRules, kept: &Kept, earlier: WalkRules, resume: Resume) -> Vec<ResumeNote> {
    let runs = kept.iter().map(|(&id, &state)| Run { first: id, last: id, state });
    let opening = Opening { earlier: Some(walk(earlier)), ..Opening::resume(resume) };
    opening.open(walk(rules.clone()), runs, Moment(0)).notes
}

#[test]
fn the_same_walk_twice_fetches_nothing_twice() {
    let web = drawn("xx.xx..xx...xx");
    for rules in [range(1, 14), WalkRules { margin: 3, ..range(1, 14) }] {
        let kept = first_run(&rules, &web, usize::MAX);
        for resume in [Resume::All, Resume::New, Resume::Holes] {
            assert!(asked(&rules, &kept, resume, &web).is_empty());
        }
    }
}

#[test]
fn new_goes_on_holes_retries_all_does_both() {
    let rules = range(1, 9);
    let kept = first_run(&rules, &drawn("x!x!xxxxx"), 6);
    // The sixth ask got no answer.
    let web = drawn("xxxxxxxxx");
    assert_eq!(asked(&rules, &kept, Resume::New, &web), [6, 7, 8, 9]);
    assert_eq!(asked(&rules, &kept, Resume::Holes, &web), [2, 4]);
    assert_eq!(asked(&rules, &kept, Resume::All, &web), [6, 7, 8, 9, 2, 4]);
}

#[test]
fn holes_that_turn_out_to_exist_move_the_stop() {
    let rules = WalkRules { margin: 3, ..range(1, 99) };
    let kept = first_run(&rules, &drawn("x.!.xx"), usize::MAX);
    let web = drawn("x.x.xx");
    let (asked, left) = second_run(&rules, kept, &Opening::resume(Resume::All), &web);
    // Going on does not wait for the hole.
    assert_eq!(asked, [5, 6, 7, 8, 9, 3]);
    assert_eq!(left.len(), 9);
}

#[test]
fn holes_that_fail_again_leave_the_stop_where_it_was() {
    let rules = WalkRules { margin: 3, ..range(1, 99) };
    let web = drawn("x.!.xx");
    let kept = first_run(&rules, &web, usize::MAX);
    assert_eq!(kept.len(), 4);
    let (_, left) = second_run(&rules, kept.clone(), &Opening::resume(Resume::All), &web);
    assert_eq!(left, kept);
}

#[test]
fn a_kill_while_holes_are_retried_forgets_none() {
    let rules = WalkRules { attempts: 2, ..range(1, 9) };
    let kept = first_run(&rules, &drawn("x!!!x"), usize::MAX);
    let web = drawn("xxxxx");
    let walks = vec![walk(rules)];
    let opening = Opening::resume(Resume::Holes);
    let mut play = Play::resume(walks, vec![kept], &opening, &web, Manners::QUIET, 1);
    play.step();
    play.kill();
    play.run_to_end();
    assert_eq!(play.ids_asked(0), [2, 2, 3, 4]);
    assert_eq!(play.walk(0).coverage().counts.content, 5);
}

#[test]
fn only_holes_leaves_the_bound_alone() {
    let rules = range(1, 9);
    let kept = first_run(&rules, &drawn("x!xxxxxxx"), 5);
    let walks = vec![walk(rules)];
    let opening = Opening::resume(Resume::Holes);
    let web = drawn("xxxxxxxxx");
    let mut play = Play::resume(walks, vec![kept], &opening, &web, Manners::QUIET, 1);
    let leg = play.run_to_end().walk(0).coverage().legs.remove(0);
    assert_eq!((leg.state, leg.next), (LegState::Left, Some(5)));
}

#[test]
fn attempts_used_before_a_kill_are_used() {
    let rules = WalkRules { attempts: 3, ..range(1, 2) };
    let web = drawn("!x");
    let kept = first_run(&rules, &web, 3);
    assert_eq!(kept[&1], IdState::Waiting { attempts: 1 });
    let (asked, left) = second_run(&rules, kept, &Opening::recover(Resume::All), &web);
    assert_eq!(asked, [1, 1]);
    assert_eq!(left[&1], IdState::Hole);
}

/// Opens a walk over 1 to 9 with margin 3 after a crash.
fn recovered(runs: &[Run]) -> Linear {
    let rules = WalkRules { margin: 3, attempts: 3, ..range(1, 9) };
    let opening = Opening::recover(Resume::All);
    let opened = opening.open(walk(rules), runs.iter().copied(), Moment(50));
    Linear::new(vec![opened.state])
}

#[test]
fn after_a_crash_a_failed_id_cools_down_once_more() {
    let waiting = IdState::Waiting { attempts: 1 };
    let mut linear = recovered(&[
        Run { first: 1, last: 1, state: waiting },
        Run { first: 2, last: 9, state: IdState::Content },
    ]);
    assert_eq!(linear.next(Moment(50), |_| true), LinearNext::Wait(Some(Moment(1050))));
    let again = LinearNext::Ask { walk: 0, id: 1, attempt: 2 };
    assert_eq!(linear.next(Moment(1050), |_| true), again);
}

#[test]
fn after_a_crash_a_certain_stop_is_still_certain() {
    let waiting = IdState::Waiting { attempts: 1 };
    let mut linear = recovered(&[
        Run { first: 1, last: 1, state: waiting },
        Run { first: 2, last: 3, state: IdState::Missing },
        Run { first: 4, last: 4, state: IdState::Hole },
    ]);
    assert_eq!(linear.next(Moment(50), |_| true), LinearNext::Wait(Some(Moment(1050))));
}

#[test]
fn a_larger_margin_goes_on() {
    let earlier = WalkRules { margin: 2, ..range(1, 9) };
    let web = drawn("x..x...xx");
    let kept = first_run(&earlier, &web, usize::MAX);
    let rules = WalkRules { margin: 3, ..earlier.clone() };
    assert_eq!(asked(&rules, &kept, Resume::All, &web), [4, 5, 6, 7]);
    assert_eq!(
        notes(&rules, &kept, earlier, Resume::All),
        [
            ResumeNote::Margin { from: 2, to: 3 },
            ResumeNote::GoesOn { direction: Direction::Ascending, next: 4 },
        ]
    );
}

#[test]
fn a_hole_before_the_stop_does_not_make_it_go_on() {
    let rules = WalkRules { margin: 3, ..range(1, 9) };
    let kept = first_run(&rules, &drawn("x!x...xxx"), usize::MAX);
    assert_eq!(asked(&rules, &kept, Resume::All, &drawn("xxx...xxx")), [2]);
    assert_eq!(
        notes(&rules, &kept, rules.clone(), Resume::All),
        [
            ResumeNote::HolesRetried { ids: 1 },
            ResumeNote::EndsBy { direction: Direction::Ascending, at: 6, margin: 3 },
        ]
    );
}

#[test]
fn a_smaller_margin_stops_earlier_and_fetches_nothing() {
    let earlier = WalkRules { margin: 3, ..range(1, 9) };
    let web = drawn("x..x...xx");
    let kept = first_run(&earlier, &web, usize::MAX);
    let rules = WalkRules { margin: 2, ..earlier.clone() };
    let (asked, left) = second_run(&rules, kept.clone(), &Opening::resume(Resume::All), &web);
    assert_eq!((asked.len(), left.len()), (0, 3));
    assert_eq!(
        notes(&rules, &kept, earlier, Resume::All),
        [
            ResumeNote::Margin { from: 3, to: 2 },
            ResumeNote::Stopped { direction: Direction::Ascending, at: 3, margin: 2 },
        ]
    );
}

#[test]
fn wider_bounds_ask_for_what_is_new() {
    let earlier = range(4, 6);
    let web = drawn("xxxxxxxxx");
    let kept = first_run(&earlier, &web, usize::MAX);
    let rules = range(2, 8);
    assert_eq!(asked(&rules, &kept, Resume::All, &web), [2, 3, 7, 8]);
    assert_eq!(
        notes(&rules, &kept, earlier, Resume::All),
        [
            ResumeNote::Bounds { from: (Some(4), Some(6)), to: (Some(2), Some(8)) },
            ResumeNote::GoesOn { direction: Direction::Ascending, next: 2 },
        ]
    );
}

#[test]
fn narrower_bounds_report_what_lies_between() {
    let earlier = range(1, 9);
    let web = drawn("xxxxxxxxx");
    let kept = first_run(&earlier, &web, usize::MAX);
    let (asked, left) = second_run(&range(3, 5), kept.clone(), &Opening::resume(Resume::All), &web);
    assert_eq!((asked.len(), left.len()), (0, 3));
    assert_eq!(
        notes(&range(3, 5), &kept, earlier, Resume::All).last(),
        Some(&ResumeNote::Complete { direction: Direction::Ascending })
    );
}

#[test]
fn another_start_keeps_what_is_known() {
    let earlier = WalkRules { start: Some(3), ..range(1, 6) };
    let web = drawn("xxxxxx");
    let kept = first_run(&earlier, &web, 4);
    let rules = WalkRules { start: Some(5), ..earlier.clone() };
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(asked(&rules, &kept, Resume::All, &web), [5, 1, 6]);
    let notes = notes(&rules, &kept, earlier, Resume::All);
    assert_eq!(notes[0], ResumeNote::Start { from: Some(3), to: Some(5) });
}

#[test]
fn another_template_or_step_begins_anew() {
    let web = drawn("xxx");
    let earlier = range(1, 3);
    let kept = first_run(&earlier, &web, usize::MAX);
    let other = WalkRules { template: super::play::rules("b.org").template, ..range(1, 3) };
    let note = ResumeNote::OtherTemplate { from: "https://a.org/{id}".into() };
    assert_eq!(notes(&other, &kept, earlier.clone(), Resume::All), [note]);
    let steps = WalkRules { step: 2, ..range(1, 3) };
    let note = ResumeNote::OtherStep { from: 1, to: 2 };
    assert_eq!(notes(&steps, &kept, earlier.clone(), Resume::All), [note]);
    let opening = Opening { earlier: Some(walk(earlier)), ..Opening::resume(Resume::All) };
    let runs = [Run { first: 1, last: 3, state: IdState::Content }];
    let state = opening.open(walk(steps), runs, Moment(0)).state;
    assert!(state.coverage().counts.is_nothing_known());
}

#[test]
fn the_end_can_be_looked_at_again() {
    let rules = WalkRules { margin: 3, max: None, ..range(1, 1) };
    let kept = first_run(&rules, &drawn("x.xx"), usize::MAX);
    let grown = drawn("xxxxxx");
    assert!(asked(&rules, &kept, Resume::All, &grown).is_empty());
    let daily = Opening { recheck_end: true, ..Opening::resume(Resume::New) };
    let (asked, left) = second_run_with_misses_asked(&rules, kept, &daily, &grown);
    assert_eq!(asked, [5, 6, 7, 8, 9]);
    assert_eq!((left[&2], left[&6], left.len()), (IdState::Missing, IdState::Content, 9));
}

/// Like a second run, but misses may be asked again.
fn second_run_with_misses_asked(
    rules: &WalkRules,
    mut kept: Kept,
    opening: &Opening,
    web: &Web,
) -> (Vec<u64>, Kept) {
    let runs: Vec<Run> =
        kept.iter().map(|(&id, &state)| Run { first: id, last: id, state }).collect();
    let state = opening.open(walk(rules.clone()), runs, Moment(0)).state;
    let mut linear = Linear::new(vec![state]);
    let mut asked = Vec::new();
    while let LinearNext::Ask { id, attempt, .. } = linear.next(Moment(0), |_| true) {
        asked.push(id);
        let state = answered(&mut linear, 0, (id, attempt), web(0, id, attempt), Moment(0));
        kept.insert(id, state.unwrap());
    }
    (asked, reported(&linear.walks()[0]))
}

#[test]
fn a_first_run_has_nothing_to_say() {
    let opened = Opening::resume(Resume::All).open(walk(range(1, 9)), [], Moment(0));
    assert_eq!((opened.notes, opened.changed), (vec![], vec![]));
}

#[test]
fn notes_are_sentences() {
    #[track_caller]
    fn check(note: ResumeNote, expect: &str) {
        assert_eq!(note.to_string(), expect);
    }
    check(
        ResumeNote::Margin { from: 3, to: 5 },
        "margin 3 is now 5: the stop is computed again from the known states",
    );
    check(
        ResumeNote::Bounds { from: (Some(1), None), to: (Some(1), Some(9)) },
        "bounds 1 to unknown are now 1 to 9: known ids between them are not asked again",
    );
    check(
        ResumeNote::Stopped { direction: Direction::Descending, at: 7, margin: 3 },
        "descending stopped at 7 after 3 missing in a row: a larger margin goes on",
    );
}

#[test]
fn what_the_store_must_change_first() {
    let kept = first_run(&range(1, 5), &drawn("x!!x!"), usize::MAX);
    let runs = kept.iter().map(|(&id, &state)| Run { first: id, last: id, state });
    let opened = Opening::resume(Resume::Holes).open(walk(range(1, 5)), runs, Moment(0));
    let changed: Vec<u64> = opened.changed.iter().map(|run| run.first).collect();
    assert_eq!(changed, [2, 3, 5]);
    assert!(opened.notes.contains(&ResumeNote::HolesRetried { ids: 3 }));
}

#[test]
fn content_of_a_page_that_vanished_is_kept() {
    let rules = range(1, 3);
    let kept = first_run(&rules, &drawn("xxx"), usize::MAX);
    let gone = |_: usize, _: u64, _: u8| IdOutcome::Missing;
    let (asked, left) = second_run(&rules, kept.clone(), &Opening::resume(Resume::All), &gone);
    assert_eq!((asked.len(), left), (0, kept));
}

#[test]
fn a_walk_and_its_earlier_self_need_no_notes_of_change() {
    let rules = range(1, 9);
    let kept = first_run(&rules, &drawn("xxxxxxxxx"), 4);
    let same: Walk = walk(rules.clone());
    assert!(same.has_positions_of(&walk(rules.clone())));
    let notes = notes(&rules, &kept, rules.clone(), Resume::New);
    assert_eq!(notes, [ResumeNote::GoesOn { direction: Direction::Ascending, next: 4 }]);
}
