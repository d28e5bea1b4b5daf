//! The best linked pages and sites.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tantivy::DocAddress;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query as EngineQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Term, Value};
use telusur_model::CrawlNo;

use crate::fields::{link_number, name};
use crate::inert::inert;
use crate::view::View;
use crate::{IndexError, SearchIndex};

/// Pages that are looked at to find those of one crawl: half a second.
const LOOKED_AT_MAX: usize = 100_000;
/// Characters that are shown of a title or an address.
const CHARS_MAX: usize = 500;

/// Whose pages are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfCrawls {
    /// Those of one crawl; all if there is none.
    pub only: Option<CrawlNo>,
    /// But none of these.
    pub without: Vec<CrawlNo>,
}

/// A well linked page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopPage {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// How many times as well linked as the average page.
    pub times_average: f32,
    /// How many indexed pages link to this address.
    pub linked_from: u64,
}

/// A well linked site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopSite {
    /// Its name.
    pub site: String,
    /// How many times as well linked as the average site, by links from other sites.
    pub times_average: f32,
    /// How many of its pages are indexed.
    pub pages: u32,
}

impl SearchIndex {
    /// The best linked pages, best first.
    pub fn top_pages(&self, crawls: &OfCrawls, max: usize) -> Result<Vec<TopPage>, IndexError> {
        let (view, links) = (self.view(), self.links());
        let (mut top, mut links_to) = (Vec::new(), Vec::new());
        for (page, times_average) in links.ranks.best_pages().into_iter().take(LOOKED_AT_MAX) {
            if top.len() == max {
                break;
            }
            let term = Term::from_field_u64(self.fields().page, page);
            let Some(address) = self.first(&view, term, crawls)? else { continue };
            let url = self.stored(&view, address, self.fields().url)?;
            if url.is_empty() {
                continue;
            }
            links_to.push(link_number(&url));
            top.push(TopPage {
                title: inert(&self.stored(&view, address, self.fields().title)?, CHARS_MAX),
                times_average,
                linked_from: 0,
                url: inert(&url, CHARS_MAX),
            });
        }
        let counts = linking_pages(&view, &links_to)?;
        for (page, link) in top.iter_mut().zip(links_to) {
            page.linked_from = counts[&link];
        }
        Ok(top)
    }

    /// The best linked sites that have such pages, best first.
    pub fn top_sites(&self, crawls: &OfCrawls, max: usize) -> Result<Vec<TopSite>, IndexError> {
        let (view, links) = (self.view(), self.links());
        let mut top = Vec::new();
        for row in links.ranks.best_sites().iter().take(LOOKED_AT_MAX) {
            if top.len() == max {
                break;
            }
            let term = Term::from_field_u64(self.fields().page, row.best_page);
            let Some(address) = self.first(&view, term, &OfCrawls::default())? else { continue };
            let site = self.stored(&view, address, self.fields().site)?;
            let of_site = Term::from_field_text(self.fields().site, &site);
            if self.first(&view, of_site, crawls)?.is_some() {
                let site = inert(&site, CHARS_MAX);
                top.push(TopSite { site, times_average: row.times_average, pages: row.pages });
            }
        }
        Ok(top)
    }

    /// The first document with a term.
    fn first(
        &self,
        view: &View,
        term: Term,
        crawls: &OfCrawls,
    ) -> Result<Option<DocAddress>, IndexError> {
        let with = |term| -> Box<dyn EngineQuery> {
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        };
        let of =
            |crawl: &CrawlNo| with(Term::from_field_u64(self.fields().crawl, u64::from(crawl.0)));
        let must = std::iter::once(with(term)).chain(crawls.only.as_ref().map(of));
        let must_not = crawls.without.iter().map(of);
        let clauses = must.map(|query| (Occur::Must, query));
        let clauses = clauses.chain(must_not.map(|query| (Occur::MustNot, query)));
        let query = BooleanQuery::new(clauses.collect());
        let found = view.searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
        Ok(found.first().map(|(_, address)| *address))
    }

    fn stored(&self, view: &View, address: DocAddress, field: Field) -> Result<String, IndexError> {
        let page: tantivy::TantivyDocument = view.searcher.doc(address)?;
        Ok(page.get_first(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned())
    }
}

/// How many pages have each of these links.
fn linking_pages(view: &View, links: &[u64]) -> Result<HashMap<u64, u64>, IndexError> {
    let mut counts: HashMap<u64, u64> = links.iter().map(|link| (*link, 0)).collect();
    for segment in view.searcher.segment_readers() {
        let column = segment.fast_fields().u64(name::LINK)?;
        for link in segment.doc_ids_alive().flat_map(|doc| column.values_for_doc(doc)) {
            if let Some(count) = counts.get_mut(&link) {
                *count += 1;
            }
        }
    }
    Ok(counts)
}
