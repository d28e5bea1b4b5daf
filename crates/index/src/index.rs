//! [`SearchIndex`]: a directory of segments, one writer, any number of searches at a time.
//!
//! The index is derived: it follows a store, whose checkpoint is kept inside each commit, so that a
//! crash leaves documents and checkpoint of the same moment. It knows no store and never repairs
//! itself: [`IndexError::needs_rebuild`] says when to call [`SearchIndex::create_anew`].

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::{IndexRecordOption, Schema, Term};
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{
    DocSet, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TERMINATED, TantivyError,
};
use telusur_model::CrawlNo;

use crate::analysis::{StemPool, tokenizers};
use crate::checkpoint::Checkpoint;
use crate::fields::{Fields, stem_language};
use crate::files::{IndexFiles, NoHook, SyncHook};
use crate::links::{Anchors, Digest, LinkLog, LoggedPage, Ranks, digest};
use crate::merging::Tiers;
use crate::view::View;
use crate::writer_lease::{OurWriter, WriterPlace};
use crate::{DocKey, IndexDoc, IndexError};

/// Grows whenever an older index would give other answers than a new one.
pub const FORMAT: u32 = 4;
const FORMAT_FILE: &str = "telusur-index.version";
/// How the engine calls a file until it is whole.
const UNNAMED_PREFIX: &str = ".tmp";
pub(crate) const RANKS_FILE: &str = "link-ranks.bin";
/// A page or two of text to a block. Every hit has its block unpacked: blocks four times as long would
/// make the texts a twentieth smaller.
const STORED_BLOCK_BYTES: usize = 8 * 1024;
/// How hard stored text is compressed: level 3 makes an index 1 % smaller and costs a quarter more.
const STORED_LEVEL: i32 = 1;
/// Blocks of stored text kept in memory: 4 MB, enough for the hits of the last few searches.
const STORED_BLOCKS_CACHED: usize = 512;

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
    pub(crate) dir: PathBuf,
    pub(crate) fields: Fields,
    pub(crate) limits: IndexLimits,
    pub(crate) hook: Arc<dyn SyncHook>,
    pub(crate) writer: WriterPlace,
    pub(crate) reader: IndexReader,
    /// How far the store was taken in by the last commit.
    pub(crate) applied_upto: AtomicU64,
    /// What searches see; replaced whole after each commit, and when segments were merged at rest.
    pub(crate) view: RwLock<Arc<View>>,
    /// What links say; replaced whole when it was computed again.
    pub(crate) links: RwLock<Arc<Digest>>,
    /// Held while it is worked out: twice at the same time would be twice the work.
    digesting: Mutex<()>,
    stems: StemPool,
}

pub(crate) struct Writer {
    pub(crate) engine: IndexWriter,
    log: LinkLog,
    hook: Arc<dyn SyncHook>,
    /// The links of what was taken in since the last commit.
    linked: Vec<LoggedPage>,
    /// Their keys: searches do not know them yet.
    fresh: HashSet<DocKey>,
    /// How far the store is taken in.
    upto: u64,
    /// Whether segments are merged as at rest, since nothing came in for a while.
    pub(crate) is_resting: bool,
}

