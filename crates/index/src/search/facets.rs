//! Counts matching pages by site, language, kind, year and crawl.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column as FastColumn, StrColumn};
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use crate::fields::name;
use crate::inert::inert;
use crate::query::FacetBy;

/// Values that are listed per facet.
const VALUES_MAX: usize = 20;
/// Characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 200;

/// One value and the number of matching pages that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FacetCount {
    /// The value.
    pub value: String,
    /// How many pages.
    pub count: u64,
}

/// Counts by what was asked for, most frequent first.
pub type Facets = BTreeMap<FacetBy, Vec<FacetCount>>;

/// Collects counts from all matching pages.
pub(crate) struct FacetCollector {
    pub(crate) by: Vec<FacetBy>,
}

type Counts = Vec<(FacetBy, HashMap<String, u64>)>;

impl Collector for FacetCollector {
    type Fruit = Facets;
    type Child = SegmentCounter;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<SegmentCounter> {
        let mut counters = Vec::with_capacity(self.by.len());
        for &by in &self.by {
            let columns = segment.fast_fields();
            let (values, numbers) = match by {
                FacetBy::Site => (columns.str(name::SITE)?, None),
                FacetBy::Language => (columns.str(name::LANGUAGE)?, None),
                FacetBy::Kind => (columns.str(name::KIND)?, None),
                FacetBy::Year => (None, Some(columns.u64(name::YEAR)?)),
                FacetBy::Crawl => (None, Some(columns.u64(name::CRAWL)?)),
            };
            counters.push(Counter { by, values, numbers, counts: HashMap::new() });
        }
        Ok(SegmentCounter { counters })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<Counts>) -> tantivy::Result<Facets> {
        let mut sums: BTreeMap<FacetBy, HashMap<String, u64>> = BTreeMap::new();
        for (by, counts) in segments.into_iter().flatten() {
            let sums = sums.entry(by).or_default();
            for (value, count) in counts {
                *sums.entry(value).or_default() += count;
            }
        }
        Ok(sums.into_iter().map(|(by, counts)| (by, most_frequent(counts))).collect())
    }
}

fn most_frequent(counts: HashMap<String, u64>) -> Vec<FacetCount> {
    let mut rows: Vec<_> =
        counts.into_iter().map(|(value, count)| FacetCount { value, count }).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    rows.truncate(VALUES_MAX);
    rows
}

/// Counts within one segment, by the numbers that the segment gives to values.
pub(crate) struct SegmentCounter {
    counters: Vec<Counter>,
}

struct Counter {
    by: FacetBy,
    values: Option<StrColumn>,
    numbers: Option<FastColumn<u64>>,
    counts: HashMap<u64, u64>,
}

impl SegmentCollector for SegmentCounter {
    type Fruit = Counts;

    fn collect(&mut self, doc: DocId, _: Score) {
        for counter in &mut self.counters {
            let column =
                counter.values.as_ref().map(|values| values.ords()).or(counter.numbers.as_ref());
            if let Some(value) = column.and_then(|column| column.first(doc)) {
                *counter.counts.entry(value).or_default() += 1;
            }
        }
    }

    fn harvest(self) -> Counts {
        self.counters.into_iter().map(|counter| (counter.by, counter.named())).collect()
    }
}

impl Counter {
    fn named(self) -> HashMap<String, u64> {
        let Self { values, counts, .. } = self;
        let name = |number: u64| match &values {
            None => Some(number.to_string()),
            Some(values) => {
                let mut name = String::new();
                // A value without a name would be a damaged column; its pages go uncounted.
                matches!(values.ord_to_str(number, &mut name), Ok(true))
                    .then(|| inert(&name, VALUE_CHARS_MAX))
            }
        };
        let named = counts.into_iter().filter_map(|(number, count)| Some((name(number)?, count)));
        named.filter(|(name, _)| !name.is_empty()).collect()
    }
}
