//! Tidies ranked hits: pages that say the same become one hit, and after its second hit a site waits
//! until the others had their turn. Nothing is lost: what waits comes later, what is folded is
//! counted.

use std::collections::HashMap;

use crate::near_duplicates::Sketch;

/// Hits that a site shows before the hits of other sites.
const SITE_HITS: usize = 2;
/// Addresses of folded pages that are remembered.
const SIMILAR_MAX: usize = 5;

/// A ranked hit, as far as tidying wants to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its place in the ranking before tidying.
    pub(crate) place: usize,
    /// Which page it is; the same in several crawls.
    pub(crate) page: u64,
    pub(crate) sketch: u64,
    /// Which site it is from; `None` for documents without an address.
    pub(crate) site: Option<u64>,
    /// Places of the pages that were folded into it, and how many there are.
    pub(crate) similar: Vec<usize>,
    pub(crate) similar_count: usize,
    /// How many hits of its site wait.
    pub(crate) more_from_site: usize,
}

/// Folds pages that say the same into the best of them.
pub(crate) fn fold_similar(rows: Vec<Row>) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        let same = kept.iter_mut().find(|other| {
            other.page == row.page || Sketch(other.sketch).is_near(Sketch(row.sketch))
        });
        let Some(same) = same else {
            kept.push(row);
            continue;
        };
        same.similar_count += 1;
        if same.similar.len() < SIMILAR_MAX {
            same.similar.push(row.place);
        }
    }
    kept
}

/// Lets a site wait after its second hit, if other sites have hits at all.
pub(crate) fn group_sites(rows: Vec<Row>) -> Vec<Row> {
    let first_site = rows.first().and_then(|row| row.site);
    if rows.iter().all(|row| row.site == first_site) {
        return rows;
    }
    let mut shown: Vec<Row> = Vec::with_capacity(rows.len());
    let mut waiting = Vec::new();
    // How many hits a site shows, and where the last of them is.
    let mut sites: HashMap<u64, (usize, usize)> = HashMap::new();
    for row in rows {
        if let Some(site) = row.site {
            let (hits, last) = sites.entry(site).or_default();
            if *hits == SITE_HITS {
                shown[*last].more_from_site += 1;
                waiting.push(row);
                continue;
            }
            *hits += 1;
            *last = shown.len();
        }
        shown.push(row);
    }
    shown.extend(waiting);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(place: usize, site: u64, sketch: u64) -> Row {
        let page = u64::try_from(place).unwrap();
        Row { place, page, sketch, site: Some(site), ..Row::default() }
    }

    fn places(rows: &[Row]) -> Vec<usize> {
        rows.iter().map(|row| row.place).collect()
    }

    #[test]
    fn similar_pages_are_folded_into_the_best() {
        let rows = fold_similar(vec![row(0, 0, 0xFF00), row(1, 1, !0xFF00), row(2, 2, 0xFF01)]);
        assert_eq!(places(&rows), [0, 1]);
        assert_eq!((rows[0].similar_count, &rows[0].similar[..]), (1, &[2][..]));
    }

    #[test]
    fn pages_without_a_sketch_are_never_similar() {
        assert_eq!(fold_similar(vec![row(0, 0, 0), row(1, 0, 0)]).len(), 2);
    }

    #[test]
    fn one_page_in_two_crawls_is_one_hit() {
        let twice = Row { page: 0, ..row(1, 0, 0) };
        assert_eq!(fold_similar(vec![row(0, 0, 0), twice]).len(), 1);
    }

    #[test]
    fn a_site_waits_after_its_second_hit() {
        let rows =
            group_sites(vec![row(0, 7, 0), row(1, 7, 0), row(2, 7, 0), row(3, 8, 0), row(4, 7, 0)]);
        assert_eq!(places(&rows), [0, 1, 3, 2, 4]);
        assert_eq!(rows[1].more_from_site, 2);
    }

    #[test]
    fn a_single_site_is_not_grouped() {
        let rows = group_sites((0..5).map(|place| row(place, 7, 0)).collect());
        assert_eq!(places(&rows), [0, 1, 2, 3, 4]);
        assert!(rows.iter().all(|row| row.more_from_site == 0));
    }

    #[test]
    fn documents_without_an_address_are_not_grouped() {
        let no_site = |place| Row { site: None, ..row(place, 0, 0) };
        let rows = group_sites(vec![no_site(0), no_site(1), no_site(2), row(3, 8, 0)]);
        assert_eq!(places(&rows), [0, 1, 2, 3]);
    }
}
