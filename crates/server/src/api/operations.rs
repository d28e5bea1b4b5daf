//! Operations as the terminal runs them: what a command on another machine sends and reads.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use telusur_engine::control::{ErrorReply, OperationKind};
use telusur_engine::request::Rights;
use utoipa::ToSchema;

use crate::access::Scope;
use crate::door::{is_json_request, read_body_up_to, read_json, text_answer};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Longest request of the owner: a long list of start URLs, or of ids.
const OWNER_BYTES_MAX: usize = 16 << 20;

/// One line of what an operation says: items, then a reply or an error.
#[derive(ToSchema)]
#[schema(as = OperationLine)]
#[expect(dead_code, reason = "only described")]
pub(super) struct OperationLine {
    /// One of what comes before the reply.
    #[schema(value_type = Option<Object>)]
    item: Option<()>,
    /// The last line: the reply.
    #[schema(value_type = Option<Object>)]
    reply: Option<()>,
    /// The last line: why it failed, with a code and a text.
    #[schema(value_type = Option<Object>)]
    error: Option<ErrorReply>,
}

/// Run an operation as the terminal does
///
/// `telusur --server URL --key KEY` asks here. The body is the request of the operation, the answer its items and its
/// reply, one JSON object per line. Programs are better served by the other routes: this one changes with the
/// program. What an operation needs of a key is what its other route needs.
#[utoipa::path(post, path = "/api/v1/operations/{operation}", tag = "terminal",
    request_body(content = Object, description = "The request of the operation"),
    params(("operation" = String, Path, description = "The name of the operation, such as `ListCrawls`")),
    responses((status = 200, description = "Items, then a reply or an error, one JSON object per line",
        content((OperationLine = "application/x-ndjson")))))]
pub(super) async fn run(
    State(service): State<Service>,
    Path(operation): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let operation = OperationKind::from_word(&operation)
        .ok_or_else(|| Problem::new(Code::NotFound, "there is no such operation"))?;
    let pass = service.permit(request.headers(), needed(operation))?;
    if operation.may_write() {
        service.check_writable()?;
    }
    is_json_request(request.headers())?;
    let bytes_max = match pass.rights() {
        Rights::Owner => OWNER_BYTES_MAX,
        Rights::User => service.settings().bounds.body_bytes_max,
    };
    let request = read_json(&read_body_up_to(request, &service, bytes_max).await?)?;
    let lines = service.run_operation(operation, request, pass.rights())?;
    let pieces = stream::unfold((lines, service, pass), async |(mut lines, service, pass)| {
        // A stream ends with its key, in the middle of the reply.
        let line = tokio::select! {
            biased;
            () = service.no_longer_holds(&pass) => return None,
            line = lines.recv() => line?,
        };
        Some((Ok::<_, Infallible>(line), (lines, service, pass)))
    });
    Ok(text_answer("application/x-ndjson", Body::from_stream(pieces.fuse())))
}

/// What a key must allow.
fn needed(operation: OperationKind) -> Scope {
    match operation {
        OperationKind::Search | OperationKind::Suggest => Scope::Search,
        OperationKind::ListCrawls
        | OperationKind::ReadCrawls
        | OperationKind::ReadCrawl
        | OperationKind::WatchCrawl
        | OperationKind::ListErrors
        | OperationKind::ListSkipped
        | OperationKind::ListChanges
        | OperationKind::ReadCoverage
        | OperationKind::ExplainUrl
        | OperationKind::ReportPoliteness
        | OperationKind::Rank
        | OperationKind::CatchUpIndex => Scope::Read,
        // What these give holds the cookies that sites set, and settings with passwords in them.
        OperationKind::ExportPages
        | OperationKind::ExportContent
        | OperationKind::ReadPage
        | OperationKind::StartCrawl
        | OperationKind::RecrawlCrawl
        | OperationKind::ImportDocuments
        | OperationKind::PauseCrawl
        | OperationKind::ResumeCrawl
        | OperationKind::StopCrawl
        | OperationKind::ExcludeUrls
        | OperationKind::ChangeCrawl
        | OperationKind::RetryCrawl
        | OperationKind::CancelCrawl
        | OperationKind::RemoveCrawl => Scope::Crawl,
        // They read or write everything that is stored. A fetch says which addresses are reached, and as whom:
        // for others there is `/api/v1/fetch`.
        OperationKind::FetchPage
        | OperationKind::ReparseCrawl
        | OperationKind::RebuildIndex
        | OperationKind::Verify
        | OperationKind::RequeueDamaged
        | OperationKind::Scrub => Scope::Admin,
    }
}
