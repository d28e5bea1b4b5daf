//! [`Walk`]: which ids of a template are asked, in which order, and until when. Checked once, when
//! it is made; it holds no progress.

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{IdRanges, MissingRules, PageUrl, Template};

/// Which way the ids are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards higher ids.
    Ascending,
    /// Towards lower ids.
    Descending,
}

/// How many ids each direction asks in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Upwards.
    pub ascending: u32,
    /// Downwards.
    pub descending: u32,
}

/// What a second run of a walk does about an earlier one. Content is never asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// Goes on with the bound, and retries the holes.
    #[default]
    All,
    /// Goes on with the bound.
    New,
    /// Retries the holes.
    Holes,
}

words! { Resume { All = "all", New = "new", Holes = "holes" } }

/// A walk as the user asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkRules {
    /// What turns an id into a URL.
    pub template: Template,
    /// One way only; `None` is both ways from a start, and upwards without one.
    pub direction: Option<Direction>,
    /// The first id that is asked.
    pub start: Option<u64>,
    /// The lowest id; `None` is unknown.
    pub min: Option<u64>,
    /// The highest id; `None` is unknown.
    pub max: Option<u64>,
    /// Only these ids.
    pub ids: Option<IdRanges>,
    /// From one id to the next.
    pub step: u64,
    /// A direction stops after this many misses in a row; 0 is never.
    pub margin: u64,
    /// How often an id is asked that fails.
    pub attempts: u8,
    /// From a failure to the next attempt, at least.
    pub cooldown_ms: u64,
    /// How the directions take turns, with each other and with other walks.
    pub rates: Rates,
    /// Which answers are misses.
    pub missing: MissingRules,
}

impl WalkRules {
    /// A walk with nothing chosen but its template.
    pub fn new(template: Template) -> Self {
        Self {
            template,
            direction: None,
            start: None,
            min: None,
            max: None,
            ids: None,
            step: 1,
            margin: 0,
            attempts: 1,
            cooldown_ms: 600_000,
            rates: Rates { ascending: 1, descending: 1 },
            missing: MissingRules::default(),
        }
    }
}

/// A walk that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// The bounds are the wrong way round.
    #[error("the lowest id {min} is higher than the highest id {max}")]
    BoundsReversed {
        /// The lowest id.
        min: u64,
        /// The highest id.
        max: u64,
    },
    /// The start is not between the bounds.
    #[error("the start {start} is not between the lowest id {min} and the highest id {max}")]
    StartOutside {
        /// The start.
        start: u64,
        /// The lowest id.
        min: u64,
        /// The highest id.
        max: u64,
    },
    /// Nobody said where to begin.
    #[error("the first id is not known")]
    NoStart {
        /// Which way it would go.
        direction: Direction,
    },
    /// Nothing would ever end it.
    #[error("the {} id is unknown and the margin is 0, so the walk would never stop", .direction.end())]
    Endless {
        /// Which way it would go.
        direction: Direction,
    },
    /// The list and the bounds have no id in common.
    #[error("the list has no id between the bounds")]
    NoIds,
    /// A step goes from id to id, and a list names them.
    #[error("a list of ids has no step")]
    StepInList,
    /// A number that must not be zero.
    #[error("the {0} is 0")]
    Zero(&'static str),
}

impl WalkError {
    /// The way out, for people.
    pub fn hint(&self) -> String {
        match self {
            Self::BoundsReversed { min, max } => {
                format!("Bounds are inclusive, the lower one first: --from {max} --to {min}")
            }
            Self::StartOutside { .. } => "Choose a start within --min and --max".into(),
            Self::NoStart { direction: Direction::Ascending } => {
                "Name it with --start N, or the whole range with --from N --to N".into()
            }
            Self::NoStart { direction: Direction::Descending } => {
                "Name it with --start N, or the highest id with --max N".into()
            }
            Self::Endless { direction } => format!(
                "Name the end with {}, or stop after 50 missing ids in a row: --margin 50",
                direction.end_option()
            ),
            Self::NoIds => "Change the bounds, or leave them out".into(),
            Self::StepInList => "Leave out --step or --list-ids".into(),
            Self::Zero(_) => "Use 1 or more".into(),
        }
    }
}

