//! A stored page, with a tab for each kind of content. What a stranger wrote is shown as text; a preview of
//! the page itself only stands in a frame that may do nothing.

use askama::Template;
use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;
use telusur_model::PageContent;

use super::bars::status_tone;
use super::frame::{Frame, Viewer, address, go_to, render};
use super::words::{Words, fill};
use crate::access::{Pass, Scope};
use crate::door::Params;
use crate::json::StoredPageView;
use crate::problem::{Code, Problem};
use crate::service::{Service, mask_cookie};

/// Characters of one text that are shown: a screen with more of it helps nobody.
const CHARS_SHOWN: usize = 200_000;
/// Rows of one table that are shown.
const ROWS_SHOWN: usize = 1000;
/// Tables and lists that are shown.
const PIECES_SHOWN: usize = 50;
/// Lists inside of lists that are drawn further to the right.
const LEVELS_SHOWN: u32 = 5;
/// What a previewed page may do: nothing but look like something.
const PREVIEW_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

#[derive(Template)]
#[template(path = "page.html")]
struct PagePage {
    frame: Frame,
    id: String,
    alias: String,
    title: String,
    url: String,
    status: u16,
    tone: &'static str,
    facts: Vec<String>,
    explain: String,
    is_truncated: bool,
    tabs: Vec<Tab>,
    note: Option<&'static str>,
    body: Body,
}

struct Tab {
    name: &'static str,
    text: &'static str,
    count: Option<String>,
    is_current: bool,
}

/// What a tab shows.
enum Body {
    Nothing,
    /// Text that people read.
    Prose(String),
    /// Text for programs: every character has the same width.
    Plain(String),
    Grids(Vec<Grid>),
    /// Captions, and items with their levels.
    Lists(Vec<(String, Vec<(u32, String)>)>),
    Preview,
}

/// A table; each cell says whether it is a heading.
#[derive(Default)]
struct Grid {
    caption: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<(String, bool)>>,
}

/// Which page, by its URL.
#[derive(Deserialize)]
pub(crate) struct OfUrl {
    url: String,
    #[serde(default)]
    crawl: String,
}

/// Leads to the stored page of a URL.
pub(crate) async fn by_url(
    State(service): State<Service>,
    Params(page): Params<OfUrl>,
) -> Result<Response, Problem> {
    let crawl = (!page.crawl.is_empty()).then(|| service.crawl_no(&page.crawl)).transpose()?;
    let found = service.page_of_url(page.url, crawl).await?;
    Ok(go_to(&format!("/pages/{}", found.page.id)))
}

/// Which tab.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct OfTab {
    tab: String,
}

/// A stored page.
pub(crate) async fn page(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(wanted): Params<OfTab>,
) -> Result<Response, Problem> {
    let mut page = service.page(&id).await?;
    if !pass.covers(Scope::Crawl) {
        page.headers.iter_mut().for_each(|(name, value)| mask_cookie(name, value));
    }
    let (words, lang, record) = (reader.words(), reader.lang, &page.page);
    let content = page.content.as_deref().cloned().unwrap_or_default();
    let current = if wanted.tab.is_empty() { "text" } else { &wanted.tab };
    let tabs = tabs(&page, &content, current, &reader);
    let title = record.title.clone().filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or_else(|| words.page_untitled.to_owned());
    let (body, is_cut) = body_of(&page, &content, current, words);
    let note = match current {
        "images" => Some(words.page_images_note),
        "preview" => Some(words.page_preview_note),
        _ if is_cut => Some(words.page_cut),
        _ => None,
    };
    render(&PagePage {
        frame: reader.frame("search", title.clone()),
        title,
        alias: page.alias.clone(),
        url: record.url.clone(),
        status: record.status,
        tone: status_tone(&record.status.to_string()),
        facts: vec![
            record.content_type.clone().unwrap_or_default(),
            lang.bytes(record.bytes),
            format!("{} ms", lang.count(record.took_ms)),
            lang.moment(&record.fetched_at),
        ],
        explain: address("/explain", &[("url", record.url.as_str()), ("crawl", &page.alias)]),
        is_truncated: record.truncated,
        tabs,
        note,
        body,
        id,
    })
}

fn tabs(page: &StoredPageView, content: &PageContent, current: &str, reader: &Viewer) -> Vec<Tab> {
    let words = reader.words();
    let some = |count: usize| Some(count);
    let all = [
        ("text", words.tab_text, None),
        ("markdown", words.tab_markdown, None),
        ("meta", words.tab_meta, None),
        ("links", words.tab_links, some(content.links.len())),
        ("images", words.tab_images, some(content.images.len())),
        ("tables", words.tab_tables, some(content.tables.len())),
        ("lists", words.tab_lists, some(content.lists.len())),
        ("forms", words.tab_forms, some(content.forms.len())),
        ("scripts", words.tab_scripts, some(content.scripts.len())),
        ("styles", words.tab_styles, some(content.styles.len())),
        ("headers", words.tab_headers, some(page.headers.len())),
        ("raw", words.tab_raw, None),
        ("preview", words.tab_preview, None),
    ];
    let tab = |(name, text, count): (&'static str, &'static str, Option<usize>)| Tab {
        name,
        text,
        count: count.map(|count| reader.lang.count(count as u64)),
        is_current: name == current,
    };
    // A tab that holds nothing is left out; but never the one that is looked at.
    let is_shown = |tab: &Tab| tab.count.as_deref() != Some("0") || tab.is_current;
    all.into_iter().map(tab).filter(is_shown).collect()
}

