//! The choice of back end, and the way to it: through the directory itself, or through the process
//! that owns it. The only place in the program that knows which store there is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use telusur_engine::desk::{self, Answer, Ask, Desk};
use telusur_engine::{EngineError, Indexer, RequestError};
use telusur_index::{IndexLimits, SearchIndex};
use telusur_store::{Store, StoreError};
use telusur_store_embedded::{DataDir, EmbeddedStore};

use crate::message::{Code, Message, shown};
use crate::settings::{Key, Settings};

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
pub fn data_dir(settings: &Settings) -> &Path {
    settings.path(Key::DataDir).expect("the data directory always has a value")
}

/// Opens a data directory, making it if it is new.
pub fn open(dir: &Path) -> Result<OpenStore, Message> {
    let store = EmbeddedStore::open(dir).map_err(|error| store_message(&error))?;
    Ok(OpenStore {
        dir: dir.to_owned(),
        store: Arc::new(store),
        control_socket: DataDir::control_socket(dir),
        index: Some(open_index(dir)?),
    })
}

/// Opens the search index of a data directory that is ours. The index is derived: one that is gone,
/// damaged or of another version is begun anew, and filled from the store by whoever uses it.
pub fn open_index(dir: &Path) -> Result<Arc<SearchIndex>, Message> {
    let path = DataDir::index(dir);
    let opened = match SearchIndex::open(&path, IndexLimits::default()) {
        Err(error) if error.needs_rebuild() => {
            tracing::warn!(%error, "the search index is built anew");
            SearchIndex::create_anew(&path, IndexLimits::default())
        }
        opened => opened,
    };
    opened.map(Arc::new).map_err(|error| index_message(&error))
}

/// What went wrong with the search index, for people.
pub fn index_message(error: &dyn std::fmt::Display) -> Message {
    Message::new(Code::Storage, error.to_string())
        .hint("The index is made from the stored pages; build it anew with: telusur index rebuild")
}

/// Asks whoever owns the directory, or the directory itself if nobody does. `each` is called with
/// every line of the answer until it returns false.
pub fn ask(dir: &Path, ask: &Ask, each: &mut dyn FnMut(Answer) -> bool) -> Result<(), Message> {
    if !DataDir::exists(dir) {
        return nothing_there(dir, ask, each);
    }
    let mut last = None;
    match EmbeddedStore::open(dir) {
        Ok(store) => {
            let store: Arc<dyn Store> = Arc::new(store);
            let was_closed = store.was_closed();
            let index = match ask {
                Ask::Search(_) | Ask::Suggest { .. } => Some(index_up_to_date(dir, &store)?),
                Ask::Remove { .. } | Ask::Cancel { .. } => Some(open_index(dir)?),
                _ => None,
            };
            let desk = Desk::of_store(Arc::clone(&store)).with_index(index);
            desk.answer(ask, &mut |answer| match answer {
                end @ (Answer::End | Answer::Error { .. }) => {
                    last = Some(end);
                    true
                }
                line => each(line),
            });
            // A look at a killed crawl must not make the next start believe that it was closed.
            if was_closed {
                store.close().map_err(|error| store_message(&error))?;
            }
        }
        Err(StoreError::Locked { pid }) => {
            let socket = DataDir::control_socket(dir);
            let answered = desk::ask(&socket, ask, each);
            last = Some(answered.map_err(|error| {
                let what = format!(
                    "{} is in use by pid {pid}, which does not answer: {error}",
                    dir_shown(dir)
                );
                Message::new(Code::Locked, what).hint("Try again, or end that process")
            })?);
        }
        Err(error) => return Err(store_message(&error)),
    }
    match last {
        Some(Answer::Error { code, text }) => Err(answer_message(&code, text)),
        _ => Ok(()),
    }
}

fn index_up_to_date(dir: &Path, store: &Arc<dyn Store>) -> Result<Arc<SearchIndex>, Message> {
    let index = open_index(dir)?;
    let indexer = Indexer::new(Arc::clone(store), Arc::clone(&index));
    indexer.catch_up(&mut |_| {}).map_err(|error| index_message(&error))?;
    Ok(index)
}

/// A directory that was never made holds no crawls; reading it does not make it.
fn nothing_there(
    dir: &Path,
    ask: &Ask,
    each: &mut dyn FnMut(Answer) -> bool,
) -> Result<(), Message> {
    match ask {
        Ask::Crawls => Ok(()),
        Ask::Verify => {
            each(Answer::Verified(Default::default()));
            Ok(())
        }
        _ => {
            let what = format!("there is nothing in {} yet", dir_shown(dir));
            Err(Message::new(Code::NoSuchCrawl, what).hint(
                "Crawl something first: telusur crawl URL, or name another directory: --data",
            ))
        }
    }
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
            .hint("Nothing is lost. Free space, then: telusur resume last"),
        StoreError::Unusable(_) => Message::new(Code::UnusableData, what),
        StoreError::Damaged(_) => {
            Message::new(Code::DamagedData, what).hint("See what is damaged: telusur verify")
        }
        StoreError::Io { .. } | StoreError::Engine(_) => Message::new(Code::Storage, what),
    }
}

/// Why the engine stopped, for people.
pub fn engine_message(error: &EngineError) -> Message {
    match error {
        EngineError::Store(store) => store_message(store),
        EngineError::StageDied(_) | EngineError::Parser(_) => {
            Message::new(Code::Storage, error.to_string())
        }
    }
}

/// Why the engine refused, for people.
pub fn request_message(error: &RequestError) -> Message {
    match error {
        RequestError::Store(store) => store_message(store),
        RequestError::NoSuchCrawl(_) => answer_message("no_such_crawl", error.to_string()),
        RequestError::WrongState(_) => answer_message("wrong_state", error.to_string()),
        RequestError::BadArgument(_) => answer_message("bad_argument", error.to_string()),
        RequestError::Stopped => answer_message("stopped", error.to_string()),
    }
}

fn answer_message(code: &str, text: String) -> Message {
    match code {
        "no_such_crawl" => Message::new(Code::NoSuchCrawl, text).hint("List them: telusur ls"),
        "wrong_state" => Message::new(Code::WrongState, text),
        "bad_argument" => Message::new(Code::BadArgument, text),
        _ => Message::new(Code::Storage, text),
    }
}
