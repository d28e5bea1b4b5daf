//! [`Surface`]: where people find each operation: its command, its route of the API. The table is complete by its
//! type: a new operation that is missing here does not compile, and a test compares it with the command line and with
//! the API's own description.

use telusur_engine::control::OperationKind;

/// Where an operation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// The command that runs it, such as `index rebuild`; or why there is none.
    pub command: Result<&'static str, &'static str>,
    /// The method and path of its route, besides `/api/v1/operations/`; or why there is none.
    pub route: Result<(&'static str, &'static str), &'static str>,
}

/// Where an operation is found.
pub fn surface(operation: OperationKind) -> Surface {
    let (command, route) = match operation {
        OperationKind::StartCrawl => (Ok("crawl"), Ok(("post", "/api/v1/crawls"))),
        OperationKind::RecrawlCrawl => (Ok("recrawl"), Ok(("post", "/api/v1/crawls/{id}/recrawl"))),
        OperationKind::ImportDocuments => (Ok("import"), Ok(("post", "/api/v1/imports"))),
        OperationKind::WatchCrawl => (
            Err("every command that runs a crawl watches it"),
            Ok(("get", "/api/v1/crawls/{id}/events")),
        ),
        OperationKind::ListCrawls | OperationKind::ReadCrawls => {
            (Ok("ls"), Ok(("get", "/api/v1/crawls")))
        }
        OperationKind::ReadCrawl => (Ok("show"), Ok(("get", "/api/v1/crawls/{id}"))),
        OperationKind::ListPages => (
            Err("export writes the pages of a crawl, page shows one"),
            Ok(("get", "/api/v1/crawls/{id}/pages")),
        ),
        OperationKind::ListHosts => (
            Err("show names the sites, politeness one host"),
            Ok(("get", "/api/v1/crawls/{id}/hosts")),
        ),
        OperationKind::ListQueue => (
            Err("show counts what waits, explain says it of a URL"),
            Ok(("get", "/api/v1/crawls/{id}/frontier")),
        ),
        OperationKind::ListErrors => {
            (Ok("show --errors"), Ok(("get", "/api/v1/crawls/{id}/errors")))
        }
        OperationKind::ListSkipped => {
            (Ok("show --skipped"), Ok(("get", "/api/v1/crawls/{id}/skipped")))
        }
        OperationKind::ListChanges => {
            (Ok("show --changes"), Ok(("get", "/api/v1/crawls/{id}/changes")))
        }
        OperationKind::ReadCoverage => {
            (Ok("coverage"), Ok(("get", "/api/v1/crawls/{id}/coverage")))
        }
        OperationKind::ExportPages | OperationKind::ExportContent => {
            (Ok("export"), Ok(("get", "/api/v1/crawls/{id}/export")))
        }
        OperationKind::ReadPage => (Ok("page"), Ok(("get", "/api/v1/pages"))),
        OperationKind::FetchPage => (Ok("fetch"), Ok(("post", "/api/v1/fetch"))),
        OperationKind::ExplainUrl => (Ok("explain"), Ok(("get", "/api/v1/explain"))),
        OperationKind::ReportPoliteness => (Ok("politeness"), Ok(("get", "/api/v1/politeness"))),
        OperationKind::Search => (Ok("search"), Ok(("get", "/api/v1/search"))),
        OperationKind::Suggest => (Ok("suggest"), Ok(("get", "/api/v1/suggest"))),
        OperationKind::Rank => (Ok("rank"), Ok(("get", "/api/v1/rank"))),
        OperationKind::PauseCrawl => (Ok("pause"), Ok(("post", "/api/v1/crawls/{id}/pause"))),
        OperationKind::ResumeCrawl => (Ok("resume"), Ok(("post", "/api/v1/crawls/{id}/resume"))),
        OperationKind::StopCrawl => (Ok("stop"), Ok(("post", "/api/v1/crawls/{id}/stop"))),
        OperationKind::ExcludeUrls => (Ok("exclude"), Ok(("patch", "/api/v1/crawls/{id}"))),
        OperationKind::ChangeCrawl => (
            Err("resume changes limits and politeness, exclude adds exclusions"),
            Ok(("patch", "/api/v1/crawls/{id}")),
        ),
        OperationKind::RetryCrawl => (Ok("retry"), Ok(("post", "/api/v1/crawls/{id}/retry"))),
        OperationKind::CancelCrawl => (Ok("cancel"), Ok(("post", "/api/v1/crawls/{id}/cancel"))),
        OperationKind::RemoveCrawl => (Ok("rm"), Ok(("delete", "/api/v1/crawls/{id}"))),
        OperationKind::ReparseCrawl => (Ok("reparse"), Err(MAINTENANCE)),
        OperationKind::CatchUpIndex => (
            Ok("index status"),
            Err("the service indexes by itself; /api/v1/stats says how far it is behind"),
        ),
        OperationKind::RebuildIndex => (Ok("index rebuild"), Err(MAINTENANCE)),
        OperationKind::Verify => (Ok("verify"), Err(MAINTENANCE)),
        OperationKind::RequeueDamaged => (Ok("verify --requeue"), Err(MAINTENANCE)),
        OperationKind::Scrub => (Ok("verify --scrub"), Err(MAINTENANCE)),
    };
    Surface { command, route }
}

const MAINTENANCE: &str =
    "maintenance by the operator: with a key of the scope admin through /api/v1/operations/";
