//! [`Leg`]: one direction of a walk, and all decisions about it: which id is asked next, which are
//! asked again, and where it stops.
//!
//! The margin asks two questions. *Need more be asked?* Where a margin of ids in a row is known to
//! be missing, the sequential crawl stops there or earlier, even if ids before it are in
//! flight or wait for an attempt: the first such place is the `halt`. *Where does it stop?* At the
//! halt, once every id up to there is settled: then the `stop` is known. A halt can move down until
//! then, when an id before it turns out to be a miss; it never moves up.

use std::collections::BTreeSet;

use telusur_model::{IdState, Moment, Run};

use crate::linear::cooling::Cooling;
use crate::linear::runs::Runs;

/// Fresh ids go before retries, so that failures do not hold up the first pass. But a first pass
/// may take a year: a retry that was put off for this long ...
const RETRY_PATIENCE_MS: u64 = 600_000;
/// ... goes before a fresh id, after this many of them.
const FRESH_PER_RETRY: u32 = 9;

/// Ids that may be under way at once, however small the margin: as many as keep a host busy that
/// answers within milliseconds.
const AHEAD_MIN: usize = 8;

/// How a leg is walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegRules {
    /// The last offset.
    pub(crate) last: u64,
    /// 0: it never stops before the last.
    pub(crate) margin: u64,
    pub(crate) cooldown_ms: u64,
    /// Whether ids are asked of which nothing is known.
    pub(crate) asks_fresh: bool,
}

/// One direction of a walk. Its ids are offsets: 0 is asked first.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    rules: LegRules,
    runs: Runs,
    /// The next id of which nothing is known; all before it are known or in flight.
    fresh: Option<u64>,
    in_flight: BTreeSet<u64>,
    cooling: Cooling,
    /// Fresh ids handed out since the last retry.
    fresh_in_row: u32,
    /// The first id whose fate is open; `None` if none is left.
    unsettled: Option<u64>,
    /// Misses in a row up to there.
    misses: u64,
    /// Where the sequential crawl stops.
    stop: Option<u64>,
    /// The stop is not after this id.
    halt: Option<u64>,
    /// The misses in a row that were looked at last, so that a site which alternates between two
    /// kinds of misses does not make us look at all of them again and again.
    row: Option<Run>,
}

impl Leg {
    /// A leg of which this is known. Ids that wait for an attempt wait a full cool-down more:
    /// it is not recorded when they failed.
    pub(crate) fn new(rules: LegRules, runs: Runs, now: Moment) -> Self {
        let mut cooling = Cooling::new(rules.cooldown_ms);
        let waiting = runs.iter().filter_map(|run| match run.state {
            IdState::Waiting { attempts } => Some((run, attempts)),
            _ => None,
        });
        // Those that were never asked in this run do not have to cool down.
        let (cool, warm): (Vec<_>, Vec<_>) = waiting.partition(|(_, attempts)| *attempts == 0);
        for (run, attempts) in cool {
            cooling.push_stretch(run.first, run.last, attempts, now);
        }
        for (run, attempts) in warm {
            let due = now.plus_ms(rules.cooldown_ms);
            cooling.push_stretch(run.first, run.last, attempts, due);
        }
        let mut leg = Self {
            rules,
            runs,
            fresh: rules.asks_fresh.then_some(0),
            in_flight: BTreeSet::new(),
            cooling,
            fresh_in_row: 0,
            unsettled: Some(0),
            misses: 0,
            stop: None,
            halt: None,
            row: None,
        };
        leg.skip_known();
        if let Some(halt) = leg.first_margin() {
            leg.halt_at(halt);
        }
        leg.settle();
        leg
    }

    // ---- decisions ----

    pub(crate) fn can_ask(&self, now: Moment) -> bool {
        self.has_room() && (self.has_fresh() || self.cooling.due().is_some_and(|due| due <= now))
    }

    /// Whether it can ask for an id that was asked before.
    pub(crate) fn can_retry(&self, now: Moment) -> bool {
        self.has_room() && self.cooling.due().is_some_and(|due| due <= now)
    }

    /// Whether an id has a state already: it is in flight for another attempt, if at all.
    pub(crate) fn is_known(&self, offset: u64) -> bool {
        self.runs.at(offset).is_some()
    }

