//! Works out of the log of links what searches use: ranks of pages and sites, and what pages are
//! called. Reads the log several times rather than holding it in memory. The same log always gives
//! the same result.

use std::collections::HashMap;
use std::path::Path;

use foldhash::fast::RandomState;
use telusur_model::UrlKey;

use super::anchors::{Anchors, AnchorsWriter, Names};
use super::graph::{LinkGraph, LinkGraphBuilder};
use super::log::{LogReader, LoggedPage};
use super::ranks::{Ranks, SiteRank};
use crate::IndexError;
use crate::analysis::Language;

/// Pages whose names are gathered in one reading of the log: at about 200 bytes each, 50 MB.
const NAMED_PAGES_MAX: usize = 250_000;

/// What the log says, in the form that searches use.
pub(crate) struct Digest {
    pub(crate) ranks: Ranks,
    pub(crate) anchors: Option<Anchors>,
}

/// Works it out. What pages are called is written into the directory.
pub(crate) fn digest(log: &LogReader, dir: &Path) -> Result<Digest, IndexError> {
    let roll = Roll::read(log)?;
    let anchors = anchors(log, &roll, dir)?;
    let ranks = ranks(log, &roll)?.with_anchors(anchors.is_some());
    Ok(Digest { ranks, anchors })
}

impl Digest {
    /// What was worked out last; nothing if some of it is lost, so that it is worked out again.
    pub(crate) fn read(dir: &Path, ranks_file: &Path) -> Self {
        let ranks = Ranks::read(ranks_file);
        let anchors = Anchors::open(dir, ranks.covers());
        if ranks.has_anchors() && anchors.is_none() {
            return Self { ranks: Ranks::default(), anchors: None };
        }
        Self { ranks, anchors }
    }
}

/// Which rows of the log count.
#[derive(Default)]
struct Roll {
    /// Of each page in each crawl the last row.
    last: HashMap<(u64, u32), u64, RandomState>,
    /// The pages that are in the index, and their sites.
    site_of: HashMap<u64, u64, RandomState>,
    /// The pages that addresses redirect to.
    behind: HashMap<u64, u64, RandomState>,
}

impl Roll {
    fn read(log: &LogReader) -> Result<Self, IndexError> {
        let mut roll = Self::default();
        log.each(&mut |place, row| {
            roll.last.insert((row.page, row.crawl), place);
        })?;
        log.each(&mut |place, row| {
            if roll.counts(place, &row) {
                roll.site_of.insert(row.page, row.site);
                roll.behind.extend(row.aliases.iter().map(|alias| (*alias, row.page)));
            }
        })?;
        Ok(roll)
    }

    fn counts(&self, place: u64, row: &LoggedPage) -> bool {
        row.is_there && self.last.get(&(row.page, row.crawl)) == Some(&place)
    }

    /// The indexed page that a link leads to.
    fn target(&self, page: u64) -> Option<u64> {
        if self.site_of.contains_key(&page) {
            return Some(page);
        }
        self.behind.get(&page).copied().filter(|page| self.site_of.contains_key(page))
    }
}

fn ranks(log: &LogReader, roll: &Roll) -> Result<Ranks, IndexError> {
    let mut builder = LinkGraphBuilder::default();
    for &page in roll.site_of.keys() {
        builder.page(key(page));
    }
    log.each(&mut |place, row| {
        if roll.counts(place, &row) {
            for target in row.links.iter().filter_map(|link| roll.target(link.page)) {
                builder.link(key(row.page), key(target));
            }
        }
    })?;
    let graph = builder.build();
    let page_ranks = graph.page_ranks();
    let sites = site_ranks(&graph, &page_ranks, roll);
    Ok(Ranks::of(graph.pages(), &page_ranks).with_sites(sites).covering(log.end))
}

/// The ranks of sites, best first, each with its best page.
fn site_ranks(graph: &LinkGraph, page_ranks: &[f64], roll: &Roll) -> Vec<SiteRank> {
    let mut sites: Vec<u64> = roll.site_of.values().copied().collect();
    sites.sort_unstable();
    sites.dedup();
    let site_of = |page: &UrlKey| {
        let site = roll.site_of.get(&number(*page)).copied().unwrap_or(0);
        sites.binary_search(&site).unwrap_or(0)
    };
    let group_of: Vec<u32> = graph
        .pages()
        .iter()
        .map(|page| u32::try_from(site_of(page)).expect("fewer sites than pages"))
        .collect();
    let ranks = graph.group_ranks(&group_of);
    let mut rows: Vec<SiteRank> = sites
        .iter()
        .zip(&ranks)
        .map(|(&site, rank)| SiteRank {
            site,
            best_page: 0,
            pages: 0,
            times_average: (rank * ranks.len() as f64) as f32,
        })
        .collect();
    let mut best = vec![-1.0; rows.len()];
    for (at, (&group, page)) in group_of.iter().zip(graph.pages()).enumerate() {
        let group = usize::try_from(group).expect("usize has at least 32 bits here");
        rows[group].pages += 1;
        if page_ranks[at] > best[group] {
            best[group] = page_ranks[at];
            rows[group].best_page = number(*page);
        }
    }
    // Documents without an address are of no site.
    rows.retain(|row| row.site != 0);
    rows.sort_by(|a, b| b.times_average.total_cmp(&a.times_average).then(a.site.cmp(&b.site)));
    rows
}

fn anchors(log: &LogReader, roll: &Roll, dir: &Path) -> Result<Option<Anchors>, IndexError> {
    let mut pages: Vec<u64> = roll.site_of.keys().copied().collect();
    pages.sort_unstable();
    let mut writer = AnchorsWriter::create(dir, log.end)?;
    for part in pages.chunks(NAMED_PAGES_MAX) {
        let mut names: HashMap<u64, Names, RandomState> = HashMap::default();
        let range = part[0]..=part[part.len() - 1];
        log.each(&mut |place, row| {
            if !roll.counts(place, &row) {
                return;
            }
            let language = Language::from_code(&row.language);
            for link in row.links.iter().filter(|link| !link.anchor.is_empty()) {
                let target = roll.target(link.page).filter(|page| range.contains(page));
                if let Some(page) = target.filter(|page| *page != row.page) {
                    names.entry(page).or_default().add(&link.anchor, language);
                }
            }
        })?;
        let named = part.iter().filter_map(|page| Some((*page, names.get(page)?)));
        for (page, names) in named {
            writer.add(page, names)?;
        }
    }
    writer.finish()
}

/// The graph wants whole keys; the log has the half that tells pages apart.
fn key(page: u64) -> UrlKey {
    UrlKey(u128::from(page))
}

fn number(key: UrlKey) -> u64 {
    crate::fields::page_number(key.0)
}
