//! The first page, and what a search found.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::frame::{Frame, Viewer, address, render};
use super::words::{Words, fill};
use crate::door::Params;
use crate::json::{CrawlView, FacetView, HitView, SearchBody, SearchView};
use crate::problem::Problem;
use crate::service::Service;

/// Hits on one page.
const HITS: u32 = 10;
/// The deepest hit that the service gives.
const HITS_MAX: u32 = 1000;
/// Values of one facet that are shown.
const VALUES_MAX: usize = 8;
/// Running crawls that are shown on the first page.
const RUNNING_MAX: usize = 5;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    is_empty: bool,
    is_read_only: bool,
    totals: String,
    running: Vec<RunningLine>,
}

struct RunningLine {
    alias: String,
    name: String,
    pages: String,
    speed: String,
}

/// The first page.
pub(crate) async fn home(
    State(service): State<Service>,
    reader: Viewer,
) -> Result<Response, Problem> {
    let (totals, lang) = (service.totals().await?, reader.lang);
    let crawls: u64 = totals.crawls.values().sum();
    let running = service.crawls(Some("running".to_owned()), None, RUNNING_MAX, None).await?;
    let line = |crawl: CrawlView| RunningLine {
        name: crawl_name(&crawl),
        alias: crawl.alias,
        pages: lang.count(crawl.stats.fetched),
        speed: lang.decimal(crawl.stats.pages_per_s, 1),
    };
    render(&HomePage {
        frame: reader.frame("search", reader.words().search_title),
        is_empty: totals.pages == 0,
        is_read_only: service.settings().read_only,
        totals: fill(
            reader.words().totals,
            &[
                ("pages", &lang.count(totals.pages)),
                ("crawls", &lang.count(crawls)),
                ("indexed", &lang.count(totals.indexed)),
            ],
        ),
        running: running.items.into_iter().map(line).collect(),
    })
}

/// What a crawl is called: its name, else where it starts.
pub(crate) fn crawl_name(crawl: &CrawlView) -> String {
    let first = || crawl.seeds.first().cloned();
    crawl.name.clone().or_else(first).unwrap_or_else(|| crawl.alias.clone())
}

/// What is searched for. `lang` is the language of the page, as everywhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
    site: String,
    language: String,
    kind: String,
    crawl: String,
    year: String,
    sort: String,
    why: String,
    start: u32,
}

impl Asked {
    fn address(&self) -> String {
        let start = if self.start == 0 { String::new() } else { self.start.to_string() };
        let mut params = vec![("q", self.q.as_str())];
        params.extend(self.narrowing());
        params.extend([("sort", self.sort.as_str()), ("why", &self.why), ("start", &start)]);
        address("/search", &params)
    }