    /// Ids in flight that have no state yet.
    pub(crate) fn in_flight_first(&self) -> u64 {
        self.in_flight.iter().filter(|offset| !self.is_known(**offset)).count() as u64
    }

    /// The next id and its attempt. Only if [`can_ask`](Self::can_ask); if `only_retries`, only if
    /// [`can_retry`](Self::can_retry).
    pub(crate) fn hand_out(&mut self, now: Moment, only_retries: bool) -> Option<(u64, u8)> {
        let (offset, attempts) = match only_retries || self.is_turn_of_retry(now) {
            true => self.take_retry()?,
            false => (self.take_fresh()?, 0),
        };
        let attempt = attempts.saturating_add(1);
        self.in_flight.insert(offset);
        Some((offset, attempt))
    }

    /// Whether another id may be under way. Where a margin stops the leg, all that are under way may
    /// be beyond the stop: wasted requests.
    fn has_room(&self) -> bool {
        let margin = usize::try_from(self.rules.margin).unwrap_or(usize::MAX);
        margin == 0 || self.in_flight.len() < margin.max(AHEAD_MIN)
    }

    fn has_fresh(&self) -> bool {
        self.fresh.is_some()
    }

    fn is_turn_of_retry(&self, now: Moment) -> bool {
        let Some(due) = self.cooling.due().filter(|due| *due <= now) else { return false };
        let is_overdue = now.ms_since(due) >= RETRY_PATIENCE_MS;
        !self.has_fresh() || is_overdue && self.fresh_in_row >= FRESH_PER_RETRY
    }

    fn take_retry(&mut self) -> Option<(u64, u8)> {
        self.fresh_in_row = 0;
        self.cooling.take()
    }

    fn take_fresh(&mut self) -> Option<u64> {
        self.fresh_in_row = self.fresh_in_row.saturating_add(1);
        let offset = self.fresh?;
        self.fresh = offset.checked_add(1);
        self.skip_known();
        Some(offset)
    }

    // ---- events ----

    /// An id that was in flight is this now. False if it was not in flight.
    pub(crate) fn became(&mut self, offset: u64, state: IdState, now: Moment) -> bool {
        if !self.in_flight.remove(&offset) {
            return false;
        }
        self.runs.set(Run { first: offset, last: offset, state });
        match state {
            IdState::Waiting { attempts } if self.may_ask(offset) => {
                self.cooling.push(offset, attempts, now);
            }
            IdState::Missing | IdState::Hole => self.missed(offset),
            IdState::Waiting { .. } | IdState::Content => {}
        }
        self.settle();
        true
    }

