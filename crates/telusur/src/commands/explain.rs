//! `telusur explain`: what a code of a message, or a reason of a crawl, means.

use std::io::Write;

use serde_json::json;
use telusur_model::Reason;

use super::{Outcome, Session};
use crate::message::{Code, Message, shown};

pub(super) fn explain(session: &Session, subject: &str, output: &mut dyn Write) -> Outcome {
    let (word, title, text) = if let Some(code) = Code::from_word(subject) {
        (code.word(), code.title(), code.explanation())
    } else if let Some(reason) = Reason::from_word(subject) {
        (reason.word(), reason.help(), "A reason why a URL was not fetched.".to_owned())
    } else {
        let what = format!("\"{}\" is no code and no reason", shown(subject));
        let hint = "Codes look like E0103, reasons like timeout_connect";
        return Err(Message::new(Code::UnknownCode, what).hint(hint).into());
    };
    if session.global.json {
        writeln!(output, "{}", json!({ "code": word, "title": title, "explanation": text }))?;
    } else {
        writeln!(output, "{word}: {title}\n\n{text}")?;
    }
    Ok(0)
}