impl Writer {
    /// Takes the right to write an index, which one process has at a time.
    pub(crate) fn open(
        index: &Index,
        dir: &Path,
        limits: IndexLimits,
        hook: &Arc<dyn SyncHook>,
    ) -> Result<Self, IndexError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(limits.writer_bytes)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let engine = index.writer_with_options(options)?;
        engine.set_merge_policy(Box::new(Tiers));
        clear_leftovers(&engine, dir)?;
        let Checkpoint { upto, log } = Checkpoint::of(index)?;
        let log = LinkLog::open(dir, log)?;
        Ok(Self {
            engine,
            log,
            hook: Arc::clone(hook),
            linked: Vec::new(),
            fresh: HashSet::new(),
            upto,
            is_resting: false,
        })
    }

    /// Why a document is not taken. An engine whose worker has died says no more than that, and keeps
    /// the reason for the next commit.
    fn cause(&mut self, error: TantivyError) -> IndexError {
        let reason = match error {
            TantivyError::ErrorInThread(_) => self.engine.prepare_commit().err(),
            _ => None,
        };
        reason.unwrap_or(error).into()
    }

    /// Something comes in: segments are merged as seldom as possible.
    fn wake(&mut self) {
        if std::mem::take(&mut self.is_resting) {
            self.engine.set_merge_policy(Box::new(Tiers));
        }
    }

    /// Makes everything since the last commit durable together with the checkpoint.
    pub(crate) fn commit(&mut self) -> Result<(), IndexError> {
        self.hook.before_sync()?;
        self.log.append(&self.linked)?;
        self.linked.clear();
        let checkpoint = Checkpoint { upto: self.upto, log: self.log.end() };
        let mut commit = self.engine.prepare_commit()?;
        commit.set_payload(&checkpoint.to_string());
        commit.commit()?;
        Ok(())
    }
}

/// Removes files of commits that were never made. The engine counts on from the last commit, and so comes to
/// the same names: a commit that was cut short would make all later ones fail.
fn clear_leftovers(engine: &IndexWriter, dir: &Path) -> Result<(), IndexError> {
    engine.garbage_collect_files().wait()?;
    // Temporary files that were never renamed. Only the writer makes them.
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNNAMED_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// How far link ranks are behind the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLag {
    /// Pages whose links are known.
    pub pages: u64,
    /// Those of them that came since ranks were last worked out.
    pub pages_since: u64,
}

impl SearchIndex {
    /// Opens the index in a directory; a directory that does not exist or is empty becomes an empty
    /// index with checkpoint 0.
    pub fn open(dir: &Path, limits: IndexLimits) -> Result<Self, IndexError> {
        Self::open_with(dir, limits, Arc::new(NoHook))
    }

    /// The same on a disk that may be told to fail.
    pub fn open_with(
        dir: &Path,
        limits: IndexLimits,
        hook: Arc<dyn SyncHook>,
    ) -> Result<Self, IndexError> {
        Self::open_files(dir, limits, hook).map_err(IndexError::of_files)
    }

    fn open_files(
        dir: &Path,
        limits: IndexLimits,
        hook: Arc<dyn SyncHook>,
    ) -> Result<Self, IndexError> {
        fs::create_dir_all(dir)?;
        check_format(dir)?;
        let (index, fields) = open_engine(dir, &hook)?;
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(STORED_BLOCKS_CACHED)
            .try_into()?;
        let writer = Writer::open(&index, dir, limits, &hook)?;
        let view = View::of(&reader.searcher(), &fields, None)?;
        let links = Digest::read(dir, &dir.join(RANKS_FILE));
        Anchors::remove_others(dir, links.ranks.covers())?;
        Ok(Self {
            dir: dir.to_owned(),
            fields,
            limits,
            hook,
            applied_upto: AtomicU64::new(writer.upto),
            writer: WriterPlace::new(writer),
            reader,
            view: RwLock::new(Arc::new(view)),
            links: RwLock::new(Arc::new(links)),
            digesting: Mutex::new(()),
            stems: StemPool::default(),
        })
    }

    /// Deletes the contents of the directory and begins an empty index.
    pub fn create_anew(dir: &Path, limits: IndexLimits) -> Result<Self, IndexError> {
        let removed = match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(dir),
            Ok(_) => fs::remove_file(dir),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        Self::open(dir, limits)
    }

    /// Takes in documents and takes out deleted ones, and makes that durable together with the
    /// checkpoint of the store that they bring the index up to. Searches see them when this returns.
    pub fn apply(
        &self,
        docs: &[IndexDoc],
        deleted: &[DocKey],
        upto: u64,
    ) -> Result<(), IndexError> {
        self.take_in(docs, deleted, upto)?;
        self.commit()
    }

