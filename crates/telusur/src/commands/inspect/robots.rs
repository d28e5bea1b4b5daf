//! `telusur inspect robots`: what a robots.txt allows, and by which line.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::json;
use telusur_fetch::robots::Rules;
use telusur_model::PageUrl;

use super::super::{Outcome, Session};
use super::{Id, answer_lines};
use crate::cli::InspectRobotsArgs;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};

/// What a line of `--jsonl` looks like.
const QUESTION: &str =
    "{\"id\": 1, \"robots\": \"User-agent: *\", \"agent\": \"Telusur\", \"url\": \"http://...\"}";

pub(in crate::commands) fn inspect_robots(
    session: &Session,
    arguments: &InspectRobotsArgs,
    output: &mut dyn Write,
) -> Outcome {
    if arguments.jsonl {
        return answer_lines(session, output, QUESTION, answer);
    }
    let path = arguments.file.as_deref().expect("clap requires it without --jsonl");
    let bytes = std::fs::read(path).map_err(|error| {
        let path = shown(&path.to_string_lossy());
        Message::new(Code::BadArgument, format!("cannot read {path}: {error}"))
    })?;
    let rules = Rules::parse(&bytes, &arguments.agent);
    for text in &arguments.urls {
        let url = PageUrl::parse(text).map_err(|error| {
            Message::new(Code::BadUrl, format!("\"{}\" is not a URL: {error}", shown(text)))
        })?;
        let verdict = rules.verdict(&url);
        let line = verdict.rule.map(telusur_fetch::robots::Rule::line);
        let rule = verdict.rule.map(ToString::to_string);
        if session.global.json {
            let answer =
                json!({ "url": url, "allowed": verdict.allowed, "line": line, "rule": rule });
            write_json_line(output, &answer)?;
            continue;
        }
        let word = if verdict.allowed { "allowed" } else { "disallowed" };
        let by = match (line, rule) {
            (Some(line), Some(rule)) => format!("line {line}: {}", shown(&rule)),
            _ => "no rule matches".to_owned(),
        };
        writeln!(output, "{word:<11} {}  ({by})", shown(url.as_str()))?;
    }
    Ok(0)
}

/// One question of `--jsonl`.
#[derive(Deserialize)]
struct Question {
    id: Id,
    robots: String,
    agent: String,
    url: String,
}

#[derive(Serialize)]
struct RobotsInspection {
    id: Id,
    /// `None` if the URL is none.
    allowed: Option<bool>,
    line: Option<u32>,
}

fn answer(question: Question) -> RobotsInspection {
    let rules = Rules::parse(question.robots.as_bytes(), &question.agent);
    let url = PageUrl::parse(&question.url).ok();
    let verdict = url.as_ref().map(|url| rules.verdict(url));
    RobotsInspection {
        id: question.id,
        allowed: verdict.as_ref().map(|verdict| verdict.allowed),
        line: verdict.and_then(|verdict| verdict.rule).map(telusur_fetch::robots::Rule::line),
    }
}
