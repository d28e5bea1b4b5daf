//! A walk of a linear crawl in a line: which ids exist, which failed, where it goes on. Pure text.

use telusur_engine::json::{CoverageView, LegView, StripView};
use telusur_model::{Direction, LegState};

use crate::units::{show_count, show_duration_ms};

/// Columns that the ends of a strip take besides their numbers: arrows and blanks.
const ENDS_COLUMNS: usize = 8;
/// A strip narrower than this tells nothing.
const CELLS_MIN: usize = 10;

/// The strip of a walk, not wider than `columns`; `None` if no id has answered, or there is no
/// room.
pub fn strip_line(walk: &CoverageView, columns: usize, is_unicode: bool) -> Option<String> {
    let strip = walk.strip.as_ref()?;
    let (first, last) = (strip.first.to_string(), strip.last.to_string());
    let room = columns.checked_sub(ENDS_COLUMNS + first.len() + last.len())?;
    if room < CELLS_MIN {
        return None;
    }
    let arrow = |direction| match direction_of(walk, direction) {
        Some(leg) if is_open(leg) => arrow(direction, is_unicode),
        _ => ' ',
    };
    let (down, up) = (arrow(Direction::Descending), arrow(Direction::Ascending));
    let cells = cells_text(strip, room, is_unicode);
    Some(format!("  {down} {first} {cells} {last} {up}").trim_end().to_owned())
}

/// The counts of a walk: `content 5,913`, `holes 87`, `12 to retry in 8m`, its directions.
pub fn count_parts(walk: &CoverageView, is_unicode: bool) -> Vec<String> {
    let counts = &walk.counts;
    let mut parts = vec![format!("content {}", show_count(counts.content))];
    let by_look = match counts.missing_by_look {
        0 => String::new(),
        ids => format!(" ({} answered like a page that does not exist)", show_count(ids)),
    };
    parts.push(format!("missing {}{by_look}", show_count(counts.missing)));
    if counts.holes > 0 {
        parts.push(format!("holes {}", show_count(counts.holes)));
    }
    if counts.pending_retry > 0 {
        let when = walk.retry_in_ms.filter(|ms| *ms > 0);
        let when = when.map(|ms| format!(" in {}", show_duration_ms(ms))).unwrap_or_default();
        parts.push(format!("{} to retry{when}", show_count(counts.pending_retry)));
    }
    if let Some(unknown) = counts.unknown.filter(|unknown| *unknown > 0) {
        parts.push(format!("unknown {}", show_count(unknown)));
    }
    parts.extend(walk.legs.iter().map(|leg| leg_text(leg, is_unicode)));
    parts
}

/// A direction in a few words: `↑ next 38404264, misses 2/50`.
pub fn leg_text(leg: &LegView, is_unicode: bool) -> String {
    let arrow = match Direction::from_word(&leg.direction) {
        Some(direction) => arrow(direction, is_unicode),
        None => ' ',
    };
    let rate = if leg.rate == 1 { String::new() } else { format!("rate {}, ", leg.rate) };
    let misses = match leg.margin {
        0 => String::new(),
        margin => format!(", misses {}/{}", leg.misses_in_row, margin),
    };
    let place = match (state_of(leg), leg.stop, leg.next) {
        (Some(LegState::Stopped), Some(stop), _) => format!("stopped at {stop}"),
        (Some(LegState::Complete), ..) => "complete".to_owned(),
        (_, _, Some(next)) => format!("next {next}"),
        (_, _, None) => leg.state.clone(),
    };
    format!("{arrow} {rate}{place}{misses}")
}

fn direction_of(walk: &CoverageView, direction: Direction) -> Option<&LegView> {
    walk.legs.iter().find(|leg| leg.direction == direction.word())
}

fn state_of(leg: &LegView) -> Option<LegState> {
    LegState::from_word(&leg.state)
}

fn is_open(leg: &LegView) -> bool {
    !matches!(state_of(leg), Some(LegState::Stopped | LegState::Complete))
}

fn arrow(direction: Direction, is_unicode: bool) -> char {
    match (direction, is_unicode) {
        (Direction::Ascending, true) => '↑',
        (Direction::Ascending, false) => '^',
        (Direction::Descending, true) => '↓',
        (Direction::Descending, false) => 'v',
    }
}