    /// Takes in documents and takes out deleted ones, up to a checkpoint of the store. All of it counts
    /// from the next commit on.
    ///
    /// A document replaces the one with its key, so a batch that is taken in twice is there once.
    pub fn take_in(
        &self,
        docs: &[IndexDoc],
        deleted: &[DocKey],
        upto: u64,
    ) -> Result<(), IndexError> {
        let mut writer = self.writer.ours()?;
        writer.wake();
        let view = self.view();
        // Takes out what was added before, earlier in this batch as well. Nearly all pages are new, and
        // to look each up is far cheaper than to have each taken out of every segment in vain.
        let take_out = |writer: &mut Writer, key: DocKey| -> Result<(), IndexError> {
            if !writer.fresh.insert(key) || view.may_have(self.fields.key, key)? {
                let key = Term::from_field_bytes(self.fields.key, &key.to_bytes());
                writer.engine.delete_term(key);
            }
            Ok(())
        };
        self.stems.lease(|stems| -> Result<(), IndexError> {
            for doc in docs {
                take_out(&mut writer, doc.key)?;
                let language = stem_language(doc);
                let added = writer.engine.add_document(self.fields.row(doc, language, stems));
                added.map_err(|error| writer.cause(error))?;
                writer.linked.push(LoggedPage::of(doc, language));
            }
            Ok(())
        })?;
        for key in deleted {
            take_out(&mut writer, *key)?;
            writer.linked.push(LoggedPage::gone(*key));
        }
        writer.upto = upto;
        Ok(())
    }

    /// Makes what was taken in durable, in one step with its checkpoint. Searches see it when this
    /// returns. Costs tens of milliseconds however little there is, so that callers gather what comes
    /// within a second. Merging goes on in the background and is never waited for.
    pub fn commit(&self) -> Result<(), IndexError> {
        let mut writer = self.writer.ours()?;
        writer.commit()?;
        self.reload(&mut writer)
    }

    /// Takes out everything of a crawl, and makes durable what was taken in before.
    pub fn remove_crawl(&self, crawl: CrawlNo) -> Result<(), IndexError> {
        let writer = self.writer.ours()?;
        self.take_out(writer, crawl)
    }

    /// The same up to a checkpoint of the store, which is the place of the removal. Of a crawl that has no
    /// documents only the checkpoint is noted, and counts from the next commit on: an index that is built
    /// again hears of every crawl that was ever removed.
    pub fn remove_crawl_at(&self, crawl: CrawlNo, upto: u64) -> Result<(), IndexError> {
        let mut writer = self.writer.ours()?;
        writer.upto = upto;
        let has_fresh = writer.fresh.iter().any(|key| key.crawl == crawl);
        if has_fresh || self.view().may_have_crawl(self.fields.crawl, crawl)? {
            return self.take_out(writer, crawl);
        }
        Ok(())
    }

    fn take_out(&self, mut writer: OurWriter<'_>, crawl: CrawlNo) -> Result<(), IndexError> {
        writer.engine.delete_term(Term::from_field_u64(self.fields.crawl, u64::from(crawl.0)));
        writer.linked.retain(|page| page.crawl != crawl.0);
        let without = writer.log.without_crawl(crawl)?;
        let before = std::mem::replace(&mut writer.log, without);
        writer.commit()?;
        writer.log.forget_before(&before)?;
        self.reload(&mut writer)
    }

    /// How far the store was taken in when the last commit was made.
    pub fn applied_upto(&self) -> u64 {
        self.applied_upto.load(Ordering::Acquire)
    }

    /// How far the store is taken in, committed or not.
    pub fn taken_upto(&self) -> u64 {
        self.writer.ours().map_or_else(|_| self.applied_upto(), |writer| writer.upto)
    }

    /// How many documents can be found.
    pub fn doc_count(&self) -> u64 {
        self.view().searcher.num_docs()
    }

