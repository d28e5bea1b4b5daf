//! Searching, and ways to go on typing.

use telusur_engine::control::{Rank, RankItem, Search, Suggest};
use telusur_index::{Column, FacetBy, HITS_MAX, Sort};

use super::Service;
use crate::json::{SearchBody, SearchView, SuggestView};
use crate::problem::{Code, Problem};

/// Hits in one answer.
const LIMIT_MAX: u32 = 100;
/// Hits in one answer, if nobody says how many.
const LIMIT: u32 = 10;
/// Longest query. People type a line; what is longer was pasted.
const QUERY_BYTES_MAX: usize = 4096;

impl Service {
    /// Searches everything that was crawled.
    pub async fn search(&self, body: SearchBody) -> Result<SearchView, Problem> {
        let search = self.search_of(body)?;
        let begun = self.inner().clock.now();
        // A pattern is looked for in one page after the other, which may take long.
        let is_pattern = search.pattern;
        let run = move |service: &Self| service.ask(&search);
        let found = if is_pattern { self.read(run).await } else { self.look_up(run).await }?;
        self.inner().metrics.searched_ms(self.inner().clock.now().ms_since(begun));
        Ok(found)
    }

    /// Ways to go on typing.
    pub async fn suggest(&self, typed: String, max: usize) -> Result<SuggestView, Problem> {
        check_length("q", &typed)?;
        self.look_up(move |service| service.ask(&Suggest { typed, max })).await
    }

    /// The best linked pages, or sites.
    pub async fn rank(&self, rank: Rank) -> Result<Vec<RankItem>, Problem> {
        self.look_up(move |service| Ok(service.inner().control.collect(&rank)?.0)).await
    }

    /// The search that a body asks for, within the limits of the service.
    fn search_of(&self, body: SearchBody) -> Result<Search, Problem> {
        check_length("q", &body.q)?;
        let (offset, limit) = (body.offset.unwrap_or(0), body.limit.unwrap_or(LIMIT));
        if limit > LIMIT_MAX {
            return refuse("limit", format!("{limit} is too much; {LIMIT_MAX} is the limit"));
        }
        if offset.saturating_add(limit) as usize > HITS_MAX {
            return refuse("offset", format!("nobody reads further than the {HITS_MAX}th hit"));
        }
        let sort = body.sort.as_deref().filter(|sort| !sort.is_empty());
        Ok(Search {
            sort: match sort.map(Sort::from_word) {
                None => Sort::default(),
                Some(Some(sort)) => sort,
                Some(None) => return refuse("sort", one_of(Sort::WORDS)),
            },
            columns: words("in", body.columns, Column::WORDS, Column::from_word)?,
            facets: words("facets", body.facets, FacetBy::WORDS, FacetBy::from_word)?,
            text: body.q,
            pattern: body.regex.unwrap_or(false),
            site: body.site,
            lang: body.lang,
            kind: body.kind,
            crawl: body.crawl,
            since: body.since,
            year: body.year,
            offset,
            limit,
            plain: false,
            explain: body.explain.unwrap_or(false),
            now: Some(self.inner().clock.wall()),
        })
    }
}

fn refuse<T>(name: &str, what: String) -> Result<T, Problem> {
    Err(Problem::new(Code::InvalidField, what).at(name))
}

fn check_length(name: &str, text: &str) -> Result<(), Problem> {
    if text.len() <= QUERY_BYTES_MAX {
        return Ok(());
    }
    refuse(name, format!("{name} is {} bytes long; {QUERY_BYTES_MAX} is the limit", text.len()))
}

fn one_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("write {} or {last}", first.join(", ")),
        _ => format!("write {}", words.join("")),
    }
}

/// The words of a list with commas between them, each once.
fn words<T: PartialEq>(
    name: &str,
    text: Option<String>,
    all: &[&str],
    from_word: fn(&str) -> Option<T>,
) -> Result<Vec<T>, Problem> {
    let mut found = Vec::new();
    let text = text.unwrap_or_default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some(one) = from_word(word) else { return refuse(name, one_of(all)) };
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Ok(found)
}
