//! Who reads pages for a command that starts no engine: one jailed child, which is started by the first page.

use std::sync::Arc;

use telusur_model::Reason;
use telusur_parse_pool::{InProcess, LazyPool, Parser, PoolError, PoolSettings};

use crate::message::{Code, Message, shown};

/// What to do if no child can be started.
const NO_JAIL_HINT: &str = "With TELUSUR_PARSERS=0 pages are parsed without a jail";

/// A jailed child when a page comes; this process if the user has chosen to do without a jail, which is what
/// no `parsers` mean. These commands read one page after the other: a second child would have nothing to do.
pub fn parser_when_needed(parsers: usize) -> Result<Arc<dyn Parser>, Message> {
    if parsers == 0 {
        return Ok(Arc::new(InProcess::default()));
    }
    let settings = PoolSettings::new(1).map_err(|error| {
        Message::new(Code::Storage, format!("cannot read pages: find this program: {error}"))
    })?;
    Ok(Arc::new(LazyPool::new(settings)))
}

/// Says that a page breaks the parser.
pub fn not_parsed(url: &str, why: &str) -> Message {
    let what = format!("cannot parse {}: {} ({})", shown(url), Reason::ParseFailed, shown(why));
    Message::new(Code::PageParse, what).hint("To print it as it came: --as html")
}

/// No page can be parsed on this machine at present.
pub fn no_parser(error: &PoolError) -> Message {
    Message::new(Code::Storage, error.to_string()).hint(NO_JAIL_HINT)
}
