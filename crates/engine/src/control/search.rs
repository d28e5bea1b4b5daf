//! Searching, ways to go on typing, and what is best linked.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use telusur_index::{
    Column, Explanation, FacetBy, Facets, Filter, Hit, IndexError, OfCrawls, Query, SearchIndex,
    Snippet, Sort, TopPage, TopSite,
};
use telusur_model::units::read_since;
use telusur_model::{CrawlNo, Timestamp};

use super::handle::Control;
use super::operation::{Each, IndexUse, NoItem, Operation, OperationKind};
use crate::error::RequestError;
use crate::json::{FacetView, HitView, RankedPageView, RankedSiteView, SearchView, SuggestView};

/// Longest value of a condition.
const VALUE_BYTES_MAX: usize = 255;

/// A search. Conditions stand beside the text, and hold whatever the text is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Search {
    /// What was typed.
    #[serde(rename = "q")]
    pub text: String,
    /// Whether that is a regular expression.
    #[serde(rename = "regex")]
    pub pattern: bool,
    /// The columns that it must occur in; all if empty.
    #[serde(rename = "in")]
    pub columns: Vec<Column>,
    /// Only this site.
    pub site: Option<String>,
    /// Only this language.
    pub lang: Option<String>,
    /// Only this kind: `html`, `text`, `feed`, `pdf`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only pages of this crawl.
    pub crawl: Option<String>,
    /// Only pages that are not older: `30d`, `2026-01-31`.
    pub since: Option<String>,
    /// Only pages of this year.
    pub year: Option<u16>,
    /// The order of hits.
    pub sort: Sort,
    /// Hits left out at the beginning.
    pub offset: u32,
    /// Hits given.
    pub limit: u32,
    /// What to count by.
    pub facets: Vec<FacetBy>,
    /// Every document for itself: nothing is folded or grouped.
    pub plain: bool,
    /// Say why each hit stands where it stands.
    pub explain: bool,
    /// The time now, by the clock of who asks; else by that of who answers.
    pub now: Option<Timestamp>,
}

/// Ways to go on typing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggest {
    /// What was typed so far.
    #[serde(rename = "q")]
    pub typed: String,
    /// How many, at most.
    #[serde(rename = "limit")]
    pub max: usize,
}

/// The best linked pages or sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Only those of this crawl.
    pub crawl: Option<String>,
    /// Sites instead of pages.
    pub sites: bool,
    /// How many, at most.
    #[serde(rename = "limit")]
    pub max: usize,
}

/// Something that is well linked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum RankItem {
    /// A page.
    Page(RankedPageView),
    /// A site.
    Site(RankedSiteView),
}

impl Operation for Search {
    const KIND: OperationKind = OperationKind::Search;
    const INDEX: IndexUse = IndexUse::UpToDate;
    type Item = NoItem;
    type Reply = SearchView;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<SearchView, RequestError> {
        let query = self.query(control)?;
        let index = control.index()?;
        let found = index.search(&query).map_err(|error| refused(index, error))?;
        let mut crawls = CrawlIds { control, known: HashMap::new() };
        let hits = found.hits.into_iter().map(|hit| hit_view(&mut crawls, hit));
        Ok(SearchView {
            hits: hits.collect::<Result<_, _>>()?,
            query: self.text.clone(),
            took_ms: found.took_ms,
            estimated_total: found.estimated_total,
            offset: self.offset,
            limit: self.limit,
            facets: facet_views(found.facets),
            ignored: found.ignored,
            did_you_mean: found.did_you_mean,
        })
    }
}

impl Search {
    fn query(&self, control: &Control) -> Result<Query, RequestError> {
        let now = self.now.unwrap_or_else(control.wall);
        let text = match self.pattern {
            true => self.text.clone(),
            false => with_crawl_numbers(control, &self.text),
        };
        let mut query = match self.plain {
            true => Query::batch(&text, self.limit as usize),
            false => Query { limit: self.limit as usize, ..Query::new(&text) },
        };
        query.pattern = self.pattern;
        query.columns.clone_from(&self.columns);
        query.sort = self.sort;
        query.offset = self.offset as usize;
        query.facets.clone_from(&self.facets);
        query.explain = self.explain;
        query.now = Some(now);
        query.filters = self.filters(now)?;
        if let Some(crawl) = given(&self.crawl) {
            query.filters.push(Filter::Crawl(control.find(crawl)?.crawl.no.0));
        }
        // Crawls that the index may still have and that are not shown.
        let is_removed = |crawl: CrawlNo| Filter::Not(Box::new(Filter::Crawl(crawl.0)));
        query.filters.extend(control.removed()?.into_iter().map(is_removed));
        Ok(query)
    }

    /// The conditions, but for the crawl.
    fn filters(&self, now: Timestamp) -> Result<Vec<Filter>, RequestError> {
        let mut filters = Vec::new();
        for (field, value) in [("site", &self.site), ("lang", &self.lang), ("type", &self.kind)] {
            let Some(value) = given(value) else { continue };
            check_value(field, value)?;
            let what = || RequestError::bad_field(field, "this cannot be one");
            filters.push(Filter::of(field, value).ok_or_else(what)?);
        }
        if let Some(since) = given(&self.since) {
            let what = "write how long ago, as 30d or 12h, or a date, as 2026-01-31 or 2026";
            let first = read_since(since, now).ok_or(RequestError::bad_field("since", what))?;
            filters.push(Filter::From(first));
        }
        filters.extend(self.year.map(Filter::Year));
        Ok(filters)
    }
}

/// An empty value is that of a form that was left empty.
fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

