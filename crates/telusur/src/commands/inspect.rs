//! `telusur inspect`: how Telusur reads a URL. Pure computation; nobody is asked.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::json;
use telusur_model::{PageUrl, UrlError, UrlKeyer, normal_form};
use url::Url;

use super::{Failure, Outcome, Session};
use crate::cli::InspectUrlArgs;
use crate::lines::read_line;
use crate::message::{Code, Message, exit, shown};

/// Longest line of JSON that is read: a URL of any sensible length, escaped.
const LINE_BYTES_MAX: usize = 1 << 20;

pub(super) fn inspect_url(
    session: &Session,
    arguments: &InspectUrlArgs,
    output: &mut dyn Write,
) -> Outcome {
    let drop_tracking = !arguments.keep_tracking;
    if arguments.jsonl {
        return inspect_lines(session, drop_tracking, &mut io::stdin().lock(), output);
    }
    let text = arguments.text.as_deref().expect("clap requires it without --jsonl");
    let url = resolve(text, arguments.base.as_deref())
        .map_err(|error| UrlError::Bad(error.to_string()))
        .and_then(|url| PageUrl::parse(url.as_str()));
    match url {
        Ok(url) => show(session, &url, drop_tracking, output),
        Err(error) => refuse(session, text, &error, output),
    }
}

/// The URL by the WHATWG standard, of whatever scheme.
fn resolve(text: &str, base: Option<&str>) -> Result<Url, url::ParseError> {
    match base.filter(|base| !base.is_empty()) {
        Some(base) => Url::parse(base)?.join(text),
        None => Url::parse(text),
    }
}

fn show(session: &Session, url: &PageUrl, drop_tracking: bool, output: &mut dyn Write) -> Outcome {
    let form = normal_form(url, drop_tracking);
    let site = url.site();
    let key = UrlKeyer { seed: 0, drop_tracking }.key(url);
    if session.global.json {
        let answer = json!({
            "url": url, "normal_form": form, "host": url.host_str(), "port": url.port(),
            "site": site, "slot": site.slot(), "key": key.to_string(),
        });
        writeln!(output, "{answer}")?;
        return Ok(0);
    }
    writeln!(output, "as found     {url}")?;
    writeln!(output, "normal form  {form}")?;
    writeln!(output, "host         {}", url.host_str())?;
    writeln!(output, "port         {}", url.port())?;
    writeln!(output, "site         {site}")?;
    writeln!(output, "slot         {}", site.slot().0)?;
    writeln!(output, "key          {key}")?;
    Ok(0)
}

fn refuse(session: &Session, text: &str, error: &UrlError, output: &mut dyn Write) -> Outcome {
    let reason = match error {
        UrlError::Bad(_) => telusur_model::Reason::BadUrl,
        UrlError::Scheme(_) => telusur_model::Reason::BlockedScheme,
        UrlError::TooLong(_) => telusur_model::Reason::UrlTooLong,
    };
    if session.global.json {
        let answer = json!({ "url": null, "reason": reason, "detail": error.to_string() });
        writeln!(output, "{answer}")?;
    } else {
        writeln!(output, "as found     {}", shown(text))?;
        writeln!(output, "refused      {reason}: {}", shown(&error.to_string()))?;
    }
    Ok(exit::USAGE)
}

/// One question of `--jsonl`.
#[derive(Deserialize)]
struct Question {
    id: Id,
    url: String,
    #[serde(default)]
    base: Option<String>,
}

/// The questioner's own name for a question.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Id {
    Number(serde_json::Number),
    Text(String),
}

#[derive(Serialize)]
struct Answer {
    id: Id,
    url: Option<String>,
    href: Option<String>,
}

fn inspect_lines(
    session: &Session,
    drop_tracking: bool,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Outcome {
    let mut output = io::BufWriter::new(output);
    let mut bad_count = 0_u64;
    let mut line = Vec::new();
    for line_no in 1_u64.. {
        if !read_line(&mut *input, &mut line, LINE_BYTES_MAX).map_err(unreadable)? {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(question) => {
                serde_json::to_writer(&mut output, &answer(question, drop_tracking))
                    .map_err(io::Error::from)?;
                output.write_all(b"\n")?;
            }
            Err(error) => {
                bad_count += 1;
                session.talk.error(&bad_line(line_no, &error));
            }
        }
    }
    output.flush()?;
    Ok(if bad_count == 0 { 0 } else { exit::USAGE })
}

fn answer(question: Question, drop_tracking: bool) -> Answer {
    let href = resolve(&question.url, question.base.as_deref()).ok().map(String::from);
    let page = href.as_deref().and_then(|href| PageUrl::parse(href).ok());
    let url = page.map(|page| normal_form(&page, drop_tracking).into_owned());
    Answer { id: question.id, url, href }
}

fn bad_line(line_no: u64, error: &serde_json::Error) -> Message {
    // The position within the line is right, the line number always 1.
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or(&text);
    Message::new(Code::BadJsonLine, format!("standard input:{line_no}: {}", shown(why)))
        .hint("Write {\"id\": 1, \"url\": \"http://...\"} on each line")
}

fn unreadable(error: io::Error) -> Failure {
    Message::new(Code::BadJsonLine, format!("cannot read standard input: {error}")).into()
}
