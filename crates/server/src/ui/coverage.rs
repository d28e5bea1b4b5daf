//! What is known of the ids of a linear crawl: a strip that can be looked at closely, and its holes.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;

use super::frame::{Frame, Viewer, address, render};
use super::live::Head;
use super::words::{Words, fill};
use crate::door::Params;
use crate::json::{CoverageView, RunView};
use crate::problem::Problem;
use crate::service::Service;

/// Pieces that are drawn: more than a screen has columns of pixels.
const RUNS_MAX: usize = 4000;
/// Holes that are listed.
const HOLES_SHOWN: usize = 200;
/// The width of the drawing, in its own unit.
const WIDTH: u128 = 1000;

/// Which part of which strip is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Zoom {
    walk: u32,
    first: Option<u64>,
    last: Option<u64>,
}

#[derive(Template)]
#[template(path = "coverage.html")]
struct CoveragePage {
    frame: Frame,
    head: Head,
    strips: Vec<Strip>,
    too_many: String,
}

struct Strip {
    walk: u32,
    template: String,
    range: String,
    /// A state, its word, and how many ids are in it.
    counts: Vec<(&'static str, &'static str, String)>,
    /// How many of the missing ones said that they exist; nothing if none did.
    missing_by_look: Option<String>,
    pieces: Vec<Piece>,
    start_x: Option<String>,
    /// Where a zoom leads, and what it is called.
    zooms: Vec<(String, &'static str)>,
    is_cut: bool,
    /// Direction, state, next id, misses in a row.
    legs: Vec<(String, String, String, String)>,
    /// Ids, state, count, reason.
    holes: Vec<(String, &'static str, String, String)>,
}

struct Piece {
    state: String,
    first: u64,
    last: u64,
    x: String,
    width: String,
}

/// The strips of a linear crawl.
pub(crate) async fn coverage(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(zoom): Params<Zoom>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    let crawl = service.crawl(no).await?;
    let covered = service.coverage(no, RUNS_MAX, None).await?;
    let words = reader.words();
    let is_cut = covered.next_cursor.is_some();
    let head = Head::of(&crawl, "/coverage", words, &service);
    let here = format!("/crawls/{}/coverage", head.alias);
    let strip = |view: CoverageView| {
        let part = Part::of(&view, &zoom);
        strip_of(view, part, &here, is_cut, &reader)
    };
    render(&CoveragePage {
        frame: reader.frame("crawls", format!("{} · {}", words.coverage_title, head.name)),
        head,
        strips: covered.items.into_iter().map(strip).collect(),
        too_many: fill(words.too_many_runs, &[("n", &reader.lang.count(RUNS_MAX as u64))]),
    })
}

/// The ids that are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: u64,
    last: u64,
    /// All that there is.
    whole: (u64, u64),
}

impl Part {
    fn of(view: &CoverageView, zoom: &Zoom) -> Self {
        let start = view.start.unwrap_or(0);
        let lowest = view.runs.first().map_or(start, |run| run.first);
        let highest = view.runs.last().map_or(start, |run| run.last);
        let low = view.min.unwrap_or(lowest).min(lowest);
        let high = view.max.unwrap_or(highest).max(highest);
        let whole = (low, high.max(low));
        let (first, last) = match zoom.walk == view.walk {
            true => (zoom.first.unwrap_or(whole.0), zoom.last.unwrap_or(whole.1)),
            false => whole,
        };
        let first = first.clamp(whole.0, whole.1);
        Self { first, last: last.clamp(first, whole.1), whole }
    }

    /// How many ids; never 0.
    fn ids(self) -> u128 {
        u128::from(self.last - self.first) + 1
    }

    /// A distance in ids as one in the drawing, with two digits behind the point.
    fn drawn(self, ids: u128) -> String {
        let hundredths = ids * WIDTH * 100 / self.ids();
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }

    fn piece(self, run: &RunView) -> Option<Piece> {
        let (first, last) = (run.first.max(self.first), run.last.min(self.last));
        if first > last {
            return None;
        }
        Some(Piece {
            state: run.state.clone(),
            first: run.first,
            last: run.last,
            x: self.drawn(u128::from(first - self.first)),
            width: self.drawn(u128::from(last - first) + 1),
        })
    }

