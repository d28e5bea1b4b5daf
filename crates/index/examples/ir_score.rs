//! Measures relevance: imports a collection of JSON lines (`id`, `title`, `text`), asks a batch of
//! queries (`id`, `text`) and writes the hits as JSON lines (`id`, `hits`) for a scorer.
//!
//!     cargo run --release -p telusur-index --example ir_score -- DOCS.jsonl QUERIES.jsonl RUN.jsonl

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde::Deserialize;
use telusur_index::{DocKey, IndexDoc, IndexLimits, Query, SearchIndex};
use telusur_model::{CrawlNo, Timestamp, UrlKey};

#[derive(Deserialize)]
struct RunFileLine {
    id: String,
    #[serde(default)]
    title: String,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [docs, queries, run] = files.as_slice() else {
        return Err("usage: ir_score DOCS.jsonl QUERIES.jsonl RUN.jsonl".into());
    };
    let dir = tempfile::tempdir()?;
    let index = SearchIndex::open(dir.path(), IndexLimits::default())?;
    import(&index, docs)?;
    let mut out = fs::File::create(run)?;
    let start = Instant::now();
    let mut asked = 0_u32;
    for query in read_lines(queries)? {
        let results = index.search(&Query::batch(&query.text, 100))?;
        let hits: Vec<_> = results.hits.into_iter().filter_map(|hit| hit.id).collect();
        writeln!(out, "{}", serde_json::json!({ "id": query.id, "hits": hits }))?;
        asked += 1;
    }
    eprintln!("{asked} queries, {:?} each", start.elapsed() / asked.max(1));
    Ok(())
}

fn import(index: &SearchIndex, file: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut docs = Vec::new();
    for (number, line) in (1_u128..).zip(read_lines(file)?) {
        let key = DocKey { url: UrlKey(number), crawl: CrawlNo(1) };
        docs.push(IndexDoc {
            id: Some(line.id),
            title: line.title,
            text: line.text,
            ..IndexDoc::new(key, "", Timestamp(0))
        });
    }
    index.apply(&docs, &[], 1)?;
    eprintln!("{} documents in {:?}", docs.len(), start.elapsed());
    Ok(())
}

fn read_lines(file: impl AsRef<Path>) -> Result<Vec<RunFileLine>, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
