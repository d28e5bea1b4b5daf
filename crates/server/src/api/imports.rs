//! Documents that are stored and found like crawled pages.

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::response::Response;
use bytes::BytesMut;
use http::StatusCode;
use http_body_util::BodyExt;
use serde::Deserialize;
use telusur_engine::ImportLine;
use telusur_engine::control::{IMPORT_BATCH_BYTES, IMPORT_BATCH_MAX};
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::access::Pass;
use crate::door::{Params, created};
use crate::json::ImportView;
use crate::problem::{Code, Problem, shown};
use crate::service::Service;

/// What an import is called.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportParams {
    /// A name for the collection; importing under the same name again replaces documents.
    name: String,
}

/// Import documents
///
/// The body has one JSON object per line, with `url` or `id`, `title`, `text` and `language`. Documents are stored
/// batch by batch while they arrive; if the body breaks off, what came before stays, and the import counts as not
/// complete until it is repeated.
#[utoipa::path(post, path = "/api/v1/imports", tag = "crawls", operation_id = "import_documents",
    request_body(content = String, content_type = "application/octet-stream",
        description = "Documents, one JSON object per line",
        example = json!("{\"url\":\"https://example.org/a\",\"title\":\"A\",\"text\":\"About a.\"}\n")),
    params(ImportParams),
    responses((status = 200, body = ImportView, description = "Everything is stored.")))]
pub(super) async fn import(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Params(params): Params<ImportParams>,
    request: Request,
) -> Result<Response, Problem> {
    service.check_writable()?;
    let mut lines = Lines { body: request.into_body(), rest: BytesMut::new(), is_over: false };
    let (mut documents, mut bytes, mut count) = (Vec::new(), 0, 0_u64);
    let rights = pass.rights();
    let stall = service.settings().bounds.body_time_max;
    while let Some(line) = lines.next(stall).await? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = count + 1;
        let refuse = |why: String| {
            Problem::new(Code::InvalidField, format!("document {number}: {}", shown(&why)))
        };
        let document: ImportLine =
            serde_json::from_slice(&line).map_err(|error| refuse(error.to_string()))?;
        document.address().map_err(refuse)?;
        documents.push(document);
        (bytes, count) = (bytes + line.len(), number);
        if documents.len() >= IMPORT_BATCH_MAX || bytes >= IMPORT_BATCH_BYTES {
            bytes = 0;
            service.import(&params.name, std::mem::take(&mut documents), false, rights).await?;
        }
    }
    let crawl = service.import(&params.name, documents, true, rights).await?;
    created(
        StatusCode::OK,
        None,
        &ImportView { crawl: crawl.id, alias: crawl.alias, documents: count },
    )
}

/// The lines of a body, as they arrive.
struct Lines {
    body: Body,
    rest: BytesMut,
    is_over: bool,
}

impl Lines {
    /// Longest line: a document's text.
    const BYTES_MAX: usize = 16 << 20;

    async fn next(&mut self, stall: std::time::Duration) -> Result<Option<BytesMut>, Problem> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end + 1);
                return Ok(Some(line));
            }
            if self.is_over {
                let last = std::mem::take(&mut self.rest);
                return Ok((!last.is_empty()).then_some(last));
            }
            if self.rest.len() > Self::BYTES_MAX {
                return Err(Problem::new(Code::BodyTooLarge, "a line is longer than 16 MiB"));
            }
            let frame = timeout(stall, self.body.frame()).await;
            let frame = frame.map_err(|_| {
                Problem::new(Code::RequestTimeout, "the body did not go on in time")
            })?;
            match frame {
                None => self.is_over = true,
                Some(Err(error)) => {
                    let what = format!("the body broke off: {error}");
                    return Err(Problem::new(Code::BadRequest, what));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
