//! Lets another process write the index for a while. Searches go on here meanwhile.
//!
//! One process has the right to write, and it is handed over in order: the process that gives it up has
//! committed its documents, and has waited for its merges. A merge that ended later would put the
//! list of segments of its own time in the place of what others have written since.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::merge_policy::NoMergePolicy;

use crate::IndexError;
use crate::checkpoint::Checkpoint;
use crate::index::{RANKS_FILE, SearchIndex, Writer, check_format, open_engine};
use crate::links::Digest;

/// Where the writer is. The lock protects the order of changes: a batch, its links and its checkpoint go
/// in together.
pub(crate) struct WriterPlace(Mutex<Place>);

/// Who may write.
pub(crate) enum Place {
    /// We, with this.
    Here(Box<Writer>),
    /// Another process.
    Leased,
    /// We, but a write failed and the writer went with it.
    Broken,
}

impl Place {
    /// Takes the writer out. Unless it is put back, or leased, it counts as broken.
    pub(crate) fn take(&mut self) -> Result<Writer, IndexError> {
        match std::mem::replace(self, Self::Broken) {
            Self::Here(writer) => Ok(*writer),
            Self::Broken => Err(IndexError::Unwritable),
            Self::Leased => {
                *self = Self::Leased;
                Err(IndexError::Leased)
            }
        }
    }

    pub(crate) fn put(&mut self, writer: Writer) {
        *self = Self::Here(Box::new(writer));
    }
}

impl WriterPlace {
    pub(crate) fn new(writer: Writer) -> Self {
        Self(Mutex::new(Place::Here(Box::new(writer))))
    }

    /// The writer, if it is here.
    pub(crate) fn ours(&self) -> Result<OurWriter<'_>, IndexError> {
        let place = self.place();
        match *place {
            Place::Here(_) => Ok(OurWriter(place)),
            Place::Leased => Err(IndexError::Leased),
            Place::Broken => Err(IndexError::Unwritable),
        }
    }

    pub(crate) fn into_inner(self) -> Option<Writer> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).take().ok()
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, Place> {
        // A panic while it is held leaves a writer that fails at its next use, and is reopened
        // then; the lock itself guards nothing that could be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer while it is being used.
pub(crate) struct OurWriter<'a>(MutexGuard<'a, Place>);

impl Deref for OurWriter<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        match &*self.0 {
            Place::Here(writer) => writer,
            Place::Leased | Place::Broken => unreachable!("looked for before this was made"),
        }
    }
}

impl DerefMut for OurWriter<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        match &mut *self.0 {
            Place::Here(writer) => writer,
            Place::Leased | Place::Broken => unreachable!("looked for before this was made"),
        }
    }
}

impl SearchIndex {
    /// Makes durable what was taken in, waits for merges, and lets another process write. Searches go
    /// on with what there is; see [`Self::refresh`].
    pub fn release(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        let mut writer = match place.take() {
            Err(IndexError::Leased) => return Ok(()),
            taken => taken?,
        };
        // Merges under way are waited for; others need not begin.
        writer.engine.set_merge_policy(Box::new(NoMergePolicy));
        writer.commit()?;
        self.reload(&mut writer)?;
        writer.engine.wait_merging_threads()?;
        *place = Place::Leased;
        Ok(())
    }

    /// Shows searches what another process has committed.
    pub fn refresh(&self) -> Result<(), IndexError> {
        let place = self.writer.place();
        if !matches!(*place, Place::Leased) {
            return Ok(());
        }
        // In this order: never more is promised than can be found.
        let Checkpoint { upto, .. } = Checkpoint::of(self.reader.searcher().index())?;
        self.show(upto)
    }

    /// Shows searches what another process has worked out of the links.
    pub fn refresh_links(&self) {
        let digest = Digest::read(&self.dir, &self.dir.join(RANKS_FILE));
        *self.links.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(digest);
    }

    /// Takes the right to write again, from the last commit of any process on.
    /// [`IndexError::Locked`] if another process still has it.
    pub fn take_back(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        if matches!(*place, Place::Here(_)) {
            return Ok(());
        }
        place.put(self.writer_anew()?);
        drop(place);
        self.refresh_links();
        Ok(())
    }

    /// Opens the writer again after a write failed, and goes on from the last commit: an engine that has
    /// failed once refuses everything from then on. What was taken in since is to be taken in again.
    pub fn reopen(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        drop_writer(&mut place);
        place.put(self.writer_anew()?);
        Ok(())
    }

    /// Fails unless this process may write now.
    pub fn expect_writer(&self) -> Result<(), IndexError> {
        self.writer.ours().map(drop)
    }

    /// Throws away what turned out to be damaged and goes on with an empty index, in place: searches
    /// under way end with what they have.
    pub fn begin_anew(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        if matches!(*place, Place::Leased) {
            return Err(IndexError::Leased);
        }
        drop_writer(&mut place);
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let is_dir = entry.file_type()?.is_dir();
            if is_dir { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }?;
        }
        check_format(&self.dir)?;
        place.put(self.writer_anew()?);
        drop(place);
        self.refresh_links();
        Ok(())
    }

    /// A writer that goes on from the last commit. Opened from the files: an engine remembers which files were
    /// there when it last wrote.
    pub(crate) fn writer_anew(&self) -> Result<Writer, IndexError> {
        let (engine, _) = open_engine(&self.dir, &self.hook)?;
        let mut writer = Writer::open(&engine, &self.dir, self.limits, &self.hook)?;
        self.reload(&mut writer)?;
        Ok(writer)
    }
}

/// Lets go of a writer that has failed. Merges that it has begun end first: one that ended later would
/// put the list of segments of its own time in the place of what its successor has written.
fn drop_writer(place: &mut Place) {
    if let Ok(writer) = place.take() {
        writer.engine.set_merge_policy(Box::new(NoMergePolicy));
        // Its failure is known already.
        let _ = writer.engine.wait_merging_threads();
    }
}
