//! `telusur index status` and `telusur index rebuild`.

use std::io::Write;

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_engine::control::{CatchUpIndex, IndexProgress, IndexReport, Operation, RebuildIndex};
use telusur_model::Clock;

use super::{Outcome, Session};
use crate::backend::{self, DirectoryControl, Target};
use crate::cli::{IndexCommand, SpaceArgs};
use crate::json::write_json_line;
use crate::message::Message;
use crate::progress::{Indexing, ProgressDisplay};
use crate::settings::Key;
use crate::units::{show_count, show_size};

/// Looks after the search index.
pub(super) fn index(session: &Session, command: &IndexCommand, output: &mut dyn Write) -> Outcome {
    let space = match command {
        IndexCommand::Rebuild { space } => Some(space),
        IndexCommand::Status => None,
    };
    let settings = session.settings(space.map(SpaceArgs::given).unwrap_or_default())?.settings;
    let target = session.target(&settings)?;
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let report = match command {
        IndexCommand::Status => ask(&target, &CatchUpIndex {}, &mut display),
        IndexCommand::Rebuild { .. } => {
            let min_free_disk = settings.bytes(Key::MinFreeDisk);
            ask(&target, &RebuildIndex { min_free_disk }, &mut display)
        }
    }?;
    display.finish();
    if session.global.json {
        let answer = json!({
            "documents": report.documents, "bytes": report.bytes,
            "stored_bytes": report.stored_bytes, "applied_upto": report.applied_upto,
            "pages_looked_at": report.pages_looked_at,
        });
        write_json_line(output, &answer)?;
    } else {
        let (count, size) = (show_count(report.documents), show_size(report.bytes));
        writeln!(
            output,
            "{count} documents, {size} ({} of it texts)",
            show_size(report.stored_bytes)
        )?;
    }
    Ok(0)
}

fn ask<O>(
    target: &Target,
    operation: &O,
    display: &mut ProgressDisplay,
) -> Result<IndexReport, Message>
where
    O: Operation<Item = IndexProgress, Reply = IndexReport>,
{
    let clock = SystemClock::new();
    let reply = backend::ask(target, operation, &mut |step| {
        show(display, step, &clock);
        true
    })?;
    Ok(reply.expect("an operation that is not broken off replies"))
}

/// Makes everything searchable that is stored.
pub(super) fn bring_up_to_date(
    control: &DirectoryControl,
    display: &mut ProgressDisplay,
) -> Result<(), Message> {
    let clock = SystemClock::new();
    let done = control.ask(&CatchUpIndex {}, &mut |step| {
        show(display, step, &clock);
        true
    });
    done.map(drop)
}

fn show(display: &mut ProgressDisplay, step: IndexProgress, clock: &dyn Clock) {
    let IndexProgress { indexed, behind } = step;
    display.update_indexing(Indexing { indexed, behind }, clock.now());
}
