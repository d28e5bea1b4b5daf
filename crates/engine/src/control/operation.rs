//! [`Operation`]: one thing that can be asked of a data directory, with its own request, items and reply.
//!
//! The terminal, the control socket, the HTTP API and the web pages translate to operations and back; none of
//! them decides anything. A new operation is a type in this folder and a line in [`operations!`]: the tables of
//! commands, routes and help lines match on [`OperationKind`] without a wildcard, so that a forgotten operation
//! does not compile.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use telusur_ledger::StoreError;

use super::handle::Control;
use super::{
    CancelCrawl, CatchUpIndex, ChangeCrawl, ExcludeUrls, ExplainUrl, ExportContent, ExportPages,
    FetchPage, ImportDocuments, ListChanges, ListCrawls, ListErrors, ListHosts, ListPages,
    ListQueue, ListSkipped, PauseCrawl, Rank, ReadCoverage, ReadCrawl, ReadCrawls, ReadPage,
    RebuildIndex, RecrawlCrawl, RemoveCrawl, ReparseCrawl, ReportPoliteness, RequeueDamaged,
    ResumeCrawl, RetryCrawl, Scrub, Search, StartCrawl, StopCrawl, Suggest, Verify, WatchCrawl,
};
use crate::error::RequestError;
use crate::index_lease::line_of;
use crate::request::BadRequestKind;

/// Takes the items of an operation as they come; false ends it early.
pub type Each<'a, T> = &'a mut dyn FnMut(T) -> bool;

/// One thing that can be asked of a data directory. The value is the request.
pub trait Operation: Serialize + DeserializeOwned {
    /// Which one it is.
    const KIND: OperationKind;
    /// What it needs of the search index.
    const INDEX: IndexUse = IndexUse::None;
    /// Whether it may change what is stored.
    const MAY_WRITE: bool = false;
    /// Long operations have places of their own: an order must not wait for an export.
    const LENGTH: Length = Length::Short;

    /// What comes before the reply, one after the other.
    type Item: Serialize + DeserializeOwned;
    /// What ends it.
    type Reply: Serialize + DeserializeOwned;

    /// Carries it out. Blocks: never call it on an async thread.
    fn run(
        &self,
        control: &Control,
        each: Each<'_, Self::Item>,
    ) -> Result<Self::Reply, RequestError>;
}

/// The items of an operation that has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoItem {}

/// What an operation needs of the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexUse {
    /// Nothing.
    None,
    /// It is changed along with the store, however far behind it is.
    AsItIs,
    /// It is read if there is a sound one.
    IfThere,
    /// It is searched: everything that is stored can be found.
    UpToDate,
    /// It is built from nothing.
    Anew,
}

/// How long an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// An order, or a look at a few rows.
    Short,
    /// It reads much of what is stored.
    Long,
    /// It lasts as long as a client watches.
    Watch,
}

macro_rules! operations {
    ($($operation:ident),+ $(,)?) => {
        /// The operations, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum OperationKind {
            $(#[doc = concat!("[`", stringify!($operation), "`](super::", stringify!($operation), ").")]
              $operation,)+
        }

        impl OperationKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$operation),+];

            /// Whether it may change what is stored.
            pub fn may_write(self) -> bool {
                match self { $(Self::$operation => <$operation as Operation>::MAY_WRITE,)+ }
            }

            /// How long it takes.
            pub fn length(self) -> Length {
                match self { $(Self::$operation => <$operation as Operation>::LENGTH,)+ }
            }

            /// Reads the request of this operation, carries it out, and hands over the lines of its reply.
            pub(super) fn serve(
                self,
                control: &Control,
                request: serde_json::Value,
                lines: Each<'_, Vec<u8>>,
            ) {
                match self { $(Self::$operation => serve::<$operation>(control, request, lines),)+ }
            }
        }

        $(const _: () = assert!(
            <$operation as Operation>::KIND as usize == OperationKind::$operation as usize
        );)+
    };
}

