//! Measures speed and size: makes documents out of the sentences of real texts, indexes them in
//! batches as a crawl would, and then lets clients ask at the same time.
//!
//!     cargo run --release -p telusur-index --example scale -- DOCUMENTS CLIENTS TEXTS.jsonl…
//!
//! Every line of the files has a `text`. CPU time is that of the whole process, merges included.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use telusur_index::{DocKey, FacetBy, IndexDoc, IndexLimits, Query, SearchIndex};
use telusur_model::{CrawlNo, Timestamp, UrlKey};

/// Documents per commit: what a fast crawl brings in a second.
const BATCH: usize = 2_000;
/// Sentences per document: about 4 KB of main text, as in a page of 20 KB.
const SENTENCES: u64 = 28;
const QUERIES: usize = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let documents: usize = args.next().ok_or("how many documents?")?.parse()?;
    let clients: usize = args.next().ok_or("how many clients?")?.parse()?;
    let mut sentences = Vec::new();
    for file in args {
        for line in fs::read_to_string(file)?.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let text = line["text"].as_str().unwrap_or_default();
            let of_use = text.split_inclusive(". ").filter(|sentence| sentence.len() > 20);
            sentences.extend(of_use.map(str::to_owned));
        }
    }
    let dir = tempfile::tempdir()?;
    let index = SearchIndex::open(dir.path(), IndexLimits::default())?;
    fill(&index, documents, &sentences)?;
    let (all, stored) = index.disk_bytes()?;
    println!("index {} MB, of which stored texts {} MB", all >> 20, stored >> 20);
    ask(Arc::new(index), clients, &sentences)?;
    println!("peak memory {} MB", peak_memory_kb() >> 10);
    Ok(())
}

fn fill(index: &SearchIndex, documents: usize, sentences: &[String]) -> Result<(), Box<dyn Error>> {
    let mut random = Random(7);
    let (mut text_bytes, mut slowest) = (0, Duration::ZERO);
    let (start, cpu, mut made) = (Instant::now(), cpu_time(), Duration::ZERO);
    for first in (0..documents).step_by(BATCH) {
        let making = cpu_time();
        let docs: Vec<IndexDoc> = (first..documents.min(first + BATCH))
            .map(|number| document(number, sentences, &mut random))
            .collect();
        made += cpu_time() - making;
        text_bytes += docs.iter().map(|doc| doc.text.len() + doc.title.len()).sum::<usize>();
        let commit = Instant::now();
        index.apply(&docs, &[], first as u64)?;
        slowest = slowest.max(commit.elapsed());
    }
    let cpu = cpu_time() - cpu - made;
    println!(
        "{documents} documents, {} MB of text, {:?}, slowest batch {slowest:?}",
        text_bytes >> 20,
        start.elapsed()
    );
    println!("{:.3} ms CPU per document", cpu.as_secs_f64() * 1000.0 / documents as f64);
    Ok(())
}

fn document(number: usize, sentences: &[String], random: &mut Random) -> IndexDoc {
    let mut text = String::new();
    for _ in 0..SENTENCES / 2 + random.below(SENTENCES) {
        text.push_str(random.pick(sentences));
    }
    let url = format!(
        "https://www.site{}.example/{}/page-{number}.html",
        random.below(300),
        random.below(40)
    );
    let key = DocKey {
        url: UrlKey(u128::from(random.next()) << 64 | u128::from(random.next())),
        crawl: CrawlNo(1),
    };
    IndexDoc {
        title: random.pick(sentences).chars().take(60).collect(),
        description: random.pick(sentences).clone(),
        text,
        ..IndexDoc::new(key, &url, Timestamp(1_700_000_000_000 + random.below(1 << 36)))
    }
}

/// One to six words that stand together, sometimes with a condition, a phrase or facets.
fn question(sentences: &[String], random: &mut Random) -> Query {
    let sentence: Vec<&str> = random.pick(sentences).split_whitespace().collect();
    let count = 1 + usize::try_from(random.below(6)).expect("small").min(sentence.len() - 1);
    let from = usize::try_from(random.below((sentence.len() - count + 1) as u64)).expect("small");
    let words = sentence[from..from + count].join(" ").replace(['"', ':'], " ");
    let mut query = Query::new(&words);
    match random.below(10) {
        0 => query.text = format!("\"{words}\""),
        1 => query.text = format!("{words} site:site{}.example", random.below(300)),
        2 => query.facets = vec![FacetBy::Site, FacetBy::Language, FacetBy::Year],
        3 => query.text = random.pick(sentences).clone(),
        _ => {}
    }
    query
}

fn ask(
    index: Arc<SearchIndex>,
    clients: usize,
    sentences: &[String],
) -> Result<(), Box<dyn Error>> {
    let mut random = Random(11);
    let queries: Arc<Vec<Query>> =
        Arc::new((0..QUERIES).map(|_| question(sentences, &mut random)).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let cpu = cpu_time();
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (index, queries, next) =
                (Arc::clone(&index), Arc::clone(&queries), Arc::clone(&next));
            thread::spawn(move || {
                let mut took = Vec::new();
                while let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    index.search(query).expect("the index can be read");
                    took.push((start.elapsed(), query.text.clone()));
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for thread in threads {
        took.extend(thread.join().map_err(|_| "a client failed")?);
    }
    took.sort();
    let at = |percent: usize| took[took.len() * percent / 100].0;
    println!(
        "{} queries by {clients} clients: p50 {:?}, p95 {:?}, p99 {:?}, slowest {:?}; {:.2} ms CPU each",
        took.len(),
        at(50),
        at(95),
        at(99),
        took[took.len() - 1],
        (cpu_time() - cpu).as_secs_f64() * 1000.0 / took.len() as f64,
    );
    Ok(())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

/// SplitMix64: the same documents on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<'a>(&mut self, from: &'a [String]) -> &'a String {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).expect("an index")]
    }
}
