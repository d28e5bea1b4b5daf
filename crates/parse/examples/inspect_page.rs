//! Everything in pages, one JSON object per line: for measuring extraction and for looking at it.
//!
//! `inspect_page --jsonl` reads lines of `{"id","path","url"}` from standard input, where the path
//! may end in `.gz`, and writes `{"id","title","text","visible_text","markdown","language",…}`.
//! `inspect_page FILE [URL]` writes one such object for one file.

use std::io::{BufRead, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use telusur_model::{PageContent, PageUrl, RawPage};
use telusur_parse::{ContentLimits, read_page};

/// The address of a page that came without one.
const NO_URL: &str = "http://localhost/";

#[derive(Deserialize)]
struct Wanted {
    id: String,
    path: String,
    url: Option<String>,
}

#[derive(Serialize)]
struct Found {
    id: String,
    #[serde(flatten)]
    content: PageContent,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--jsonl"), _) => {
            for line in std::io::stdin().lock().lines() {
                let line = line.expect("standard input can be read");
                print(serde_json::from_str(&line).expect("a line is an object"), &mut out);
            }
        }
        (Some(path), url) => {
            print(Wanted { id: path.to_owned(), path: path.to_owned(), url }, &mut out);
        }
        (None, _) => eprintln!("usage: inspect_page --jsonl | inspect_page FILE [URL]"),
    }
}

fn print(wanted: Wanted, out: &mut impl Write) {
    let body = read_file(Path::new(&wanted.path));
    let url = wanted.url.as_deref().unwrap_or(NO_URL);
    let raw = RawPage {
        url: PageUrl::parse(url).expect("the URL is absolute"),
        status: 200,
        headers: Vec::new(),
        wire_bytes: body.len() as u64,
        body: body.into(),
        truncated: false,
    };
    let mut content = read_page(&raw, &ContentLimits::default());
    if content.charset.is_empty() {
        // Without a label the body did not look like a page; the user says that it is one.
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        content = read_page(&RawPage { headers, ..raw }, &ContentLimits::default());
    }
    serde_json::to_writer(&mut *out, &Found { id: wanted.id, content }).expect("output is open");
    writeln!(out).expect("output is open");
}

fn read_file(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).expect("the file can be opened");
    let mut body = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut body)
    } else {
        std::io::BufReader::new(file).read_to_end(&mut body)
    }
    .expect("the file can be read");
    body
}
