//! Searching, and ways to go on typing.

use telusur_engine::control::{Search, SearchHit, SearchReply, Suggest};
use telusur_index::{FacetBy, HITS_MAX, Sort};

use super::Service;
use crate::json::{FacetView, HitView, SearchBody, SearchView};
use crate::problem::{Code, Problem};

/// Hits in one answer.
const LIMIT_MAX: u32 = 100;
/// Hits in one answer, if nobody says how many.
const LIMIT: u32 = 10;
/// Longest query. People type a line; what is longer was pasted.
const QUERY_BYTES_MAX: usize = 4096;
/// Longest value of a filter.
const VALUE_BYTES_MAX: usize = 255;

impl Service {
    /// Searches everything that was crawled.
    pub async fn search(&self, body: SearchBody) -> Result<SearchView, Problem> {
        let request = self.search_ask(&body)?;
        let (offset, limit) = (body.offset.unwrap_or(0), body.limit.unwrap_or(LIMIT));
        let begun = self.inner().clock.now();
        // A pattern is looked for in one page after the other, which may take long.
        let is_pattern = request.pattern;
        let search = move |service: &Self| service.ask(&request);
        let found = if is_pattern { self.read(search).await } else { self.look_up(search).await }?;
        self.inner().metrics.searched_ms(self.inner().clock.now().ms_since(begun));
        Ok(self.search_view(body.q, offset, limit, found))
    }

    /// Ways to go on typing.
    pub async fn suggest(&self, typed: String, max: usize) -> Result<Vec<String>, Problem> {
        check_length("q", &typed, QUERY_BYTES_MAX)?;
        self.look_up(move |service| service.ask(&Suggest { typed, max })).await
    }

    fn search_ask(&self, body: &SearchBody) -> Result<Search, Problem> {
        let refuse = |name: &str, what: String| {
            Err(Problem::new(Code::InvalidField, what).at(name.to_owned()))
        };
        check_length("q", &body.q, QUERY_BYTES_MAX)?;
        let (offset, limit) = (body.offset.unwrap_or(0), body.limit.unwrap_or(LIMIT));
        if limit > LIMIT_MAX {
            return refuse("limit", format!("{limit} is too much; {LIMIT_MAX} is the limit"));
        }
        if offset.saturating_add(limit) as usize > HITS_MAX {
            return refuse("offset", format!("nobody reads further than the {HITS_MAX}th hit"));
        }
        let crawl = match &body.crawl {
            Some(id) => Some(self.crawl_no(id)?),
            None => None,
        };
        Ok(Search {
            text: self.query_text(body)?,
            sort: match body.sort.as_deref() {
                None | Some("relevance") => Sort::Relevance,
                Some("newest") => Sort::Newest,
                Some("url") => Sort::Url,
                Some(_) => return refuse("sort", "write relevance, newest or url".to_owned()),
            },
            offset: offset as usize,
            limit: limit as usize,
            facets: facets(body.facets.as_deref().unwrap_or_default())?,
            explain: body.explain.unwrap_or(false),
            crawl,
            now: Some(self.inner().clock.wall()),
            ..Search::default()
        })
    }

    /// The query with its filters, as somebody would type them.
    fn query_text(&self, body: &SearchBody) -> Result<String, Problem> {
        let mut text = body.q.clone();
        let filters = [
            ("site", "site", &body.site),
            ("lang", "lang", &body.lang),
            ("type", "filetype", &body.kind),
        ];
        for (name, word, value) in filters {
            let Some(value) = value.as_deref().filter(|value| !value.is_empty()) else { continue };
            check_length(name, value, VALUE_BYTES_MAX)?;
            let is_word = value.chars().all(|c| c.is_alphanumeric() || "-._:/*".contains(c));
            if !is_word {
                let what = format!("{name} is one word without spaces and quotes");
                return Err(Problem::new(Code::InvalidField, what).at(name));
            }
            text.push_str(&format!(" {word}:{value}"));
        }
        if let Some(since) = body.since.as_deref().filter(|since| !since.is_empty()) {
            text.push_str(&format!(" after:{}", self.date_of(since)?));
        }
        Ok(text)
    }

    /// `30d`, or a date as it is.
    fn date_of(&self, since: &str) -> Result<String, Problem> {
        const DAY_MS: u64 = 86_400_000;
        let days = since.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
        if let Some(days) = days {
            let now = self.inner().clock.wall();
            let at = now.0.saturating_sub(days.saturating_mul(DAY_MS));
            let day = telusur_model::Timestamp(at).rfc3339();
            return Ok(day[..10].to_owned());
        }
        let is_date = since.len() <= 10 && since.chars().all(|c| c.is_ascii_digit() || c == '-');
        if is_date {
            return Ok(since.to_owned());
        }
        Err(Problem::new(Code::InvalidField, "write a date 2026-01-31, or days as 30d").at("since"))
    }

    fn search_view(
        &self,
        query: String,
        offset: u32,
        limit: u32,
        found: SearchReply,
    ) -> SearchView {
        let facets = found.facets.into_iter().map(|(by, counts)| {
            let counts = counts.into_iter().map(|(value, count)| FacetView { value, count });
            (facet_word(by).to_owned(), counts.collect())
        });
        SearchView {
            query,
            took_ms: found.took_ms,
            estimated_total: found.estimated_total,
            offset,
            limit,
            hits: found.hits.into_iter().map(hit_view).collect(),
            facets: facets.collect(),
            ignored: found.ignored,
            did_you_mean: found.did_you_mean,
        }
    }
}

fn hit_view(hit: SearchHit) -> HitView {
    HitView {
        url: hit.url,
        title: hit.title,
        snippet: hit.snippet_html,
        snippet_text: hit.snippet,
        site: hit.site,
        lang: hit.language,
        kind: hit.kind,
        fetched_at: hit.fetched_at.rfc3339(),
        published_at: hit.published_at.map(|at| at.rfc3339()),
        score: hit.score,
        crawl: hit.crawl.to_string(),
        more_from_site: hit.more_from_site as u64,
        similar: hit.similar_count as u64,
        why: hit.why,
    }
}

fn check_length(name: &str, text: &str, bytes_max: usize) -> Result<(), Problem> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    let what = format!("{name} is {} bytes long; {bytes_max} is the limit", text.len());
    Err(Problem::new(Code::InvalidField, what).at(name))
}

/// The names that the API has for what is counted by.
const FACETS: [(&str, FacetBy); 5] = [
    ("site", FacetBy::Site),
    ("lang", FacetBy::Language),
    ("type", FacetBy::Kind),
    ("year", FacetBy::Year),
    ("crawl", FacetBy::Crawl),
];

fn facet_word(by: FacetBy) -> &'static str {
    FACETS.iter().find(|(_, other)| *other == by).map_or("other", |(word, _)| word)
}

fn facets(text: &str) -> Result<Vec<FacetBy>, Problem> {
    let mut facets = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let found = FACETS.iter().find(|(name, _)| *name == word).map(|(_, by)| *by);
        let by = found.ok_or_else(|| {
            Problem::new(Code::InvalidField, "write site, lang, type, year or crawl").at("facets")
        })?;
        if !facets.contains(&by) {
            facets.push(by);
        }
    }
    Ok(facets)
}
