//! [`View`]: what one search sees. It stays the same while pages are added.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentMeta};
use telusur_model::CrawlNo;

use crate::analysis::Language;
use crate::columns::Columns;
use crate::fields::Fields;
use crate::{DocKey, IndexError};

/// A moment of the index, and what ranking wants to know about it as a whole.
pub(crate) struct View {
    pub(crate) searcher: Searcher,
    /// The languages of its pages, most pages first.
    pub(crate) languages: Vec<Language>,
    /// How many content words a page has on average; never below one.
    pub(crate) words_mean: f32,
    /// The columns of each segment, in the order of the searcher.
    columns: Vec<(SegmentId, Arc<Columns>)>,
}

impl View {
    /// The view of a searcher. `before` saves reading again what has not changed.
    pub(crate) fn of(
        searcher: &Searcher,
        fields: &Fields,
        before: Option<&Self>,
    ) -> Result<Self, IndexError> {
        let mut columns = Vec::with_capacity(searcher.segment_readers().len());
        let mut docs_of_languages: HashMap<Language, u64> = HashMap::new();
        let (mut words, mut docs) = (0, 0);
        for segment in searcher.segment_readers() {
            let id = segment.segment_id();
            let segment_columns = match before.and_then(|before| before.columns_of(id)) {
                Some(known) => Arc::clone(known),
                None => Arc::new(Columns::open(segment)?),
            };
            words += segment_columns.words_sum;
            docs += u64::from(segment.max_doc());
            columns.push((id, segment_columns));
            let dictionary = segment.inverted_index(fields.language)?;
            let mut terms = dictionary.terms().stream()?;
            while terms.advance() {
                let code = std::str::from_utf8(terms.key()).unwrap_or_default();
                if let Some(language) = Language::from_code(code) {
                    let docs = docs_of_languages.entry(language).or_default();
                    *docs += u64::from(terms.value().doc_freq);
                }
            }
        }
        let mut languages: Vec<_> = docs_of_languages.into_iter().collect();
        languages.sort_by_key(|&(language, docs)| (std::cmp::Reverse(docs), language));
        Ok(Self {
            searcher: searcher.clone(),
            languages: languages.into_iter().map(|(language, _)| language).collect(),
            words_mean: (words as f32 / docs.max(1) as f32).max(1.0),
            columns,
        })
    }

    /// The columns of a segment, by its place among the segments.
    pub(crate) fn columns(&self, segment_ord: u32) -> &Columns {
        &self.columns[segment_ord as usize].1
    }

    /// Whether it shows exactly these segments.
    pub(crate) fn is_of(&self, segments: &[SegmentMeta]) -> bool {
        segments.len() == self.columns.len()
            && segments.iter().all(|segment| self.columns_of(segment.id()).is_some())
    }

    fn columns_of(&self, id: SegmentId) -> Option<&Arc<Columns>> {
        self.columns.iter().find(|(known, _)| *known == id).map(|(_, columns)| columns)
    }

    /// Whether there is a page with this key, or was one that is still to be cleared away.
    pub(crate) fn may_have(&self, field: Field, key: DocKey) -> Result<bool, IndexError> {
        self.has_term(field, &key.to_bytes())
    }

    /// Whether there are pages of this crawl, or were some that are still to be cleared away.
    pub(crate) fn may_have_crawl(&self, field: Field, crawl: CrawlNo) -> Result<bool, IndexError> {
        self.has_term(field, &u64::from(crawl.0).to_be_bytes())
    }

    fn has_term(&self, field: Field, key: &[u8]) -> Result<bool, IndexError> {
        for segment in self.searcher.segment_readers() {
            if segment.inverted_index(field)?.terms().get(key)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