    /// The filters, by the names of their parameters.
    fn narrowing(&self) -> [(&'static str, &str); 5] {
        [
            ("site", &self.site),
            ("language", &self.language),
            ("kind", &self.kind),
            ("year", &self.year),
            ("crawl", &self.crawl),
        ]
    }

    /// The same from its first hit, with one filter set; an empty value lets go of it.
    fn with(&self, name: &str, value: &str) -> Self {
        let mut asked = Self { start: 0, ..self.clone() };
        let field = match name {
            "site" => &mut asked.site,
            "language" => &mut asked.language,
            "kind" => &mut asked.kind,
            "year" => &mut asked.year,
            _ => &mut asked.crawl,
        };
        *field = value.to_owned();
        asked
    }

    fn body(&self) -> SearchBody {
        let given = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        SearchBody {
            q: self.q.clone(),
            limit: Some(HITS),
            offset: Some(self.start.min(HITS_MAX - HITS)),
            site: given(&self.site),
            lang: given(&self.language),
            kind: given(&self.kind),
            crawl: given(&self.crawl),
            year: self.year.parse().ok(),
            since: None,
            columns: None,
            regex: None,
            facets: Some("site,lang,type,year,crawl".to_owned()),
            sort: given(&self.sort),
            explain: Some(!self.why.is_empty()),
        }
    }
}

#[derive(Template)]
#[template(path = "results.html")]
struct ResultsPage {
    frame: Frame,
    query: String,
    summary: String,
    did_you_mean: Option<Way>,
    ignored: Vec<String>,
    filters: Vec<Filter>,
    hits: Vec<Hit>,
    first: u32,
    range: String,
    previous: Option<String>,
    next: Option<String>,
    sorts: Vec<Sorting>,
    facets: Vec<Facet>,
    explain: Way,
    json: String,
}

/// A link.
struct Way {
    address: String,
    text: String,
}

struct Filter {
    name: &'static str,
    label: &'static str,
    value: String,
    without: String,
}

struct Sorting {
    address: String,
    text: &'static str,
    is_current: bool,
}

struct Facet {
    label: &'static str,
    values: Vec<FacetValue>,
}

struct FacetValue {
    address: String,
    text: String,
    count: String,
}

struct Hit {
    page: String,
    original: String,
    title: String,
    crumb: String,
    snippet: String,
    lang: Option<String>,
    date: String,
    badge: Option<String>,
    more: Option<Way>,
    similar: Option<String>,
    why: Vec<String>,
}

/// What a search found.
pub(crate) async fn results(
    State(service): State<Service>,
    reader: Viewer,
    Params(asked): Params<Asked>,
) -> Result<Response, Problem> {
    let found = service.search(asked.body()).await?;
    render(&page_of(found, &asked, &reader))
}

fn page_of(found: SearchView, asked: &Asked, reader: &Viewer) -> ResultsPage {
    let (words, lang) = (reader.words(), reader.lang);
    let title = if asked.q.is_empty() { words.nav_search } else { asked.q.as_str() };
    let shown = u32::try_from(found.hits.len()).unwrap_or(0);
    let last = found.offset + shown;
    let has_more = u64::from(last) < found.estimated_total && shown == HITS;
    let step = |start: u32| Asked { start, ..asked.clone() }.address();
    let ends = [found.offset + 1, last].map(|place| lang.count(u64::from(place)));
    let range = [("first", ends[0].as_str()), ("last", ends[1].as_str())];
    let why = if asked.why.is_empty() { "1" } else { "" };
    let toggled = Asked { why: why.to_owned(), ..asked.clone() };
    ResultsPage {
        frame: reader.frame("search", title),
        query: asked.q.clone(),
        summary: fill(
            words.found,
            &[("total", &lang.count(found.estimated_total)), ("took", &lang.count(found.took_ms))],
        ),
        did_you_mean: found.did_you_mean.clone().map(|text| Way {
            address: Asked { q: text.clone(), start: 0, ..asked.clone() }.address(),
            text,
        }),
        ignored: found.ignored.clone(),
        filters: filters(asked, words),
        first: found.offset + 1,
        range: fill(words.found_page, &range),
        previous: (found.offset > 0).then(|| step(found.offset.saturating_sub(HITS))),
        next: (has_more && last + HITS <= HITS_MAX).then(|| step(last)),
        sorts: sorts(asked, words),
        facets: facets(asked, &found, reader),
        explain: Way {
            address: toggled.address(),
            text: if why.is_empty() { words.why_hide } else { words.why_here }.to_owned(),
        },
        json: address("/api/v1/search", &[("q", &asked.q)]),
        hits: found.hits.into_iter().map(|hit| hit_of(hit, asked, reader)).collect(),
    }
}

fn hit_of(hit: HitView, asked: &Asked, reader: &Viewer) -> Hit {
    let (words, lang) = (reader.words(), reader.lang);
    let site = hit.site.clone().unwrap_or_default();
    let is_more = hit.more_from_site > 0 && asked.site.is_empty() && !site.is_empty();
    let count = lang.count(hit.more_from_site);
    let title = if hit.title.trim().is_empty() { hit.url.clone() } else { hit.title };
    Hit {
        page: address("/page", &[("url", &hit.url), ("crawl", &hit.alias)]),
        crumb: crumb(&hit.url),
        original: hit.url,
        title,
        snippet: hit.snippet,
        date: lang.day(hit.published_at.as_deref().unwrap_or(&hit.fetched_at)),
        badge: (hit.kind != "html").then(|| hit.kind.to_uppercase()),
        more: is_more.then(|| Way {
            address: asked.with("site", &site).address(),
            text: fill(words.more_from, &[("n", &count), ("site", &site)]),
        }),
        similar: (hit.similar > 0).then(|| fill(words.similar, &[("n", &lang.count(hit.similar))])),
        // A page may claim any language; only a plain code is repeated.
        lang: hit.lang.filter(|code| code.bytes().all(|it| it.is_ascii_lowercase())),
        why: hit.why,
    }
}

/// The address of a hit as a path of steps.
fn crumb(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let steps: Vec<&str> = rest.split('/').filter(|step| !step.is_empty()).collect();
    steps.join(" › ")
}

fn label_of(words: &Words, name: &str) -> &'static str {
    match name {
        "site" => words.facet_site,
        "lang" | "language" => words.facet_lang,
        "type" | "kind" => words.facet_type,
        "year" => words.facet_year,
        _ => words.facet_crawl,
    }
}

fn filters(asked: &Asked, words: &Words) -> Vec<Filter> {
    let set = asked.narrowing().into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| Filter {
        name,
        label: label_of(words, name),
        value: value.to_owned(),
        without: asked.with(name, "").address(),
    })
    .collect()
}

