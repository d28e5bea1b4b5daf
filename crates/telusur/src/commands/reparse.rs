//! `telusur reparse`: what the present extractor makes of pages that are stored already.

use std::io::{self, Write};

use telusur_engine::control::{ReparseCrawl, ReparseItem, RereadPage, RereadTotal};

use super::{Outcome, Session};
use crate::backend;
use crate::cli::WorkArgs;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::settings::Key;
use crate::units::show_count;

pub(super) fn reparse(session: &Session, arguments: WorkArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.space.given())?.settings;
    let (crawl, free_bytes_min) = (arguments.crawl, settings.bytes(Key::MinFreeDisk));
    let target = session.target(&settings)?;
    let mut damaged = 0;
    let mut written = Ok(());
    let operation = ReparseCrawl { crawl: crawl.clone(), free_bytes_min };
    let total = backend::ask(&target, &operation, &mut |item| {
        match item {
            ReparseItem::Reread(page) if session.global.json => {
                written = write_json_line(output, &page);
            }
            ReparseItem::Reread(page) => written = write_page(output, &page),
            ReparseItem::Damaged(page) => {
                damaged += 1;
                session.talk.warning(&format!("{}: {}", shown(&page.url), shown(&page.what)));
            }
        }
        written.is_ok()
    })?;
    written?;
    let total = total.unwrap_or_default();
    if session.global.json {
        write_json_line(output, &total)?;
    } else {
        write_total(output, &total)?;
    }
    if total.queued > 0 {
        session.talk.note(&format!("to fetch what is new: telusur resume {}", shown(&crawl)));
    }
    if damaged > 0 {
        let what = format!("{damaged} pages cannot be read and stay as they are");
        return Err(Message::new(Code::DamagedData, what).hint("See: telusur verify").into());
    }
    Ok(0)
}

fn write_page(output: &mut dyn Write, page: &RereadPage) -> io::Result<()> {
    writeln!(output, "{}", shown(&page.url))?;
    for change in &page.changes {
        let (before, now) = (shown(&change.before), shown(&change.now));
        writeln!(output, "  {:<7}{before:?} -> {now:?}", change.what)?;
    }
    Ok(())
}

fn write_total(output: &mut dyn Write, total: &RereadTotal) -> io::Result<()> {
    writeln!(
        output,
        "{} pages read again, {} changed, {} new URLs queued",
        show_count(total.pages),
        show_count(total.changed),
        show_count(total.queued)
    )?;
    if total.not_kept > 0 {
        writeln!(output, "{} pages have no stored body", show_count(total.not_kept))?;
    }
    Ok(())
}
