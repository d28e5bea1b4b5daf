//! The choice of back end, and the way to it: through the directory itself, or through the process
//! that owns it. The only place in the program that knows which store there is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use telusur_engine::control::{
    self, Control, Each, ErrorCode, ErrorReply, IndexUse, Operation, OperationKind, ReparseCrawl,
};
use telusur_engine::request::BadRequest;
use telusur_engine::{
    EngineError, FollowError, Indexer, RequestError, delete_removed_for_a_moment,
};
use telusur_fetch::ServiceClient;
use telusur_index::{IndexError, IndexLimits, SearchIndex};
use telusur_ledger::{
    PageStore, Recovered, StateDamage, Store, StoreChange, StoreError, UnreadableBytes,
};
use telusur_model::{CrawlNo, PageRecord};
use telusur_parse_pool::Parser;
use telusur_store_embedded::{EmbeddedStore, Found, Recovery};

use crate::crawl_request::bad_request_message;
use crate::message::{Code, Message, shown};
use crate::parsing::parser_when_needed;
use crate::remote;
use crate::settings::{Key, Settings};
use crate::units::{show_size, write_size};

/// What the commands use of the chosen back end. They name it here, so that another one can be chosen here.
pub use telusur_store_embedded::{DataDir, RecoverInto, RecoveryProgress, free_bytes};

/// An indexer whose owner is gone commits, ends the merges that it has begun, and lets go.
const GIVEN_BACK_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a directory is waited for that somebody has for a moment: opening a large one takes a
/// second or two.
const MOMENT_MAX: Duration = Duration::from_secs(5);
/// Pages of a recovered directory that are read at once.
const PAGES_AT_ONCE: usize = 1_000;
/// How often it is tried again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The store of a data directory, open and ours alone.
pub struct OpenStore {
    /// The data directory.
    pub dir: PathBuf,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where the control socket lies.
    pub control_socket: PathBuf,
    /// The search index beside it.
    pub index: Option<Arc<SearchIndex>>,
}

/// The data directory that the settings name.
pub fn data_dir(settings: &Settings) -> Result<&Path, Message> {
    settings.path(Key::DataDir).ok_or_else(|| {
        let what = "there is no data directory: neither HOME nor XDG_DATA_HOME is set";
        Message::new(Code::BadArgument, what).hint("Name one: --data DIR")
    })
}

/// Opens a data directory, making it if it is new.
pub fn open(dir: &Path) -> Result<OpenStore, Message> {
    telusur_fetch::raise_open_files_limit();
    let store = open_store(dir).map_err(|error| store_message(&error))?;
    Ok(OpenStore {
        dir: dir.to_owned(),
        store: Arc::new(store),
        control_socket: DataDir::control_socket(dir),
        index: index_if_possible(dir),
    })
}

/// A data directory, or the process that owns it.
pub enum Opened {
    /// It is ours.
    Here(OpenStore),
    /// Another process owns it, and takes orders.
    Elsewhere(Owner),
}

/// Where a command finds crawls.
#[derive(Clone, Debug)]
pub enum Target {
    /// In a data directory.
    Directory {
        /// Which.
        dir: PathBuf,
        /// Jailed processes that may parse its pages; with 0 this one does.
        parsers: usize,
    },
    /// In a service, over the network.
    Service(ServiceClient),
}

impl Target {
    /// Whether something is there. A service always is.
    pub fn is_there(&self) -> Result<bool, Message> {
        match self {
            Self::Directory { dir, .. } => is_there(dir),
            Self::Service(_) => Ok(true),
        }
    }

    /// Refuses a directory that was never made: reading it does not make it.
    pub fn expect_data(&self) -> Result<(), Message> {
        match self {
            Self::Directory { dir, .. } if !is_there(dir)? => Err(nothing_yet(dir)),
            Self::Directory { .. } | Self::Service(_) => Ok(()),
        }
    }

