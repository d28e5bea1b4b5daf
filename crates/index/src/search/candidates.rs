//! Chooses the pages that are worth ranking in full: those that the engine's own score puts first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::query::{EnableScoring, Query as EngineQuery};
use tantivy::{DocAddress, Score, Searcher, SegmentReader, TERMINATED};

use crate::IndexError;

/// The best of all segments together. The worst of the best so far tells the engine which pages it
/// need not look at, and one segment tells the next: the largest, which knows best, begins.
pub(super) fn best(
    searcher: &Searcher,
    query: &dyn EngineQuery,
    max: usize,
) -> Result<Vec<DocAddress>, IndexError> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut segments: Vec<(u32, &SegmentReader)> = (0..).zip(searcher.segment_readers()).collect();
    segments.sort_by_key(|(_, segment)| Reverse(segment.max_doc()));
    let mut best = Best::of(max);
    for (segment_ord, segment) in segments {
        weight.for_each_pruning(best.bar(), segment, &mut |doc, score| {
            if !segment.is_deleted(doc) {
                best.add(Candidate { score, address: DocAddress::new(segment_ord, doc) });
            }
            best.bar()
        })?;
    }
    Ok(best.addresses())
}

/// The best, and how many pages match: for queries of which the engine looks at all matches anyway.
pub(super) fn best_and_count(
    searcher: &Searcher,
    query: &dyn EngineQuery,
    max: usize,
) -> Result<(Vec<DocAddress>, u64), IndexError> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut best = Best::of(max);
    let mut count = 0;
    for (segment_ord, segment) in (0..).zip(searcher.segment_readers()) {
        weight.for_each(segment, &mut |doc, score| {
            if !segment.is_deleted(doc) {
                count += 1;
                best.add(Candidate { score, address: DocAddress::new(segment_ord, doc) });
            }
        })?;
    }
    Ok((best.addresses(), count))
}

/// Whether any page matches.
pub(super) fn is_any(searcher: &Searcher, query: &dyn EngineQuery) -> Result<bool, IndexError> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    for segment in searcher.segment_readers() {
        let mut docs = weight.scorer(segment, 1.0)?;
        while docs.doc() != TERMINATED {
            if !segment.is_deleted(docs.doc()) {
                return Ok(true);
            }
            docs.advance();
        }
    }
    Ok(false)
}

struct Best {
    max: usize,
    /// The worst on top.
    heap: BinaryHeap<Reverse<Candidate>>,
}

impl Best {
    fn of(max: usize) -> Self {
        Self { max, heap: BinaryHeap::with_capacity(max + 1) }
    }

    fn addresses(self) -> Vec<DocAddress> {
        self.heap.into_iter().map(|Reverse(candidate)| candidate.address).collect()
    }

    /// What a page must exceed to be among the best.
    fn bar(&self) -> Score {
        match self.heap.peek() {
            Some(Reverse(worst)) if self.heap.len() >= self.max => worst.score,
            _ => Score::MIN,
        }
    }

    fn add(&mut self, candidate: Candidate) {
        if candidate.score > self.bar() {
            self.heap.push(Reverse(candidate));
            if self.heap.len() > self.max {
                self.heap.pop();
            }
        }
    }
}

/// Ordered by score; of equal ones the earlier page is better.
struct Candidate {
    score: Score,
    address: DocAddress,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.address.cmp(&self.address))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_and_of_equal_ones_the_first() {
        let mut best = Best::of(3);
        for (doc, score) in (0..).zip([1.0, 5.0, 2.0, 2.0, 0.5, 3.0]) {
            best.add(Candidate { score, address: DocAddress::new(0, doc) });
        }
        assert_eq!(best.bar(), 2.0);
        let mut docs: Vec<u32> = best.heap.iter().map(|Reverse(it)| it.address.doc_id).collect();
        docs.sort_unstable();
        assert_eq!(docs, [1, 2, 5]);
    }
}
