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
            counters.extend(values.map(|values| (by, Counter::of_names(values))));
            counters.extend(numbers.map(|numbers| (by, Counter::of_numbers(numbers))));
        }
        Ok(SegmentCounter { counters, read: Vec::new() })
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

/// Counts within one segment.
pub(crate) struct SegmentCounter {
    counters: Vec<(FacetBy, Counter)>,
    /// The values of the pages at hand.
    read: Vec<Option<u64>>,
}

impl SegmentCollector for SegmentCounter {
    type Fruit = Counts;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.collect_block(&[doc]);
    }

    fn collect_block(&mut self, docs: &[DocId]) {
        for (_, counter) in &mut self.counters {
            self.read.clear();
            self.read.resize(docs.len(), None);
            counter.column().first_vals(docs, &mut self.read);
            self.read.iter().flatten().for_each(|&value| counter.add(value));
        }
    }

    fn harvest(self) -> Counts {
        self.counters.into_iter().map(|(by, counter)| (by, counter.named())).collect()
    }
}

/// Counts the values of one column.
enum Counter {
    /// Of names, which a segment numbers from zero on.
    Names { values: StrColumn, counts: Vec<u64> },
    /// Of numbers, of which neighbours mostly have the same: the last one and its count are at hand.
    Numbers { values: FastColumn<u64>, counts: HashMap<u64, u64>, last: (u64, u64) },
}

impl Counter {
    fn of_names(values: StrColumn) -> Self {
        let counts = vec![0; values.num_terms()];
        Self::Names { values, counts }
    }

    fn of_numbers(values: FastColumn<u64>) -> Self {
        Self::Numbers { values, counts: HashMap::new(), last: (0, 0) }
    }

    fn column(&self) -> &FastColumn<u64> {
        match self {
            Self::Names { values, .. } => values.ords(),
            Self::Numbers { values, .. } => values,
        }
    }

    fn add(&mut self, value: u64) {
        match self {
            Self::Names { counts, .. } => {
                let place = usize::try_from(value).ok();
                if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                    *count += 1;
                }
            }
            Self::Numbers { counts, last, .. } => {
                if last.0 != value {
                    *counts.entry(last.0).or_default() += last.1;
                    *last = (value, 0);
                }
                last.1 += 1;
            }
        }
    }

    fn named(self) -> HashMap<String, u64> {
        match self {
            Self::Names { values, counts } => named(&values, &counts),
            Self::Numbers { mut counts, last, .. } => {
                *counts.entry(last.0).or_default() += last.1;
                let found = counts.into_iter().filter(|(_, count)| *count > 0);
                found.map(|(number, count)| (number.to_string(), count)).collect()
            }
        }
    }
}

/// The names of the values that were counted. A value without a name would be a damaged column; its
/// pages go uncounted.
fn named(values: &StrColumn, counts: &[u64]) -> HashMap<String, u64> {
    let found = (0..).zip(counts).filter(|(_, count)| **count > 0);
    let (ords, counts): (Vec<u64>, Vec<u64>) = found.unzip();
    let mut counts = counts.into_iter();
    let mut named: HashMap<String, u64> = HashMap::new();
    let add = |name: &[u8]| {
        let name = inert(&String::from_utf8_lossy(name), VALUE_CHARS_MAX);
        let count = counts.next().unwrap_or(0);
        if !name.is_empty() {
            *named.entry(name).or_default() += count;
        }
    };
    let _ = values.dictionary().sorted_ords_to_term_cb(&ords, add);
    named
}