    /// How many segments a search looks through.
    pub fn segment_count(&self) -> usize {
        self.view().searcher.segment_readers().len()
    }

    /// Calls `each` with the key of every document: once for each time that it is there.
    pub fn each_key(&self, each: &mut dyn FnMut(DocKey)) -> Result<(), IndexError> {
        for segment in self.view().searcher.segment_readers() {
            let keys = segment.inverted_index(self.fields.key)?;
            let mut terms = keys.terms().stream()?;
            while terms.advance() {
                let key = DocKey::from_bytes(terms.key())
                    .ok_or_else(|| IndexError::Damaged("a key is cut".to_owned()))?;
                let option = IndexRecordOption::Basic;
                let mut docs = keys.read_postings_from_terminfo(terms.value(), option)?;
                while docs.doc() != TERMINATED {
                    if !segment.is_deleted(docs.doc()) {
                        each(key);
                    }
                    docs.advance();
                }
            }
        }
        Ok(())
    }

    /// The crawls that have documents.
    pub fn crawls(&self) -> Result<BTreeSet<CrawlNo>, IndexError> {
        let mut found = BTreeSet::new();
        for segment in self.view().searcher.segment_readers() {
            let crawls = segment.inverted_index(self.fields.crawl)?;
            let mut terms = crawls.terms().stream()?;
            while terms.advance() {
                let no = terms.key().try_into().ok().map(u64::from_be_bytes);
                let no = no.and_then(|no| u32::try_from(no).ok());
                let no = no.ok_or_else(|| IndexError::Damaged("a crawl is no number".into()))?;
                let option = IndexRecordOption::Basic;
                let mut docs = crawls.read_postings_from_terminfo(terms.value(), option)?;
                // Documents that were taken out stay in their segment until it is merged.
                while docs.doc() != TERMINATED && segment.is_deleted(docs.doc()) {
                    docs.advance();
                }
                if docs.doc() != TERMINATED {
                    found.insert(CrawlNo(no));
                }
            }
        }
        Ok(found)
    }

    /// Reads all files and compares them with their checksums.
    pub fn validate(&self) -> Result<(), IndexError> {
        // The list of files that an engine keeps is that of its own time as a writer.
        let engine = self.writer.ours()?.engine.index().clone();
        let damaged = engine.validate_checksum()?;
        if let Some(file) = damaged.iter().min() {
            let what = format!("{} does not match its checksum", file.display());
            return Err(IndexError::Damaged(what));
        }
        let log = self.writer.ours()?.log.reader()?;
        log.each(&mut |_, _| {})
    }

    /// Marks the index for a rebuild when it is next opened: its files turned out to be
    /// damaged.
    pub fn distrust(&self) {
        // If even that cannot be done, the damage will show itself again.
        let _ = fs::remove_file(self.dir.join(FORMAT_FILE));
    }

