//! Stored pages. What a stranger wrote is never shown as what it says it is: a raw body is a download in
//! plain text.

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::HeaderMap;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Pass;
use crate::door::{Params, answer, text_answer};
use crate::json::{PageLink, StoredPageView};
use crate::problem::{Code, Problem};
use crate::service::{Service, for_eyes_of};

/// Which page.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOf {
    /// Its URL, or one that redirects to it.
    url: String,
    /// In this crawl; else in the youngest that has it.
    crawl: Option<String>,
}

/// A stored page with everything in it, by its URL
#[utoipa::path(get, path = "/api/v1/pages", tag = "content", operation_id = "find_page",
    params(PageOf),
    responses((status = 200, body = StoredPageView, description = "The page."), (status = 304),
              (status = 404)))]
pub(super) async fn by_url(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    headers: HeaderMap,
    Params(page): Params<PageOf>,
) -> Result<Response, Problem> {
    let crawl = page.crawl.map(|id| service.crawl_no(&id)).transpose()?;
    answer(&headers, &for_eyes_of(&pass, service.page_of_url(page.url, crawl).await?), None)
}

/// A stored page with everything in it, by its id
#[utoipa::path(get, path = "/api/v1/pages/{id}", tag = "content", operation_id = "read_page",
    params(("id" = String, Path, description = "The page's id")),
    responses((status = 200, body = StoredPageView, description = "The page."), (status = 304)))]
pub(super) async fn by_id(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &for_eyes_of(&pass, service.stored_page(&id).await?), None)
}

/// The body of a stored page as it came, as a download
#[utoipa::path(get, path = "/api/v1/pages/{id}/raw", tag = "content",
    operation_id = "read_page_body",
    params(("id" = String, Path, description = "The page's id")),
    responses((status = 200, body = String, content_type = "text/plain",
        description = "The bytes of the body, always labelled as plain text, whatever they are.")))]
pub(super) async fn raw(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let body = service.page(&id).await?.body_bytes();
    let body = body.ok_or_else(|| Problem::new(Code::NotFound, "its body was not kept"))?;
    let mut response = text_answer("text/plain; charset=utf-8", body);
    let name = HeaderValue::from_static("attachment; filename=\"page.txt\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

/// The main content of a stored page as Markdown
#[utoipa::path(get, path = "/api/v1/pages/{id}/markdown", tag = "content",
    operation_id = "read_page_markdown",
    params(("id" = String, Path, description = "The page's id")),
    responses((status = 200, body = String, content_type = "text/markdown",
        description = "The main content.")))]
pub(super) async fn markdown(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let content = service.page(&id).await?.content;
    let content = content.ok_or_else(|| Problem::new(Code::NotFound, "nothing of it was kept"))?;
    Ok(text_answer("text/markdown; charset=utf-8", content.markdown))
}

/// Where a stored page links to
#[utoipa::path(get, path = "/api/v1/pages/{id}/links", tag = "content",
    operation_id = "list_page_links",
    params(("id" = String, Path, description = "The page's id")),
    responses((status = 200, body = Vec<PageLink>, description = "Its links, in the order of the page."),
              (status = 304)))]
pub(super) async fn links(
    State(service): State<Service>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service.links(&id).await?, None)
}