impl Direction {
    fn end(self) -> &'static str {
        match self {
            Self::Ascending => "highest",
            Self::Descending => "lowest",
        }
    }

    fn end_option(self) -> &'static str {
        match self {
            Self::Ascending => "--max N",
            Self::Descending => "--min N",
        }
    }
}

words! { Direction { Ascending = "ascending", Descending = "descending" } }

/// A walk whose rules were checked.
///
/// Ids are counted in *positions*: an id of the walk is `position * step + rest`. Neighbouring ids
/// have neighbouring positions whatever the step, and a position does not depend on bounds or
/// start, so that what is known about it survives when those change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WalkRules", into = "WalkRules")]
pub struct Walk {
    rules: WalkRules,
    /// The rest that all ids leave when divided by the step.
    rest: u64,
    legs: Vec<LegPlan>,
}

/// One direction of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegPlan {
    /// Which way.
    pub direction: Direction,
    /// Ids in its turn.
    pub rate: u32,
    /// The positions that it may ask; not empty.
    pub positions: IdRanges,
}

impl Walk {
    /// Checks the rules.
    pub fn new(rules: WalkRules) -> Result<Self, WalkError> {
        check_numbers(&rules)?;
        let (min, max) = (rules.min.unwrap_or(0), rules.max.unwrap_or(u64::MAX));
        if min > max {
            return Err(WalkError::BoundsReversed { min, max });
        }
        if let Some(start) = rules.start
            && !(min..=max).contains(&start)
        {
            return Err(WalkError::StartOutside { start, min, max });
        }
        let legs = match &rules.ids {
            Some(ids) => list_legs(&rules, &ids.between(min, max)),
            None => range_legs(&rules, min, max)?,
        };
        if legs.is_empty() {
            return Err(WalkError::NoIds);
        }
        check_ends(&rules, &legs)?;
        Ok(Self { rest: first_id(&rules).unwrap_or(0) % rules.step, rules, legs })
    }

    /// The same walk over another template. Ids and directions are shared.
    pub fn with_template(&self, template: Template) -> Self {
        Self { rules: WalkRules { template, ..self.rules.clone() }, ..self.clone() }
    }

    /// Whether rules are those of this walk but for the template.
    fn differs_by_template(&self, rules: &WalkRules) -> bool {
        let WalkRules { template: _, direction, start, min, max, ids, step, margin, .. } = rules;
        let WalkRules { attempts, cooldown_ms, rates, missing, .. } = rules;
        let own = &self.rules;
        (direction, start, min, max, step, margin)
            == (&own.direction, &own.start, &own.min, &own.max, &own.step, &own.margin)
            && (attempts, cooldown_ms, rates, missing, ids)
                == (&own.attempts, &own.cooldown_ms, &own.rates, &own.missing, &own.ids)
    }

    /// The rules as the user gave them.
    pub fn rules(&self) -> &WalkRules {
        &self.rules
    }

    /// Its directions, in the order of their turns.
    pub fn legs(&self) -> &[LegPlan] {
        &self.legs
    }

    /// The position of an id, if the walk's steps come by it.
    pub fn position_of(&self, id: u64) -> Option<u64> {
        (id % self.rules.step == self.rest).then_some(id / self.rules.step)
    }

    /// The id at a position of one of the legs.
    pub fn id_at(&self, position: u64) -> u64 {
        // Only positions beyond the highest id could overflow, and no leg has those.
        position.saturating_mul(self.rules.step).saturating_add(self.rest)
    }

    /// The id of a page, if the walk asks for it sooner or later.
    pub fn id_of(&self, url: &PageUrl) -> Option<u64> {
        let id = self.rules.template.id_of(url)?;
        let position = self.position_of(id)?;
        self.legs.iter().any(|leg| leg.positions.contains(position)).then_some(id)
    }

