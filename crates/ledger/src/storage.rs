//! What the ledger needs of a back end: named tables of rows with one atomic batch, and bodies that
//! are only ever appended. A back end stores bytes and decides nothing.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use telusur_model::{BlobRef, Crawl, CrawlNo, RawPage, Timestamp};

use crate::{Body, StateDamage, StoreError};

/// Where a ledger keeps its rows and bodies.
pub trait Storage: Send + Sync {
    /// The tables.
    type Rows: WriteRows;
    /// The bodies.
    type Bodies: Bodies;

    /// The tables.
    fn rows(&self) -> &Self::Rows;
    /// The bodies.
    fn bodies(&self) -> &Self::Bodies;
    /// The seed that URL keys are made with.
    fn key_seed(&self) -> u64;
    /// Bytes left on the device, where that is known.
    fn free_bytes(&self) -> Result<Option<u64>, StoreError>;
    /// Names of files that belong to nobody.
    fn leftovers(&self) -> Result<Vec<String>, StoreError>;
    /// Where it is, for people.
    fn location(&self) -> String;
    /// Reads what neither [`Rows`] nor [`Bodies`] are read out of: logs that are read again only by the next opening.
    fn read_files(&self) -> Result<FilesRead, StoreError> {
        Ok(FilesRead::default())
    }
}

/// What came of reading files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesRead {
    /// Bytes that were read.
    pub bytes: u64,
    /// What is damaged.
    pub damaged: Vec<StateDamage>,
}

/// The tables of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Sequence, crawl counter, ends of bodies, whether the last owner closed.
    Meta,
    /// Crawl number to settings and state.
    Crawls,
    /// Crawl number to counters.
    Stats,
    /// Crawl and host to [`telusur_model::HostRow`].
    Hosts,
    /// Crawl and URL key to the URL's state: the seen-set.
    Urls,
    /// Crawl, host, lane and order to a URL that waits.
    Queue,
    /// Crawl, host, budget and order to a link that was left out and waits for a unit.
    Held,
    /// Crawl and sequence to [`telusur_model::PageRecord`].
    Pages,
    /// Host and origin to [`telusur_model::OriginRow`], for all crawls.
    Origins,
    /// Crawl, walk and position to the run of ids that begins there.
    Runs,
    /// Crawl and shape to how far its pages say the same, and whether that has ended its budget.
    Traps,
    /// Sequence to the crawl whose page was stored or lost, or that was removed, at that place: the one order of
    /// all changes.
    Order,
    /// Id or name, and crawl number: finds crawls by what people call them.
    Names,
    /// Crawl and the key of the URL that an id was redirected to, to the key of its page.
    Aliases,
    /// Crawl and sequence to the record of a page that was lost at that place.
    Lost,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 15] = [
        Self::Meta,
        Self::Crawls,
        Self::Stats,
        Self::Hosts,
        Self::Urls,
        Self::Queue,
        Self::Held,
        Self::Pages,
        Self::Origins,
        Self::Runs,
        Self::Traps,
        Self::Order,
        Self::Names,
        Self::Aliases,
        Self::Lost,
    ];
    /// Those whose keys begin with a crawl's number, apart from the crawl's own row.
    pub const OF_CRAWL: [Self; 9] = [
        Self::Queue,
        Self::Held,
        Self::Urls,
        Self::Pages,
        Self::Hosts,
        Self::Runs,
        Self::Traps,
        Self::Aliases,
        Self::Lost,
    ];

    /// Its name, for messages and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Crawls => "crawls",
            Self::Stats => "stats",
            Self::Hosts => "hosts",
            Self::Urls => "urls",
            Self::Queue => "queue",
            Self::Held => "held",
            Self::Pages => "pages",
            Self::Origins => "origins",
            Self::Runs => "runs",
            Self::Traps => "traps",
            Self::Order => "order",
            Self::Names => "names",
            Self::Aliases => "aliases",
            Self::Lost => "lost",
        }
    }
}

