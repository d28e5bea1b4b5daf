//! `telusur inspect`: how Telusur reads things. Pure computation; nobody is asked.

mod page;
mod robots;
mod sitemap;
mod url;

use std::io::{self, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Failure, Outcome, Session};
use crate::json::write_json_line;
use crate::lines::read_line;
use crate::message::{Code, Message, exit, shown};

pub(super) use page::inspect_page;
pub(super) use robots::inspect_robots;
pub(super) use sitemap::inspect_sitemap;
pub(super) use url::inspect_url;

/// Longest line of JSON that is read: a whole robots.txt of half a megabyte, escaped.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The questioner's own name for a question.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Id {
    Number(serde_json::Number),
    Text(String),
}

/// Answers every line of JSON on standard input with one on standard output. Bad lines are reported
/// and passed over; `form` shows what a line looks like.
fn answer_lines<Q: DeserializeOwned, A: Serialize>(
    session: &Session,
    output: &mut dyn Write,
    form: &str,
    answer: impl Fn(Q) -> A,
) -> Outcome {
    let mut input = io::stdin().lock();
    let mut output = io::BufWriter::new(output);
    let mut bad_count = 0_u64;
    let mut line = Vec::new();
    for line_no in 1_u64.. {
        if !read_line(&mut input, &mut line, LINE_BYTES_MAX).map_err(unreadable)? {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(question) => {
                write_json_line(&mut output, &answer(question))?;
            }
            Err(error) => {
                bad_count += 1;
                session.talk.error(&bad_line(line_no, &error, form));
            }
        }
    }
    output.flush()?;
    Ok(if bad_count == 0 { 0 } else { exit::USAGE })
}

fn bad_line(line_no: u64, error: &serde_json::Error, form: &str) -> Message {
    // The position within the line is right, the line number always 1.
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or(&text);
    Message::new(Code::BadJsonLine, format!("standard input:{line_no}: {}", shown(why)))
        .hint(format!("Write {form} on each line"))
}

fn unreadable(error: io::Error) -> Failure {
    Message::new(Code::BadJsonLine, format!("cannot read standard input: {error}")).into()
}
