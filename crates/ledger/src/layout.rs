//! The layout of rows: keys that sort the way they are read, values in postcard.

use crate::{KeptRun, NewlyQueued, StoreError, UrlRecord, UrlState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use telusur_model::{
    CrawlNo, Host, Lane, PageUrl, Purpose, QueuePlace, Reason, Timestamp, UrlKey, Via, Visit,
};

pub(crate) const META_CLOSED: &str = "closed";
pub(crate) const META_SCRUB: &str = "scrub";
pub(crate) const META_SEQ: &str = "seq";
pub(crate) const META_CRAWLS: &str = "crawls";
/// The last step whose record is in the bodies.
pub(crate) const META_STEP: &str = "step";

/// Where the ends of all crawls' segments begin.
pub(crate) const META_BODIES_ENDS: &str = "segment_end/";

/// Where the segments of a crawl end.
pub(crate) fn meta_bodies_end(crawl: CrawlNo) -> String {
    format!("{META_BODIES_ENDS}{}", crawl.0)
}

/// Where the removals that are not over begin.
pub(crate) const META_REMOVALS: &str = "removal/";

/// What says that a crawl is being removed.
pub(crate) fn meta_removal(crawl: CrawlNo) -> String {
    format!("{META_REMOVALS}{}", crawl.0)
}

/// Where the crawls begin whose requests may not all be written down.
pub(crate) const META_ASKING: &str = "asking/";

/// What says so of a crawl.
pub(crate) fn meta_asking(crawl: CrawlNo) -> String {
    format!("{META_ASKING}{}", crawl.0)
}

/// The crawl in a key of the meta table that begins so.
pub(crate) fn crawl_of_meta(key: &[u8], begin: &str) -> Result<CrawlNo, StoreError> {
    let number = key.strip_prefix(begin.as_bytes()).and_then(|it| std::str::from_utf8(it).ok());
    let no = number.and_then(|number| number.parse().ok()).map(CrawlNo);
    no.ok_or_else(|| StoreError::Damaged(format!("a key of {begin} is cut")))
}

pub(crate) fn crawl_key(crawl: CrawlNo) -> [u8; 4] {
    crawl.0.to_be_bytes()
}

/// The smallest key behind all keys of a crawl; `None` behind the last crawl.
pub(crate) fn after_crawl(crawl: CrawlNo) -> Option<[u8; 4]> {
    crawl.0.checked_add(1).map(u32::to_be_bytes)
}

pub(crate) fn url_key(crawl: CrawlNo, key: UrlKey) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&crawl_key(crawl));
    bytes[4..].copy_from_slice(&key.0.to_be_bytes());
    bytes
}

/// The URL's key in a key of the seen-set.
pub(crate) fn key_of_url_row(key: &[u8]) -> Result<UrlKey, StoreError> {
    let key = key.last_chunk().map(|key| UrlKey(u128::from_be_bytes(*key)));
    key.ok_or_else(|| StoreError::Damaged("a key of urls is cut".into()))
}

pub(crate) fn page_key(crawl: CrawlNo, seq: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&crawl_key(crawl));
    bytes[4..].copy_from_slice(&seq.to_be_bytes());
    bytes
}

/// The place of a page in the one order of all pages.
pub(crate) fn order_key(seq: u64) -> [u8; 8] {
    seq.to_be_bytes()
}

/// What the order says at the place of a page: its crawl.
pub(crate) fn page_entry(crawl: CrawlNo) -> [u8; 4] {
    crawl_key(crawl)
}

/// What the order says where a crawl was removed: a tag, then the crawl. It ends like the entry of a page,
/// and a program that knows of pages only finds no page there.
pub(crate) fn removal_entry(crawl: CrawlNo) -> [u8; 5] {
    let [a, b, c, d] = crawl_key(crawl);
    [REMOVED, a, b, c, d]
}

/// The tag of an entry of the order that is the removal of a crawl.
const REMOVED: u8 = 1;

/// Whether an entry of the order is the removal of a crawl.
pub(crate) fn is_removal(entry: &[u8]) -> bool {
    entry.len() == size_of::<u32>() + 1 && entry.first() == Some(&REMOVED)
}

/// The sequence number that a key of pages or of their order ends with.
pub(crate) fn seq_of(key: &[u8]) -> Result<u64, StoreError> {
    let seq = key.last_chunk().map(|seq| u64::from_be_bytes(*seq));
    seq.ok_or_else(|| StoreError::Damaged("the key of a page is cut".into()))
}