impl Table {
    /// The crawl whose row has this key, or whose rows begin with it.
    pub fn crawl_of(self, key: &[u8]) -> Option<CrawlNo> {
        let is_of_crawl =
            Self::OF_CRAWL.contains(&self) || matches!(self, Self::Crawls | Self::Stats);
        let no = key.first_chunk().filter(|_| is_of_crawl);
        no.map(|no| CrawlNo(u32::from_be_bytes(*no)))
    }
}

/// Ordered tables of keys and values, read.
pub trait Rows: Send + Sync {
    /// A key or a value as it is read.
    type Bytes: AsRef<[u8]> + std::ops::Deref<Target = [u8]>;

    /// The value at a key.
    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<Self::Bytes>, StoreError>;
    /// Whether there is a row at a key.
    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError>;
    /// The rows from `first` on and before `end`, in the order of their keys; without an end to the
    /// last row. What is committed meanwhile is not seen.
    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(Self::Bytes, Self::Bytes), StoreError>>;

    /// The rows whose keys begin with these bytes.
    fn prefix(
        &self,
        table: Table,
        prefix: impl Into<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(Self::Bytes, Self::Bytes), StoreError>> {
        let prefix = prefix.into();
        let end = after_prefix(&prefix);
        self.range(table, prefix, end)
    }
}

/// Ordered tables of keys and values.
pub trait WriteRows: Rows {
    /// The tables as they were at one instant.
    type Snapshot: Rows;

    /// All tables as the last batch left them: batches that are committed later are not seen, and do
    /// not wait. Replaced rows are kept for as long as the snapshot is.
    fn snapshot(&self) -> Self::Snapshot;
    /// Makes all changes of a batch durable, or none.
    fn commit(&self, batch: Batch) -> Result<(), StoreError>;
}

/// The smallest key behind all keys with this prefix; `None` if there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Changes that become durable together, at most one for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    tables: [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()],
}

/// One change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// In this table.
    pub table: Table,
    /// At this key.
    pub key: Vec<u8>,
    /// The new value; `None` removes the row.
    pub value: Option<Vec<u8>>,
}

impl Batch {
    /// Puts a row, whether or not there is one at its key.
    pub fn insert(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.tables[table as usize].insert(key.into(), Some(value.into()));
    }

    /// Removes a row, if there is one.
    pub fn remove(&mut self, table: Table, key: impl Into<Vec<u8>>) {
        self.tables[table as usize].insert(key.into(), None);
    }

    /// The new value of a row, `None` if it is removed; `None` if the row is not changed.
    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        self.tables[table as usize].get(key).map(Option::as_deref)
    }

    /// The changes of rows from `first` on and before `end`, in the order of their keys.
    pub(crate) fn range<'b>(
        &'b self,
        table: Table,
        first: &[u8],
        end: Option<&[u8]>,
    ) -> impl Iterator<Item = (&'b [u8], Option<&'b [u8]>)> + use<'b> {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.tables[table as usize].range::<[u8], _>((Bound::Included(first), end));
        rows.map(|(key, value)| (key.as_slice(), value.as_deref()))
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.tables.iter().map(BTreeMap::len).sum()
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(BTreeMap::is_empty)
    }

    /// The changes, table by table in the order of [`Table::ALL`], in the order of their keys.
    pub fn into_changes(self) -> impl Iterator<Item = Change> {
        Table::ALL.into_iter().zip(self.tables).flat_map(|(table, rows)| {
            rows.into_iter().map(move |(key, value)| Change { table, key, value })
        })
    }
}

