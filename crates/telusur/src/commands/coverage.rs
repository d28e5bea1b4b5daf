//! `telusur coverage`: which ids of a linear crawl exist, failed, or are left.

use std::io::{self, Write};

use serde_json::{Value, json};
use telusur_engine::control::{CoverageItem, CoveredRun, ReadCoverage};
use telusur_model::{Direction, IdState, LegCoverage, WalkCoverage};

use super::{Outcome, Session};
use crate::cli::CoverageArgs;
use crate::message::shown;
use crate::progress::{count_parts, leg_text, legend, strip_line};
use crate::units::show_count;

/// Columns of the strip where nobody says how many there are.
const COLUMNS: usize = 80;
/// Runs of failed ids that are shown; `--holes` shows them all.
const HOLES_SHOWN_MAX: usize = 10;

/// A walk with its runs.
struct Walk {
    coverage: WalkCoverage,
    runs: Vec<CoveredRun>,
}

pub(super) fn coverage(
    session: &Session,
    arguments: &CoverageArgs,
    output: &mut dyn Write,
) -> Outcome {
    let walks = ask(session, &arguments.crawl)?;
    for walk in &walks {
        if session.global.json {
            writeln!(output, "{}", walk_json(walk))?;
        } else if arguments.holes {
            write_holes(walk, output, usize::MAX)?;
        } else {
            write_walk(session, walk, output)?;
        }
    }
    if !session.global.json && !arguments.holes {
        writeln!(output, "{}", legend(session.terminal.is_unicode))?;
    }
    Ok(0)
}

fn ask(session: &Session, crawl: &str) -> Result<Vec<Walk>, crate::message::Message> {
    let mut walks: Vec<Walk> = Vec::new();
    session.each(&ReadCoverage { crawl: crawl.to_owned() }, &mut |item| {
        match item {
            CoverageItem::Walk(coverage) => {
                walks.push(Walk { coverage: *coverage, runs: Vec::new() });
            }
            CoverageItem::Runs(runs) => {
                if let Some(walk) = walks.last_mut() {
                    walk.runs.extend(runs);
                }
            }
        }
        true
    })?;
    Ok(walks)
}

fn write_walk(session: &Session, walk: &Walk, output: &mut dyn Write) -> io::Result<()> {
    let is_unicode = session.terminal.is_unicode;
    let coverage = &walk.coverage;
    writeln!(output, "{}", shown(&coverage.template))?;
    if let Some(line) = strip_line(coverage, COLUMNS, is_unicode) {
        writeln!(output, "{line}")?;
    }
    let bound = |id: Option<u64>| id.map_or("unknown".to_owned(), |id| id.to_string());
    writeln!(output, "    bounds     {} to {}", bound(coverage.min), bound(coverage.max))?;
    let legs = coverage.coverage.legs.len();
    let parts = count_parts(coverage, is_unicode);
    writeln!(output, "    ids        {}", parts[..parts.len() - legs].join(", "))?;
    for leg in &coverage.coverage.legs {
        writeln!(output, "    {:<11}{}", leg.direction.word(), leg_text(leg, is_unicode))?;
    }
    if coverage.coverage.counts.content_past_stop > 0 {
        let past = show_count(coverage.coverage.counts.content_past_stop);
        writeln!(output, "    past it    {past} more exist beyond the stop; they were under way")?;
    }
    write_holes(walk, output, HOLES_SHOWN_MAX)
}

fn write_holes(walk: &Walk, output: &mut dyn Write, most: usize) -> io::Result<()> {
    let holes = walk.runs.iter().filter(|run| is_hole(run));
    for CoveredRun { run, why } in holes.clone().take(most) {
        let ids = match run.count {
            1 => run.first.to_string(),
            _ => format!("{}-{}", run.first, run.last),
        };
        let why = why.map(|why| format!("  {why} ({})", why.help())).unwrap_or_default();
        writeln!(output, "    {:<10} {ids}{why}", run.state.word())?;
    }
    let more = holes.count().saturating_sub(most);
    if more > 0 {
        writeln!(output, "    and {} more: --holes lists them all", show_count(more as u64))?;
    }
    Ok(())
}

fn is_hole(run: &CoveredRun) -> bool {
    matches!(run.run.state, IdState::Hole | IdState::Waiting { .. })
}

/// A walk for machines: runs, never one row per id.
fn walk_json(walk: &Walk) -> Value {
    let WalkCoverage { template, min, max, start, coverage, .. } = &walk.coverage;
    let counts = &coverage.counts;
    let leg = |direction| coverage.legs.iter().find(|leg| leg.direction == direction).map(leg_json);
    let runs = walk.runs.iter().map(|CoveredRun { run, why }| match why {
        Some(why) => json!([run.first, run.count, run.state.word(), why]),
        None => json!([run.first, run.count, run.state.word()]),
    });
    json!({
        "template": template,
        "bounds": { "min": min, "max": max, "start": start },
        "ascending": leg(Direction::Ascending),
        "descending": leg(Direction::Descending),
        "counts": {
            "content": counts.content,
            "missing": counts.missing,
            "missing_by_look": walk.coverage.missing_by_look,
            "holes": counts.holes,
            "pending_retry": counts.waiting,
            "unknown": counts.unknown.map(|unknown| u64::try_from(unknown).unwrap_or(u64::MAX)),
        },
        "runs": runs.collect::<Vec<_>>(),
        "next_cursor": null,
    })
}

fn leg_json(leg: &LegCoverage) -> Value {
    json!({
        "next": leg.next,
        "stop": leg.stop,
        "misses_in_row": leg.misses_in_row,
        "margin": leg.margin,
        "rate": leg.rate,
        "state": leg.state.word(),
    })
}
