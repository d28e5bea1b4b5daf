//! [`SearchIndex`]: a directory of segments, one writer, any number of searches at a time.
//!
//! The index is derived: it follows a store, whose checkpoint is kept inside each commit, so that a
//! crash leaves documents and checkpoint of the same moment. It knows no store and never repairs
//! itself: [`IndexError::needs_rebuild`] says when to call [`SearchIndex::create_anew`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::{Schema, Term};
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy};
use telusur_model::CrawlNo;

use crate::analysis::{PIECES, StemPool, pieces_analyzer};
use crate::fields::Fields;
use crate::link_rank::Ranks;
use crate::view::View;
use crate::{DocKey, IndexDoc, IndexError};

/// Grows whenever an older index would give other answers than a new one.
const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "telusur-index.version";
const RANKS_FILE: &str = "link-ranks.bin";
/// Two to four pages of text to a block: half the size of page by page, and still 0.1 ms to read.
const STORED_BLOCK_BYTES: usize = 32 * 1024;
/// Blocks of stored text kept in memory: 4 MB, enough for the hits of the last few searches.
const STORED_BLOCKS_CACHED: usize = 128;

/// How an index uses the machine.
#[derive(Clone, Copy, Debug)]
pub struct IndexLimits {
    /// Memory for documents that are not yet written out.
    pub writer_bytes: usize,
}

impl Default for IndexLimits {
    /// 64 MB hold the pages of several seconds of crawling at full speed.
    fn default() -> Self {
        Self { writer_bytes: 64 << 20 }
    }
}

/// Everything that can be searched.
pub struct SearchIndex {
    dir: PathBuf,
    fields: Fields,
    /// Protects the order of changes: a batch and its checkpoint go in together.
    writer: Mutex<IndexWriter>,
    reader: IndexReader,
    /// What searches see; replaced whole after each commit.
    view: RwLock<Arc<View>>,
    ranks: RwLock<Arc<Ranks>>,
    stems: StemPool,
}

impl SearchIndex {
    /// Opens the index in a directory; a directory that does not exist or is empty becomes an empty
    /// index with checkpoint 0.
    pub fn open(dir: &Path, limits: IndexLimits) -> Result<Self, IndexError> {
        fs::create_dir_all(dir)?;
        check_format(dir)?;
        let (schema, fields) = Fields::schema();
        let mut index = open_files(dir, schema.clone())?;
        if index.schema() != schema {
            return Err(IndexError::Damaged("its columns are not those of its format".to_owned()));
        }
        index.set_tokenizers(tokenizers());
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(STORED_BLOCKS_CACHED)
            .try_into()?;
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(limits.writer_bytes)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer = index.writer_with_options(options)?;
        let view = View::of(&reader.searcher(), &fields, None)?;
        let ranks = Ranks::read(&dir.join(RANKS_FILE));
        Ok(Self {
            dir: dir.to_owned(),
            fields,
            writer: Mutex::new(writer),
            reader,
            view: RwLock::new(Arc::new(view)),
            ranks: RwLock::new(Arc::new(ranks)),
            stems: StemPool::default(),
        })
    }

