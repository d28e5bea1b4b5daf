//! [`Anchors`]: finds pages by the words of the links that point to them.
//!
//! A small index of its own, one row per page: what others call a page changes with every page that
//! is crawled, and indexing the page itself again each time would cost far more than these few words.

use std::fs;
use std::path::{Path, PathBuf};

use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::{BooleanQuery, BoostQuery, Query as EngineQuery, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, Schema, Term, TextFieldIndexing, TextOptions,
};
use tantivy::{DocAddress, Index, IndexWriter, ReloadPolicy, Searcher, TantivyDocument};

use super::log::LogEnd;
use crate::IndexError;
use crate::analysis::{DocumentReader, Language, PIECES, Stems, tokenizers};

/// Different words that a page is called by; beyond that they repeat each other.
const NAMES_MAX: usize = 20;
/// A name that is used a hundred times counts as seven, and no name as more than eight.
const TIMES_COUNTED_MAX: u32 = 8;
/// The least memory that the engine takes.
const WRITER_BYTES: usize = 16 << 20;
const PAGE: &str = "page";

/// A page that was found by the words of links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkedPage {
    /// Which.
    pub(crate) page: u64,
    /// How well the words fit.
    pub(crate) score: f32,
}

/// The words of links, searchable.
pub(crate) struct Anchors {
    searcher: Searcher,
    words: Field,
    /// Which pages the rows of each segment are about.
    pages: Vec<Column<u64>>,
}

impl Anchors {
    /// The words as they were at a moment of the log; `None` if there are none, or they are lost.
    pub(crate) fn open(dir: &Path, at: LogEnd) -> Option<Self> {
        let dir = path_of(dir, at);
        if !dir.is_dir() {
            return None;
        }
        let opened = Self::open_dir(&dir);
        // Worked out again the next time.
        opened.ok()
    }

    fn open_dir(dir: &Path) -> Result<Self, IndexError> {
        let mut index = Index::open_in_dir(dir)?;
        index.set_tokenizers(tokenizers());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let words = index.schema().get_field("words")?;
        let searcher = reader.searcher();
        let segments = searcher.segment_readers().iter();
        let pages =
            segments.map(|segment| segment.fast_fields().u64(PAGE)).collect::<Result<_, _>>()?;
        Ok(Self { searcher, words, pages })
    }

    /// Removes the words of all other moments.
    pub(crate) fn remove_others(dir: &Path, at: LogEnd) -> Result<(), IndexError> {
        let kept = path_of(dir, at);
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().starts_with("anchors-");
            if is_ours && entry.path() != kept {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Size on disk.
    pub(crate) fn disk_bytes(&self) -> Result<u64, IndexError> {
        Ok(self.searcher.space_usage()?.total().get_bytes())
    }

    /// The pages that are called by most of these words, each given as its forms and its weight.
    pub(crate) fn best(
        &self,
        words: impl Iterator<Item = (Vec<String>, f32)>,
        max: usize,
    ) -> Result<Vec<LinkedPage>, IndexError> {
        let mut queries: Vec<Box<dyn EngineQuery>> = Vec::new();
        for (forms, weight) in words {
            for form in forms {
                let term = Term::from_field_text(self.words, &form);
                let query = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                queries.push(Box::new(BoostQuery::new(query, weight)));
            }
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let query = BooleanQuery::union(queries);
        let top = self.searcher.search(&query, &TopDocs::with_limit(max).order_by_score())?;
        let linked = |(score, address): (f32, DocAddress)| {
            let page = self.pages[address.segment_ord as usize].first(address.doc_id)?;
            Some(LinkedPage { page, score })
        };
        Ok(top.into_iter().filter_map(linked).collect())
    }
}

/// What a page is called.
#[derive(Default)]
pub(crate) struct Names(Vec<Name>);

struct Name {
    text: String,
    language: Option<Language>,
    times: u32,
}

impl Names {
    /// Counts a link with this text.
    pub(crate) fn add(&mut self, text: &str, language: Option<Language>) {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return;
        }
        if let Some(known) = self.0.iter_mut().find(|name| name.text == text) {
            known.times += 1;
        } else if self.0.len() < NAMES_MAX {
            self.0.push(Name { text, language, times: 1 });
        }
    }
}

/// Builds the words of one moment.
pub(crate) struct AnchorsWriter {
    dir: PathBuf,
    engine: IndexWriter,
    page: Field,
    words: Field,
    stems: Stems,
    rows: u64,
}

impl AnchorsWriter {
    pub(crate) fn create(dir: &Path, at: LogEnd) -> Result<Self, IndexError> {
        let dir = path_of(dir, at);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        fs::create_dir_all(&dir)?;
        let mut schema = Schema::builder();
        let page = schema.add_u64_field(PAGE, FAST);
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(PIECES)
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let words = schema.add_text_field("words", options);
        let files = MmapDirectory::open(&dir).map_err(tantivy::TantivyError::from)?;
        let mut index = Index::create(files, schema.build(), Default::default())?;
        index.set_tokenizers(tokenizers());
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let engine = index.writer_with_options(options)?;
        Ok(Self { dir, engine, page, words, stems: Stems::default(), rows: 0 })
    }

    pub(crate) fn add(&mut self, page: u64, names: &Names) -> Result<(), IndexError> {
        let mut row = TantivyDocument::new();
        row.add_u64(self.page, page);
        for name in &names.0 {
            let words = DocumentReader::new(name.language, &mut self.stems).stems_of(&name.text);
            for _ in 0..(name.times.ilog2() + 1).min(TIMES_COUNTED_MAX) {
                row.add_text(self.words, &words);
            }
        }
        self.rows += 1;
        self.engine.add_document(row)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Option<Anchors>, IndexError> {
        self.engine.commit()?;
        self.engine.wait_merging_threads()?;
        if self.rows == 0 {
            fs::remove_dir_all(&self.dir)?;
            return Ok(None);
        }
        Ok(Some(Anchors::open_dir(&self.dir)?))
    }
}

fn path_of(dir: &Path, at: LogEnd) -> PathBuf {
    dir.join(format!("anchors-{}-{}", at.generation, at.bytes))
}