/// What a tab shows, and whether it was cut.
fn body_of(
    page: &StoredPageView,
    content: &PageContent,
    tab: &str,
    words: &'static Words,
) -> (Body, bool) {
    match tab {
        "markdown" => plain(&content.markdown),
        "meta" => grid(vec![words.col_name, words.col_value], meta(content)),
        "links" => {
            let link = |link: &telusur_model::Link| vec![link.url.to_string(), link.anchor.clone()];
            let rows = content.links.iter().map(link).collect();
            grid(vec![words.col_url, words.col_text], rows)
        }
        "images" => {
            let rows = content.images.iter().map(|image| {
                let size = match (image.width, image.height) {
                    (Some(width), Some(height)) => format!("{width} × {height}"),
                    _ => String::new(),
                };
                vec![image.url.to_string(), image.alt.clone(), size]
            });
            grid(vec![words.col_url, words.col_text, words.col_size], rows.collect())
        }
        "tables" => tables(content, words),
        "lists" => lists(content, words),
        "forms" => forms(content, words),
        "scripts" => {
            let rows = content.scripts.iter().map(|script| {
                let place = script.url.as_ref().map(ToString::to_string);
                vec![place.unwrap_or_else(|| script.text.clone()), script.kind.clone()]
            });
            grid(vec![words.col_value, words.col_kind], rows.collect())
        }
        "styles" => {
            let rows = content.styles.iter().map(|style| {
                let place = style.url.as_ref().map(ToString::to_string);
                vec![place.unwrap_or_else(|| style.text.clone()), style.media.clone()]
            });
            grid(vec![words.col_value, words.col_kind], rows.collect())
        }
        "headers" => {
            let rows = page.headers.iter().map(|(name, value)| vec![name.clone(), value.clone()]);
            grid(vec![words.col_name, words.col_value], rows.collect())
        }
        "raw" => plain(&String::from_utf8_lossy(&page.body_bytes().unwrap_or_default())),
        "preview" if is_previewed(page) => (Body::Preview, false),
        "preview" => (Body::Nothing, false),
        _ => match plain(&content.text) {
            (Body::Plain(text), is_cut) => (Body::Prose(text), is_cut),
            nothing => nothing,
        },
    }
}

fn plain(text: &str) -> (Body, bool) {
    if text.trim().is_empty() {
        return (Body::Nothing, false);
    }
    match text.char_indices().nth(CHARS_SHOWN) {
        Some((end, _)) => (Body::Plain(text[..end].to_owned()), true),
        None => (Body::Plain(text.to_owned()), false),
    }
}

fn grid(columns: Vec<&'static str>, mut rows: Vec<Vec<String>>) -> (Body, bool) {
    if rows.is_empty() {
        return (Body::Nothing, false);
    }
    let is_cut = rows.len() > ROWS_SHOWN;
    rows.truncate(ROWS_SHOWN);
    let plain = |row: Vec<String>| row.into_iter().map(|cell| (cell, false)).collect();
    let rows = rows.into_iter().map(plain).collect();
    (Body::Grids(vec![Grid { columns, rows, ..Grid::default() }]), is_cut)
}

fn meta(content: &PageContent) -> Vec<Vec<String>> {
    let url = |url: &Option<telusur_model::PageUrl>| url.as_ref().map(ToString::to_string);
    let known = [
        ("title", content.title.clone()),
        ("description", content.description.clone()),
        ("keywords", content.keywords.clone()),
        ("author", content.author.clone()),
        ("published", content.published.clone()),
        ("modified", content.modified.clone()),
        ("language", content.language.clone()),
        ("charset", Some(content.charset.clone())),
        ("canonical", url(&content.canonical)),
        ("robots", content.robots.clone()),
        ("refresh", url(&content.refresh)),
    ];
    let known = known.into_iter().filter_map(|(name, value)| {
        Some(vec![name.to_owned(), value.filter(|value| !value.is_empty())?])
    });
    let graph = content.open_graph.iter().map(|it| vec![it.name.clone(), it.value.clone()]);
    let headings =
        content.headings.iter().map(|it| vec![format!("h{}", it.level), it.text.clone()]);
    let json_ld = content.json_ld.iter().map(|it| vec!["json-ld".to_owned(), it.text.clone()]);
    known.chain(graph).chain(headings).chain(json_ld).collect()
}