    /// Throws away whatever is in the directory and begins an empty index.
    pub fn create_anew(dir: &Path, limits: IndexLimits) -> Result<Self, IndexError> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        Self::open(dir, limits)
    }

    /// Takes in documents and takes out deleted ones, in one commit together with the checkpoint of
    /// the store that they bring the index up to. Searches see them when this returns.
    ///
    /// A document replaces the one with its key, so a batch that is applied twice is there once.
    /// Callers gather what came within a second: a commit costs tens of milliseconds however little
    /// is in it. Merging goes on in the background and is never waited for.
    pub fn apply(
        &self,
        docs: &[IndexDoc],
        deleted: &[DocKey],
        upto: u64,
    ) -> Result<(), IndexError> {
        let mut writer = self.writer();
        let by_key = |key: &DocKey| Term::from_field_bytes(self.fields.key, &key.to_bytes());
        self.stems.lend(|stems| -> Result<(), IndexError> {
            for doc in docs {
                // Takes out what was added before it, earlier in this batch as well.
                writer.delete_term(by_key(&doc.key));
                writer.add_document(self.fields.row(doc, stems))?;
            }
            Ok(())
        })?;
        for key in deleted {
            writer.delete_term(by_key(key));
        }
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&upto.to_string());
        commit.commit()?;
        drop(writer);
        self.reload()
    }

    /// Takes out everything of a crawl. The checkpoint stays where it is.
    pub fn remove_crawl(&self, crawl: CrawlNo) -> Result<(), IndexError> {
        let upto = self.applied_upto()?;
        let mut writer = self.writer();
        writer.delete_term(Term::from_field_u64(self.fields.crawl, u64::from(crawl.0)));
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&upto.to_string());
        commit.commit()?;
        drop(writer);
        self.reload()
    }

    /// How far the store was read when the last commit was made.
    pub fn applied_upto(&self) -> Result<u64, IndexError> {
        let payload = self.reader.searcher().index().load_metas()?.payload;
        let Some(payload) = payload else { return Ok(0) };
        payload.parse().map_err(|_| IndexError::Damaged(format!("its checkpoint is {payload:?}")))
    }

    /// How many documents can be found.
    pub fn doc_count(&self) -> u64 {
        self.view().searcher.num_docs()
    }

    /// Size of the index on disk, in bytes: all of it, and the stored texts in it.
    pub fn disk_bytes(&self) -> Result<(u64, u64), IndexError> {
        let usage = self.view().searcher.space_usage()?;
        let stored: u64 =
            usage.segments().iter().map(|segment| segment.store().total().get_bytes()).sum();
        Ok((usage.total().get_bytes(), stored))
    }

    /// Waits for merges and closes. Dropping the index instead is safe, and leaves them undone.
    pub fn close(self) -> Result<(), IndexError> {
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(writer.wait_merging_threads()?)
    }

    /// Replaces the link ranks of all pages, on disk and for searches from now on.
    pub fn set_link_ranks(&self, ranks: Ranks) -> Result<(), IndexError> {
        ranks.write(&self.dir.join(RANKS_FILE))?;
        *self.ranks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ranks);
        Ok(())
    }

    fn reload(&self) -> Result<(), IndexError> {
        self.reader.reload()?;
        let view = View::of(&self.reader.searcher(), &self.fields, Some(&self.view()))?;
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        Ok(())
    }

    fn writer(&self) -> MutexGuard<'_, IndexWriter> {
        // A panic inside the engine stops the process that owns the index; the lock itself guards
        // nothing that could be half done.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn stems(&self) -> &StemPool {
        &self.stems
    }

    pub(crate) fn ranks(&self) -> Arc<Ranks> {
        Arc::clone(&self.ranks.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn check_format(dir: &Path) -> Result<(), IndexError> {
    let file = dir.join(FORMAT_FILE);
    match fs::read_to_string(&file) {
        Ok(text) => match text.trim().parse() {
            Ok(FORMAT) => Ok(()),
            Ok(found) => Err(IndexError::OtherVersion { found, expected: FORMAT }),
            Err(_) => Err(IndexError::Damaged(format!("{FORMAT_FILE} does not hold a number"))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if fs::read_dir(dir)?.next().is_some() {
                return Err(IndexError::Damaged(format!("{FORMAT_FILE} is missing")));
            }
            Ok(fs::write(&file, format!("{FORMAT}\n"))?)
        }
        Err(error) => Err(error.into()),
    }
}

fn open_files(dir: &Path, schema: Schema) -> Result<Index, IndexError> {
    let files = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    if Index::exists(&files).map_err(tantivy::TantivyError::from)? {
        return Ok(Index::open(files)?);
    }
    let settings = IndexSettings {
        docstore_compression: Compressor::Zstd(ZstdCompressor { compression_level: Some(3) }),
        docstore_blocksize: STORED_BLOCK_BYTES,
        ..IndexSettings::default()
    };
    Ok(Index::create(files, schema, settings)?)
}

fn tokenizers() -> tantivy::tokenizer::TokenizerManager {
    let tokenizers = tantivy::tokenizer::TokenizerManager::default();
    tokenizers.register(PIECES, pieces_analyzer());
    tokenizers
}
