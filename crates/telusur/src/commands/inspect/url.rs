//! `telusur inspect url`: how a URL is read.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::json;
use telusur_model::{PageUrl, UrlError, UrlKeyer, join, normal_form};
use url::Url;

use super::super::{Outcome, Session};
use super::{Id, answer_lines};
use crate::cli::InspectUrlArgs;
use crate::json::write_json_line;
use crate::message::{exit, shown};

/// What a line of `--jsonl` looks like.
const QUESTION: &str = "{\"id\": 1, \"url\": \"http://...\"}";

pub(in crate::commands) fn inspect_url(
    session: &Session,
    arguments: &InspectUrlArgs,
    output: &mut dyn Write,
) -> Outcome {
    let drop_tracking = !arguments.keep_tracking;
    if arguments.jsonl {
        return answer_lines(session, output, QUESTION, |question| answer(question, drop_tracking));
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
        Some(base) => join(&Url::parse(base)?, text),
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
        write_json_line(output, &answer)?;
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
        write_json_line(output, &answer)?;
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

#[derive(Serialize)]
struct UrlInspection {
    id: Id,
    url: Option<String>,
    href: Option<String>,
}

fn answer(question: Question, drop_tracking: bool) -> UrlInspection {
    let href = resolve(&question.url, question.base.as_deref()).ok().map(String::from);
    let page = href.as_deref().and_then(|href| PageUrl::parse(href).ok());
    let url = page.map(|page| normal_form(&page, drop_tracking).into_owned());
    UrlInspection { id: question.id, url, href }
}