/// The cells, as many as there is room for.
fn cells_text(strip: &StripView, room: usize, is_unicode: bool) -> String {
    let cells: Vec<char> = strip.cells.chars().collect();
    let count = cells.len();
    let shown = count.min(room);
    let start = strip.start.and_then(|start| usize::try_from(start).ok());
    let start = start.map(|start| start * shown / count.max(1));
    let cell = |index: usize| match Some(index) == start {
        true => '@',
        false => glyph(cells[index * count / shown], is_unicode),
    };
    (0..shown).map(cell).collect()
}

/// How a cell is drawn: as JSON writes it, where there is nothing better.
fn glyph(cell: char, is_unicode: bool) -> char {
    match (cell, is_unicode) {
        ('#', true) => '▓',
        ('x', true) => '×',
        ('?', true) => '░',
        ('.', true) => '·',
        ('_', true) => '…',
        (cell, _) => cell,
    }
}

/// What the glyphs of a strip mean.
pub fn legend(is_unicode: bool) -> String {
    let cells =
        [('#', "content"), ('.', "missing"), ('x', "hole"), ('?', "to retry"), ('_', "unknown")];
    let parts = cells.map(|(cell, word)| format!("{} {word}", glyph(cell, is_unicode)));
    format!("{}  @ start", parts.join("  "))
}

#[cfg(test)]
mod tests {
    use telusur_model::{Coverage, CoverageCounts, LegCoverage, Strip, StripCell, WalkCoverage};

    use super::*;

    fn walk() -> CoverageView {
        CoverageView::of(&whole(), 0)
    }

    fn whole() -> WalkCoverage {
        let leg = |direction, rate, state, next| LegCoverage {
            direction,
            rate,
            state,
            next: Some(next),
            stop: (state == LegState::Stopped).then_some(next - 1),
            misses_in_row: 2,
            margin: 50,
            retry_at: None,
            asks_fresh: true,
        };
        let cells = [
            [StripCell::Content; 8].as_slice(),
            &[StripCell::Missing, StripCell::Hole, StripCell::Waiting, StripCell::Unknown],
            &[StripCell::Content; 8],
        ];
        WalkCoverage {
            template: "https://a.org/{id}".into(),
            min: Some(1),
            max: Some(9999),
            start: Some(500),
            coverage: Coverage {
                counts: CoverageCounts {
                    content: 5_913,
                    missing: 3,
                    holes: 87,
                    waiting: 12,
                    unknown: Some(3_984),
                    content_past_stop: 0,
                },
                legs: vec![
                    leg(Direction::Ascending, 1, LegState::Running, 900),
                    leg(Direction::Descending, 2, LegState::Stopped, 100),
                ],
            },
            strip: Some(Strip { first: 100, last: 899, cells: cells.concat(), start: Some(4) }),
            retry_in_ms: Some(480_000),
            missing_by_look: 0,
        }
    }

    #[test]
    fn a_walk_is_a_line_of_cells() {
        let line = strip_line(&walk(), 80, true).unwrap();
        assert_eq!(line, "    100 ▓▓▓▓@▓▓▓·×░…▓▓▓▓▓▓▓▓ 899 ↑");
        let line = strip_line(&walk(), 80, false).unwrap();
        assert_eq!(line, "    100 ####@###.x?_######## 899 ^");
    }

    #[test]
    fn a_line_fits_its_columns() {
        for columns in 0..80 {
            if let Some(line) = strip_line(&walk(), columns, true) {
                assert!(line.chars().count() <= columns, "{line}");
                assert!(line.contains('@'), "{line}");
            }
        }
        assert_eq!(strip_line(&walk(), 20, true), None);
    }

    #[test]
    fn counts_say_where_each_direction_is() {
        assert_eq!(
            count_parts(&walk(), true),
            [
                "content 5,913",
                "missing 3",
                "holes 87",
                "12 to retry in 8m00s",
                "unknown 3,984",
                "↑ next 900, misses 2/50",
                "↓ rate 2, stopped at 99, misses 2/50",
            ]
        );
    }
}
