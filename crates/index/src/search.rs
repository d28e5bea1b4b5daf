//! Answers a [`Query`]: plan, candidates, ranking, feedback, folding, and the hits of one page
//! (`docs/decisions/0008`).

mod plan;

mod candidates;
mod pattern;
mod rank;

mod feedback;
mod fold;

mod facets;
mod hits;
mod snippet;

mod explain;
mod suggest;

use std::time::Instant;

use serde::Serialize;
use tantivy::collector::{Count, TopDocs};
use tantivy::{DocAddress, Order};

pub use explain::Explanation;
pub use facets::{FacetCount, Facets};
pub use hits::Hit;
pub use snippet::Snippet;

use crate::analysis::Stems;
use crate::fields::{Fields, name};
use crate::links::Digest;
use crate::query::{Filter, HITS_MAX, Parsed, Query, Sort, parse};
use crate::view::View;
use crate::{IndexError, SearchIndex};
use facets::FacetCollector;
use fold::Row;
use plan::{LINKED_MAX, Plan, PlannedIndex, plan};
use rank::{Ranking, Scored};

/// Candidates that are ranked in full. More change the first hundred hits hardly at all.
const CANDIDATES_MIN: usize = 300;

/// The answer to a query.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// One page of hits.
    pub hits: Vec<Hit>,
    /// How many pages match. Folded ones count, so that it is more than can be paged through.
    pub estimated_total: u64,
    /// Counts by what was asked for.
    pub facets: Facets,
    /// What was left out of the query, in words.
    pub ignored: Vec<String>,
    /// A query that probably finds more.
    pub did_you_mean: Option<String>,
    /// How long it took.
    pub took_ms: u64,
}

impl SearchIndex {
    /// Searches.
    pub fn search(&self, query: &Query) -> Result<Results, IndexError> {
        let start = Instant::now();
        let (view, links) = (self.view(), self.links());
        let search = Search { view: &view, fields: self.fields(), links: &links, query };
        let mut results = self.stems().lease(|stems| {
            if query.pattern { search.by_pattern(stems) } else { search.by_words(stems) }
        })?;
        results.took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(results)
    }

    /// Why the page at an address stands where it stands for a query; `None` if the index does not
    /// hold it.
    pub fn explain(&self, query: &Query, url: &str) -> Result<Option<Explanation>, IndexError> {
        let (view, links) = (self.view(), self.links());
        let search = Search { view: &view, fields: self.fields(), links: &links, query };
        self.stems().lease(|stems| search.explain(url, stems))
    }

    /// Ways to go on typing, best first.
    pub fn suggest(&self, typed: &str, max: usize) -> Result<Vec<String>, IndexError> {
        suggest::completions(&self.view(), self.fields(), typed, max)
    }
}

/// Pages that are worth ranking.
struct Candidates {
    addresses: Vec<DocAddress>,
    /// How many pages match, if they were counted.
    count: Option<u64>,
}

/// Ranked pages, best first.
struct Ranked {
    pages: Vec<Scored>,
    /// As among the candidates.
    count: Option<u64>,
}

/// One search at work.
struct Search<'s> {
    view: &'s View,
    fields: &'s Fields,
    links: &'s Digest,
    query: &'s Query,
}