fn sorts(asked: &Asked, words: &'static Words) -> Vec<Sorting> {
    let all = [("", words.sort_relevance), ("newest", words.sort_newest), ("url", words.sort_url)];
    all.map(|(sort, text)| Sorting {
        address: Asked { sort: sort.to_owned(), start: 0, ..asked.clone() }.address(),
        text,
        is_current: asked.sort == sort,
    })
    .into()
}

fn facets(asked: &Asked, found: &SearchView, reader: &Viewer) -> Vec<Facet> {
    let names = [
        ("site", "site"),
        ("lang", "language"),
        ("type", "kind"),
        ("year", "year"),
        ("crawl", "crawl"),
    ];
    let mut facets = Vec::new();
    for (name, param) in names {
        let is_set = asked.narrowing().iter().any(|(it, value)| *it == param && !value.is_empty());
        let values = found.facets.get(name).map(Vec::as_slice).unwrap_or_default();
        // What can only be chosen one way narrows nothing down.
        if is_set || values.len() < 2 {
            continue;
        }
        let value = |it: &FacetView| {
            let count = reader.lang.count(it.count);
            FacetValue {
                address: asked.with(param, &it.value).address(),
                text: it.value.clone(),
                count,
            }
        };
        facets.push(Facet {
            label: label_of(reader.words(), name),
            values: values.iter().take(VALUES_MAX).map(value).collect(),
        });
    }
    facets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::HeaderMap;
    use proptest::prelude::*;
    use telusur_index::{escape_html, inert};
    use telusur_model::PageUrl;

    use super::*;

    /// The page about one hit that says the same everywhere, as the index lets it say it.
    fn page_saying(said: &str, url: &PageUrl) -> String {
        let title = inert(said, 200);
        let mut snippet = String::new();
        escape_html(&title, &mut snippet);
        let hit = HitView {
            id: None,
            url: url.to_string(),
            snippet,
            marks: Vec::new(),
            snippet_text: title.clone(),
            site: Some("a.test".to_owned()),
            lang: Some(said.to_owned()),
            kind: "html".to_owned(),
            fetched_at: "2026-01-31T00:00:00Z".to_owned(),
            published_at: None,
            score: 1.0,
            crawl: "cr_1".to_owned(),
            alias: "crawl_1".to_owned(),
            more_from_site: 0,
            similar: 0,
            why: vec![title.clone()],
            title,
        };
        let found = SearchView {
            query: String::new(),
            took_ms: 0,
            estimated_total: 1,
            offset: 0,
            limit: HITS,
            hits: vec![hit],
            facets: BTreeMap::new(),
            ignored: Vec::new(),
            did_you_mean: None,
        };
        let reader = Viewer::of(&http::Uri::from_static("/search"), &HeaderMap::new());
        page_of(found, &Asked::default(), &reader).render().unwrap()
    }

    /// Letters, and whatever could mean more than itself to a browser or to an eye.
    fn anything() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            "[a-z ]{1,8}",
            Just("<script>alert(1)</script>".to_owned()),
            Just("\" onmouseover='x' a=".to_owned()),
            Just("\u{202e}\u{2066}\u{200f}".to_owned()),
            Just("\u{1b}[2J\u{9b}\0\r\n".to_owned()),
            Just("&lt;b&gt;</a></title>".to_owned()),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn whatever_a_page_says_it_is_only_text(said in anything(), path in anything()) {
            let Ok(url) = PageUrl::parse(&format!("http://a.test/{path}")) else { return Ok(()) };
            let tags = |html: &str| -> Vec<String> {
                html.split('<').skip(1).map(|tag| tag.split([' ', '>']).next().unwrap_or("").to_owned()).collect()
            };
            let page = page_saying(&said, &url);
            let plain = page_saying("x", &PageUrl::parse("http://a.test/").unwrap());
            prop_assert_eq!(tags(&page), tags(&plain));
            let quotes = |html: &str| html.matches('"').count();
            let is_code = !said.is_empty() && said.bytes().all(|it| it.is_ascii_lowercase());
            // A language that is none is left out, twice.
            let lang = if is_code || said.is_empty() { 0 } else { 4 };
            prop_assert_eq!(quotes(&page) + lang, quotes(&plain));
            let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            prop_assert!(!page.contains(|c: char| turns(c) || (c.is_control() && c != '\n')));
        }
    }

    #[test]
    fn a_filter_starts_again_at_the_first_hit() {
        let asked = Asked { q: "kopi".into(), start: 20, sort: "url".into(), ..Asked::default() };
        assert_eq!(asked.with("site", "a.test").address(), "/search?q=kopi&site=a.test&sort=url");
        assert_eq!(asked.address(), "/search?q=kopi&sort=url&start=20");
    }

    #[test]
    fn addresses_are_shown_as_steps() {
        assert_eq!(crumb("https://a.test/x/y?z=1#f"), "a.test › x › y");
        assert_eq!(crumb("https://a.test/"), "a.test");
    }
}