impl OperationKind {
    /// The word for it in requests, such as `list_crawls`.
    pub fn word(self) -> String {
        let word = serde_json::to_value(self).expect("a word is JSON");
        word.as_str().expect("it has no fields").to_owned()
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

operations! {
    StartCrawl,
    RecrawlCrawl,
    ImportDocuments,
    WatchCrawl,
    ListCrawls,
    ReadCrawls,
    ReadCrawl,
    ListPages,
    ListErrors,
    ListSkipped,
    ListChanges,
    ListHosts,
    ListQueue,
    ReadCoverage,
    ExportPages,
    ExportContent,
    FetchPage,
    ReadPage,
    ExplainUrl,
    ReportPoliteness,
    Search,
    Suggest,
    Rank,
    PauseCrawl,
    ResumeCrawl,
    StopCrawl,
    ExcludeUrls,
    ChangeCrawl,
    RetryCrawl,
    CancelCrawl,
    RemoveCrawl,
    ReparseCrawl,
    CatchUpIndex,
    RebuildIndex,
    Verify,
    RequeueDamaged,
    Scrub,
}

/// What a client of the control socket writes: one line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestLine<R> {
    /// Carry out an operation.
    Run {
        /// Which.
        operation: OperationKind,
        /// Its request.
        request: R,
    },
    /// Lease the index over this connection.
    LeaseIndex {
        /// The format of index that the holder writes.
        format: u32,
    },
}

/// The index is leased. What follows are the lines of the lease.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Leased {}

/// One line of what an operation says: items, then a reply or an error.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyLine<I, R> {
    /// What comes before the reply.
    Item(I),
    /// The last line.
    Reply(R),
    /// The last line.
    Error(ErrorReply),
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReply {
    /// What kind of failure it is.
    pub code: ErrorCode,
    /// For people.
    pub text: String,
    /// The field of the request that is wrong (RFC 6901), if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The way out, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// There is no such crawl.
    NoSuchCrawl,
    /// The crawl is not in a state for it.
    WrongState,
    /// An argument is not usable.
    BadArgument,
    /// A field of a request for a crawl is not usable.
    BadRequest(BadRequestKind),
    /// The owner is ending.
    Stopped,
    /// Space on the disk mends it.
    DiskFull,
    /// The index is damaged. It is rebuilt when it is next opened: asking again may help.
    DamagedIndex,
    /// The state database is damaged.
    DamagedState,
    /// A stored body is damaged.
    DamagedData,
    /// Something else is wrong with the storage.
    Storage,
}

impl ErrorReply {
    /// What is said of an error.
    pub fn of(error: &RequestError) -> Self {
        let code = match error {
            RequestError::NoSuchCrawl(_) => ErrorCode::NoSuchCrawl,
            RequestError::WrongState(_) | RequestError::CannotResume { .. } => {
                ErrorCode::WrongState
            }
            RequestError::BadRequest(bad) => ErrorCode::BadRequest(bad.kind),
            RequestError::BadArgument(_) => ErrorCode::BadArgument,
            RequestError::Stopped => ErrorCode::Stopped,
            RequestError::Index(error) if error.needs_rebuild() => ErrorCode::DamagedIndex,
            RequestError::Index(error) if error.is_disk_full() => ErrorCode::DiskFull,
            RequestError::Store(
                StoreError::StateDamaged(_) | StoreError::Unreadable { damage: Some(_), .. },
            ) => ErrorCode::DamagedState,
            RequestError::Store(StoreError::Damaged(_)) => ErrorCode::DamagedData,
            RequestError::Store(StoreError::DiskFull(_)) => ErrorCode::DiskFull,
            RequestError::Store(_) | RequestError::Index(_) => ErrorCode::Storage,
        };
        let (pointer, hint) = match error {
            RequestError::BadRequest(bad) => (Some(bad.pointer.clone()), bad.hint.clone()),
            RequestError::CannotResume { hint, .. } => (None, Some(hint.clone())),
            RequestError::NoSuchCrawl(_)
            | RequestError::WrongState(_)
            | RequestError::BadArgument(_)
            | RequestError::Stopped
            | RequestError::Store(_)
            | RequestError::Index(_) => (None, None),
        };
        Self { code, text: error.to_string(), pointer, hint }
    }
}

fn serve<O: Operation>(control: &Control, request: serde_json::Value, lines: Each<'_, Vec<u8>>) {
    let mut say = |line: &ReplyLine<O::Item, O::Reply>| match line_of(line) {
        Ok(line) => lines(line),
        Err(error) => {
            // The reader sees that the reply is not complete.
            tracing::error!(%error, operation = ?O::KIND, "a reply cannot be written as JSON");
            false
        }
    };
    let replied = serde_json::from_value::<O>(request)
        .map_err(|error| RequestError::BadArgument(error.to_string()))
        .and_then(|operation| operation.run(control, &mut |item| say(&ReplyLine::Item(item))));
    say(&match replied {
        Ok(reply) => ReplyLine::Reply(reply),
        Err(error) => ReplyLine::Error(ErrorReply::of(&error)),
    });
}
