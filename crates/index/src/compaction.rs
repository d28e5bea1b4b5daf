//! Puts an index in order that rests: few segments are searched sooner than many. None of it is needed,
//! and all of it can be given up: the engine keeps the old segments until the new one is whole.

use crate::IndexError;
use crate::index::{SearchIndex, Writer};
use crate::merging::{AtRest, pages_at_rest};

/// Free space that is left on the disk beside a second copy of the index.
const SPARE_BYTES: u64 = 2 << 30;

impl SearchIndex {
    /// How many pages [`Self::compact`] would rewrite; none if there is little space on the disk.
    pub fn uncompacted_pages(&self) -> Result<u64, IndexError> {
        if !self.has_room()? {
            return Ok(0);
        }
        let writer = self.writer.ours()?;
        Ok(pages_at_rest(&writer.engine.index().searchable_segment_metas()?))
    }

    /// Puts small segments together, and waits for that. For when nothing more will come in for a while.
    pub fn compact(&self) -> Result<(), IndexError> {
        if self.uncompacted_pages()? == 0 {
            return Ok(());
        }
        let mut place = self.writer.place();
        let mut writer = place.take()?;
        writer.rest()?;
        writer.engine.wait_merging_threads()?;
        place.put(self.writer_anew()?);
        Ok(())
    }

    /// The same for those who cannot wait: begins to merge, which makes durable what was taken in, or shows
    /// searches what has been merged. To be called now and then while nothing comes in; true if there is
    /// something new to see.
    pub fn compact_in_background(&self) -> Result<bool, IndexError> {
        let mut writer = self.writer.ours()?;
        let segments = writer.engine.index().searchable_segment_metas()?;
        if !self.view().is_of(&segments) {
            self.show(self.applied_upto())?;
            return Ok(true);
        }
        if !writer.is_resting && pages_at_rest(&segments) > 0 && self.has_room()? {
            writer.rest()?;
            // The commit was of all that was taken in.
            self.reload(&mut writer)?;
        }
        Ok(!self.view().is_of(&segments))
    }

    fn has_room(&self) -> Result<bool, IndexError> {
        let disk = rustix::fs::statvfs(&self.dir).map_err(std::io::Error::from)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let (index, _) = self.disk_bytes()?;
        Ok(free >= index.saturating_add(SPARE_BYTES))
    }
}

impl Writer {
    /// Lets the engine merge as at rest: it looks for something to merge after each commit and each merge.
    fn rest(&mut self) -> Result<(), IndexError> {
        self.engine.set_merge_policy(Box::new(AtRest));
        self.is_resting = true;
        self.commit()
    }
}
