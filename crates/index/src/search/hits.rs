//! [`Hit`]: a found page, ready to be shown.

use serde::Serialize;
use tantivy::schema::{Field, Value};
use tantivy::{DocAddress, TantivyDocument};
use telusur_model::Timestamp;

use super::explain::Explanation;
use super::fold::Row;
use super::plan::Plan;
use super::snippet::{Snippet, Sought, snippet};
use super::{Scored, Search};
use crate::analysis::{Language, Stems};
use crate::inert::inert;
use crate::query::HITS_MAX;
use crate::{DocKey, IndexError};

/// Characters of a title that are shown.
const TITLE_CHARS_MAX: usize = 200;
/// Characters of an address that are shown: as many as an address can have.
const URL_CHARS_MAX: usize = telusur_model::URL_BYTES_MAX;

/// A found page. All texts are harmless to print on a terminal; HTML needs escaping, which
/// [`Snippet::html`] and [`escape_html`](crate::escape_html) do.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// Its identity.
    pub key: DocKey,
    /// The name that an imported document brought along.
    pub id: Option<String>,
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The piece of its text that fits best.
    pub snippet: Snippet,
    /// The site that it belongs to.
    pub site: Option<String>,
    /// The code of its language.
    pub language: Option<String>,
    /// What it was made from.
    pub kind: String,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// When it says that it was published.
    pub published_at: Option<Timestamp>,
    /// How well it fits. Comparable within one answer only.
    pub score: f32,
    /// How many more pages of its site wait behind those of others.
    pub more_from_site: usize,
    /// How many pages say nearly the same and are not shown.
    pub similar_count: usize,
    /// The addresses of the first of those.
    pub similar: Vec<String>,
    /// Why it stands where it stands, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

impl Search<'_> {
    /// What tidying wants to know about ranked pages.
    pub(super) fn rows(&self, ranked: &[DocAddress]) -> Vec<Row> {
        let row = |(place, address): (usize, &DocAddress)| {
            let columns = self.view.columns(address.segment_ord);
            Row {
                place,
                page: columns.page.first(address.doc_id).unwrap_or(0),
                sketch: columns.sketch.first(address.doc_id).unwrap_or(0),
                site: columns.site_number.first(address.doc_id),
                ..Row::default()
            }
        };
        ranked.iter().enumerate().map(row).collect()
    }

    /// The hits of the page that was asked for.
    pub(super) fn hits(
        &self,
        plan: &Plan,
        ranked: &[Scored],
        rows: &[Row],
        stems: &mut Stems,
    ) -> Result<Vec<Hit>, IndexError> {
        let sought = self.sought(plan);
        let offset = self.query.offset.min(HITS_MAX);
        let limit = self.query.limit.min(HITS_MAX - offset);
        let mut hits = Vec::with_capacity(limit.min(rows.len()));
        for row in rows.iter().skip(offset).take(limit) {
            let scored = &ranked[row.place];
            let mut hit = self.hit(scored.address, &sought, stems)?;
            hit.score = scored.score;
            hit.more_from_site = row.more_from_site;
            hit.similar_count = row.similar_count;
            for &place in &row.similar {
                let page = self.page(ranked[place].address)?;
                hit.similar.push(inert(self.text(&page, self.fields.url), URL_CHARS_MAX));
            }
            if self.query.explain {
                hit.explanation = Some(self.explanation(plan, scored, row));
            }
            hits.push(hit);
        }
        Ok(hits)
    }

    /// A page as a hit, with the snippet that fits best.
    pub(super) fn hit(
        &self,
        address: DocAddress,
        sought: &[Sought],
        stems: &mut Stems,
    ) -> Result<Hit, IndexError> {
        let page = self.page(address)?;
        let columns = self.view.columns(address.segment_ord);
        let doc = address.doc_id;
        let value_of = |field| {
            Some(inert(self.text(&page, field), TITLE_CHARS_MAX)).filter(|value| !value.is_empty())
        };
        let key =
            page.get_first(self.fields.key).and_then(|key| DocKey::from_bytes(key.as_bytes()?));
        let key = key.ok_or_else(|| IndexError::Damaged("a page has no key".to_owned()))?;
        let language = value_of(self.fields.language);
        let stem_language = language.as_deref().and_then(Language::from_code);
        let mut snippet = snippet(self.text(&page, self.fields.text), stem_language, sought, stems);
        if snippet.text.is_empty() {
            snippet.text = inert(self.text(&page, self.fields.description), TITLE_CHARS_MAX);
        }
        Ok(Hit {
            key,
            id: page.get_first(self.fields.id).and_then(|id| id.as_str().map(str::to_owned)),
            url: inert(self.text(&page, self.fields.url), URL_CHARS_MAX),
            title: inert(self.text(&page, self.fields.title), TITLE_CHARS_MAX),
            snippet,
            site: value_of(self.fields.site),
            language,
            kind: value_of(self.fields.kind).unwrap_or_default(),
            fetched_at: Timestamp(columns.fetched.first(doc).unwrap_or(0)),
            published_at: columns.published.first(doc).map(Timestamp),
            score: 0.0,
            more_from_site: 0,
            similar_count: 0,
            similar: Vec::new(),
            explanation: None,
        })
    }

    pub(super) fn page(&self, address: DocAddress) -> Result<TantivyDocument, IndexError> {
        Ok(self.view.searcher.doc(address)?)
    }

    pub(super) fn text<'p>(&self, page: &'p TantivyDocument, field: Field) -> &'p str {
        page.get_first(field).and_then(|value| value.as_str()).unwrap_or_default()
    }

    fn sought(&self, plan: &Plan) -> Vec<Sought> {
        let ranking = self.ranking();
        let sought = plan
            .words
            .iter()
            .map(|word| Sought { stems: word.stems(), weight: ranking.rarity(word.docs) });
        sought.collect()
    }
}
