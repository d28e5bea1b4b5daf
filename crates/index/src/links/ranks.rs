//! [`Ranks`]: the link rank of every page and site, as searches look it up.
//!
//! Columns of an index segment never change, and every new link changes every rank. So ranks are a
//! file of their own beside the index: twelve bytes per page, in memory while the index is open,
//! replaced whole. A search looks up the few hundred pages that it ranks. Lost or damaged, the file
//! is as good as empty: ranks are computed again from the log of links.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use telusur_model::UrlKey;
use xxhash_rust::xxh3::xxh3_64;

use super::log::LogEnd;
use crate::fields::page_number;

const MAGIC: &[u8; 8] = b"TLSRANK2";
/// Being more than this many powers of ten above the average counts no more.
const POWER_MAX: f32 = 5.0;

/// How much better linked than the average each page and site is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// What of the log they were worked out of.
    covers: LogEnd,
    /// Ascending.
    pages: Vec<u64>,
    times_average: Vec<f32>,
    /// Best first.
    sites: Vec<SiteRank>,
    /// Whether words of links were found at the same time.
    has_anchors: bool,
}

/// The rank of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SiteRank {
    /// Which site.
    pub(crate) site: u64,
    /// Its best linked page.
    pub(crate) best_page: u64,
    /// How many pages of it are indexed.
    pub(crate) pages: u32,
    /// How many times as well linked as the average site.
    pub(crate) times_average: f32,
}

impl Ranks {
    /// Keeps the ranks of pages that [`LinkGraph::page_ranks`](crate::LinkGraph::page_ranks) gave.
    pub fn of(pages: &[UrlKey], ranks: &[f64]) -> Self {
        let count = pages.len() as f64;
        let mut rows: Vec<(u64, f32)> = pages
            .iter()
            .zip(ranks)
            .map(|(page, rank)| (page_number(page.0), (rank * count) as f32))
            .collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows.dedup_by_key(|row| row.0);
        let (pages, times_average) = rows.into_iter().unzip();
        Self { pages, times_average, ..Self::default() }
    }

    pub(crate) fn with_sites(self, sites: Vec<SiteRank>) -> Self {
        Self { sites, ..self }
    }

    pub(crate) fn covering(self, covers: LogEnd) -> Self {
        Self { covers, ..self }
    }

    pub(crate) fn with_anchors(self, has_anchors: bool) -> Self {
        Self { has_anchors, ..self }
    }

    /// Whether words of links belong to them.
    pub(crate) fn has_anchors(&self) -> bool {
        self.has_anchors
    }

    /// What of the log they were worked out of.
    pub(crate) fn covers(&self) -> LogEnd {
        self.covers
    }

    /// How many powers of ten a page's rank lies above the average: 0 for average and unknown pages.
    pub fn power(&self, page: UrlKey) -> f32 {
        self.power_of_number(page_number(page.0))
    }

    pub(crate) fn power_of_number(&self, page: u64) -> f32 {
        match self.pages.binary_search(&page) {
            Ok(at) => self.times_average[at].max(1.0).log10().min(POWER_MAX),
            Err(_) => 0.0,
        }
    }

    /// All pages with their rank in times of the average, best first.
    pub(crate) fn best_pages(&self) -> Vec<(u64, f32)> {
        let rows = self.pages.iter().copied().zip(self.times_average.iter().copied());
        let mut rows: Vec<(u64, f32)> = rows.collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rows
    }

    /// All sites, best first.
    pub(crate) fn best_sites(&self) -> &[SiteRank] {
        &self.sites
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let rows = postcard::to_stdvec(self).map_err(io::Error::other)?;
        let draft = file.with_extension("draft");
        let mut out = fs::File::create(&draft)?;
        out.write_all(MAGIC)?;
        out.write_all(&xxh3_64(&rows).to_le_bytes())?;
        out.write_all(&rows)?;
        out.sync_all()?;
        fs::rename(draft, file)
    }

    pub(crate) fn read(file: &Path) -> Self {
        fs::read(file).ok().and_then(|bytes| Self::from_bytes(&bytes)).unwrap_or_default()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (sum, rows) = rest.split_first_chunk::<8>()?;
        if xxh3_64(rows) != u64::from_le_bytes(*sum) {
            return None;
        }
        postcard::from_bytes(rows).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_survive_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ranks");
        let ranks = Ranks::of(&[UrlKey(7), UrlKey(3), UrlKey(5)], &[0.9, 0.05, 0.05]);
        ranks.write(&file).unwrap();
        assert_eq!(Ranks::read(&file), ranks);
        assert!((ranks.power(UrlKey(7)) - 2.7_f32.log10()).abs() < 0.02);
        assert_eq!(ranks.power(UrlKey(3)), 0.0);
        assert_eq!(ranks.best_pages()[0].0, 7);
        assert_eq!(ranks.power(UrlKey(99)), 0.0);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ranks");
        Ranks::of(&[UrlKey(7)], &[1.0]).write(&file).unwrap();
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(Ranks::read(&file), Ranks::default());
    }
}
