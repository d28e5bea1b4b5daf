//! Plays the engine for linear crawls: asks a simulated web, keeps what the store would keep, kills
//! and goes on. It checks at every step that nothing is asked that must not be.

use std::collections::BTreeMap;

use telusur_model::{IdOutcome, IdState, Moment, Resume, Retry, Run, Template, Walk, WalkRules};

use crate::linear::{Linear, LinearNext, Opening, WalkState};

/// Steele's splitmix64: a stream of numbers, and a hash, the same everywhere.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % bound.max(1)
    }

    pub(super) fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

pub(super) fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// How a web answers: walk, id, attempt.
pub(super) type Web = dyn Fn(usize, u64, u8) -> IdOutcome;

pub(super) const FAILED: IdOutcome = IdOutcome::Failed(Retry::Later);

/// One ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) walk: usize,
    pub(super) id: u64,
    pub(super) attempt: u8,
    pub(super) at: Moment,
}

/// How the world around treats the crawl.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Asks under way at one host.
    pub(super) per_host: usize,
    /// Longest answer.
    pub(super) response_ms: u64,
    /// One event in this many is a kill; 0 is never.
    pub(super) kill_odds: u64,
    /// One request in this many is given back, or fails by our own fault; 0 is never.
    pub(super) mishap_odds: u64,
}

impl Manners {
    /// One after the other, and nothing goes wrong.
    pub(super) const QUIET: Self =
        Self { per_host: 1, response_ms: 1, kill_odds: 0, mishap_odds: 0 };
}

pub(super) struct Play<'a> {
    pub(super) linear: Linear,
    /// What the store keeps of each walk, id by id.
    pub(super) store: Vec<BTreeMap<u64, IdState>>,
    pub(super) log: Vec<Asked>,
    pub(super) now: Moment,
    walks: Vec<Walk>,
    resume: Resume,
    web: &'a Web,
    manners: Manners,
    dice: Dice,
    in_flight: Vec<(Asked, Moment)>,
    /// When an id failed, within this process.
    failed_at: BTreeMap<(usize, u64), Moment>,
}

impl<'a> Play<'a> {
    pub(super) fn new(walks: Vec<Walk>, web: &'a Web, manners: Manners, seed: u64) -> Self {
        let store = vec![BTreeMap::new(); walks.len()];
        Self::resume(walks, store, &Opening::resume(Resume::All), web, manners, seed)
    }

    /// A run after another.
    pub(super) fn resume(
        walks: Vec<Walk>,
        mut store: Vec<BTreeMap<u64, IdState>>,
        opening: &Opening,
        web: &'a Web,
        manners: Manners,
        seed: u64,
    ) -> Self {
        let now = Moment(1_000);
        let linear = open(&walks, &mut store, opening, now);
        Self {
            linear,
            store,
            log: Vec::new(),
            now,
            walks,
            resume: opening.resume,
            web,
            manners,
            dice: Dice(seed),
            in_flight: Vec::new(),
            failed_at: BTreeMap::new(),
        }
    }

    pub(super) fn run_to_end(&mut self) -> &mut Self {
        while self.step() {}
        self
    }

    /// One decision, and what comes of it. False when all is over.
    pub(super) fn step(&mut self) -> bool {
        if self.manners.kill_odds > 0 && self.dice.one_in(self.manners.kill_odds) {
            self.kill();
        }
        let (walks, in_flight, per_host) = (&self.walks, &self.in_flight, self.manners.per_host);
        let is_ready = |walk: usize| {
            let host = walks[walk].rules().template.host();
            let busy = in_flight
                .iter()
                .filter(|(asked, _)| walks[asked.walk].rules().template.host() == host);
            busy.count() < per_host
        };
        match self.linear.next(self.now, is_ready) {
            LinearNext::Ask { walk, id, attempt } => self.ask(walk, id, attempt),
            LinearNext::Wait(until) => self.wait(until),
            LinearNext::Finished => {
                assert!(self.in_flight.is_empty());
                return false;
            }
        }
        true
    }

    fn ask(&mut self, walk: usize, id: u64, attempt: u8) {
        let asked = Asked { walk, id, attempt, at: self.now };
        let is_same = |(other, _): &&(Asked, Moment)| (other.walk, other.id) == (walk, id);
        assert_eq!(self.in_flight.iter().find(is_same), None, "asked twice at once");
        let position = self.walks[walk].position_of(id).expect("an id of the walk");
        let attempts = match self.store[walk].get(&position) {
            None => 0,
            Some(IdState::Waiting { attempts }) => *attempts,
            Some(known) => panic!("{id} is known as {known:?} and asked again"),
        };
        assert_eq!(attempt, attempts + 1, "attempt at {id}");
        if let Some(failed_at) = self.failed_at.get(&(walk, id)) {
            let cooldown_ms = self.walks[walk].rules().cooldown_ms;
            assert!(self.now.ms_since(*failed_at) >= cooldown_ms, "{id} had not cooled down");
        }
        self.log.push(asked);
        let response_ms = self.dice.below(self.manners.response_ms + 1);
        self.in_flight.push((asked, self.now.plus_ms(response_ms)));
    }

