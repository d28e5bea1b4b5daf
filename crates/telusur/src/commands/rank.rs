//! `telusur rank`: the best linked pages and sites.

use std::io::{self, Write};

use telusur_engine::control::{Rank, RankItem};

use super::{Outcome, Session};
use crate::cli::RankArgs;
use crate::json::write_json_line;
use crate::message::shown;
use crate::units::show_count;

/// Exit code when there is nothing to list, as for `search`.
const NOTHING_FOUND: u8 = 1;

pub(super) fn rank(session: &Session, arguments: &RankArgs, output: &mut dyn Write) -> Outcome {
    let operation =
        Rank { crawl: arguments.crawl.clone(), sites: arguments.sites, max: arguments.limit };
    let mut written = Ok(());
    let mut count = 0_u64;
    session.each(&operation, &mut |item| {
        count += 1;
        written = write_line(&item, session.global.json, output);
        written.is_ok()
    })?;
    written?;
    if count == 0 {
        session.talk.note("no page is indexed yet");
        return Ok(NOTHING_FOUND);
    }
    Ok(0)
}

fn write_line(item: &RankItem, is_json: bool, output: &mut dyn Write) -> io::Result<()> {
    match item {
        item if is_json => write_json_line(output, item),
        RankItem::Page(page) => {
            let from = show_count(page.linked_from);
            writeln!(
                output,
                "{:>9.1}  {from:>7} links  {}  {}",
                page.times_average,
                shown(&page.url),
                shown(&page.title)
            )
        }
        RankItem::Site(site) => {
            let pages = show_count(u64::from(site.pages));
            let name = shown(&site.site);
            writeln!(output, "{:>9.1}  {pages:>7} pages  {name}", site.times_average)
        }
    }
}
