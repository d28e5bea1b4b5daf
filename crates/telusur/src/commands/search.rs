//! `telusur search` and `suggest`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use telusur_engine::SystemClock;
use telusur_engine::control::{IndexUse, ReadCrawl, Search, SearchHit, SearchReply, Suggest};
use telusur_engine::export::write_row;
use telusur_index::{Column, FacetBy, Sort};
use telusur_model::{Clock, CrawlNo, Timestamp};

use super::{Outcome, Session};
use crate::backend;
use crate::cli::{SearchArgs, SearchColumn, SearchFacet, SearchFormat, SearchOrder};
use crate::json::write_json_line;
use crate::message::{Code, Message, printable, shown};
use crate::terminal::wants_color;
use crate::units::{read_duration_ms, show_count};

/// Exit code when nothing was found.
const NOTHING_FOUND: u8 = 1;

pub(super) fn search(session: &Session, arguments: &SearchArgs, output: &mut dyn Write) -> Outcome {
    if let Some(path) = &arguments.batch {
        return batch(session, arguments, path, output);
    }
    if arguments.words.is_empty() {
        return Err(Message::new(Code::Usage, "there is nothing to search for")
            .hint("Name words: telusur search polite crawler")
            .into());
    }
    let answer = session.ask(&search_of(session, arguments, arguments.words.join(" "))?)?;
    for ignored in &answer.ignored {
        session.talk.note(&format!("ignored: {}", shown(ignored)));
    }
    let format = if session.global.json { SearchFormat::Json } else { arguments.format };
    match format {
        SearchFormat::Json => write_json_line(output, &answer)?,
        SearchFormat::Jsonl => {
            answer.hits.iter().try_for_each(|hit| write_json_line(output, &hit))?;
        }
        SearchFormat::Csv => write_csv(&answer, output)?,
        SearchFormat::Urls => {
            answer.hits.iter().try_for_each(|hit| writeln!(output, "{}", printable(name(hit))))?;
        }
        SearchFormat::Text => {
            let is_terminal = io::stdout().is_terminal();
            let color = wants_color(&session.environment, session.global.color, is_terminal);
            write_text(color, &answer, output)?;
        }
    }
    if let Some(better) = answer.did_you_mean.filter(|_| format == SearchFormat::Text) {
        session.talk.note(&format!("did you mean: {}", shown(&better)));
    }
    Ok(if answer.hits.is_empty() { NOTHING_FOUND } else { 0 })
}

pub(super) fn suggest(session: &Session, typed: &str, output: &mut dyn Write) -> Outcome {
    for way in session.ask(&Suggest { typed: typed.to_owned(), max: 10 })? {
        writeln!(output, "{}", shown(&way))?;
    }
    Ok(0)
}

fn search_of(session: &Session, arguments: &SearchArgs, text: String) -> Result<Search, Message> {
    let now = SystemClock::new().wall();
    let mut conditions = String::new();
    let named =
        [("site", &arguments.site), ("lang", &arguments.lang), ("filetype", &arguments.kind)];
    for (name, value) in named {
        if let Some(value) = value {
            conditions.push_str(&format!("{name}:{value} "));
        }
    }
    if let Some(since) = &arguments.since {
        conditions.push_str(&format!("after:{} ", first_day(since, now)?));
    }
    let crawl = match &arguments.crawl {
        Some(id) => Some(crawl_no(session, id)?),
        None => None,
    };
    let page = arguments.page.max(1);
    Ok(Search {
        text,
        pattern: arguments.regex,
        conditions,
        columns: arguments.columns.iter().map(|column| column_of(*column)).collect(),
        sort: match arguments.sort {
            SearchOrder::Relevance => Sort::Relevance,
            SearchOrder::Newest => Sort::Newest,
            SearchOrder::Url => Sort::Url,
        },
        offset: (page - 1).saturating_mul(arguments.limit),
        limit: arguments.limit,
        facets: arguments.facets.iter().map(|facet| facet_of(*facet)).collect(),
        plain: false,
        explain: arguments.explain,
        crawl,
        now: Some(now),
    })
}