    /// Size of the index on disk, in bytes: all of it, and the stored texts in it.
    pub fn disk_bytes(&self) -> Result<(u64, u64), IndexError> {
        let usage = self.view().searcher.space_usage()?;
        let stored: u64 =
            usage.segments().iter().map(|segment| segment.store().total().get_bytes()).sum();
        let links = fs::read_dir(&self.dir)?.filter_map(Result::ok).filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("link") || name == RANKS_FILE
        });
        let links: u64 = links.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
        let anchors = self.links().anchors.as_ref().map_or(Ok(0), Anchors::disk_bytes)?;
        Ok((usage.total().get_bytes() + links + anchors, stored))
    }

    /// Waits for merges and closes. Dropping the index instead is safe, and leaves them undone.
    pub fn close(self) -> Result<(), IndexError> {
        match self.writer.into_inner() {
            Some(writer) => Ok(writer.engine.wait_merging_threads()?),
            None => Ok(()),
        }
    }

    /// How far link ranks are behind the index. While another process writes, that is its concern.
    pub fn link_lag(&self) -> LinkLag {
        let Ok(end) = self.writer.ours().map(|writer| writer.log.end()) else {
            return LinkLag { pages: 0, pages_since: 0 };
        };
        let covers = self.links().ranks.covers();
        let is_part = covers.generation == end.generation && covers.rows <= end.rows;
        let pages_since = if is_part { end.rows - covers.rows } else { end.rows };
        LinkLag { pages: end.rows, pages_since }
    }

    /// Works out link ranks, and the words that others call pages by, of everything indexed so far.
    /// Takes long; pages can be taken in and searched meanwhile.
    pub fn digest_links(&self) -> Result<(), IndexError> {
        let _alone = self.digesting.lock().unwrap_or_else(PoisonError::into_inner);
        let log = self.writer.ours()?.log.reader()?;
        let digest = digest(&log, &self.dir).map_err(IndexError::of_files)?;
        let written = digest.ranks.write(&self.dir.join(RANKS_FILE));
        written.map_err(|error| IndexError::from(error).of_files())?;
        let covers = digest.ranks.covers();
        *self.links.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(digest);
        // Searches under way still read the old files, which stay readable until they are done.
        Anchors::remove_others(&self.dir, covers)
    }

    /// Replaces the link ranks of all pages by ranks that were worked out elsewhere.
    pub fn set_link_ranks(&self, ranks: Ranks) -> Result<(), IndexError> {
        ranks.write(&self.dir.join(RANKS_FILE))?;
        let digest = Digest { ranks, anchors: None };
        *self.links.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(digest);
        Ok(())
    }

    /// Shows the last commit to searches.
    pub(crate) fn reload(&self, writer: &mut Writer) -> Result<(), IndexError> {
        self.show(writer.upto)?;
        writer.fresh.clear();
        Ok(())
    }

    /// Shows a commit up to this place of the store, or a later one, to searches.
    pub(crate) fn show(&self, upto: u64) -> Result<(), IndexError> {
        self.reader.reload()?;
        let view = View::of(&self.reader.searcher(), &self.fields, Some(&self.view()))?;
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        self.applied_upto.store(upto, Ordering::Release);
        Ok(())
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

    pub(crate) fn links(&self) -> Arc<Digest> {
        Arc::clone(&self.links.read().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) fn check_format(dir: &Path) -> Result<(), IndexError> {
    let file = dir.join(FORMAT_FILE);
    match fs::read(&file) {
        Ok(text) => match String::from_utf8_lossy(&text).trim().parse() {
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
        Err(error) => {
            Err(std::io::Error::new(error.kind(), format!("{FORMAT_FILE}: {error}")).into())
        }
    }
}

/// The engine of an index whose format is ours, with everything that reading and writing needs.
pub(crate) fn open_engine(
    dir: &Path,
    hook: &Arc<dyn SyncHook>,
) -> Result<(Index, Fields), IndexError> {
    let (schema, fields) = Fields::schema();
    let mut index = open_files(dir, hook, schema.clone())?;
    if index.schema() != schema {
        return Err(IndexError::Damaged("its columns are not those of its format".to_owned()));
    }
    index.set_tokenizers(tokenizers());
    Ok((index, fields))
}

fn open_files(dir: &Path, hook: &Arc<dyn SyncHook>, schema: Schema) -> Result<Index, IndexError> {
    let files = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    let files = IndexFiles { files, hook: Arc::clone(hook) };
    if Index::exists(&files).map_err(tantivy::TantivyError::from)? {
        return Ok(Index::open(files)?);
    }
    let settings = IndexSettings {
        docstore_compression: Compressor::Zstd(ZstdCompressor {
            compression_level: Some(STORED_LEVEL),
        }),
        docstore_blocksize: STORED_BLOCK_BYTES,
        ..IndexSettings::default()
    };
    Ok(Index::create(files, schema, settings)?)
}
