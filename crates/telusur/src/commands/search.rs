//! `telusur search`, `suggest`, `import` and `index`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use telusur_engine::control::{IndexUse, Search, Suggest};
use telusur_engine::export::write_row;
use telusur_engine::json::{HitView, SearchView};
use telusur_engine::{ImportLine, Importer, Indexer, SystemClock};
use telusur_ledger::{NewCrawl, StoreError};
use telusur_model::{
    Clock, Crawl, CrawlState, FinishReason, Keep, PauseReason, Politeness, RobotsRules,
};

use super::{Outcome, Session};
use crate::backend;
use crate::cli::{IndexCommand, SearchArgs, SearchFormat, SpaceArgs};
use crate::crawl_request::{CrawlRequest, Start};
use crate::json::write_json_line;
use crate::message::{Code, Message, printable, shown};
use crate::progress::{Imported, Indexing, ProgressDisplay};
use crate::settings::Key;
use crate::terminal::wants_color;
use crate::units::{show_count, show_size};

/// After this number of documents the free space is looked at again: a megabyte or so.
const SPACE_EVERY: u64 = 500;
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
    let answer = session.ask(&search_of(arguments, arguments.words.join(" ")))?;
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
    let found = session.ask(&Suggest { typed: typed.to_owned(), max: 10 })?;
    if session.global.json {
        write_json_line(output, &found)?;
        return Ok(0);
    }
    for way in &found.suggestions {
        writeln!(output, "{}", shown(way))?;
    }
    Ok(0)
}

fn search_of(arguments: &SearchArgs, text: String) -> Search {
    let page = arguments.page.max(1);
    Search {
        text,
        pattern: arguments.regex,
        columns: arguments.columns.clone(),
        site: arguments.site.clone(),
        lang: arguments.lang.clone(),
        kind: arguments.kind.clone(),
        crawl: arguments.crawl.clone(),
        since: arguments.since.clone(),
        year: arguments.year,
        sort: arguments.sort,
        offset: (page - 1).saturating_mul(arguments.limit),
        limit: arguments.limit,
        facets: arguments.facets.clone(),
        plain: false,
        explain: arguments.explain,
        now: Some(SystemClock::new().wall()),
    }
}

/// What a hit is called: its address, or the name it was imported under.
fn name(hit: &HitView) -> &str {
    hit.id.as_deref().filter(|_| hit.url.is_empty()).unwrap_or(&hit.url)
}