/// The day that `--since` names: so long ago, or a date.
fn first_day(since: &str, now: Timestamp) -> Result<String, Message> {
    let is_date = since.contains('-') || since.len() == 4;
    if is_date && since.chars().all(|c| c.is_ascii_digit() || c == '-') {
        return Ok(since.to_owned());
    }
    let ago_ms = read_duration_ms(since).ok_or_else(|| {
        let what = format!("--since {} is neither a time nor a date", shown(since));
        Message::new(Code::FlagValue, what).hint("Write it like 30d, 12h, 2026-05-31 or 2026")
    })?;
    let day = Timestamp(now.0.saturating_sub(ago_ms)).rfc3339();
    Ok(day.chars().take("2026-05-31".len()).collect())
}

fn crawl_no(session: &Session, id: &str) -> Result<CrawlNo, Message> {
    Ok(session.ask(&ReadCrawl { crawl: id.to_owned() })?.record.crawl.no)
}

fn column_of(column: SearchColumn) -> Column {
    match column {
        SearchColumn::Title => Column::Title,
        SearchColumn::Description => Column::Description,
        SearchColumn::Keywords => Column::Keywords,
        SearchColumn::Text => Column::Text,
        SearchColumn::Url => Column::Url,
    }
}

fn facet_of(facet: SearchFacet) -> FacetBy {
    match facet {
        SearchFacet::Site => FacetBy::Site,
        SearchFacet::Language => FacetBy::Language,
        SearchFacet::Kind => FacetBy::Kind,
        SearchFacet::Year => FacetBy::Year,
        SearchFacet::Crawl => FacetBy::Crawl,
    }
}

/// What a hit is called: its address, or the name it was imported under.
fn name(hit: &SearchHit) -> &str {
    hit.id.as_deref().filter(|_| hit.url.is_empty()).unwrap_or(&hit.url)
}

fn write_text(is_colored: bool, answer: &SearchReply, output: &mut dyn Write) -> io::Result<()> {
    for hit in &answer.hits {
        let title = if hit.title.is_empty() { name(hit) } else { &hit.title };
        writeln!(output, "{}", printable(title))?;
        writeln!(output, "  {}", printable(name(hit)))?;
        if !hit.snippet.is_empty() {
            writeln!(output, "  {}", marked(hit, is_colored))?;
        }
        let mut more = Vec::new();
        if hit.similar_count > 0 {
            more.push(format!("and {} similar pages", hit.similar_count));
        }
        if hit.more_from_site > 0 {
            more.push(format!("{} more from this site", hit.more_from_site));
        }
        if !more.is_empty() {
            writeln!(output, "  ({})", more.join(", "))?;
        }
        for line in &hit.why {
            writeln!(output, "    {}", shown(line))?;
        }
        writeln!(output)?;
    }
    for (by, counts) in &answer.facets {
        let counts: Vec<String> = counts
            .iter()
            .map(|(value, count)| format!("{} {}", shown(value), show_count(*count)))
            .collect();
        writeln!(output, "{:<10}{}", format!("{by:?}").to_lowercase(), counts.join(" · "))?;
    }
    let total = show_count(answer.estimated_total);
    writeln!(output, "{total} pages in {} ms", answer.took_ms)
}

/// The snippet with the words that were found made to stand out, where the terminal can.
fn marked(hit: &SearchHit, is_colored: bool) -> String {
    if !is_colored {
        return printable(&hit.snippet);
    }
    let mut text = String::new();
    let mut at = 0;
    for &(from, to) in &hit.marks {
        let (Some(before), Some(word)) = (hit.snippet.get(at..from), hit.snippet.get(from..to))
        else {
            continue;
        };
        text.push_str(&format!("{}\u{1b}[1m{}\u{1b}[0m", printable(before), printable(word)));
        at = to;
    }
    text.push_str(&printable(hit.snippet.get(at..).unwrap_or_default()));
    text
}

fn write_csv(answer: &SearchReply, output: &mut dyn Write) -> io::Result<()> {
    write_row(output, ["url", "title", "snippet", "site", "language", "score"])?;
    for hit in &answer.hits {
        let site = hit.site.as_deref().unwrap_or_default();
        let language = hit.language.as_deref().unwrap_or_default();
        let score = format!("{:.4}", hit.score);
        write_row(output, [name(hit), &hit.title, &hit.snippet, site, language, &score])?;
    }
    Ok(())
}

/// One query of a batch.
#[derive(Deserialize)]
struct BatchLine {
    id: serde_json::Value,
    #[serde(alias = "text")]
    query: String,
}

