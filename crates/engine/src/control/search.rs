//! Searches, as they are asked for and answered across processes.

use serde::{Deserialize, Serialize};
use telusur_index::{
    Column, Explanation, FacetBy, Filter, Hit, IndexError, OfCrawls, Query, Results, SearchIndex,
    Snippet, Sort, TopPage, TopSite,
};
use telusur_model::{CrawlNo, Timestamp};

use super::handle::Control;
use super::operation::{Each, IndexUse, NoItem, Operation, OperationKind};
use crate::error::RequestError;

/// A search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Search {
    /// What was typed.
    pub text: String,
    /// Whether that is a regular expression.
    pub pattern: bool,
    /// Conditions beside it, in the query language: `site:a.org lang:id`.
    pub conditions: String,
    /// The columns that it must occur in; all if empty.
    pub columns: Vec<Column>,
    /// The order of hits.
    pub sort: Sort,
    /// Hits left out at the beginning.
    pub offset: usize,
    /// Hits given.
    pub limit: usize,
    /// What to count by.
    pub facets: Vec<FacetBy>,
    /// Every document for itself: nothing is folded or grouped.
    pub plain: bool,
    /// Say why each hit stands where it stands.
    pub explain: bool,
    /// Only pages of this crawl.
    pub crawl: Option<CrawlNo>,
    /// The time now.
    pub now: Option<Timestamp>,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchReply {
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// How many pages match.
    pub estimated_total: u64,
    /// Counts, by what was asked for.
    pub facets: Vec<(FacetBy, Vec<(String, u64)>)>,
    /// What was left out of the query.
    pub ignored: Vec<String>,
    /// A query that probably finds more.
    pub did_you_mean: Option<String>,
    /// How long it took.
    pub took_ms: u64,
}

/// One hit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The name of an imported document.
    pub id: Option<String>,
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The best piece of its text.
    pub snippet: String,
    /// Where the words that were found begin and end in it, in bytes.
    pub marks: Vec<(usize, usize)>,
    /// The same as HTML, with `<mark>`.
    pub snippet_html: String,
    /// Its site.
    pub site: Option<String>,
    /// Its language.
    pub language: Option<String>,
    /// What it was made from.
    pub kind: String,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// When it was published.
    pub published_at: Option<Timestamp>,
    /// Its crawl.
    pub crawl: CrawlNo,
    /// How well it fits.
    pub score: f32,
    /// How many more of its site there are.
    pub more_from_site: usize,
    /// How many pages say nearly the same.
    pub similar_count: usize,
    /// Why it stands where it stands: indented lines.
    pub why: Vec<String>,
}

/// Ways to go on typing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggest {
    /// What was typed so far.
    pub typed: String,
    /// How many, at most.
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
    pub max: usize,
}

/// Something that is well linked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankItem {
    /// A page.
    Page(TopPage),
    /// A site.
    Site(TopSite),
}

impl Operation for Search {
    const KIND: OperationKind = OperationKind::Search;
    const INDEX: IndexUse = IndexUse::UpToDate;
    type Item = NoItem;
    type Reply = SearchReply;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<SearchReply, RequestError> {
        let text = match self.pattern {
            true => self.text.clone(),
            false => with_crawl_numbers(control, &self.text),
        };
        let index = control.index()?;
        let found = index.search(&query(self, &text, &control.removed()?));
        found.map(answer).map_err(|error| refused(index, error))
    }
}

impl Operation for Suggest {
    const KIND: OperationKind = OperationKind::Suggest;
    const INDEX: IndexUse = IndexUse::UpToDate;
    type Item = NoItem;
    type Reply = Vec<String>;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<Vec<String>, RequestError> {
        let index = control.index()?;
        index.suggest(&self.typed, self.max).map_err(|error| refused(index, error))
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
            top.into_iter().all(|site| each(RankItem::Site(site)));
        } else {
            let top = index.top_pages(&crawls, self.max).map_err(refuse)?;
            top.into_iter().all(|page| each(RankItem::Page(page)));
        }
        Ok(())
    }
}

/// The query of a search. `removed`: crawls that the index may still have and that are not shown.
fn query(request: &Search, text: &str, removed: &[CrawlNo]) -> Query {
    let mut query = match request.plain {
        true => Query::batch(text, request.limit),
        false => Query { limit: request.limit, ..Query::new(text) },
    };
    query.pattern = request.pattern;
    query.columns.clone_from(&request.columns);
    query.sort = request.sort;
    query.offset = request.offset;
    query.facets.clone_from(&request.facets);
    query.explain = request.explain;
    query.now = request.now;
    query.filters = Filter::all_in(&request.conditions);
    query.filters.extend(request.crawl.map(|crawl| Filter::Crawl(crawl.0)));
    let is_removed = |crawl: &CrawlNo| Filter::Not(Box::new(Filter::Crawl(crawl.0)));
    query.filters.extend(removed.iter().map(is_removed));
    query
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

/// What the index refused, by whose fault it is. A damaged index is built anew when it is next
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

fn answer(results: Results) -> SearchReply {
    let facets = results.facets.into_iter().map(|(by, counts)| {
        (by, counts.into_iter().map(|count| (count.value, count.count)).collect())
    });
    SearchReply {
        facets: facets.collect(),
        hits: results.hits.into_iter().map(hit).collect(),
        estimated_total: results.estimated_total,
        ignored: results.ignored,
        did_you_mean: results.did_you_mean,
        took_ms: results.took_ms,
    }
}

fn hit(hit: Hit) -> SearchHit {
    let snippet_html = hit.snippet.html();
    let Snippet { text, marks } = hit.snippet;
    let mut why = Vec::new();
    if let Some(explanation) = &hit.explanation {
        write_why(explanation, 0, &mut why);
    }
    SearchHit {
        id: hit.id,
        url: hit.url,
        title: hit.title,
        snippet: text,
        marks,
        snippet_html,
        site: hit.site,
        language: hit.language,
        kind: hit.kind,
        fetched_at: hit.fetched_at,
        published_at: hit.published_at,
        crawl: hit.key.crawl,
        score: hit.score,
        more_from_site: hit.more_from_site,
        similar_count: hit.similar_count,
        why,
    }
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