/// Where the crawls begin that have this id or name: the text and a zero byte.
pub(crate) fn called_key(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// The same, then the crawl's number.
pub(crate) fn name_key(text: &str, crawl: CrawlNo) -> Vec<u8> {
    [called_key(text).as_slice(), &crawl_key(crawl)].concat()
}

/// The crawl number that the key of a row of a crawl begins with.
pub(crate) fn owner_of(key: &[u8]) -> Result<CrawlNo, StoreError> {
    let no = key.first_chunk().map(|no| CrawlNo(u32::from_be_bytes(*no)));
    no.ok_or_else(|| StoreError::Damaged("the key of a row of a crawl is cut".into()))
}

/// The crawl number that a row ends with.
pub(crate) fn crawl_of(bytes: &[u8]) -> Result<CrawlNo, StoreError> {
    let no = bytes.last_chunk().map(|no| CrawlNo(u32::from_be_bytes(*no)));
    no.ok_or_else(|| StoreError::Damaged("the number of a crawl is cut".into()))
}

pub(crate) fn host_key(crawl: CrawlNo, host: &Host) -> Vec<u8> {
    [crawl_key(crawl).as_slice(), host.as_str().as_bytes()].concat()
}

/// Host, a zero byte, origin: the origins of a host lie together.
pub(crate) fn origin_key(host: &Host, origin: &str) -> Vec<u8> {
    [host.as_str().as_bytes(), b"\0", origin.as_bytes()].concat()
}

/// Crawl, host, a zero byte (no host name holds one), lane, order, sequence.
pub(crate) fn queue_key(crawl: CrawlNo, host: &Host, place: QueuePlace) -> Vec<u8> {
    let mut bytes = queue_lane_key(crawl, host, lane_byte(place.lane));
    bytes.extend_from_slice(&place.order.to_be_bytes());
    bytes.extend_from_slice(&place.seq.to_be_bytes());
    bytes
}

/// Where a lane of a host begins.
pub(crate) fn queue_lane_key(crawl: CrawlNo, host: &Host, lane: u8) -> Vec<u8> {
    let mut bytes = host_key(crawl, host);
    bytes.push(0);
    bytes.push(lane);
    bytes
}

pub(crate) fn lane_byte(lane: Lane) -> u8 {
    match lane {
        Lane::Hot => 0,
        Lane::Plain => 1,
        Lane::Later => 2,
        // In no queue of the store: a key with one of these finds nothing.
        Lane::Prerequisite => 3,
        Lane::Linear => 4,
    }
}

/// Where the held links of a host begin that wait for one budget: crawl, host, a zero byte, and a
/// shape or none.
pub(crate) fn held_line_key(crawl: CrawlNo, host: &Host, shape: Option<u32>) -> Vec<u8> {
    let mut bytes = host_key(crawl, host);
    bytes.push(0);
    bytes.push(u8::from(shape.is_some()));
    bytes.extend_from_slice(&shape.unwrap_or(0).to_be_bytes());
    bytes
}

/// Where all held links of a host begin: those of every budget.
pub(crate) fn held_host_key(crawl: CrawlNo, host: &Host) -> Vec<u8> {
    let mut bytes = host_key(crawl, host);
    bytes.push(0);
    bytes
}

/// Which budget a held link waits for, by its key. `host_key_bytes`: the length of [`held_host_key`].
pub(crate) fn line_of_held_key(key: &[u8], host_key_bytes: usize) -> Option<Option<u32>> {
    let (tag, rest) = key.get(host_key_bytes..)?.split_first()?;
    let shape = u32::from_be_bytes(*rest.first_chunk()?);
    Some((*tag != 0).then_some(shape))
}

/// How many links of a host are held. No host name begins with this byte, so that the counts of a
/// crawl lie together, apart from its links.
pub(crate) fn held_count_key(crawl: CrawlNo, host: &Host) -> Vec<u8> {
    [held_counts_key(crawl).as_slice(), host.as_str().as_bytes()].concat()
}

/// Where the counts of a crawl begin.
pub(crate) fn held_counts_key(crawl: CrawlNo) -> [u8; 5] {
    let [a, b, c, d] = crawl_key(crawl);
    [a, b, c, d, u8::MAX]
}

/// The host in a key of a count.
pub(crate) fn host_of_count_key(key: &[u8]) -> Option<Host> {
    std::str::from_utf8(key.get(5..)?).ok().map(Host::new)
}

/// The key of a held link: its line, then order and sequence. Breadth first, as the queue is.
pub(crate) fn held_key(
    crawl: CrawlNo,
    host: &Host,
    shape: Option<u32>,
    place: QueuePlace,
) -> Vec<u8> {
    let mut bytes = held_line_key(crawl, host, shape);
    bytes.extend_from_slice(&place.order.to_be_bytes());
    bytes.extend_from_slice(&place.seq.to_be_bytes());
    bytes
}

/// The host in the key of a held link.
pub(crate) fn host_of_held_key(key: &[u8]) -> Option<Host> {
    let (name, rest) = key.get(4..)?.split_at_checked(key.len().checked_sub(26)?)?;
    let name = rest.starts_with(&[0]).then_some(name)?;
    std::str::from_utf8(name).ok().map(Host::new)
}

/// Crawl and the hash of a shape.
pub(crate) fn trap_key(crawl: CrawlNo, shape: u64) -> [u8; 12] {
    page_key(crawl, shape)
}

/// Crawl, walk, the first position of a run.
pub(crate) fn run_key(crawl: CrawlNo, walk: u32, first: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&walk_key(crawl, walk));
    bytes[8..].copy_from_slice(&first.to_be_bytes());
    bytes
}