/// Bodies of pages and records of steps, appended and never changed.
pub trait Bodies: Send + Sync {
    /// Packs what is kept of a page into a blob; `None` if nothing is. Heavy and free of side effects.
    fn pack(&self, kept: &KeptParts<'_>) -> Option<Vec<u8>>;
    /// Appends blobs and behind them the record of their step, which `record` makes of their places, and
    /// syncs all of it. Gives the new end, which must be committed with the rows that the step changes: bytes
    /// beyond the committed end may be overwritten.
    /// Where the bodies are shorter than was committed, or whole records of another process follow the
    /// end, nothing is cut: the blobs go elsewhere.
    fn append(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
        blobs: &[&[u8]],
        record: impl FnOnce(&[BlobRef]) -> Vec<u8>,
    ) -> Result<BodiesEnd, StoreError>;
    /// The answer in a blob.
    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError>;
    /// The extract in a blob, as JSON.
    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError>;
    /// Where a blob came from, as far as it says so itself.
    fn origin(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Option<BlobOrigin>, StoreError>;
    /// The record of a step.
    fn step_record(&self, crawl: CrawlNo, place: BlobRef) -> Result<Vec<u8>, StoreError>;
    /// Whether a blob can be read and is what was written.
    fn is_whole(&self, crawl: CrawlNo, blob: BlobRef) -> Result<bool, StoreError>;
    /// Whether the bodies of a crawl reach up to a committed end: if not, some of them are lost.
    fn reach(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError>;
    /// Whether anything is behind a committed end.
    fn has_more(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError>;
    /// Calls `each` with everything behind a place, in order, until it breaks off. Reads all of it.
    fn scan(
        &self,
        crawl: CrawlNo,
        from: BodiesEnd,
        each: &mut dyn FnMut(Scanned) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError>;
    /// Keeps the settings of a crawl beside its bodies, in the place of earlier ones.
    fn put_settings(&self, crawl: CrawlNo, json: &[u8]) -> Result<(), StoreError>;
    /// The settings that were put last; `None` if there are none, or they cannot be read.
    fn settings(&self, crawl: CrawlNo) -> Result<Option<Vec<u8>>, StoreError>;
    /// Aliases of the crawls that have bodies.
    fn crawls(&self) -> Result<Vec<String>, StoreError>;
    /// Crawls whose bodies were not all deleted when [`remove`](Self::remove) was cut short: they are no
    /// longer among [`crawls`](Self::crawls).
    fn half_removed(&self) -> Result<Vec<CrawlNo>, StoreError>;
    /// Deletes bodies of a crawl, at most `files_max` files. The first call makes durable that they are no
    /// crawl's any more. True if none are left, and that is durable.
    fn remove(&self, crawl: CrawlNo, files_max: usize) -> Result<bool, StoreError>;
}

/// What a blob says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOrigin {
    /// The address of its page.
    pub url: String,
    /// When it came.
    pub at: Timestamp,
    /// Whether the raw answer is in it.
    pub has_body: bool,
    /// Whether the extract is in it.
    pub has_extract: bool,
}

/// What a scan of bodies finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// A whole blob.
    Blob(BlobRef),
    /// A whole record of a step, behind the blobs that it brings.
    Step(BlobRef),
    /// Bytes that are neither, up to the next whole blob or record or the end of the segment.
    Unreadable(BytesRange),
}

/// A range of bytes of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesRange {
    /// In this segment.
    pub segment: u32,
    /// From here.
    pub first: u64,
    /// Up to here.
    pub end: u64,
}

/// The parts of a page that are kept.
pub struct KeptParts<'a> {
    /// Of this crawl.
    pub crawl: &'a Crawl,
    /// Since then.
    pub at: Timestamp,
    /// The address.
    pub url: &'a str,
    /// What came over the wire, if that is kept.
    pub answer: Option<&'a RawPage>,
    /// What was extracted, as JSON, if that is kept.
    pub extract: Option<&'a [u8]>,
}

/// Up to where the bodies of a crawl are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BodiesEnd {
    /// The last segment's number; 0 when there is none yet.
    pub segment: u32,
    /// Its valid length.
    pub len: u64,
}