    fn wait(&mut self, until: Option<Moment>) {
        let first = (0..self.in_flight.len()).min_by_key(|&index| self.in_flight[index].1);
        match (first, until) {
            (Some(index), until) if until.is_none_or(|until| self.in_flight[index].1 <= until) => {
                let (asked, done_at) = self.in_flight.swap_remove(index);
                self.now = self.now.max(done_at);
                self.answer(asked);
            }
            (_, Some(until)) => {
                assert!(until > self.now, "told to wait for the past");
                self.now = until;
            }
            (_, None) => panic!("nothing in flight, and nothing to wait for"),
        }
    }

    fn answer(&mut self, asked: Asked) {
        let Asked { walk, id, attempt, .. } = asked;
        let mishap = self.manners.mishap_odds > 0 && self.dice.one_in(self.manners.mishap_odds);
        let answer = match mishap {
            true => IdOutcome::Failed(Retry::NotCounted),
            false => (self.web)(walk, id, attempt),
        };
        let state = answered(&mut self.linear, walk, (id, attempt), answer, self.now);
        let position = self.walks[walk].position_of(id).expect("an id of the walk");
        self.store[walk].insert(position, state.expect("it was in flight"));
        self.failed_at.insert((walk, id), self.now);
    }

    /// All that is not in the store is gone.
    pub(super) fn kill(&mut self) {
        self.in_flight.clear();
        self.failed_at.clear();
        let opening = Opening::recover(self.resume);
        self.linear = open(&self.walks, &mut self.store, &opening, self.now);
    }

    pub(super) fn walk(&self, walk: usize) -> &WalkState {
        &self.linear.walks()[walk]
    }

    /// The ids of one walk, in the order asked.
    pub(super) fn ids_asked(&self, walk: usize) -> Vec<u64> {
        let of_walk = self.log.iter().filter(|asked| asked.walk == walk);
        of_walk.map(|asked| asked.id).collect()
    }
}

/// An attempt at an id was answered so. Gives what the store would keep of it, as the engine works it out;
/// `None` if the id was not in flight.
pub(super) fn answered(
    linear: &mut Linear,
    walk: usize,
    (id, attempt): (u64, u8),
    answer: IdOutcome,
    now: Moment,
) -> Option<IdState> {
    let attempts_max = linear.walks().get(walk)?.walk().rules().attempts;
    let state = IdState::after(answer, attempt, attempts_max);
    linear.became(walk, id, state, now).then_some(state)
}

fn open(
    walks: &[Walk],
    store: &mut [BTreeMap<u64, IdState>],
    opening: &Opening,
    now: Moment,
) -> Linear {
    let states = walks.iter().zip(store).map(|(walk, kept)| {
        let runs = kept.iter().map(|(&id, &state)| Run { first: id, last: id, state });
        let opened = opening.open(walk.clone(), runs, now);
        for run in opened.changed {
            kept.extend((run.first..=run.last).map(|id| (id, run.state)));
        }
        opened.state
    });
    Linear::new(states.collect())
}

pub(super) fn rules(host: &str) -> WalkRules {
    WalkRules::new(Template::parse(&format!("https://{host}/{{id}}")).unwrap())
}

/// A walk over known bounds.
pub(super) fn range(min: u64, max: u64) -> WalkRules {
    WalkRules { min: Some(min), max: Some(max), cooldown_ms: 1000, ..rules("a.org") }
}

pub(super) fn walk(rules: WalkRules) -> Walk {
    Walk::new(rules).unwrap()
}

/// A web in which ids are `x` (exists), `.` (missing) or `!` (fails for ever), from id 1 on; what
/// lies beyond is missing.
pub(super) fn drawn(picture: &'static str) -> impl Fn(usize, u64, u8) -> IdOutcome {
    move |_, id, _| {
        let index = usize::try_from(id).unwrap_or(usize::MAX).wrapping_sub(1);
        match picture.as_bytes().get(index) {
            Some(b'x') => IdOutcome::Content,
            Some(b'!') => FAILED,
            _ => IdOutcome::Missing,
        }
    }
}

/// What is reported, id by id.
pub(super) fn reported(walk: &WalkState) -> BTreeMap<u64, IdState> {
    let step = usize::try_from(walk.walk().rules().step).unwrap();
    let ids = walk.runs().flat_map(|run| {
        let ids: Vec<u64> = (run.first..=run.last).step_by(step).collect();
        assert_eq!(ids.len() as u64, run.count);
        ids.into_iter().map(move |id| (id, run.state))
    });
    ids.collect()
}