    /// The same number of ids, or half, or twice as many, beside these or around their middle.
    fn moved(self, how: Move) -> Self {
        let ids = u64::try_from(self.ids()).unwrap_or(u64::MAX);
        let (first, last) = match how {
            Move::In => (self.first + ids / 4, self.last - ids / 4),
            Move::Out => (self.first.saturating_sub(ids / 2), self.last.saturating_add(ids / 2)),
            Move::Lower => {
                let by = (ids / 2).max(1).min(self.first - self.whole.0);
                (self.first - by, self.last - by)
            }
            Move::Higher => {
                let by = (ids / 2).max(1).min(self.whole.1 - self.last);
                (self.first + by, self.last + by)
            }
        };
        let first = first.clamp(self.whole.0, self.whole.1);
        Self { first, last: last.clamp(first, self.whole.1), whole: self.whole }
    }
}

#[derive(Clone, Copy)]
enum Move {
    In,
    Out,
    Lower,
    Higher,
}

fn strip_of(view: CoverageView, part: Part, here: &str, is_cut: bool, reader: &Viewer) -> Strip {
    let (words, lang) = (reader.words(), reader.lang);
    let counts = &view.counts;
    let unknown = counts.unknown.map_or_else(|| "?".to_owned(), |count| lang.count(count));
    let range = [lang.count(part.first), lang.count(part.last)];
    let start = view.start.filter(|start| (part.first..=part.last).contains(start));
    let walk = view.walk.to_string();
    let zooms = [
        (Move::In, words.zoom_in),
        (Move::Out, words.zoom_out),
        (Move::Lower, words.zoom_left),
        (Move::Higher, words.zoom_right),
    ];
    let zooms = zooms.into_iter().filter_map(|(how, text)| {
        let to = part.moved(how);
        let (first, last) = (to.first.to_string(), to.last.to_string());
        let params = [("walk", walk.as_str()), ("first", &first), ("last", &last)];
        (to != part).then(|| (address(here, &params), text))
    });
    let mut zooms: Vec<(String, &'static str)> = zooms.collect();
    if (part.first, part.last) != part.whole {
        zooms.push((here.to_owned(), words.zoom_all));
    }
    Strip {
        walk: view.walk,
        range: fill(words.coverage_strip, &[("first", &range[0]), ("last", &range[1])]),
        counts: vec![
            ("content", words.run_content, lang.count(counts.content)),
            ("missing", words.run_missing, lang.count(counts.missing)),
            ("hole", words.run_hole, lang.count(counts.holes)),
            ("waiting", words.run_waiting, lang.count(counts.pending_retry)),
            ("unknown", words.run_unknown, unknown),
        ],
        missing_by_look: (counts.missing_by_look > 0)
            .then(|| fill(words.missing_by_look, &[("n", &lang.count(counts.missing_by_look))])),
        pieces: view.runs.iter().filter_map(|run| part.piece(run)).collect(),
        start_x: start.map(|start| part.drawn(u128::from(start - part.first))),
        zooms,
        is_cut,
        legs: view
            .legs
            .iter()
            .map(|leg| {
                let next = leg.next.map_or_else(|| "–".to_owned(), |next| lang.count(next));
                let misses = format!("{} / {}", leg.misses_in_row, leg.margin);
                (leg.direction.clone(), leg.state.clone(), next, misses)
            })
            .collect(),
        holes: holes(&view.runs, reader),
        template: view.template,
    }
}

fn holes(runs: &[RunView], reader: &Viewer) -> Vec<(String, &'static str, String, String)> {
    let (words, lang): (&'static Words, _) = (reader.words(), reader.lang);
    let failed = runs.iter().filter(|run| matches!(run.state.as_str(), "hole" | "waiting"));
    let line = |run: &RunView| {
        let ids = match run.first == run.last {
            true => lang.count(run.first),
            false => format!("{} – {}", lang.count(run.first), lang.count(run.last)),
        };
        let word = if run.state == "hole" { words.run_hole } else { words.run_waiting };
        (ids, word, lang.count(run.count), run.reason.clone().unwrap_or_default())
    };
    failed.take(HOLES_SHOWN).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part { first: 100, last: 199, whole: (0, 999) };

    fn run(first: u64, last: u64) -> RunView {
        let count = last - first + 1;
        RunView { first, last, count, state: "content".to_owned(), reason: None }
    }

    #[test]
    fn runs_are_drawn_where_they_are() {
        let piece = PART.piece(&run(150, 174)).unwrap();
        assert_eq!((piece.x.as_str(), piece.width.as_str()), ("500.00", "250.00"));
        let cut = PART.piece(&run(0, 109)).unwrap();
        assert_eq!((cut.x.as_str(), cut.width.as_str()), ("0.00", "100.00"));
        assert!(PART.piece(&run(200, 300)).is_none());
        let all = Part { first: 0, last: u64::MAX, whole: (0, u64::MAX) };
        assert_eq!(all.piece(&run(0, u64::MAX - 1)).unwrap().x, "0.00");
    }

    #[test]
    fn zooming_stays_inside_of_what_there_is() {
        let at = |part: Part| (part.first, part.last);
        assert_eq!(at(PART.moved(Move::In)), (125, 174));
        assert_eq!(at(PART.moved(Move::Out)), (50, 249));
        assert_eq!(at(PART.moved(Move::Lower)), (50, 149));
        assert_eq!(at(PART.moved(Move::Higher)), (150, 249));
        let low = Part { first: 0, last: 9, whole: (0, 999) };
        assert_eq!(low.moved(Move::Lower), low);
        let one = Part { first: 5, last: 5, whole: (0, 9) };
        assert_eq!(one.moved(Move::In), one);
        let all = Part { first: 0, last: u64::MAX, whole: (0, u64::MAX) };
        assert_eq!(all.moved(Move::Out), all);
    }
}