    /// Whether another process runs crawls there.
    pub fn is_served(&self) -> bool {
        match self {
            Self::Directory { dir, .. } => is_served(dir),
            Self::Service(_) => true,
        }
    }
}

/// Opens the directory, making it if it is new, or finds the process that owns it and takes orders.
pub fn open_or_owner(target: &Target) -> Result<Opened, Message> {
    let dir = match target {
        Target::Directory { dir, .. } => dir,
        Target::Service(client) => return Ok(Opened::Elsewhere(Owner::Service(client.clone()))),
    };
    telusur_fetch::raise_open_files_limit();
    match open_store(dir) {
        Ok(store) => Ok(Opened::Here(OpenStore {
            dir: dir.to_owned(),
            store: Arc::new(store),
            control_socket: DataDir::control_socket(dir),
            index: index_if_possible(dir),
        })),
        Err(StoreError::Locked { pid }) => {
            Ok(Opened::Elsewhere(Owner::Process { dir: dir.to_owned(), pid }))
        }
        Err(error) => Err(store_message(&error)),
    }
}

/// The process that owns a data directory.
#[derive(Clone, Debug)]
pub enum Owner {
    /// One of this machine, behind its control socket.
    Process {
        /// The directory.
        dir: PathBuf,
        /// Its process id, as the lock says.
        pid: String,
    },
    /// A service, over the network.
    Service(ServiceClient),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, .. } => write!(f, "pid {pid}"),
            Self::Service(client) => write!(f, "{}", client.url()),
        }
    }
}

/// Why an owner gave no reply.
#[derive(Debug)]
pub enum NoReply {
    /// The connection ended first: the owner is gone, or is about to be.
    Lost(Message),
    /// It refused.
    Refused(Message),
}

impl From<NoReply> for Message {
    fn from(no_reply: NoReply) -> Self {
        match no_reply {
            NoReply::Lost(message) | NoReply::Refused(message) => message,
        }
    }
}

impl Owner {
    /// Has the owner run an operation, and calls `each` with every item until it returns false.
    pub fn ask<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, NoReply> {
        match self {
            Self::Process { dir, pid } => {
                let socket = DataDir::control_socket(dir);
                let answered = control::ask(&socket, operation, each).map_err(|error| {
                    let dir = dir_shown(dir);
                    let what =
                        format!("{dir} is in use by pid {pid}, which does not answer: {error}");
                    let message = Message::new(Code::Locked, what);
                    NoReply::Lost(message.hint("Try again, or end that process"))
                })?;
                answered.map_err(|error| NoReply::Refused(error_message(error)))
            }
            Self::Service(client) => remote::ask(client, operation, each),
        }
    }

    /// The same for an operation whose items are of no interest.
    pub fn reply<O: Operation>(&self, operation: &O) -> Result<O::Reply, NoReply> {
        let reply = self.ask(operation, &mut |_| true)?;
        Ok(reply.expect("an operation that is not broken off replies"))
    }
}

/// Opens the store of a directory. Whoever has it and answers at no socket, such as a command that
/// looks at something, has it for a moment, which is waited for.
fn open_store(dir: &Path) -> Result<EmbeddedStore, StoreError> {
    let is_had = |error: &StoreError| matches!(error, StoreError::Locked { .. }) && !is_served(dir);
    let open = || match telusur_store_embedded::open(dir) {
        Err(StoreError::StateDamaged(damage)) if damage.is_torn_copy => {
            rebuild_copy(dir, &damage)?;
            telusur_store_embedded::open(dir)
        }
        opened => opened,
    };
    let store = when_free(MOMENT_MAX, is_had, open)?;
    delete_removed_for_a_moment(&store);
    Ok(store)
}

