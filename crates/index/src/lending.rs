//! Lets another process write the index for a while. Searches go on here meanwhile.
//!
//! One process has the right to write, and it goes from hand to hand in order: whoever gives it up has
//! made durable what it took in, and has waited for its merges. A merge that ended later would put the
//! list of segments of its own time in the place of what others have written since.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::merge_policy::NoMergePolicy;

use crate::IndexError;
use crate::checkpoint::Checkpoint;
use crate::index::{RANKS_FILE, SearchIndex, Writer, open_engine};
use crate::links::Digest;

/// Where the writer is, unless another process writes. The lock protects the order of changes: a
/// batch, its links and its checkpoint go in together.
pub(crate) struct WriterPlace(Mutex<Option<Writer>>);

impl WriterPlace {
    pub(crate) fn new(writer: Writer) -> Self {
        Self(Mutex::new(Some(writer)))
    }

    /// The writer, if it is here.
    pub(crate) fn ours(&self) -> Result<OurWriter<'_>, IndexError> {
        let place = self.place();
        if place.is_some() { Ok(OurWriter(place)) } else { Err(IndexError::Lent) }
    }

    pub(crate) fn into_inner(self) -> Option<Writer> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, Option<Writer>> {
        // A panic inside the engine stops the process that owns the index; the lock itself guards
        // nothing that could be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer while it is being used.
pub(crate) struct OurWriter<'a>(MutexGuard<'a, Option<Writer>>);

impl Deref for OurWriter<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        self.0.as_ref().expect("looked for before this was made")
    }
}

impl DerefMut for OurWriter<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        self.0.as_mut().expect("looked for before this was made")
    }
}

impl SearchIndex {
    /// Makes durable what was taken in, waits for merges, and lets another process write. Searches go
    /// on with what there is; see [`Self::refresh`].
    pub fn release(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        let Some(mut writer) = place.take() else { return Ok(()) };
        // Merges under way are waited for; others need not begin.
        writer.engine.set_merge_policy(Box::new(NoMergePolicy));
        writer.commit()?;
        self.reload(&mut writer)?;
        Ok(writer.engine.wait_merging_threads()?)
    }

    /// Shows searches what another process has committed.
    pub fn refresh(&self) -> Result<(), IndexError> {
        let place = self.writer.place();
        if place.is_some() {
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

    /// Takes the right to write again, from the last commit on, whoever made it.
    /// [`IndexError::Locked`] if another process still has it.
    pub fn take_back(&self) -> Result<(), IndexError> {
        let mut place = self.writer.place();
        if place.is_some() {
            return Ok(());
        }
        *place = Some(self.writer_anew()?);
        drop(place);
        self.refresh_links();
        Ok(())
    }

    /// A writer that goes on from the last commit. Anew from the files: an engine remembers which files were
    /// there when it last wrote.
    pub(crate) fn writer_anew(&self) -> Result<Writer, IndexError> {
        let (engine, _) = open_engine(&self.dir)?;
        let mut writer = Writer::open(&engine, &self.dir, self.limits)?;
        self.reload(&mut writer)?;
        Ok(writer)
    }
}
