//! [`LinkLog`]: which indexed page links where, and with which words.
//!
//! A file that is only ever appended to, in frames: length, checksum, compressed rows. How much of
//! it counts is written in the index's own commit, so that a crash leaves documents and links of the
//! same moment: what lies beyond is cut off when the log is opened. What is said about a page later
//! replaces what was said before. Pages of one site link to the same places, so that a frame of a
//! whole batch costs a few bytes per link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use telusur_model::CrawlNo;
use xxhash_rust::xxh3::xxh3_64;

use crate::analysis::Language;
use crate::fields::{page_number, site_number_of};
use crate::{DocKey, IndexDoc, IndexError};

/// Links that are kept of a page; those beyond are lists that say little about each entry.
const LINKS_MAX: usize = 300;
/// Bytes that are kept of the words of a link: longer ones are whole paragraphs.
const ANCHOR_BYTES_MAX: usize = 80;
/// The level at which compressing costs a tenth of writing the rest of the index.
const COMPRESSION_LEVEL: i32 = 1;
/// A frame is one batch of the indexer, about a megabyte. More than this is damage.
const FRAME_BYTES_MAX: u32 = 256 << 20;
/// Length and checksum.
const FRAME_HEAD_BYTES: usize = 12;

/// How much of the log counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogEnd {
    /// Which file: a log that loses rows is rewritten under the next number.
    pub(crate) generation: u32,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Rows in it.
    pub(crate) rows: u64,
}

/// What the log says about a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedPage {
    /// Which page.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) page: u64,
    /// In which crawl.
    pub(crate) crawl: u32,
    /// Of which site.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) site: u64,
    /// Whether it is in the index.
    pub(crate) is_there: bool,
    /// The code of the language that its links are named in.
    pub(crate) language: String,
    /// The addresses that redirect to it.
    pub(crate) aliases: Vec<u64>,
    /// Where it links.
    pub(crate) links: Vec<LoggedLink>,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedLink {
    /// To which page.
    #[serde(with = "postcard::fixint::le")]
    pub(crate) page: u64,
    /// With which words.
    pub(crate) anchor: String,
}

impl LoggedPage {
    /// What is to be remembered of a document's links.
    pub(crate) fn of(doc: &IndexDoc, language: Option<Language>) -> Self {
        let page = page_number(doc.key.url.0);
        let followed = doc.links.iter().filter(|link| !link.nofollow).take(LINKS_MAX);
        let links = followed.map(|link| LoggedLink {
            page: page_number(link.page.0),
            anchor: crate::fields::cut(&link.anchor, ANCHOR_BYTES_MAX).to_owned(),
        });
        Self {
            page,
            crawl: doc.key.crawl.0,
            site: site_number_of(&doc.url).unwrap_or(0),
            is_there: true,
            language: language.map(Language::code).unwrap_or_default().to_owned(),
            aliases: doc.aliases.iter().map(|alias| page_number(alias.0)).collect(),
            links: links.filter(|link| link.page != page).collect(),
        }
    }

    /// A page that was taken out.
    pub(crate) fn gone(key: DocKey) -> Self {
        Self { page: page_number(key.url.0), crawl: key.crawl.0, ..Self::default() }
    }
}

/// The log, open for writing.
pub(crate) struct LinkLog {
    dir: PathBuf,
    file: File,
    end: LogEnd,
}

impl LinkLog {
    /// Opens the log of an index whose last commit knows so much of it. What lies beyond is cut off;
    /// files of other generations are left over from a crash and removed.
    pub(crate) fn open(dir: &Path, end: LogEnd) -> Result<Self, IndexError> {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if generation_of(&path).is_some_and(|it| it != end.generation) {
                fs::remove_file(path)?;
            }
        }
        let path = path_of(dir, end.generation);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        if file.metadata()?.len() < end.bytes {
            return Err(IndexError::Damaged(format!("{} is cut", path.display())));
        }
        file.set_len(end.bytes)?;
        Ok(Self { dir: dir.to_owned(), file, end })
    }

    /// How much of it counts, once the commit is made.
    pub(crate) fn end(&self) -> LogEnd {
        self.end
    }

    /// Appends rows and makes them durable, before the commit that counts them.
    pub(crate) fn append(&mut self, rows: &[LoggedPage]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let frame = frame(rows)?;
        // A frame that was written in part, before the disk was full, is written over.
        self.file.set_len(self.end.bytes)?;
        self.file.seek(SeekFrom::Start(self.end.bytes))?;
        self.file.write_all(&frame)?;
        self.file.sync_data()?;
        self.end.bytes += frame.len() as u64;
        self.end.rows += rows.len() as u64;
        Ok(())
    }

    /// Rewrites the log without the rows of a crawl. The old file stays until [`LinkLog::open`]
    /// or [`LinkLog::forget_before`] is told that a commit knows the new one.
    pub(crate) fn without_crawl(&self, crawl: CrawlNo) -> Result<Self, IndexError> {
        let end = LogEnd { generation: self.end.generation.wrapping_add(1), ..LogEnd::default() };
        let mut next = Self::open_file(&self.dir, end)?;
        self.reader()?.each_frame(&mut |rows| {
            let rows: Vec<LoggedPage> = rows.into_iter().filter(|it| it.crawl != crawl.0).collect();
            next.append(&rows)
        })?;
        Ok(next)
    }

    /// Removes the file of an earlier generation.
    pub(crate) fn forget_before(&self, before: &Self) -> io::Result<()> {
        fs::remove_file(path_of(&before.dir, before.end.generation))
    }

    /// The rows so far, to be read beside the writer.
    pub(crate) fn reader(&self) -> io::Result<LogReader> {
        let file = File::open(path_of(&self.dir, self.end.generation))?;
        Ok(LogReader { file, end: self.end })
    }

    fn open_file(dir: &Path, end: LogEnd) -> io::Result<Self> {
        let path = path_of(dir, end.generation);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self { dir: dir.to_owned(), file, end })
    }
}

