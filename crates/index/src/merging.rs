//! Which segments are put together: as few times as possible, since each time costs about as much as
//! writing the pages did.
//!
//! Segments are sorted into tiers by their number of pages, each tier [`MERGED_TOGETHER`] times as
//! large as the one before it. A full tier becomes one segment of the next, so that a page is merged
//! once per tier: a million pages that came one by one were merged five times, and never was a large
//! segment rewritten for a few more pages.

use std::collections::BTreeMap;

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// Segments that become one. Each segment costs a search some microseconds per word.
const MERGED_TOGETHER: u32 = 16;
/// A segment with this many pages is not merged any more: rewriting it would take minutes.
const PAGES_MAX: u32 = 5_000_000;
/// Pages that one compaction rewrites: some ten seconds, for which the next writer of the index has
/// to wait.
const REST_PAGES_MAX: u32 = 300_000;
/// A segment is rewritten when one in this many of its pages is out of date: they are still read by
/// every search.
const OUT_OF_DATE_ONE_IN: u32 = 4;

/// The way in which segments are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiers;

impl MergePolicy for Tiers {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let segments: Vec<Segment> = segments.iter().map(Segment::of).collect();
        candidates(&segments).into_iter().map(MergeCandidate).collect()
    }
}

/// The way in which segments are merged when nothing comes in: those that are no larger than all smaller
/// ones together become one with these. A segment is rewritten only when that at least doubles it, and
/// hardly more segments are left than there are doublings in the largest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtRest;

impl MergePolicy for AtRest {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let together = together_at_rest(segments.iter().map(Segment::of).collect());
        let ids: Vec<SegmentId> = together.iter().map(|segment| segment.id).collect();
        if ids.is_empty() { Vec::new() } else { vec![MergeCandidate(ids)] }
    }
}

/// How many pages a compaction would rewrite.
pub(crate) fn pages_at_rest(segments: &[SegmentMeta]) -> u64 {
    let together = together_at_rest(segments.iter().map(Segment::of).collect());
    together.iter().map(|segment| u64::from(segment.pages)).sum()
}

fn together_at_rest(mut segments: Vec<Segment>) -> Vec<Segment> {
    segments.sort_by_key(|segment| (segment.pages, segment.id));
    let (mut sum, mut count) = (0_u32, 0);
    for (place, segment) in segments.iter().enumerate() {
        let before = sum;
        sum = sum.saturating_add(segment.pages);
        if sum > REST_PAGES_MAX {
            break;
        }
        if segment.pages <= before {
            count = place + 1;
        }
    }
    segments.truncate(count);
    segments
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    id: SegmentId,
    pages: u32,
    out_of_date: u32,
}

impl Segment {
    fn of(meta: &SegmentMeta) -> Self {
        Self { id: meta.id(), pages: meta.num_docs(), out_of_date: meta.num_deleted_docs() }
    }

    fn tier(&self) -> u32 {
        self.pages.max(1).ilog(MERGED_TOGETHER)
    }

    fn is_worn(&self) -> bool {
        self.out_of_date * OUT_OF_DATE_ONE_IN > self.pages
    }
}

fn candidates(segments: &[Segment]) -> Vec<Vec<SegmentId>> {
    let mut tiers: BTreeMap<u32, Vec<&Segment>> = BTreeMap::new();
    for segment in segments.iter().filter(|segment| segment.pages <= PAGES_MAX) {
        tiers.entry(segment.tier()).or_default().push(segment);
    }
    let mut merges = Vec::new();
    for tier in tiers.values() {
        if tier.len() >= MERGED_TOGETHER as usize {
            merges.push(tier.iter().map(|segment| segment.id).collect());
        } else {
            let worn = tier.iter().filter(|segment| segment.is_worn());
            merges.extend(worn.map(|segment| vec![segment.id]));
        }
    }
    merges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds segments of these sizes one after the other, merges as told, and gives the pages that
    /// were merged per page, and the segments in the end.
    fn run(commits: u32, pages: u32) -> (f64, usize) {
        let new = |pages| Segment { id: SegmentId::generate_random(), pages, out_of_date: 0 };
        let mut segments: Vec<Segment> = Vec::new();
        let mut merged = 0;
        for _ in 0..commits {
            segments.push(new(pages));
            // The engine asks again after every merge.
            while let Some(ids) = candidates(&segments).pop() {
                let is_in = |segment: &Segment| ids.contains(&segment.id);
                let sum = segments.iter().filter(|it| is_in(it)).map(|it| it.pages).sum();
                segments.retain(|segment| !is_in(segment));
                segments.push(new(sum));
                merged += u64::from(sum);
            }
        }
        (merged as f64 / (f64::from(commits) * f64::from(pages)), segments.len())
    }

    #[test]
    fn a_page_is_merged_once_per_tier() {
        let (merged, segments) = run(16 * 16 * 16, 1);
        assert!(merged <= 3.0, "{merged}");
        assert_eq!(segments, 1);
        let (merged, segments) = run(700, 300);
        assert!(merged < 2.0, "{merged}");
        assert!(segments <= 3 * 15, "{segments}");
    }

    #[test]
    fn at_rest_few_segments_are_left() {
        let compacted_pages = |pages: &[u32]| {
            let segment =
                |&pages: &u32| Segment { id: SegmentId::generate_random(), pages, out_of_date: 0 };
            let together = together_at_rest(pages.iter().map(segment).collect());
            together.iter().map(|segment| segment.pages).collect::<Vec<_>>()
        };
        assert!(compacted_pages(&[]).is_empty());
        assert!(compacted_pages(&[7]).is_empty());
        assert_eq!(compacted_pages(&[10, 10, 10]), [10, 10, 10]);
        assert_eq!(compacted_pages(&[48, 8, 48]), [8, 48, 48]);
        assert_eq!(compacted_pages(&[1000, 20, 30, 30]), [20, 30, 30]);
        assert!(compacted_pages(&[1, 2, 4, 8]).is_empty());
        let many = REST_PAGES_MAX / 2;
        assert_eq!(
            compacted_pages(&[many, many, many]),
            [many, many],
            "as many as are soon written"
        );
    }

    #[test]
    fn worn_segments_are_written_anew() {
        let segment =
            |pages, out_of_date| Segment { id: SegmentId::generate_random(), pages, out_of_date };
        let (fresh, worn) = (segment(900, 100), segment(700, 300));
        assert_eq!(candidates(&[fresh, worn]), [vec![worn.id]]);
        assert!(candidates(&[fresh]).is_empty());
    }
}
