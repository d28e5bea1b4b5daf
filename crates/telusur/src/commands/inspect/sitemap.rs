//! `telusur inspect sitemap`: what a sitemap or a feed lists.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::json;
use telusur_fetch::sitemap::{self, Sitemap};

use super::super::{Outcome, Session};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::units::show_count;

/// Largest file that is read: the limit of a sitemap, and one byte to notice what is beyond it.
const FILE_BYTES_MAX: u64 = (50 << 20) + 1;

pub(in crate::commands) fn inspect_sitemap(
    session: &Session,
    path: &Path,
    output: &mut dyn Write,
) -> Outcome {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(|error| {
            let path = shown(&path.to_string_lossy());
            Message::new(Code::BadArgument, format!("cannot read {path}: {error}"))
        })?;
    let sitemap = sitemap::read(&bytes);
    for entry in &sitemap.entries {
        let lastmod = entry.lastmod.as_ref();
        let line = json!({
            "loc": entry.loc,
            "lastmod": lastmod.map(|lastmod| &lastmod.raw),
            "time": lastmod.and_then(|lastmod| lastmod.at).map(telusur_model::Timestamp::rfc3339),
            "kind": entry.kind.word(),
            "hreflang": entry.kind.hreflang(),
        });
        write_json_line(output, &line)?;
    }
    output.flush()?;
    say_what_is_missing(session, &sitemap);
    Ok(0)
}

fn say_what_is_missing(session: &Session, sitemap: &Sitemap) {
    let dropped = sitemap.dropped.total();
    if dropped > 0 {
        session.talk.warning(&format!("{} entries were left out", show_count(dropped)));
    }
    if let Some(trouble) = &sitemap.trouble {
        session.talk.warning(&format!("{}: {trouble}", trouble.word()));
    }
}