fn write_text(is_colored: bool, answer: &SearchView, output: &mut dyn Write) -> io::Result<()> {
    for hit in &answer.hits {
        let title = if hit.title.is_empty() { name(hit) } else { &hit.title };
        writeln!(output, "{}", printable(title))?;
        writeln!(output, "  {}", printable(name(hit)))?;
        if !hit.snippet_text.is_empty() {
            writeln!(output, "  {}", marked(hit, is_colored))?;
        }
        let mut more = Vec::new();
        if hit.similar > 0 {
            more.push(format!("and {} similar pages", hit.similar));
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
            .map(|it| format!("{} {}", shown(&it.value), show_count(it.count)))
            .collect();
        writeln!(output, "{:<10}{}", by, counts.join(" · "))?;
    }
    let total = show_count(answer.estimated_total);
    writeln!(output, "{total} pages in {} ms", answer.took_ms)
}

/// The snippet with the words that were found made to stand out, where the terminal can.
fn marked(hit: &HitView, is_colored: bool) -> String {
    if !is_colored {
        return printable(&hit.snippet_text);
    }
    let mut text = String::new();
    let mut at = 0;
    for &(from, to) in &hit.marks {
        let (Some(before), Some(word)) =
            (hit.snippet_text.get(at..from), hit.snippet_text.get(from..to))
        else {
            continue;
        };
        text.push_str(&format!("{}\u{1b}[1m{}\u{1b}[0m", printable(before), printable(word)));
        at = to;
    }
    text.push_str(&printable(hit.snippet_text.get(at..).unwrap_or_default()));
    text
}

fn write_csv(answer: &SearchView, output: &mut dyn Write) -> io::Result<()> {
    write_row(output, ["url", "title", "snippet", "site", "lang", "score"])?;
    for hit in &answer.hits {
        let site = hit.site.as_deref().unwrap_or_default();
        let lang = hit.lang.as_deref().unwrap_or_default();
        let score = format!("{:.4}", hit.score);
        write_row(output, [name(hit), &hit.title, &hit.snippet_text, site, lang, &score])?;
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
    let common = search_of(arguments, String::new());
    let dir = backend::data_dir(&settings);
    backend::ask_often(dir, IndexUse::UpToDate, |control| {
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

fn open_lines(path: &Path) -> Result<Box<dyn BufRead>, Message> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

fn unreadable(path: &Path, error: &io::Error) -> Message {
    let what = format!("cannot read {}: {error}", shown(&path.to_string_lossy()));
    Message::new(Code::StartList, what)
}

fn bad_line(number: u64, why: &str) -> Message {
    Message::new(Code::BadJsonLine, format!("line {number}: {}", shown(why)))
        .hint("Every line is a JSON object")
}

/// Takes documents in from a file and makes them searchable like crawled pages.
pub(super) fn import(
    session: &Session,
    path: &Path,
    name: Option<&str>,
    space: &SpaceArgs,
    output: &mut dyn Write,
) -> Outcome {
    let settings = session.settings(space.given())?.settings;
    let free_bytes_min = settings.bytes(Key::MinFreeDisk);
    let lines = open_lines(path)?;
    let open = backend::open(backend::data_dir(&settings))?;
    backend::expect_space(open.store.as_ref(), free_bytes_min)?;
    let refuse = |error: StoreError| backend::store_message(&error);
    let clock = SystemClock::new();
    let now = clock.wall();
    let title = name.map_or_else(|| format!("import {}", path.display()), str::to_owned);
    let request = CrawlRequest::new(&settings, Start::default(), Some(title.clone()));
    let earlier = open.store.crawls().map_err(refuse)?.into_iter().rev();
    let same = earlier.map(|it| it.crawl).find(|it| it.name.as_deref() == Some(title.as_str()));
    let crawl = match same.filter(Crawl::is_import) {
        Some(crawl) => crawl,
        None => {
            let crawl = Crawl {
                keep: Keep::Text,
                keep_tracking: true,
                politeness: Politeness { robots: RobotsRules::Ignore, ..Politeness::default() },
                ..request.into_crawl(now)
            };
            let new = NewCrawl { crawl, random: super::crawl::random()? };
            open.store.create(new).map_err(refuse)?.crawl
        }
    };
    let no = crawl.no;
    // Until its end it is neither complete nor something that a service could go on with.
    let unfinished = CrawlState::Paused { why: PauseReason::Import };
    open.store.set_state(no, unfinished, now).map_err(refuse)?;
    let mut importer = Importer::new(open.store.as_ref(), crawl);
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let mut count = 0_u64;
    for (number, line) in (1_u64..).zip(lines.lines()) {
        let line = line.map_err(|error| unreadable(path, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let document: ImportLine =
            serde_json::from_str(&line).map_err(|error| bad_line(number, &error.to_string()))?;
        let url = document.address().map_err(|why| bad_line(number, &why))?;
        importer.add(document, url, now).map_err(refuse)?;
        count += 1;
        if count.is_multiple_of(SPACE_EVERY) {
            backend::expect_space(open.store.as_ref(), free_bytes_min)?;
        }
        display.update_imported(Imported(count), clock.now());
    }
    importer.flush().map_err(refuse)?;
    let state = CrawlState::Finished { why: FinishReason::Drained };
    open.store.set_state(no, state, now).map_err(refuse)?;
    if let Some(index) = &open.index {
        let indexer = Indexer::new(open.store.clone(), index.clone()).leaving(free_bytes_min);
        make_searchable(&indexer, &mut display)?;
    }
    display.finish();
    open.store.close().map_err(refuse)?;
    if session.global.json {
        write_json_line(output, &json!({ "crawl": no.to_string(), "documents": count }))?;
    } else {
        writeln!(output, "{} documents imported as {no}", show_count(count))?;
    }
    Ok(0)
}

/// Makes everything searchable that is stored, and leaves the index in order. Gives the number of pages
/// looked at.
fn make_searchable(indexer: &Indexer, display: &mut ProgressDisplay) -> Result<u64, Message> {
    let clock = SystemClock::new();
    let failed = |error: telusur_engine::FollowError| backend::index_message(&error);
    let progress = &mut |indexed: u64| {
        display.update_indexing(Indexing { indexed, behind: 0 }, clock.now());
    };
    let looked_at = indexer.catch_up(progress).map_err(failed)?;
    indexer.digest_links().map_err(failed)?;
    if looked_at > 0 {
        display.tell_compaction(indexer.index());
        indexer.compact();
    }
    Ok(looked_at)
}

/// Looks after the search index.
pub(super) fn index(session: &Session, command: &IndexCommand, output: &mut dyn Write) -> Outcome {
    let space = match command {
        IndexCommand::Rebuild { space } => Some(space),
        IndexCommand::Status => None,
    };
    let settings = session.settings(space.map(SpaceArgs::given).unwrap_or_default())?.settings;
    let dir = backend::data_dir(&settings);
    if !backend::is_there(dir)? {
        return Err(backend::nothing_yet(dir).into());
    }
    let free_bytes_min = space.map_or(0, |_| settings.bytes(Key::MinFreeDisk));
    let open = match space {
        Some(_) => backend::open_to_rebuild(dir, free_bytes_min)?,
        None => backend::open(dir)?,
    };
    let failed = |error: &dyn std::fmt::Display| backend::index_message(error);
    let index = match open.index.clone() {
        Some(index) => index,
        None => backend::open_index(dir)?,
    };
    let indexer = Indexer::new(open.store.clone(), index.clone()).leaving(free_bytes_min);
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let looked_at = make_searchable(&indexer, &mut display)?;
    display.finish();
    let (bytes, stored) = index.disk_bytes().map_err(|error| failed(&error))?;
    let upto = index.applied_upto();
    open.store.close().map_err(|error| backend::store_message(&error))?;
    if session.global.json {
        let answer = json!({
            "documents": index.doc_count(), "bytes": bytes, "stored_bytes": stored,
            "applied_upto": upto, "pages_looked_at": looked_at,
        });
        write_json_line(output, &answer)?;
    } else {
        let count = show_count(index.doc_count());
        let size = show_size(bytes);
        writeln!(output, "{count} documents, {size} ({} of it texts)", show_size(stored))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use telusur_engine::json::FacetView;

    use super::*;

    fn hit(title: &str, url: &str, snippet: &str) -> HitView {
        HitView {
            id: None,
            url: url.to_owned(),
            title: title.to_owned(),
            snippet: String::new(),
            snippet_text: snippet.to_owned(),
            marks: vec![(0, 1)],
            site: Some(title.to_owned()),
            lang: Some(snippet.to_owned()),
            kind: String::new(),
            fetched_at: String::new(),
            published_at: None,
            crawl: String::new(),
            alias: "crawl_1".to_owned(),
            score: 1.0,
            more_from_site: 2,
            similar: 4,
            why: vec![snippet.to_owned()],
        }
    }

    fn answer(hit: HitView) -> SearchView {
        let sites = vec![FacetView { value: hit.title.clone(), count: 7 }];
        let facets = [("site".to_owned(), sites)].into();
        SearchView { hits: vec![hit], facets, estimated_total: 7, ..SearchView::default() }
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