/// Answers many queries in one go, for people who measure relevance.
fn batch(
    session: &Session,
    arguments: &SearchArgs,
    path: &Path,
    output: &mut dyn Write,
) -> Outcome {
    let settings = session.settings(Vec::new())?.settings;
    let lines = open_lines(path)?;
    let common = search_of(session, arguments, String::new())?;
    backend::ask_often(&session.target(&settings)?, IndexUse::UpToDate, |control| {
        for (number, line) in (1_u64..).zip(lines.lines()) {
            let line = line.map_err(|error| unreadable(path, &error))?;
            if line.trim().is_empty() {
                continue;
            }
            let query: BatchLine = serde_json::from_str(&line)
                .map_err(|error| bad_line(number, &error.to_string()))?;
            let operation = Search { text: query.query, plain: true, ..common.clone() };
            let answer = control.ask(&operation, &mut |_| true)?.unwrap_or_default();
            let hits: Vec<&str> = answer.hits.iter().map(name).collect();
            write_json_line(output, &json!({ "id": query.id, "hits": hits }))?;
        }
        Ok(0)
    })
}

pub(super) fn open_lines(path: &Path) -> Result<Box<dyn BufRead>, Message> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Message {
    let what = format!("cannot read {}: {error}", shown(&path.to_string_lossy()));
    Message::new(Code::StartList, what)
}

pub(super) fn bad_line(number: u64, why: &str) -> Message {
    Message::new(Code::BadJsonLine, format!("line {number}: {}", shown(why)))
        .hint("Every line is a JSON object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hit(title: &str, url: &str, snippet: &str) -> SearchHit {
        SearchHit {
            id: None,
            url: url.to_owned(),
            title: title.to_owned(),
            snippet: snippet.to_owned(),
            marks: vec![(0, 1)],
            snippet_html: String::new(),
            site: Some(title.to_owned()),
            language: Some(snippet.to_owned()),
            kind: String::new(),
            fetched_at: Timestamp(0),
            published_at: None,
            crawl: CrawlNo(1),
            score: 1.0,
            more_from_site: 2,
            similar_count: 4,
            why: vec![snippet.to_owned()],
        }
    }

    fn answer(hit: SearchHit) -> SearchReply {
        let facets = vec![(FacetBy::Site, vec![(hit.title.clone(), 7)])];
        SearchReply { hits: vec![hit], facets, estimated_total: 7, ..SearchReply::default() }
    }

    #[test]
    fn hits_read_well() {
        let answer = answer(hit("Tea", "https://a.example/tea", "x leaves"));
        let mut output = Vec::new();
        write_text(true, &answer, &mut output).unwrap();
        let expect = "Tea\n  https://a.example/tea\n  \u{1b}[1mx\u{1b}[0m leaves\n  \
            (and 4 similar pages, 2 more from this site)\n    x leaves\n\n\
            site      Tea 7\n7 pages in 0 ms\n";
        assert_eq!(String::from_utf8(output).unwrap(), expect);
    }

    #[test]
    fn long_addresses_are_not_cut() {
        let url = format!("https://a.example/{}", "x".repeat(900));
        let mut output = Vec::new();
        write_text(false, &answer(hit("", &url, "")), &mut output).unwrap();
        assert!(String::from_utf8(output).unwrap().contains(&url));
    }

    #[test]
    fn since_is_a_time_or_a_date() {
        let now = Timestamp(1_700_000_000_000);
        assert_eq!(first_day("30d", now).unwrap(), "2023-10-15");
        assert_eq!(first_day("2026-05-31", now).unwrap(), "2026-05-31");
        assert_eq!(first_day("2026", now).unwrap(), "2026");
        assert!(first_day("lately", now).is_err());
        assert!(first_day("30", now).is_err());
    }

    proptest! {
        /// Whatever an index would hand over, a terminal and a spreadsheet are safe.
        #[test]
        fn output_is_inert(title in any::<String>(), url in any::<String>(), text in any::<String>()) {
            let answer = answer(hit(&title, &url, &text));
            let mut output = Vec::new();
            write_text(false, &answer, &mut output).unwrap();
            write_csv(&answer, &mut output).unwrap();
            let output = String::from_utf8(output).unwrap();
            prop_assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{output:?}");
        }
    }
}