    /// Whether positions of the two mean the same pages.
    pub fn has_positions_of(&self, other: &Self) -> bool {
        let of = |walk: &Self| (walk.rules.template.clone(), walk.rules.step, walk.rest);
        of(self) == of(other)
    }
}

fn check_numbers(rules: &WalkRules) -> Result<(), WalkError> {
    if rules.ids.is_some() && rules.step != 1 {
        return Err(WalkError::StepInList);
    }
    let numbers = [
        ("step", rules.step),
        ("number of attempts", u64::from(rules.attempts)),
        ("rate", u64::from(rules.rates.ascending.min(rules.rates.descending))),
    ];
    match numbers.into_iter().find(|(_, number)| *number == 0) {
        Some((name, _)) => Err(WalkError::Zero(name)),
        None => Ok(()),
    }
}

/// The id that a range is counted from.
fn first_id(rules: &WalkRules) -> Option<u64> {
    if rules.ids.is_some() {
        return None;
    }
    let by_bound = match rules.direction {
        Some(Direction::Descending) => rules.max,
        Some(Direction::Ascending) | None => rules.min,
    };
    rules.start.or(by_bound)
}

fn range_legs(rules: &WalkRules, min: u64, max: u64) -> Result<Vec<LegPlan>, WalkError> {
    let step = rules.step;
    let direction = rules.direction.unwrap_or(Direction::Ascending);
    let first = first_id(rules).ok_or(WalkError::NoStart { direction })?;
    // Steps are counted from the first id, so no product or sum leaves the bounds.
    let position = first / step;
    let up = IdRanges::one(position, position + (max - first) / step);
    let down_first = match (rules.start, rules.direction) {
        // Both ways: the start itself belongs to the way up.
        (Some(_), None) => position.checked_sub(1),
        _ => Some(position),
    };
    let down_last = position - (first - min) / step;
    let down = down_first.map(|down_first| IdRanges::one(down_last, down_first));
    Ok(legs(rules, up, down.unwrap_or_default()))
}

fn list_legs(rules: &WalkRules, ids: &IdRanges) -> Vec<LegPlan> {
    match (rules.direction, rules.start) {
        (Some(Direction::Descending), Some(start)) => {
            legs(rules, IdRanges::default(), ids.between(0, start))
        }
        (_, Some(start)) => {
            let below = start.checked_sub(1).map(|below| ids.between(0, below));
            legs(rules, ids.between(start, u64::MAX), below.unwrap_or_default())
        }
        (_, None) => legs(rules, ids.clone(), ids.clone()),
    }
}

/// The legs of the wanted directions that have any id.
fn legs(rules: &WalkRules, up: IdRanges, down: IdRanges) -> Vec<LegPlan> {
    let wants_up = rules.direction != Some(Direction::Descending);
    let wants_down = match rules.direction {
        Some(direction) => direction == Direction::Descending,
        None => rules.start.is_some(),
    };
    let ascending = LegPlan {
        direction: Direction::Ascending,
        rate: rules.rates.ascending,
        positions: if wants_up { up } else { IdRanges::default() },
    };
    let descending = LegPlan {
        direction: Direction::Descending,
        rate: rules.rates.descending,
        positions: if wants_down { down } else { IdRanges::default() },
    };
    [ascending, descending].into_iter().filter(|leg| !leg.positions.is_empty()).collect()
}

/// A leg must know where it ends, or stop by its margin.
fn check_ends(rules: &WalkRules, legs: &[LegPlan]) -> Result<(), WalkError> {
    if rules.margin > 0 || rules.ids.is_some() {
        return Ok(());
    }
    let is_endless = |leg: &&LegPlan| match leg.direction {
        Direction::Ascending => rules.max.is_none(),
        Direction::Descending => rules.min.is_none(),
    };
    match legs.iter().find(is_endless) {
        Some(leg) => Err(WalkError::Endless { direction: leg.direction }),
        None => Ok(()),
    }
}