fn tables(content: &PageContent, words: &Words) -> (Body, bool) {
    let mut is_cut = content.tables.len() > PIECES_SHOWN;
    let mut grids = Vec::new();
    for (number, table) in content.tables.iter().take(PIECES_SHOWN).enumerate() {
        is_cut |= table.rows.len() > ROWS_SHOWN;
        let rows = table
            .rows
            .iter()
            .take(ROWS_SHOWN)
            .map(|row| row.iter().map(|cell| (cell.text.clone(), cell.header)).collect());
        let caption = table.caption.clone().filter(|caption| !caption.trim().is_empty());
        let numbered = || fill(words.table_number, &[("n", &(number + 1).to_string())]);
        grids.push(Grid {
            caption: caption.unwrap_or_else(numbered),
            rows: rows.collect(),
            ..Grid::default()
        });
    }
    if grids.is_empty() { (Body::Nothing, false) } else { (Body::Grids(grids), is_cut) }
}

fn lists(content: &PageContent, words: &Words) -> (Body, bool) {
    let mut is_cut = content.lists.len() > PIECES_SHOWN;
    let mut lists = Vec::new();
    for (number, list) in content.lists.iter().take(PIECES_SHOWN).enumerate() {
        is_cut |= list.items.len() > ROWS_SHOWN;
        let items = list.items.iter().take(ROWS_SHOWN);
        let items = items.map(|item| (item.level.min(LEVELS_SHOWN), item.text.clone()));
        let caption = fill(words.list_number, &[("n", &(number + 1).to_string())]);
        lists.push((caption, items.collect()));
    }
    if lists.is_empty() { (Body::Nothing, false) } else { (Body::Lists(lists), is_cut) }
}

fn forms(content: &PageContent, words: &'static Words) -> (Body, bool) {
    let mut grids = Vec::new();
    for (number, form) in content.forms.iter().take(PIECES_SHOWN).enumerate() {
        let caption = fill(words.form_number, &[("n", &(number + 1).to_string())]);
        let action = form.action.as_ref().map(ToString::to_string).unwrap_or_default();
        let rows = form.fields.iter().take(ROWS_SHOWN).map(|field| {
            let cells = [&field.name, &field.kind, &field.value];
            cells.map(|cell| (cell.clone(), false)).into()
        });
        grids.push(Grid {
            caption: format!("{caption}: {} {action}", form.method),
            columns: vec![words.col_name, words.col_kind, words.col_value],
            rows: rows.collect(),
        });
    }
    if grids.is_empty() {
        return (Body::Nothing, false);
    }
    (Body::Grids(grids), content.forms.len() > PIECES_SHOWN)
}

/// Whether a page can be shown as itself: HTML whose body is kept, in an encoding whose markup is ASCII.
fn is_previewed(page: &StoredPageView) -> bool {
    let kind = page.page.content_type.as_deref().unwrap_or_default();
    let charset = page.content.as_ref().map(|content| content.charset.as_str()).unwrap_or_default();
    let is_ascii =
        !charset.is_empty() && !charset.starts_with("UTF-16") && charset != "ISO-2022-JP";
    page.body.is_some() && kind.starts_with("text/html") && is_ascii
}

/// The page itself, for the frame.
pub(crate) async fn preview(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let page = service.page(&id).await?;
    let none = || Problem::new(Code::NotFound, "this page cannot be previewed");
    if !is_previewed(&page) {
        return Err(none());
    }
    let charset = page.content.as_ref().map(|content| content.charset.clone()).unwrap_or_default();
    let body = defused(&page.body_bytes().ok_or_else(none)?);
    let mut response = Response::new(HttpBody::from(body));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_str(&format!("text/html; charset={charset}"));
    headers.insert(CONTENT_TYPE, kind.map_err(|_| none())?);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PREVIEW_POLICY));
    let no_lookups = HeaderName::from_static("x-dns-prefetch-control");
    headers.insert(no_lookups, HeaderValue::from_static("off"));
    Ok(response)
}

/// A page whose `<link>`, `<meta>` and `<base>` are no longer such: a policy keeps a browser from loading
/// what they name, but not from opening a connection to where it is.
fn defused(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64);
    let mut rest = body;
    while let Some((first, tail)) = rest.split_first() {
        out.push(*first);
        let is_one = |name: &[u8]| tail.get(..4).is_some_and(|it| it.eq_ignore_ascii_case(name));
        if *first == b'<' && (is_one(b"link") || is_one(b"meta") || is_one(b"base")) {
            out.extend_from_slice(b"no-");
        }
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_open_no_connection() {
        let page = b"<LINK rel=preconnect href=//x.test><meta http-equiv=refresh><p>a<b</p><bas";
        assert_eq!(
            String::from_utf8_lossy(&defused(page)),
            "<no-LINK rel=preconnect href=//x.test><no-meta http-equiv=refresh><p>a<b</p><bas"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let (body, is_cut) = plain(&"é".repeat(CHARS_SHOWN + 1));
        assert!(matches!(body, Body::Plain(text) if text.chars().count() == CHARS_SHOWN));
        assert!(is_cut);
        assert!(matches!(plain(" \n"), (Body::Nothing, false)));
    }
}