/// The rows of a log up to a moment. The file may be removed meanwhile; it is read all the same.
pub(crate) struct LogReader {
    file: File,
    pub(crate) end: LogEnd,
}

impl LogReader {
    /// Calls `each` with every row, oldest first, and its place.
    pub(crate) fn each(&self, each: &mut dyn FnMut(u64, LoggedPage)) -> Result<(), IndexError> {
        let mut place = 0;
        self.each_frame(&mut |rows| {
            for row in rows {
                each(place, row);
                place += 1;
            }
            Ok(())
        })
    }

    fn each_frame(
        &self,
        each: &mut dyn FnMut(Vec<LoggedPage>) -> io::Result<()>,
    ) -> Result<(), IndexError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        let mut rest = BufReader::new(file.take(self.end.bytes));
        let mut left = self.end.bytes;
        while left > 0 {
            let rows = read_frame(&mut rest).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                    IndexError::Damaged(format!("the log of links: {error}"))
                }
                _ => error.into(),
            })?;
            left = left.saturating_sub(rows.1);
            each(rows.0)?;
        }
        Ok(())
    }
}

fn frame(rows: &[LoggedPage]) -> io::Result<Vec<u8>> {
    let plain = postcard::to_stdvec(rows).map_err(io::Error::other)?;
    let packed = zstd::bulk::compress(&plain, COMPRESSION_LEVEL)?;
    let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + packed.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&xxh3_64(&packed).to_le_bytes());
    frame.extend_from_slice(&packed);
    Ok(frame)
}

/// The rows of the next frame, and its length.
fn read_frame(rest: &mut impl Read) -> io::Result<(Vec<LoggedPage>, u64)> {
    let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let (mut length, mut sum) = ([0; 4], [0; 8]);
    rest.read_exact(&mut length)?;
    rest.read_exact(&mut sum)?;
    let length = u32::from_le_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(damaged("a frame is too long"));
    }
    let mut packed = Vec::new();
    rest.take(u64::from(length)).read_to_end(&mut packed)?;
    if xxh3_64(&packed) != u64::from_le_bytes(sum) {
        return Err(damaged("a frame does not match its checksum"));
    }
    let plain = zstd::stream::decode_all(packed.as_slice())?;
    let rows = postcard::from_bytes(&plain).map_err(|_| damaged("a frame cannot be read"))?;
    Ok((rows, FRAME_HEAD_BYTES as u64 + u64::from(length)))
}

fn path_of(dir: &Path, generation: u32) -> PathBuf {
    dir.join(format!("links-{generation}.log"))
}

fn generation_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("links-")?.strip_suffix(".log")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(page: u64, crawl: u32) -> LoggedPage {
        let link = LoggedLink { page: page + 1, anchor: "next".into() };
        LoggedPage { page, crawl, is_there: true, links: vec![link], ..LoggedPage::default() }
    }

    fn pages(log: &LinkLog) -> Vec<u64> {
        let mut pages = Vec::new();
        log.reader().unwrap().each(&mut |_, row| pages.push(row.page)).unwrap();
        pages
    }

    #[test]
    fn what_no_commit_knows_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LinkLog::open(dir.path(), LogEnd::default()).unwrap();
        log.append(&[row(1, 1), row(2, 1)]).unwrap();
        let committed = log.end();
        log.append(&[row(3, 1)]).unwrap();
        let log = LinkLog::open(dir.path(), committed).unwrap();
        assert_eq!(pages(&log), [1, 2]);
        assert_eq!(log.end().rows, 2);
    }

    #[test]
    fn a_cut_or_changed_log_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LinkLog::open(dir.path(), LogEnd::default()).unwrap();
        log.append(&[row(1, 1)]).unwrap();
        let path = path_of(dir.path(), 0);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        let read = log.reader().unwrap().each(&mut |_, _| {});
        assert!(read.unwrap_err().needs_rebuild());
        fs::write(&path, &bytes[1..]).unwrap();
        assert!(LinkLog::open(dir.path(), log.end()).err().unwrap().needs_rebuild());
    }

    #[test]
    fn a_crawl_can_be_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LinkLog::open(dir.path(), LogEnd::default()).unwrap();
        log.append(&[row(1, 1), row(2, 2), row(3, 1)]).unwrap();
        let next = log.without_crawl(CrawlNo(1)).unwrap();
        assert_eq!(pages(&next), [2]);
        // Whichever of the two a commit knows is the one that counts.
        assert_eq!(pages(&LinkLog::open(dir.path(), log.end()).unwrap()), [1, 2, 3]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