fn check_value(field: &'static str, value: &str) -> Result<(), RequestError> {
    if value.len() > VALUE_BYTES_MAX {
        let what = format!("{} bytes are too long; {VALUE_BYTES_MAX} is the limit", value.len());
        return Err(RequestError::bad_field(field, what));
    }
    let is_word = value.chars().all(|c| c.is_alphanumeric() || "-._:/*".contains(c));
    if is_word {
        return Ok(());
    }
    Err(RequestError::bad_field(field, "write one word without spaces and quotes"))
}

impl Operation for Suggest {
    const KIND: OperationKind = OperationKind::Suggest;
    const INDEX: IndexUse = IndexUse::UpToDate;
    type Item = NoItem;
    type Reply = SuggestView;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<SuggestView, RequestError> {
        let index = control.index()?;
        let suggestions = index.suggest(&self.typed, self.max);
        let suggestions = suggestions.map_err(|error| refused(index, error))?;
        Ok(SuggestView { query: self.typed.clone(), suggestions })
    }
}

impl Operation for Rank {
    const KIND: OperationKind = OperationKind::Rank;
    const INDEX: IndexUse = IndexUse::UpToDate;
    type Item = RankItem;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, RankItem>) -> Result<(), RequestError> {
        let crawl = self.crawl.as_deref().map(|crawl| control.find(crawl)).transpose()?;
        let only = crawl.map(|record| record.crawl.no);
        let crawls = OfCrawls { only, without: control.removed()? };
        let index = control.index()?;
        let refuse = |error| refused(index, error);
        if self.sites {
            let top = index.top_sites(&crawls, self.max).map_err(refuse)?;
            top.into_iter().all(|site| each(RankItem::Site(ranked_site(site))));
        } else {
            let top = index.top_pages(&crawls, self.max).map_err(refuse)?;
            top.into_iter().all(|page| each(RankItem::Page(ranked_page(page))));
        }
        Ok(())
    }
}

/// The query with crawls named by their numbers, which is what the index knows of them.
fn with_crawl_numbers(control: &Control, text: &str) -> String {
    const FIELD: &str = "crawl:";
    if !text.contains(FIELD) {
        return text.to_owned();
    }
    let named = |piece: &str| {
        let (sign, name) = piece.split_once(FIELD).filter(|(sign, _)| sign.len() <= 1)?;
        Some(format!("{sign}{FIELD}{}", control.find(name).ok()?.crawl.no))
    };
    let pieces = text.split(' ').map(|piece| named(piece).unwrap_or_else(|| piece.to_owned()));
    pieces.collect::<Vec<_>>().join(" ")
}

/// What the index refused, by whose fault it is. A damaged index is rebuilt when it is next
/// opened.
fn refused(index: &SearchIndex, error: IndexError) -> RequestError {
    if let IndexError::Pattern(_) = error {
        return RequestError::BadArgument(error.to_string());
    }
    if error.needs_rebuild() {
        index.distrust();
    }
    error.into()
}

/// The ids of crawls, by number.
struct CrawlIds<'a> {
    control: &'a Control,
    known: HashMap<CrawlNo, String>,
}

impl CrawlIds<'_> {
    /// The id of a crawl; its alias if it was removed since it was found.
    fn of(&mut self, no: CrawlNo) -> Result<String, RequestError> {
        if let Some(id) = self.known.get(&no) {
            return Ok(id.clone());
        }
        let record = self.control.store.crawl(no)?;
        let id = record.map_or_else(|| no.to_string(), |record| record.crawl.id.to_string());
        self.known.insert(no, id.clone());
        Ok(id)
    }
}

fn hit_view(crawls: &mut CrawlIds<'_>, hit: Hit) -> Result<HitView, RequestError> {
    let snippet = hit.snippet.html();
    let Snippet { text: snippet_text, marks } = hit.snippet;
    let mut why = Vec::new();
    if let Some(explanation) = &hit.explanation {
        write_why(explanation, 0, &mut why);
    }
    Ok(HitView {
        id: hit.id,
        url: hit.url,
        title: hit.title,
        snippet,
        snippet_text,
        marks,
        site: hit.site,
        lang: hit.language,
        kind: hit.kind,
        fetched_at: hit.fetched_at.rfc3339(),
        published_at: hit.published_at.map(Timestamp::rfc3339),
        score: hit.score,
        crawl: crawls.of(hit.key.crawl)?,
        alias: hit.key.crawl.to_string(),
        more_from_site: hit.more_from_site as u64,
        similar: hit.similar_count as u64,
        why,
    })
}

fn facet_views(facets: Facets) -> BTreeMap<String, Vec<FacetView>> {
    let view = |by: FacetBy, value: String, count| match by {
        // The index knows a crawl by its number.
        FacetBy::Crawl => FacetView { value: format!("crawl_{value}"), count },
        FacetBy::Site | FacetBy::Language | FacetBy::Kind | FacetBy::Year => {
            FacetView { value, count }
        }
    };
    let views = facets.into_iter().map(|(by, counts)| {
        let counts = counts.into_iter().map(|it| view(by, it.value, it.count));
        (by.word().to_owned(), counts.collect())
    });
    views.collect()
}

fn ranked_page(page: TopPage) -> RankedPageView {
    let TopPage { url, title, times_average, linked_from } = page;
    RankedPageView { url, title, times_average, linked_from }
}

fn ranked_site(site: TopSite) -> RankedSiteView {
    let TopSite { site, times_average, pages } = site;
    RankedSiteView { site, times_average, pages }
}

fn write_why(explanation: &Explanation, depth: usize, lines: &mut Vec<String>) {
    lines.push(format!(
        "{:indent$}{:.3}  {}",
        "",
        explanation.value,
        explanation.what,
        indent = 2 * depth
    ));
    for part in &explanation.parts {
        write_why(part, depth + 1, lines);
    }
}
