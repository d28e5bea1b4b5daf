//! [`Ranks`]: the link rank of every page, as searches look it up.
//!
//! Columns of an index segment never change, and every new link changes every rank. So ranks are a
//! file of their own beside the index: nine bytes per page, in memory while the index is open,
//! replaced whole. A search looks up the few hundred pages that it ranks. Lost or damaged, the file
//! is as good as empty: ranks are worked out anew from the stored links.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use telusur_model::UrlKey;
use xxhash_rust::xxh3::xxh3_64;

use crate::fields::page_number;

const MAGIC: &[u8; 8] = b"TLSRANK1";
/// A page this many times above the average, as a power of ten, has the highest level.
const POWER_MAX: f64 = 5.0;

/// How much better linked than the average each page is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Ascending.
    pages: Vec<u64>,
    levels: Vec<u8>,
}

impl Ranks {
    /// Keeps the ranks of pages that [`LinkGraph::page_ranks`](crate::LinkGraph::page_ranks) gave.
    pub fn of(pages: &[UrlKey], ranks: &[f64]) -> Self {
        let count = pages.len() as f64;
        let mut rows: Vec<(u64, u8)> = pages
            .iter()
            .zip(ranks)
            .map(|(page, rank)| (page_number(page.0), level(rank * count)))
            .collect();
        rows.sort_unstable();
        rows.dedup_by_key(|row| row.0);
        let (pages, levels) = rows.into_iter().unzip();
        Self { pages, levels }
    }

    /// How many powers of ten a page's rank lies above the average: 0 for average and unknown pages.
    pub fn power(&self, page: UrlKey) -> f32 {
        self.power_of_number(page_number(page.0))
    }

    pub(crate) fn power_of_number(&self, page: u64) -> f32 {
        match self.pages.binary_search(&page) {
            Ok(at) => f32::from(self.levels[at]) / 255.0 * POWER_MAX as f32,
            Err(_) => 0.0,
        }
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let mut rows = Vec::with_capacity(self.pages.len() * 9);
        for (page, level) in self.pages.iter().zip(&self.levels) {
            rows.extend_from_slice(&page.to_le_bytes());
            rows.push(*level);
        }
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
        let (rows, _) = rows.as_chunks::<9>();
        let (pages, levels) =
            rows.iter().map(|[page @ .., level]| (u64::from_le_bytes(*page), *level)).unzip();
        Some(Self { pages, levels })
    }
}

fn level(times_average: f64) -> u8 {
    let power = times_average.max(1.0).log10().min(POWER_MAX);
    // Between 0 and 255 by the line above.
    (power / POWER_MAX * 255.0).round() as u8
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