/// Where the runs of a walk begin.
pub(crate) fn walk_key(crawl: CrawlNo, walk: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&crawl_key(crawl));
    bytes[4..].copy_from_slice(&walk.to_be_bytes());
    bytes
}

/// The run in a row: its key holds the first position, its value the rest.
pub(crate) fn run_of(key: &[u8], value: &[u8]) -> Result<KeptRun, StoreError> {
    let first = key.last_chunk().map(|first| u64::from_be_bytes(*first));
    let first = first.ok_or_else(|| StoreError::Damaged("a key of runs is cut".into()))?;
    let (last, state) = decode(value, "runs")?;
    Ok(KeptRun { first, last, state })
}

/// The place that a queue key ends with.
pub(crate) fn place_of(key: &[u8]) -> Option<QueuePlace> {
    let (head, seq) = key.split_last_chunk::<8>()?;
    let (head, order) = head.split_last_chunk::<8>()?;
    let lane =
        Lane::STORED.into_iter().find(|lane| lane_byte(*lane) == *head.last().unwrap_or(&9))?;
    Some(QueuePlace { lane, order: u64::from_be_bytes(*order), seq: u64::from_be_bytes(*seq) })
}

/// The host in a queue key.
pub(crate) fn host_of_queue_key(key: &[u8]) -> Option<Host> {
    let name = key.get(4..key.len().checked_sub(18)?)?;
    std::str::from_utf8(name).ok().map(Host::new)
}

/// A URL that waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueueRow {
    pub(crate) purpose: Purpose,
    pub(crate) url: PageUrl,
    pub(crate) key: UrlKey,
    pub(crate) depth: u16,
    pub(crate) hops_outside: u8,
    pub(crate) via: Via,
    pub(crate) found_at: Timestamp,
    pub(crate) referrer: Option<String>,
    pub(crate) redirects: Vec<String>,
    pub(crate) lastmod: Option<Timestamp>,
    pub(crate) attempt: u8,
    pub(crate) last_failure: Option<Reason>,
}

impl QueueRow {
    pub(crate) fn of_visit(visit: &Visit, last_failure: Option<Reason>) -> Self {
        Self {
            purpose: visit.purpose,
            url: visit.url.clone(),
            key: visit.key,
            depth: visit.depth,
            hops_outside: visit.hops_outside,
            via: visit.via,
            found_at: visit.found_at,
            referrer: visit.referrer.clone(),
            redirects: visit.redirects.clone(),
            lastmod: visit.lastmod,
            attempt: visit.attempt,
            last_failure,
        }
    }

    pub(crate) fn into_queued(self, crawl: CrawlNo, place: QueuePlace) -> NewlyQueued {
        let due = (place.lane == Lane::Later).then_some(Timestamp(place.order));
        let visit = Visit {
            crawl,
            purpose: self.purpose,
            url: self.url,
            key: self.key,
            place,
            depth: self.depth,
            hops_outside: self.hops_outside,
            via: self.via,
            found_at: self.found_at,
            referrer: self.referrer,
            redirects: self.redirects,
            lastmod: self.lastmod,
            attempt: self.attempt,
        };
        let asked_to_wait = self.last_failure == Some(Reason::RetryAfter);
        NewlyQueued { visit, due, asked_to_wait }
    }

    pub(crate) fn into_record(self, place: QueuePlace) -> UrlRecord {
        UrlRecord {
            url: self.url.to_string(),
            depth: self.depth,
            via: self.via,
            found_at: self.found_at,
            referrer: self.referrer,
            redirects: self.redirects,
            lastmod: self.lastmod,
            state: UrlState::Queued {
                place,
                attempt: self.attempt,
                last_failure: self.last_failure,
            },
        }
    }
}

/// What the seen-set says about a URL. Queued URLs and pages, which are the many, are only pointed
/// at; the rest is in the row pointed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum UrlRow {
    Queued { place: QueuePlace },
    Page { seq: u64 },
    Settled(Box<UrlRecord>),
}

/// Whether a row of the seen-set says that every link to its URL was marked nofollow.
pub(crate) fn is_nofollow(row: &[u8]) -> bool {
    // The many rows, of queued URLs and pages, are told apart by their first byte.
    const SETTLED: u8 = 2;
    row.first() == Some(&SETTLED)
        && matches!(
            postcard::from_bytes(row),
            Ok(UrlRow::Settled(record))
                if matches!(record.state, UrlState::Skipped { reason: Reason::Nofollow, .. })
        )
}

pub(crate) fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    postcard::to_allocvec(row).expect("our rows hold nothing that postcard cannot write")
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, StoreError> {
    postcard::from_bytes(bytes)
        .map_err(|error| StoreError::Damaged(format!("a row of {what} cannot be read: {error}")))
}

pub(crate) fn decode_u64(bytes: &[u8], what: &str) -> Result<u64, StoreError> {
    bytes
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| StoreError::Damaged(format!("{what} is not a number")))
}