/// Rebuilds the state of a copy that was made while the directory was in use: its files are of different
/// moments. What was stored up to then is in its bodies, each whole record of it.
fn rebuild_copy(dir: &Path, damage: &StateDamage) -> Result<(), StoreError> {
    let of = dir_shown(dir);
    tracing::warn!(dir = of, why = %damage, "the state is rebuilt from the bodies");
    let recovery = Recovery::begin(dir, RecoverInto::Place, &mut |_| {})?;
    let failed = |message: Message| StoreError::Engine(message.what);
    let parser = parser_when_needed(1).map_err(failed)?;
    for crawl in recovery.recovered().unread.keys() {
        parse_again(recovery.store(), *crawl, &parser).map_err(failed)?;
    }
    let (recovered, copied) = recovery.finish()?;
    for page in &recovered.lost {
        let (url, file) = (shown(&page.url), segment_file(page.crawl, page.place.segment));
        let (byte, is_asked_again) = (page.place.offset, page.is_asked_again);
        tracing::warn!(url, file, byte, is_asked_again, "the body of a page was torn");
    }
    for UnreadableBytes { crawl, bytes } in &recovered.unreadable {
        let file = segment_file(*crawl, bytes.segment);
        let (first, end) = (bytes.first, bytes.end);
        tracing::warn!(file, first, end, "bytes were torn; what was in them is queued");
    }
    let Recovered { crawls, pages, steps, .. } = recovered;
    let copied = copied.map(|dir| dir_shown(&dir)).unwrap_or_default();
    tracing::warn!(dir = of, crawls, pages, steps, copied, "the state was rebuilt");
    Ok(())
}

