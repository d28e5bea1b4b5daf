//! Operations as the terminal runs them: what a command on another machine sends and reads.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use telusur_engine::control::OperationKind;
use telusur_engine::request::Rights;

use crate::access::Scope;
use crate::door::{is_json_request, read_body_up_to, read_json, text_answer};
use crate::problem::{Code, Problem, shown};
use crate::service::Service;

/// Longest request of the owner: a long list of start URLs, or of ids.
const OWNER_BYTES_MAX: usize = 16 << 20;

/// Run an operation as the terminal does
///
/// `telusur --server URL --key KEY` asks here. The body is the request of the operation. The answer is NDJSON: lines
/// `{"item": …}`, then one line `{"reply": …}`, or `{"error": …}` with a code and a text. Programs are better served
/// by the other routes: this one changes with the program. What an operation needs of a key is what its other route
/// needs.
#[utoipa::path(post, path = "/api/v1/operations/{operation}", tag = "terminal",
    operation_id = "run_operation",
    request_body(content = Object, description = "The request of the operation",
        example = json!({"crawl": "crawl_1"})),
    params(("operation" = String, Path, description = "The name of the operation, such as `list_crawls`")),
    security((), ("key" = [])),
    responses((status = 200, description = "Items, then a reply or an error, one JSON object per line.",
        content((String = "application/x-ndjson", example = json!("{\"reply\":null}\n"))))))]
pub(super) async fn run(
    State(service): State<Service>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let operation = OperationKind::from_word(&name).ok_or_else(|| {
        Problem::new(Code::NotFound, format!("there is no operation {:?}", shown(&name)))
    })?;
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
        | OperationKind::ListPages
        | OperationKind::ListErrors
        | OperationKind::ListSkipped
        | OperationKind::ListChanges
        | OperationKind::ListHosts
        | OperationKind::ListQueue
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