impl TryFrom<WalkRules> for Walk {
    type Error = WalkError;

    fn try_from(rules: WalkRules) -> Result<Self, WalkError> {
        Self::new(rules)
    }
}

impl From<Walk> for WalkRules {
    fn from(walk: Walk) -> Self {
        walk.rules
    }
}

/// The walks of a crawl as they are stored. A walk with the ids of the one before it is written with an empty
/// list, which no walk has: a list of ids is stored, and read, once for all templates.
pub(crate) mod stored {
    use serde::Deserialize;
    use serde::de::{Deserializer, Error};
    use serde::ser::{SerializeSeq, Serializer};

    use super::{Walk, WalkRules};
    use crate::IdRanges;

    pub(crate) fn serialize<S: Serializer>(walks: &[Walk], out: S) -> Result<S::Ok, S::Error> {
        let mut rows = out.serialize_seq(Some(walks.len()))?;
        let mut before: Option<&Walk> = None;
        for walk in walks {
            let is_shared = walk.rules.ids.is_some()
                && before.is_some_and(|before| before.rules.ids == walk.rules.ids);
            match is_shared {
                true => {
                    let ids = Some(IdRanges::default());
                    rows.serialize_element(&WalkRules { ids, ..walk.rules.clone() })?;
                }
                false => rows.serialize_element(&walk.rules)?,
            }
            before = Some(walk);
        }
        rows.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(row: D) -> Result<Vec<Walk>, D::Error> {
        let mut walks: Vec<Walk> = Vec::new();
        for mut rules in Vec::<WalkRules>::deserialize(row)? {
            let before = walks.last();
            if let (Some(ids), Some(before)) = (&rules.ids, before)
                && (ids.is_empty() || before.rules.ids.as_ref() == Some(ids))
            {
                rules.ids = before.rules.ids.clone();
            }
            let walk = match before.filter(|before| before.differs_by_template(&rules)) {
                Some(before) => before.with_template(rules.template),
                None => Walk::new(rules).map_err(D::Error::custom)?,
            };
            walks.push(walk);
        }
        Ok(walks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Direction = Direction::Ascending;
    const DOWN: Direction = Direction::Descending;

    fn rules() -> WalkRules {
        WalkRules::new(Template::parse("https://a.org/{id}").unwrap())
    }

    /// The first and the last id of each leg, in its direction.
    fn ends(rules: WalkRules) -> Vec<(Direction, u64, u64)> {
        let walk = Walk::new(rules).unwrap();
        let ends = walk.legs().iter().map(|leg| {
            let ranges = leg.positions.as_slice();
            let (low, high) = (walk.id_at(ranges[0].0), walk.id_at(ranges[ranges.len() - 1].1));
            match leg.direction {
                Direction::Ascending => (leg.direction, low, high),
                Direction::Descending => (leg.direction, high, low),
            }
        });
        ends.collect()
    }

    fn refused(rules: WalkRules) -> WalkError {
        Walk::new(rules).unwrap_err()
    }

    #[test]
    fn known_bounds_are_inclusive() {
        let range = WalkRules { min: Some(3), max: Some(9), ..rules() };
        assert_eq!(ends(range.clone()), [(UP, 3, 9)]);
        assert_eq!(ends(WalkRules { direction: Some(DOWN), ..range }), [(DOWN, 9, 3)]);
        assert_eq!(ends(WalkRules { min: Some(3), max: Some(3), ..rules() }), [(UP, 3, 3)]);
    }

    #[test]
    fn both_ways_from_a_start_share_the_ids() {
        let both = WalkRules { start: Some(5), min: Some(1), max: Some(9), ..rules() };
        assert_eq!(ends(both.clone()), [(UP, 5, 9), (DOWN, 4, 1)]);
        assert_eq!(ends(WalkRules { start: Some(1), ..both.clone() }), [(UP, 1, 9)]);
        assert_eq!(ends(WalkRules { start: Some(9), ..both }), [(UP, 9, 9), (DOWN, 8, 1)]);
    }

    #[test]
    fn one_way_from_a_start_has_it() {
        let start = WalkRules { start: Some(5), min: Some(1), max: Some(9), ..rules() };
        assert_eq!(ends(WalkRules { direction: Some(UP), ..start.clone() }), [(UP, 5, 9)]);
        assert_eq!(ends(WalkRules { direction: Some(DOWN), ..start }), [(DOWN, 5, 1)]);
    }

    #[test]
    fn pages_between_the_bounds_belong_to_the_walk() {
        let range = WalkRules { min: Some(10), max: Some(20), step: 5, ..rules() };
        let walk = Walk::new(range).unwrap();
        let ids = (0..30).filter_map(|id| walk.id_of(&walk.rules().template.url_of(id)));
        assert_eq!(ids.collect::<Vec<_>>(), [10, 15, 20]);
        assert_eq!(walk.id_of(&PageUrl::parse("https://b.org/10").unwrap()), None);
    }

    #[test]
    fn steps_are_counted_from_the_first_id() {
        let range = WalkRules { min: Some(3), max: Some(50), step: 10, ..rules() };
        assert_eq!(ends(range.clone()), [(UP, 3, 43)]);
        assert_eq!(ends(WalkRules { direction: Some(DOWN), ..range.clone() }), [(DOWN, 50, 10)]);
        let both = WalkRules { start: Some(25), ..range };
        assert_eq!(ends(both), [(UP, 25, 45), (DOWN, 15, 5)]);
    }

    #[test]
    fn positions_lead_back_to_ids() {
        let walk = WalkRules { min: Some(3), max: Some(50), step: 10, ..rules() };
        let walk = Walk::new(walk).unwrap();
        assert_eq!(walk.position_of(33), Some(3));
        assert_eq!(walk.position_of(30), None);
        assert_eq!(walk.id_at(3), 33);
    }

    #[test]
    fn nothing_wraps_around_at_either_end() {
        let all = WalkRules { margin: 1, start: Some(u64::MAX), ..rules() };
        assert_eq!(ends(all.clone()), [(UP, u64::MAX, u64::MAX), (DOWN, u64::MAX - 1, 0)]);
        assert_eq!(ends(WalkRules { start: Some(0), ..all.clone() }), [(UP, 0, u64::MAX)]);
        let wide = WalkRules { step: u64::MAX, start: Some(u64::MAX), ..all };
        assert_eq!(ends(wide), [(UP, u64::MAX, u64::MAX), (DOWN, 0, 0)]);
        let steps = WalkRules { margin: 1, step: 7, start: Some(u64::MAX - 3), ..rules() };
        let last = (u64::MAX - 3) % 7;
        assert_eq!(ends(steps), [(UP, u64::MAX - 3, u64::MAX - 3), (DOWN, u64::MAX - 10, last)]);
    }

    #[test]
    fn lists_are_cut_at_bounds_and_start() {
        let ids = Some(IdRanges::parse("1-4\n8\n20-30").unwrap());
        let list = WalkRules { ids, ..rules() };
        assert_eq!(ends(list.clone()), [(UP, 1, 30)]);
        assert_eq!(ends(WalkRules { direction: Some(DOWN), ..list.clone() }), [(DOWN, 30, 1)]);
        assert_eq!(ends(WalkRules { min: Some(3), max: Some(9), ..list.clone() }), [(UP, 3, 8)]);
        assert_eq!(ends(WalkRules { start: Some(8), ..list.clone() }), [(UP, 8, 30), (DOWN, 4, 1)]);
        let down = WalkRules { start: Some(9), direction: Some(DOWN), ..list.clone() };
        assert_eq!(ends(down), [(DOWN, 8, 1)]);
        let between = WalkRules { min: Some(5), max: Some(7), ..list.clone() };
        assert_eq!(refused(between), WalkError::NoIds);
        assert_eq!(refused(WalkRules { step: 2, ..list }), WalkError::StepInList);
    }

    #[test]
    fn bounds_that_are_refused() {
        let range = WalkRules { min: Some(9), max: Some(3), ..rules() };
        let error = refused(range);
        assert_eq!(error, WalkError::BoundsReversed { min: 9, max: 3 });
        let hint = "Bounds are inclusive, the lower one first: --from 3 --to 9";
        assert_eq!(error.hint(), hint);
        let outside = WalkRules { start: Some(10), min: Some(3), max: Some(9), ..rules() };
        assert_eq!(refused(outside), WalkError::StartOutside { start: 10, min: 3, max: 9 });
        assert_eq!(refused(rules()), WalkError::NoStart { direction: UP });
        let down = WalkRules { direction: Some(DOWN), min: Some(1), ..rules() };
        assert_eq!(refused(down), WalkError::NoStart { direction: DOWN });
    }

    #[test]
    fn margin_0_needs_known_bounds() {
        let up = WalkRules { start: Some(5), min: Some(1), ..rules() };
        let error = refused(up.clone());
        assert_eq!(error, WalkError::Endless { direction: UP });
        let message = "the highest id is unknown and the margin is 0, so the walk would never stop";
        assert_eq!(error.to_string(), message);
        let hint = "Name the end with --max N, or stop after 50 missing ids in a row: --margin 50";
        assert_eq!(error.hint(), hint);
        let down = WalkRules { min: None, max: Some(9), ..up.clone() };
        assert_eq!(refused(down), WalkError::Endless { direction: DOWN });
        assert!(Walk::new(WalkRules { margin: 1, ..up.clone() }).is_ok());
        assert!(Walk::new(WalkRules { max: Some(9), ..up }).is_ok());
    }

    #[test]
    fn zeros_that_are_refused() {
        let range = WalkRules { min: Some(3), max: Some(9), ..rules() };
        let rates = Rates { ascending: 1, descending: 0 };
        for bad in [
            WalkRules { step: 0, ..range.clone() },
            WalkRules { attempts: 0, ..range.clone() },
            WalkRules { rates, ..range },
        ] {
            assert!(matches!(refused(bad), WalkError::Zero(_)));
        }
    }

    #[test]
    fn a_walk_survives_the_store() {
        let walk = Walk::new(WalkRules { start: Some(5), margin: 3, ..rules() }).unwrap();
        let bytes = postcard::to_stdvec(&walk).unwrap();
        assert_eq!(postcard::from_bytes::<Walk>(&bytes).unwrap(), walk);
    }

    #[test]
    fn ids_are_stored_once_for_all_templates() {
        let ids: String = (0..10_000).map(|id| format!("{}\n", id * 2)).collect();
        let ids = Some(IdRanges::parse(&ids).unwrap());
        let template = |number: u32| Template::parse(&format!("https://a.org/{number}/{{id}}"));
        let first = Walk::new(WalkRules { ids, ..WalkRules::new(template(0).unwrap()) }).unwrap();
        let others = (1..100).map(|number| first.with_template(template(number).unwrap()));
        let seeds = |walks| crate::LinearSeeds { walks, resume: crate::Resume::All, follow: false };
        let all = seeds(std::iter::once(first.clone()).chain(others).collect());
        let one = serde_json::to_string(&seeds(vec![first])).unwrap().len();
        let text = serde_json::to_string(&all).unwrap();
        assert!(text.len() < 2 * one + 100 * 500, "{} bytes", text.len());
        let read: crate::LinearSeeds = serde_json::from_str(&text).unwrap();
        assert_eq!(read, all);
        let shared = read.walks[0].legs()[0].positions.as_slice().as_ptr();
        assert!(read.walks.iter().all(|it| it.legs()[0].positions.as_slice().as_ptr() == shared));
        // As it was stored before: every walk with its ids.
        let older = serde_json::json!({ "walks": all.walks, "resume": "all", "follow": false });
        assert_eq!(serde_json::from_value::<crate::LinearSeeds>(older).unwrap(), all);
    }
}
