//! Control: every operation on a data directory, whichever process asks for it.
//!
//! One process owns a data directory. A command in another terminal writes its [`Operation`] to the
//! owner's control socket as one line of JSON and reads items and a reply back; a command that
//! finds no owner opens the directory itself and runs the operation there. Both get the same answers.

mod operation;

mod handle;
mod socket;

mod crawl_view;
mod part;

mod coverage;
mod import;
mod start;
mod watch;

mod crawls;
mod explain;
mod lists;
mod politeness;

mod fetch;

mod content;
mod export;
mod page;
mod search;

mod orders;
mod reparse;
mod requeue;
mod retry;

mod checks;
mod index;
mod scrub;
mod verify_index;

pub use self::checks::{RequeueDamaged, Requeued, Scrub, Verify};
pub use self::content::{ContentItem, ExportContent, FoundContent};
pub use self::coverage::ReadCoverage;
pub use self::crawls::{ListCrawls, ReadCrawl, ReadCrawls};
pub use self::explain::ExplainUrl;
pub use self::export::{DamagedPage, ExportItem, ExportLine, ExportPages};
pub use self::fetch::{FetchOutcome, FetchPage, FetchedPage};
pub use self::handle::Control;
pub use self::import::{IMPORT_BATCH_BYTES, IMPORT_BATCH_MAX, ImportDocuments, ImportedDocuments};
pub use self::index::{CatchUpIndex, IndexProgress, IndexReport, RebuildIndex};
pub use self::lists::{ListChanges, ListErrors, ListHosts, ListPages, ListQueue, ListSkipped};
pub use self::operation::{
    Each, ErrorCode, ErrorReply, IndexUse, Length, NoItem, Operation, OperationKind, ReplyLine,
};
pub(crate) use self::operation::{Leased, RequestLine};
pub use self::orders::{
    CancelCrawl, ChangeCrawl, CrawlDone, ExcludeUrls, PauseCrawl, RemoveCrawl, StopCrawl,
};
pub use self::page::{ReadPage, page_view};
pub use self::politeness::ReportPoliteness;
pub use self::reparse::{ReparseCrawl, ReparseItem, RereadChange, RereadPage, RereadTotal};
pub use self::scrub::{pause as scrub_pause, piece_bytes as scrub_piece_bytes};
pub use self::search::{Rank, RankItem, Search, Suggest};
pub use self::socket::{SocketGuard, ask, is_served, serve};
pub use self::start::{
    RecrawlCrawl, ResumeCrawl, ResumedCrawl, RetriedCrawl, RetryCrawl, StartCrawl, StartKind,
    StartedCrawl,
};
pub use self::watch::{CrawlEnd, FailedSeed, WatchCrawl, crawl_end, is_over, stored_progress};