    /// The ids that wait for another attempt are given up. Where the leg stops is not judged by them:
    /// they are asked again by the next run.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Run> {
        let is_waiting = |run: &Run| matches!(run.state, IdState::Waiting { .. });
        let waiting = self.runs.iter().filter(is_waiting);
        let holes: Vec<Run> = waiting.map(|run| Run { state: IdState::Hole, ..run }).collect();
        for run in &holes {
            self.runs.set(*run);
        }
        self.cooling.clear();
        holes
    }

    // ---- the margin ----

    /// Walks as far as every fate is known, as the sequential crawl does.
    fn settle(&mut self) {
        while self.stop.is_none() {
            if let Some(halt) = self.halt
                && self.unsettled.is_none_or(|offset| offset > halt)
            {
                self.stop_at(halt);
                return;
            }
            let Some(offset) = self.unsettled else { return };
            let Some(run) = self.runs.at(offset) else { return };
            match run.state {
                IdState::Waiting { .. } => return,
                IdState::Content => self.misses = 0,
                IdState::Missing | IdState::Hole => {
                    self.misses = self.misses.saturating_add((run.last - offset).saturating_add(1));
                }
            }
            self.unsettled = run.last.checked_add(1).filter(|next| *next <= self.rules.last);
        }
    }

    /// Every fate up to the halt is known: the sequential crawl stops here, too.
    fn stop_at(&mut self, halt: u64) {
        self.misses = self.rules.margin;
        self.stop = Some(halt);
        self.fresh = None;
        self.cooling.clear();
    }

    /// Looks for a margin of misses around an id that is a miss.
    fn missed(&mut self, offset: u64) {
        let margin = self.rules.margin;
        let Some(run) = self.runs.at(offset).filter(|_| margin > 0) else { return };
        let mut row = match self.row {
            Some(row) if row.touches(&run) => {
                Run { first: row.first.min(run.first), last: row.last.max(run.last), ..run }
            }
            _ => run,
        };
        while let Some(left) = row.first.checked_sub(1).and_then(|before| self.runs.at(before))
            && left.state.is_miss()
        {
            row.first = left.first;
        }
        while let Some(right) = row.last.checked_add(1).and_then(|after| self.runs.at(after))
            && right.state.is_miss()
        {
            row.last = right.last;
        }
        self.row = Some(row);
        if row.last - row.first >= margin - 1 {
            self.halt_at(row.first + (margin - 1));
        }
    }

    /// Where the first margin of misses in all that is known ends.
    fn first_margin(&self) -> Option<u64> {
        let needed = self.rules.margin.checked_sub(1)?;
        let mut row: Option<(u64, u64)> = None;
        for run in self.runs.iter().filter(|run| run.state.is_miss()) {
            let first = match row {
                Some((first, last)) if last + 1 == run.first => first,
                _ => run.first,
            };
            if run.last - first >= needed {
                return Some(first + needed);
            }
            row = Some((first, run.last));
        }
        None
    }

    fn halt_at(&mut self, offset: u64) {
        if self.halt.is_some_and(|halt| halt <= offset) {
            return;
        }
        self.halt = Some(offset);
        self.cooling.forget_beyond(offset);
        self.fresh = self.fresh.filter(|fresh| *fresh <= offset);
    }

    /// Whether it still matters what an id is.
    fn may_ask(&self, offset: u64) -> bool {
        self.stop.is_none() && self.halt.is_none_or(|halt| offset <= halt)
    }

    /// Moves `fresh` to an id of which nothing is known.
    fn skip_known(&mut self) {
        while let Some(run) = self.fresh.and_then(|fresh| self.runs.at(fresh)) {
            self.fresh = run.last.checked_add(1);
        }
        let last = self.halt.unwrap_or(self.rules.last).min(self.rules.last);
        self.fresh = self.fresh.filter(|fresh| *fresh <= last);
    }

    // ---- what can be asked ----

    /// Whether nothing is left to ask, or under way.
    pub(crate) fn is_finished(&self) -> bool {
        !self.has_fresh() && self.cooling.is_empty() && self.in_flight.is_empty()
    }

    /// Whether ids are under way, or can be asked without waiting for an attempt.
    pub(crate) fn is_running(&self) -> bool {
        self.has_fresh() || !self.in_flight.is_empty()
    }

    /// When the next retry is due.
    pub(crate) fn retry_at(&self) -> Option<Moment> {
        self.cooling.due()
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(crate) fn rules(&self) -> &LegRules {
        &self.rules
    }

    /// Where the sequential crawl stops by its margin.
    pub(crate) fn stop(&self) -> Option<u64> {
        self.stop
    }

    /// The id that the stop is not after, while nothing before it is left that was never asked.
    pub(crate) fn end(&self) -> Option<u64> {
        self.halt.filter(|_| !self.has_fresh())
    }

    /// Whether every id has its fate.
    pub(crate) fn is_complete(&self) -> bool {
        self.unsettled.is_none()
    }

    /// Misses in a row, as far as every fate is known.
    pub(crate) fn misses(&self) -> u64 {
        self.misses
    }

    /// The last id that is reported; more may be known.
    pub(crate) fn reported_last(&self) -> u64 {
        self.halt.unwrap_or(self.rules.last)
    }

    /// The first id that is not crawled yet.
    pub(crate) fn next(&self) -> Option<u64> {
        match self.stop {
            Some(stop) => stop.checked_add(1).filter(|next| *next <= self.rules.last),
            None => self.fresh.or_else(|| self.first_unknown()),
        }
    }

    /// The first id of which nothing is known and that is not under way, where none is asked.
    fn first_unknown(&self) -> Option<u64> {
        let mut next = self.unsettled;
        while let Some(offset) = next {
            let known_last = match self.runs.at(offset) {
                Some(run) => run.last,
                None if self.in_flight.contains(&offset) => offset,
                None => return Some(offset),
            };
            next = known_last.checked_add(1).filter(|next| *next <= self.rules.last);
        }
        None
    }

    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        self.cooling.stretches()
    }
}
