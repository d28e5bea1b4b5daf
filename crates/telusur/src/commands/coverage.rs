//! `telusur coverage`: which ids of a linear crawl exist, failed, or are left.

use std::io::{self, Write};

use telusur_engine::control::ReadCoverage;
use telusur_engine::json::{CoverageView, RunView};
use telusur_model::Reason;

use super::{Outcome, Session};
use crate::cli::CoverageArgs;
use crate::json::write_json_line;
use crate::message::{Message, shown};
use crate::progress::{count_parts, leg_text, legend, strip_line};
use crate::units::show_count;

/// Columns of the strip where nobody says how many there are.
const COLUMNS: usize = 80;
/// Runs of failed ids that are shown; `--holes` shows them all.
const HOLES_SHOWN_MAX: usize = 10;

pub(super) fn coverage(
    session: &Session,
    arguments: &CoverageArgs,
    output: &mut dyn Write,
) -> Outcome {
    let walks = ask(session, &arguments.crawl)?;
    for walk in &walks {
        if session.global.json {
            write_json_line(output, walk)?;
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

fn ask(session: &Session, crawl: &str) -> Result<Vec<CoverageView>, Message> {
    let mut walks = Vec::new();
    let read = ReadCoverage { crawl: crawl.to_owned(), ..ReadCoverage::default() };
    session.each(&read, &mut |item| {
        CoverageView::join(&mut walks, item);
        true
    })?;
    Ok(walks)
}

fn write_walk(session: &Session, walk: &CoverageView, output: &mut dyn Write) -> io::Result<()> {
    let is_unicode = session.terminal.is_unicode;
    writeln!(output, "{}", shown(&walk.template))?;
    if let Some(line) = strip_line(walk, COLUMNS, is_unicode) {
        writeln!(output, "{line}")?;
    }
    let bound = |id: Option<u64>| id.map_or("unknown".to_owned(), |id| id.to_string());
    writeln!(output, "    bounds     {} to {}", bound(walk.min), bound(walk.max))?;
    let parts = count_parts(walk, is_unicode);
    writeln!(output, "    ids        {}", parts[..parts.len() - walk.legs.len()].join(", "))?;
    for leg in &walk.legs {
        writeln!(output, "    {:<11}{}", shown(&leg.direction), leg_text(leg, is_unicode))?;
    }
    if walk.counts.content_past_stop > 0 {
        let past = show_count(walk.counts.content_past_stop);
        writeln!(output, "    past it    {past} more exist beyond the stop; they were under way")?;
    }
    write_holes(walk, output, HOLES_SHOWN_MAX)
}

fn write_holes(walk: &CoverageView, output: &mut dyn Write, most: usize) -> io::Result<()> {
    let holes = walk.runs.iter().filter(|run| is_hole(run));
    for run in holes.clone().take(most) {
        let ids = match run.count {
            1 => run.first.to_string(),
            _ => format!("{}-{}", run.first, run.last),
        };
        let why = run.reason.as_deref().and_then(Reason::from_word);
        let why = why.map(|why| format!("  {why} ({})", why.help())).unwrap_or_default();
        writeln!(output, "    {:<10} {ids}{why}", shown(&run.state))?;
    }
    let more = holes.count().saturating_sub(most);
    if more > 0 {
        writeln!(output, "    and {} more: --holes lists them all", show_count(more as u64))?;
    }
    Ok(())
}

fn is_hole(run: &RunView) -> bool {
    matches!(run.state.as_str(), "hole" | "waiting")
}
