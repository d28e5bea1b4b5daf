//! `telusur inspect page`: everything that is in a page that lies in a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;
use telusur_model::{PageContent, PageUrl, RawPage};
use telusur_parse_pool::{Parser, Reading};

use super::super::{Outcome, Session};
use super::{Id, answer_lines};
use crate::cli::InspectPageArgs;
use crate::foreground::parsers;
use crate::message::{Code, Message, shown};
use crate::page_view::PageView;
use crate::parsing::{no_parser, not_parsed, parser_when_needed};

/// Largest page that is read from a file, unpacked. Sixty-four times what a crawl reads of a page by
/// default.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The address of a page that came without one.
const NO_URL: &str = "http://localhost/";

/// What a line of `--jsonl` looks like.
const QUESTION: &str = "{\"id\": 1, \"path\": \"page.html.gz\", \"url\": \"http://...\"}";

pub(in crate::commands) fn inspect_page(
    session: &Session,
    arguments: &InspectPageArgs,
    output: &mut dyn Write,
) -> Outcome {
    let parser = parser_when_needed(parsers(&session.settings(Vec::new())?.settings))?;
    if arguments.jsonl {
        return answer_lines(session, output, QUESTION, |question| answer(&*parser, question));
    }
    let path = arguments.file.as_deref().expect("clap requires it without --jsonl");
    let raw = raw_page(path, arguments.url.as_deref())?;
    let content = content_of(&*parser, &raw)?;
    let view = PageView {
        url: raw.url.as_str(),
        crawl: "",
        rows: Vec::new(),
        about: json!({ "url": raw.url }),
        headers: &[],
        body: &raw.body,
        content: &content,
    };
    view.write(arguments.form, session.global.json, output)?;
    Ok(0)
}

/// One question of `--jsonl`.
#[derive(Deserialize)]
struct Question {
    id: Id,
    path: String,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PageInspection {
    Page {
        id: Id,
        #[serde(flatten)]
        content: Box<PageContent>,
    },
    Failed {
        id: Id,
        error: String,
    },
}

fn answer(parser: &dyn Parser, question: Question) -> PageInspection {
    let Question { id, path, url } = question;
    let raw = raw_page(Path::new(&path), url.as_deref());
    match raw.and_then(|raw| content_of(parser, &raw)) {
        Ok(content) => PageInspection::Page { id, content },
        Err(message) => PageInspection::Failed { id, error: message.what },
    }
}

/// What is in a page. A file has no label; whoever asks says that it is a page, so what does not look
/// like anything else is read as HTML.
fn content_of(parser: &dyn Parser, raw: &RawPage) -> Result<Box<PageContent>, Message> {
    let content = read(parser, raw)?;
    if !content.charset.is_empty() {
        return Ok(content);
    }
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    read(parser, &RawPage { headers, ..raw.clone() })
}

fn read(parser: &dyn Parser, raw: &RawPage) -> Result<Box<PageContent>, Message> {
    match parser.read(raw).map_err(|error| no_parser(&error))? {
        Reading::Read(content) => Ok(content),
        Reading::Failed { why } => Err(not_parsed(raw.url.as_str(), &why)),
    }
}

fn raw_page(path: &Path, url: Option<&str>) -> Result<RawPage, Message> {
    let text = url.unwrap_or(NO_URL);
    let url = PageUrl::parse(text).map_err(|error| {
        Message::new(Code::BadUrl, format!("\"{}\" is not a URL: {error}", shown(text)))
    })?;
    let body = read_file(path)?;
    Ok(RawPage {
        url,
        status: 200,
        headers: Vec::new(),
        wire_bytes: body.len() as u64,
        body: body.into(),
        truncated: false,
    })
}

/// Reads a file, standard input, or a packed file, within the limit.
fn read_file(path: &Path) -> Result<Vec<u8>, Message> {
    let refuse = |why: String| {
        let path = shown(&path.to_string_lossy());
        Message::new(Code::PageFile, format!("cannot read {path}: {why}"))
    };
    let open = || File::open(path).map_err(|error| refuse(error.to_string()));
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(open()?))
    } else {
        Box::new(open()?)
    };
    let mut body = Vec::new();
    // One byte more tells that there is more.
    let read = source.by_ref().take(FILE_BYTES_MAX + 1).read_to_end(&mut body);
    read.map_err(|error| refuse(error.to_string()))?;
    if body.len() as u64 > FILE_BYTES_MAX {
        return Err(refuse(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(body)
}
