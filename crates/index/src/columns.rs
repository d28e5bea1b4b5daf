//! [`Columns`]: the numbers that a segment holds of each page. Opening a column costs more than reading
//! it a hundred times, and a segment never changes, so each is opened once.

use tantivy::SegmentReader;
use tantivy::columnar::Column;

use crate::IndexError;
use crate::fields::name;

/// The columns of one segment that every search reads.
pub(crate) struct Columns {
    pub(crate) words: Column<u64>,
    pub(crate) title_end: Column<u64>,
    pub(crate) text_start: Column<u64>,
    pub(crate) page: Column<u64>,
    pub(crate) published: Column<u64>,
    pub(crate) fetched: Column<u64>,
    pub(crate) sketch: Column<u64>,
    pub(crate) site_number: Column<u64>,
    /// The content words of all pages together.
    pub(crate) words_sum: u64,
}

impl Columns {
    pub(crate) fn open(segment: &SegmentReader) -> Result<Self, IndexError> {
        let columns = segment.fast_fields();
        let words = columns.u64(name::WORDS)?;
        Ok(Self {
            words_sum: (0..segment.max_doc()).filter_map(|doc| words.first(doc)).sum(),
            words,
            title_end: columns.u64(name::TITLE_END)?,
            text_start: columns.u64(name::TEXT_START)?,
            page: columns.u64(name::PAGE)?,
            published: columns.u64(name::PUBLISHED)?,
            fetched: columns.u64(name::FETCHED)?,
            sketch: columns.u64(name::SKETCH)?,
            site_number: columns.u64(name::SITE_NUMBER)?,
        })
    }
}