impl Search<'_> {
    fn by_words(&self, stems: &mut Stems) -> Result<Results, IndexError> {
        let (parsed, plan) = self.read(stems)?;
        let Ranked { pages, count } = self.ranked(&plan, stems)?;
        let rows = self.tidy(&pages, &parsed);
        let (facets, count) = if self.query.facets.is_empty() {
            (Facets::new(), count)
        } else {
            let by_facets = FacetCollector { by: self.query.facets.clone() };
            let counted = self.view.searcher.search(&plan.found(), &(by_facets, Count))?;
            (counted.0, u64::try_from(counted.1).ok())
        };
        Ok(Results {
            hits: self.hits(&plan, &pages, &rows, stems)?,
            estimated_total: count.map_or_else(|| self.total(&plan, pages.len()), Ok)?,
            facets,
            did_you_mean: suggest::correction(self.view, self.fields, &self.query.text, &plan)?,
            ignored: parsed.ignored,
            took_ms: 0,
        })
    }

    /// Reads and plans the query. If no page has all that it demands, nothing is demanded.
    fn read(&self, stems: &mut Stems) -> Result<(Parsed, Plan), IndexError> {
        let mut parsed = parse(&self.query.text);
        if parsed.is_prose() {
            parsed = parsed.relaxed();
        }
        let first = self.plan(stems, &parsed)?;
        if parsed.required.is_empty() || !self.is_empty(&first)? {
            return Ok((parsed, first));
        }
        let mut relaxed = parsed.clone().relaxed();
        let second = self.plan(stems, &relaxed)?;
        if self.is_empty(&second)? {
            return Ok((parsed, first));
        }
        relaxed
            .ignored
            .push("no page has all that was required: any of the words will do".to_owned());
        Ok((relaxed, second))
    }

    fn plan(&self, stems: &mut Stems, parsed: &Parsed) -> Result<Plan, IndexError> {
        let index = PlannedIndex { view: self.view, fields: self.fields, links: self.links };
        plan(index, stems, self.query, parsed)
    }

    fn is_empty(&self, plan: &Plan) -> Result<bool, IndexError> {
        Ok(!candidates::is_any(&self.view.searcher, plan.matching.as_ref())?)
    }

    /// The best matching pages, in order.
    fn ranked(&self, plan: &Plan, stems: &mut Stems) -> Result<Ranked, IndexError> {
        let sort = if plan.words.is_empty() && self.query.sort == Sort::Relevance {
            Sort::Newest
        } else {
            self.query.sort
        };
        let Candidates { addresses, count } = self.candidates(plan, sort)?;
        let ranking = self.ranking();
        let mut pages = ranking.score(plan, &addresses)?;
        if sort == Sort::Relevance {
            feedback::apply(&ranking, self.fields, plan, stems, &mut pages)?;
        } else {
            let place = |scored: &Scored| addresses.iter().position(|it| *it == scored.address);
            pages.sort_by_cached_key(place);
        }
        Ok(Ranked { pages, count })
    }

    /// The pages that are worth ranking.
    fn candidates(&self, plan: &Plan, sort: Sort) -> Result<Candidates, IndexError> {
        let searcher = &self.view.searcher;
        let wanted = (self.query.offset.saturating_add(self.query.limit)).min(HITS_MAX);
        // Folding takes some away.
        let max = CANDIDATES_MIN.max(wanted * 3 / 2);
        let top = TopDocs::with_limit(max);
        let mut count = None;
        let addresses = match sort {
            Sort::Newest => {
                let order = top.order_by_fast_field::<u64>(name::TIME, Order::Desc);
                addresses(searcher.search(&plan.found(), &order)?)
            }
            Sort::Url => {
                let order = top.order_by_string_fast_field(name::URL, Order::Asc);
                addresses(searcher.search(&plan.found(), &order)?)
            }
            Sort::Relevance if plan.is_any_of_words => {
                let own = candidates::best(searcher, plan.matching.as_ref(), max)?;
                self.with_linked(plan, own)?
            }
            Sort::Relevance => {
                let (own, found) =
                    candidates::best_and_count(searcher, plan.matching.as_ref(), max)?;
                count = Some(found).filter(|_| plan.linked.is_none());
                self.with_linked(plan, own)?
            }
        };
        Ok(Candidates { addresses, count })
    }

    /// Adds the pages that links call by the words.
    fn with_linked(
        &self,
        plan: &Plan,
        mut found: Vec<DocAddress>,
    ) -> Result<Vec<DocAddress>, IndexError> {
        if let Some(linked) = &plan.linked {
            let searcher = &self.view.searcher;
            found.extend(candidates::best(searcher, linked.query.as_ref(), LINKED_MAX)?);
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    /// How many pages match: counted, unless that would mean to look at most of the index.
    fn total(&self, plan: &Plan, ranked: usize) -> Result<u64, IndexError> {
        if ranked < CANDIDATES_MIN && plan.columns.is_empty() {
            return Ok(u64::try_from(ranked).unwrap_or(u64::MAX));
        }
        if plan.is_any_of_words {
            // As if words were spread over pages independently of each other.
            let all = self.view.searcher.num_docs();
            let without = |word: &plan::PlanWord| 1.0 - word.docs as f64 / all.max(1) as f64;
            let none: f64 = plan.words.iter().filter(|word| word.finds).map(without).product();
            return Ok((all as f64 * (1.0 - none)).round() as u64);
        }
        let count = self.view.searcher.search(&plan.found(), &Count)?;
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    fn ranking(&self) -> Ranking<'_> {
        Ranking { view: self.view, ranks: &self.links.ranks, now: self.query.now }
    }

    /// Folds and groups, if that is wanted.
    fn tidy(&self, ranked: &[Scored], parsed: &Parsed) -> Vec<Row> {
        let addresses: Vec<DocAddress> = ranked.iter().map(|scored| scored.address).collect();
        let mut rows = self.rows(&addresses);
        if self.query.fold_similar {
            rows = fold::fold_similar(rows);
        }
        let names_site = |filter: &Filter| matches!(filter, Filter::Site(_));
        let one_site = parsed.filters.iter().chain(&self.query.filters).any(names_site);
        if self.query.group_sites && self.query.sort == Sort::Relevance && !one_site {
            rows = fold::group_sites(rows);
        }
        rows
    }
}

fn addresses<T>(top: Vec<(T, DocAddress)>) -> Vec<DocAddress> {
    top.into_iter().map(|(_, address)| address).collect()
}