/// Opens something, again and again while somebody else has it, for so long at most.
fn when_free<T, E>(
    wait_max: Duration,
    is_had: impl Fn(&E) -> bool,
    open: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    let since = Instant::now();
    loop {
        match open() {
            Err(error) if since.elapsed() < wait_max && is_had(&error) => {}
            opened => return opened,
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether some process owns a directory and answers questions about it. One that has it for a moment
/// does not.
pub fn is_served(dir: &Path) -> bool {
    control::is_served(&DataDir::control_socket(dir))
}

/// Opens the search index of a data directory that is ours. The index is derived: one that is gone,
/// damaged or of another version is begun anew, and filled from the store by whoever uses it.
pub fn open_index(dir: &Path) -> Result<Arc<SearchIndex>, Message> {
    let path = DataDir::index(dir);
    let opened = match open_lent_index(&path) {
        Err(error) if error.needs_rebuild() => {
            tracing::warn!(%error, "the search index is built anew");
            SearchIndex::create_anew(&path, IndexLimits::default())
        }
        opened => opened,
    };
    opened.map(Arc::new).map_err(|error| index_message(&error))
}

/// The same for those who do not need it: without an index, what they store is indexed later.
fn index_if_possible(dir: &Path) -> Option<Arc<SearchIndex>> {
    match open_index(dir) {
        Ok(index) => Some(index),
        Err(error) => {
            tracing::error!(%error, "the search index is made good later");
            None
        }
    }
}

/// Opens an index that an indexer may still have in hand. The directory is ours, so that it was leased by
/// an owner that is gone, and is given back as soon as the indexer has seen that.
fn open_lent_index(path: &Path) -> Result<SearchIndex, IndexError> {
    let is_had = |error: &IndexError| matches!(error, IndexError::Locked);
    when_free(GIVEN_BACK_WAIT_MAX, is_had, || SearchIndex::open(path, IndexLimits::default()))
}

/// What helps when there is no space.
const SPACE_HINT: &str = "Nothing is lost. Free space, or delete a crawl: telusur rm ID";

/// Refuses to write when less space is left than the settings want to keep.
pub fn expect_space(store: &dyn Store, free_bytes_min: u64) -> Result<(), Message> {
    let free = store.free_bytes().map_err(|error| store_message(&error))?;
    match free.filter(|free| *free < free_bytes_min) {
        None => Ok(()),
        Some(free) => Err(no_space(free, free_bytes_min)
            .hint(format!("{SPACE_HINT}; or leave less: --min-free-disk SIZE"))),
    }
}

/// Says how much space is left, and how much there should be.
pub fn no_space(free: u64, free_bytes_min: u64) -> Message {
    let (free, min) = (show_size(free), write_size(free_bytes_min));
    Message::new(Code::DiskFull, format!("only {free} free (limits.min_free_disk is {min})"))
}

/// What went wrong with the search index, for people.
pub fn index_message(error: &dyn std::fmt::Display) -> Message {
    let what = error.to_string();
    // Both the store and the index call it so, whatever they wanted to write.
    if what.contains("the disk is full") {
        return Message::new(Code::DiskFull, what).hint(SPACE_HINT);
    }
    Message::new(Code::Storage, what)
        .hint("The index is made from the stored pages; build it anew with: telusur index rebuild")
}

/// Runs an operation in the process that owns the directory, or here if none does. `each` is called with every
/// item until it returns false; nobody waits for the reply after that.
pub fn ask<O: Operation>(
    target: &Target,
    operation: &O,
    each: Each<'_, O::Item>,
) -> Result<Option<O::Reply>, Message> {
    let (dir, parsers) = match target {
        Target::Directory { dir, parsers } => (dir, *parsers),
        Target::Service(client) => return Ok(remote::ask(client, operation, each)?),
    };
    expect_data(dir, O::KIND)?;
    let way = DirectoryControl::open(dir, parsers, O::INDEX)?;
    let answered = way.ask(operation, each);
    let is_own = way.control.is_ok();
    way.close()?;
    match answered {
        // The index is rebuilt by opening it. Nothing was answered yet.
        Err(message) if message.code == Code::DamagedIndex && is_own => {
            let way = DirectoryControl::open(dir, parsers, O::INDEX)?;
            let answered = way.ask(operation, each);
            way.close()?;
            answered
        }
        answered => answered,
    }
}

/// Runs an operation in the process that owns the directory, or in the service; `None` if no process owns it.
pub fn ask_owner<O: Operation>(
    target: &Target,
    operation: &O,
) -> Result<Option<O::Reply>, Message> {
    let dir = match target {
        Target::Directory { dir, .. } => dir,
        Target::Service(client) => return Ok(remote::ask(client, operation, &mut |_| true)?),
    };
    if !is_served(dir) {
        return Ok(None);
    }
    let answered = control::ask(&DataDir::control_socket(dir), operation, &mut |_| true);
    let answered = answered.map_err(|error| {
        let what = format!("the process that has {} does not answer: {error}", dir_shown(dir));
        Message::new(Code::Locked, what).hint("Try again, or end that process")
    })?;
    answered.map_err(error_message)
}

/// Calls `run` with a way to ask one question after the other of a directory that is opened once.
pub fn ask_often<T, E: From<Message>>(
    target: &Target,
    index: IndexUse,
    run: impl FnOnce(&DirectoryControl) -> Result<T, E>,
) -> Result<T, E> {
    target.expect_data()?;
    let way = DirectoryControl::of(target, index)?;
    let result = run(&way);
    way.close()?;
    result
}

/// The same in a directory that is made if it is new, with the index beside it.
pub fn in_directory<T, E: From<Message>>(
    target: &Target,
    run: impl FnOnce(&DirectoryControl) -> Result<T, E>,
) -> Result<T, E> {
    let way = DirectoryControl::of(target, IndexUse::AsItIs)?;
    let result = run(&way);
    way.close()?;
    result
}

/// The way to a directory's control: our own, or that of the process that owns the directory.
pub struct DirectoryControl {
    control: Result<OwnControl, Owner>,
}

struct OwnControl {
    control: Control,
    store: Arc<dyn Store>,
    was_closed: bool,
}

impl DirectoryControl {
    fn of(target: &Target, index: IndexUse) -> Result<Self, Message> {
        match target {
            Target::Directory { dir, parsers } => Self::open(dir, *parsers, index),
            Target::Service(client) => Ok(Self { control: Err(Owner::Service(client.clone())) }),
        }
    }

    fn open(dir: &Path, parsers: usize, index: IndexUse) -> Result<Self, Message> {
        let control = match open_store(dir) {
            Ok(store) => {
                let parser = parser_when_needed(parsers)?;
                Ok(OwnControl::new(dir, Arc::new(store), index, parser)?)
            }
            Err(StoreError::Locked { pid }) => Err(Owner::Process { dir: dir.to_owned(), pid }),
            Err(error) => return Err(store_message(&error)),
        };
        Ok(Self { control })
    }

    /// Runs an operation, and calls `each` with every item until it returns false.
    pub fn ask<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, Message> {
        match &self.control {
            Ok(own) => {
                let reply = own.control.run(operation, each);
                reply.map(Some).map_err(|error| request_message(&error))
            }
            Err(owner) => Ok(owner.ask(operation, each)?),
        }
    }

    /// Runs an operation whose items are of no interest.
    pub fn reply<O: Operation>(&self, operation: &O) -> Result<O::Reply, Message> {
        let reply = self.ask(operation, &mut |_| true)?;
        Ok(reply.expect("an operation that is not broken off replies"))
    }

    fn close(self) -> Result<(), Message> {
        match self.control {
            // A look at a killed crawl must not make the next start believe that it was closed.
            Ok(own) if own.was_closed => own.store.close().map_err(|error| store_message(&error)),
            _ => Ok(()),
        }
    }
}

impl OwnControl {
    fn new(
        dir: &Path,
        store: Arc<dyn Store>,
        index: IndexUse,
        parser: Arc<dyn Parser>,
    ) -> Result<Self, Message> {
        let was_closed = store.was_closed();
        let index = match index {
            IndexUse::None => None,
            IndexUse::AsItIs => index_if_possible(dir),
            IndexUse::IfThere => index_if_there(dir),
            IndexUse::UpToDate => Some(index_up_to_date(dir, &store, &parser)?),
            IndexUse::Anew => Some(index_anew(dir)?),
        };
        let control = Control::of_store(Arc::clone(&store), parser).with_index(index);
        Ok(Self { control, store, was_closed })
    }
}

/// An empty index in place of the old one, whatever is wrong with that.
fn index_anew(dir: &Path) -> Result<Arc<SearchIndex>, Message> {
    let path = DataDir::index(dir);
    // Nobody else writes it any more when this is over.
    if let Err(error @ IndexError::Locked) = open_lent_index(&path) {
        return Err(index_message(&error));
    }
    let index = SearchIndex::create_anew(&path, IndexLimits::default());
    index.map(Arc::new).map_err(|error| index_message(&error))
}

/// The index as it is, without making or mending one.
fn index_if_there(dir: &Path) -> Option<Arc<SearchIndex>> {
    let path = DataDir::index(dir);
    if !path.is_dir() {
        return None;
    }
    match open_lent_index(&path) {
        Ok(index) => Some(Arc::new(index)),
        Err(error) => {
            tracing::warn!(%error, "the search index is built anew when it is next used");
            None
        }
    }
}

fn index_up_to_date(
    dir: &Path,
    store: &Arc<dyn Store>,
    parser: &Arc<dyn Parser>,
) -> Result<Arc<SearchIndex>, Message> {
    let index = open_index(dir)?;
    match bring_up_to_date(store, &index, parser) {
        Ok(()) => return Ok(index),
        Err(FollowError::Index(error)) if error.needs_rebuild() => {
            tracing::warn!(%error, "the search index is built anew");
            index.distrust();
        }
        // What is in the index can be found.
        Err(error) if is_disk_full(&error) => {
            tracing::warn!(%error, "pages that were stored lately are not found yet");
            return Ok(index);
        }
        Err(error) => return Err(index_message(&error)),
    }
    drop(index);
    let index = open_index(dir)?;
    bring_up_to_date(store, &index, parser).map_err(|error| index_message(&error))?;
    Ok(index)
}

fn is_disk_full(error: &FollowError) -> bool {
    match error {
        FollowError::Index(error) => error.is_disk_full(),
        FollowError::Store(error) => matches!(error, StoreError::DiskFull(_)),
        FollowError::Failed(_) | FollowError::Panicked => false,
    }
}

fn bring_up_to_date(
    store: &Arc<dyn Store>,
    index: &Arc<SearchIndex>,
    parser: &Arc<dyn Parser>,
) -> Result<(), FollowError> {
    let indexer = Indexer::new(Arc::clone(store), Arc::clone(index), Arc::clone(parser));
    indexer.catch_up(&mut |_| {})?;
    indexer.digest_links()
}

/// Rebuilds the state of a directory from its bodies. Pages whose record is lost are read by this parser. `each`
/// is called with every page that is there again until it returns false.
pub fn recover(
    dir: &Path,
    into: RecoverInto<'_>,
    parser: &Arc<dyn Parser>,
    progress: &mut dyn FnMut(RecoveryProgress),
    each: &mut dyn FnMut(&PageRecord) -> bool,
) -> Result<(Recovered, Option<PathBuf>), Message> {
    let failed = |error: StoreError| store_message(&error);
    let recovery = Recovery::begin(dir, into, progress).map_err(failed)?;
    for crawl in recovery.recovered().unread.keys() {
        parse_again(recovery.store(), *crawl, parser)?;
    }
    each_page(&recovery.store(), each).map_err(failed)?;
    recovery.finish().map_err(failed)
}

/// The path of a segment in the data directory.
pub fn segment_file(crawl: CrawlNo, segment: u32) -> String {
    format!("bodies/{crawl}/{segment:08}.warc.zst")
}

/// Parses the stored pages of a crawl.
fn parse_again(
    store: Arc<EmbeddedStore>,
    crawl: CrawlNo,
    parser: &Arc<dyn Parser>,
) -> Result<(), Message> {
    let operation = ReparseCrawl { crawl: crawl.to_string(), free_bytes_min: 0 };
    let parsed = Control::of_store(store, Arc::clone(parser)).run(&operation, &mut |_| true);
    parsed.map(drop).map_err(|error| request_message(&error))
}

fn each_page(
    store: &EmbeddedStore,
    each: &mut dyn FnMut(&PageRecord) -> bool,
) -> Result<(), StoreError> {
    let mut seq = 0;
    loop {
        let changes = store.changes_after(seq, PAGES_AT_ONCE)?;
        let Some(last) = changes.last() else { return Ok(()) };
        seq = last.seq();
        if !changes.iter().filter_map(StoreChange::page).all(&mut *each) {
            return Ok(());
        }
    }
}

/// Whether there is a data directory. One that cannot be read is not taken for one that is not there.
pub fn is_there(dir: &Path) -> Result<bool, Message> {
    let found = DataDir::find(dir).map_err(|error| store_message(&error))?;
    Ok(found == Found::Data)
}

/// Refuses to ask about a directory that was never made: reading it does not make it, and that there is
/// nothing is no answer to whoever named the wrong one.
fn expect_data(dir: &Path, operation: OperationKind) -> Result<(), Message> {
    if is_there(dir)? {
        return Ok(());
    }
    let nothing = nothing_yet(dir);
    let is_check = matches!(operation, OperationKind::Verify | OperationKind::Scrub);
    Err(if is_check { Message { code: Code::NotVerified, ..nothing } } else { nothing })
}

/// What to say of a directory in which there is nothing.
pub fn nothing_yet(dir: &Path) -> Message {
    let what = format!("there is nothing in {} yet", dir_shown(dir));
    Message::new(Code::NoSuchCrawl, what)
        .hint("Crawl something first: telusur crawl URL, or name another directory: --data")
}

fn dir_shown(dir: &Path) -> String {
    shown(&dir.to_string_lossy())
}

/// What went wrong with the store, for people.
pub fn store_message(error: &StoreError) -> Message {
    let what = error.to_string();
    match error {
        StoreError::Locked { .. } => Message::new(Code::Locked, what)
            .hint("Wait for it or stop it (telusur stop last), or use another directory: --data"),
        StoreError::DiskFull(_) => Message::new(Code::DiskFull, what)
            .hint(format!("{SPACE_HINT}; then go on: telusur resume last")),
        StoreError::Unusable(_) => Message::new(Code::UnusableData, what),
        StoreError::StateDamaged(damage) => {
            let help = damage.help();
            Message::new(Code::DamagedState, damage.to_string())
                .hint(format!("Nothing was changed. {}{}", help[..1].to_uppercase(), &help[1..]))
        }
        StoreError::Unreadable { damage: Some(_), .. } => Message::new(Code::DamagedState, what),
        StoreError::Damaged(_) | StoreError::Unreadable { damage: None, .. } => {
            Message::new(Code::DamagedData, what).hint("See what is damaged: telusur verify")
        }
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::FileTooLarge => {
            Message::new(Code::Storage, what).hint(
                "Nothing is lost. Raise the limit on file sizes (ulimit -f), then: telusur resume last",
            )
        }
        StoreError::Io { .. } | StoreError::Engine(_) => Message::new(Code::Storage, what),
    }
}

/// Why the engine stopped, for people.
pub fn engine_message(error: &EngineError) -> Message {
    match error {
        EngineError::Store(store) => store_message(store),
        EngineError::StageDied(_) | EngineError::PartDied(_) | EngineError::Parser(_) => {
            Message::new(Code::Storage, error.to_string())
        }
    }
}

/// Why an operation was refused, for people.
pub fn request_message(error: &RequestError) -> Message {
    match error {
        RequestError::Store(store) => store_message(store),
        RequestError::Index(index) if !index.needs_rebuild() => index_message(index),
        RequestError::BadRequest(bad) => bad_request_message(bad),
        RequestError::Index(_)
        | RequestError::NoSuchCrawl(_)
        | RequestError::WrongState(_)
        | RequestError::CannotResume { .. }
        | RequestError::BadArgument(_)
        | RequestError::Stopped => error_message(ErrorReply::of(error)),
    }
}

impl From<RequestError> for Message {
    fn from(error: RequestError) -> Self {
        request_message(&error)
    }
}

pub(crate) fn error_message(error: ErrorReply) -> Message {
    let ErrorReply { code, text, pointer, hint } = error;
    let message = match code {
        ErrorCode::NoSuchCrawl => {
            Message::new(Code::NoSuchCrawl, text).hint("List them: telusur ls")
        }
        ErrorCode::WrongState => Message::new(Code::WrongState, text),
        ErrorCode::BadArgument => Message::new(Code::BadArgument, text),
        ErrorCode::BadRequest(kind) => {
            let pointer = pointer.unwrap_or_default();
            bad_request_message(&BadRequest { kind, pointer, what: text, hint: None })
        }
        ErrorCode::DiskFull => Message::new(Code::DiskFull, text).hint(SPACE_HINT),
        ErrorCode::DamagedIndex => Message::new(Code::DamagedIndex, text)
            .hint("It is rebuilt from the stored pages when it is next opened: try again"),
        // The text names the command that helps.
        ErrorCode::DamagedState => Message::new(Code::DamagedState, text),
        ErrorCode::DamagedData => {
            Message::new(Code::DamagedData, text).hint("See what is damaged: telusur verify")
        }
        ErrorCode::Stopped | ErrorCode::Storage => Message::new(Code::Storage, text),
    };
    match hint {
        Some(hint) => message.hint(hint),
        None => message,
    }
}
