//! What a crawl holds.

use std::io;

use axum::body::Body;
use axum::extract::{Extension, OriginalUri, Path, State};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use http::HeaderMap;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use serde::Deserialize;
use telusur_engine::export::{Collected, Collection, Format};
use utoipa::IntoParams;

use super::{cursor, items};
use crate::access::Pass;
use crate::door::{Params, paged, text_answer};
use crate::json::{
    ChangedView, CoverageView, ErrorView, HostView, PageView, Paged, QueuedView, SkippedView,
};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Which part of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// How many, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Which skipped URLs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SkippedPart {
    /// Only those with this reason.
    reason: Option<String>,
    /// How many, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// How an export is written.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportParams {
    /// `jsonl` (everything), `csv`, `urls` or `md`.
    format: Option<String>,
    /// `pages`, or one kind of content in them: `headings`, `links`, `images`, `tables`, `lists`, `forms`,
    /// `scripts` or `styles`. `md` takes pages only; `urls` takes what has addresses.
    kind: Option<String>,
}

/// An export of `kind=links`, as it is described.
const LINKS_AS_JSON_LINES: &str = "{\"crawl\":\"c_01M7R602BA00000000000009QQ\",\
    \"page\":\"https://example.org/\",\"index\":1,\"url\":\"https://example.org/about\",\
    \"anchor\":\"About\",\"kind\":\"anchor\",\"nofollow\":false,\"rel\":\"\"}\n";
/// The same with commas.
const LINKS_AS_CSV: &str = "crawl,page,index,url,anchor,kind,nofollow,rel\n\
    c_01M7R602BA00000000000009QQ,https://example.org/,1,https://example.org/about,About,anchor,false,\n";

macro_rules! list {
    ($(#[doc = $doc:literal])+ $name:ident, $id:literal, $path:literal, $view:ty, $found:literal) => {
        $(#[doc = $doc])+
        #[utoipa::path(get, path = $path, tag = "content", operation_id = $id,
            params(("id" = String, Path, description = "The id, or crawl_N"), Part),
            responses((status = 200, body = Paged<$view>, description = $found), (status = 304)))]
        pub(super) async fn $name(
            State(service): State<Service>,
            Path(id): Path<String>,
            OriginalUri(uri): OriginalUri,
            headers: HeaderMap,
            Params(part): Params<Part>,
        ) -> Result<Response, Problem> {
            let (no, after) = (service.crawl_no(&id)?, cursor(part.cursor)?);
            let found = service.$name(no, items(part.limit)?, after).await?;
            paged(&headers, &uri, &found)
        }
    };
}

list!(
    /// The pages of a crawl, the oldest first
    pages, "list_pages", "/api/v1/crawls/{id}/pages", PageView, "Some of the pages."
);
list!(
    /// URLs that answered with an error, then those without an answer
    errors, "list_errors", "/api/v1/crawls/{id}/errors", ErrorView, "Some of the URLs."
);
list!(
    /// The hosts of a crawl, by name
    hosts, "list_hosts", "/api/v1/crawls/{id}/hosts", HostView, "Some of the hosts."
);
list!(
    /// The URLs that wait, host by host, in the order in which they are asked
    frontier, "list_frontier", "/api/v1/crawls/{id}/frontier", QueuedView, "Some of the URLs."
);
list!(
    /// What is known of the ids of a linear crawl, as runs of one state
    ///
    /// `limit` counts runs.
    coverage, "read_coverage", "/api/v1/crawls/{id}/coverage", CoverageView,
    "Its templates, each with some of its runs."
);

list!(
    /// What is new, changed or gone since the crawl that this one repeats
    changes, "list_changes", "/api/v1/crawls/{id}/changes", ChangedView, "Some of the pages."
);

/// URLs that were never asked for, and why
#[utoipa::path(get, path = "/api/v1/crawls/{id}/skipped", tag = "content",
    operation_id = "list_skipped",
    params(("id" = String, Path, description = "The id, or crawl_N"), SkippedPart),
    responses((status = 200, body = Paged<SkippedView>, description = "Some of the URLs."),
              (status = 304)))]
pub(super) async fn skipped(
    State(service): State<Service>,
    Path(id): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Params(part): Params<SkippedPart>,
) -> Result<Response, Problem> {
    let (no, after) = (service.crawl_no(&id)?, cursor(part.cursor)?);
    let reason = part.reason.filter(|reason| !reason.is_empty());
    let found = service.skipped(no, reason, items(part.limit)?, after).await?;
    paged(&headers, &uri, &found)
}

/// Export everything that a crawl stored, as a stream
///
/// The media type of the answer follows `format`: `jsonl` is NDJSON, one JSON object per line; `csv` names its
/// columns in the first line; `urls` is one URL per line; `md` is the pages as Markdown, one after the other.
/// An answer that ends without its last chunk is not complete.
#[utoipa::path(get, path = "/api/v1/crawls/{id}/export", tag = "content",
    operation_id = "export_crawl",
    params(("id" = String, Path, description = "The id, or crawl_N"), ExportParams),
    responses((status = 200, description = "What was asked for, as it is read from the store.", content(
        (String = "application/x-ndjson", example = json!(LINKS_AS_JSON_LINES)),
        (String = "text/csv", example = json!(LINKS_AS_CSV)),
        (String = "text/plain", example = json!("https://example.org/about\n")),
        (String = "text/markdown",
         example = json!("<!-- https://example.org/ -->\n\n# Example\n\nThe main content.\n\n"))))))]
pub(super) async fn export(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    Params(params): Params<ExportParams>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    let refuse = |name: &str, what: String| Problem::new(Code::InvalidField, what).at(name);
    let format = params.format.as_deref().unwrap_or(Format::default().word());
    let format = Format::from_word(format).ok_or_else(|| {
        refuse("format", format!("write {}", Format::ALL.map(Format::word).join(", ")))
    })?;
    let kind = params.kind.as_deref().unwrap_or("pages");
    let collected = Collected::from_word(kind).ok_or_else(|| {
        refuse("kind", format!("write {}", Collected::words().collect::<Vec<_>>().join(", ")))
    })?;
    let collection =
        Collection::new(collected, format).map_err(|error| refuse("format", error.to_string()))?;
    let pieces = service.export(no, collection).await?;
    let pieces = stream::unfold((pieces, service, pass), async |(mut pieces, service, pass)| {
        // Whoever loses the right to read is told that this is not all.
        let piece = tokio::select! {
            biased;
            () = service.no_longer_holds(&pass) => Err(io::Error::other("the key was revoked")),
            piece = pieces.next() => piece?,
        };
        Some((piece, (pieces, service, pass)))
    });
    // After an error nothing follows.
    let pieces = pieces.scan(false, |has_failed, piece| {
        let is_over = std::mem::replace(has_failed, piece.is_err());
        std::future::ready((!is_over).then_some(piece))
    });
    // Whoever compresses the answer looks for more after the end.
    let pieces = pieces.fuse();
    let mut response = text_answer(format.content_type(), Body::from_stream(pieces));
    let name = format!("attachment; filename=\"{no}.{}\"", format.extension());
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
