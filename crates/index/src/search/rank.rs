//! Ranks candidates: how well a page's words fit the query, where in the page they stand, how near
//! to each other; and then how well linked and how fresh the page is.
//!
//! The weights were chosen on three collections at once (English abstracts, English titles with
//! noise, Indonesian passages; `examples/ir_score.rs` measures them), on a plateau: halving or
//! doubling any of them changes nDCG by less than two hundredths.

use tantivy::columnar::Column as FastColumn;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{IndexRecordOption, Term};
use tantivy::{DocAddress, DocSet, SegmentReader, TERMINATED};
use telusur_model::Timestamp;

use super::plan::{Plan, PlanWord};
use crate::IndexError;
use crate::columns::Columns;
use crate::links::Ranks;
use crate::query::Column;
use crate::view::View;

/// BM25: how fast more occurrences stop to matter.
const SATURATION: f32 = 1.4;
/// BM25: how much longer pages need more occurrences.
const LENGTH_SHARE: f32 = 0.75;
/// Rare words count more than their plain inverse frequency says: in a question, the name matters
/// and the words around it do not.
const RARITY_POWER: f32 = 1.2;
/// Occurrences in the title count this much on top of one.
const TITLE_EXTRA: f32 = 2.0;
/// An occurrence around the text (headings, description, address) is worth this.
const AROUND_WEIGHT: f32 = 0.7;
/// A word among the first words of a page counts as this many occurrences more: what a page begins
/// with is what it is about.
const LEAD_EXTRA: f32 = 1.5;
const LEAD_WORDS: u32 = 8;
/// A word that stands in the page exactly as typed, not only by its stem, adds this share.
const EXACT_SHARE: f32 = 0.3;
/// Neighbours in the query that are near each other in the page add this share.
const NEAR_SHARE: f32 = 0.4;
/// Words further apart than this are not near.
const NEAR_WORDS: u32 = 8;
/// Occurrences of a word in one page that are looked at.
const POSITIONS_MAX: usize = 256;
/// How well the words of links to a page fit counts as this share of how well its own words do:
/// what others call a page is well chosen, but short, and not under its control.
const LINKED_SHARE: f32 = 0.5;
/// A page with ten times the average link rank gains this share.
const LINK_SHARE: f32 = 0.06;
/// A page published now gains this share; it halves with every [`FRESH_HALF_MS`].
const FRESH_SHARE: f32 = 0.05;
const FRESH_HALF_MS: f32 = 180.0 * 86_400_000.0;

/// A candidate with its score, and how the score came about.
#[derive(Clone, Debug)]
pub(crate) struct Scored {
    pub(crate) address: DocAddress,
    pub(crate) score: f32,
    pub(crate) parts: Parts,
}

/// What a score is made of: the sum of words, nearness, words of links and feedback, times the two
/// factors.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) words: Vec<WordPart>,
    pub(crate) near: f32,
    pub(crate) linked: f32,
    pub(crate) feedback: f32,
    pub(crate) link_factor: f32,
    pub(crate) fresh_factor: f32,
}

/// What one word adds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordPart {
    /// Occurrences, weighted by where they are.
    pub(crate) occurrences: f32,
    /// What they add.
    pub(crate) score: f32,
    /// What standing there exactly as typed adds.
    pub(crate) exact: f32,
}

impl Parts {
    fn total(&self) -> f32 {
        let words: f32 = self.words.iter().map(|part| part.score + part.exact).sum();
        (words + self.near + self.linked + self.feedback) * self.link_factor * self.fresh_factor
    }
}

/// What ranking needs to know beside the query.
pub(crate) struct Ranking<'v> {
    pub(crate) view: &'v View,
    pub(crate) ranks: &'v Ranks,
    pub(crate) now: Option<Timestamp>,
}

impl Ranking<'_> {
    /// Scores candidates, best first.
    pub(crate) fn score(
        &self,
        plan: &Plan,
        candidates: &[DocAddress],
    ) -> Result<Vec<Scored>, IndexError> {
        let mut sorted = candidates.to_vec();
        sorted.sort_unstable();
        let mut all = Vec::with_capacity(sorted.len());
        for docs in sorted.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
            let reader = self.view.searcher.segment_reader(docs[0].segment_ord);
            let columns = self.view.columns(docs[0].segment_ord);
            let mut segment = Segment::open(self, plan, reader, columns)?;
            for &address in docs {
                if let Some(parts) = segment.parts(address.doc_id) {
                    all.push(Scored { address, score: parts.total(), parts });
                }
            }
        }
        sort_best_first(&mut all);
        Ok(all)
    }

    /// Adds what feedback words say about candidates that are already scored.
    pub(crate) fn add_feedback(
        &self,
        words: &[(Term, f32)],
        scored: &mut [Scored],
    ) -> Result<(), IndexError> {
        scored.sort_unstable_by_key(|scored| scored.address);
        for docs in scored.chunk_by_mut(|a, b| a.address.segment_ord == b.address.segment_ord) {
            let reader = self.view.searcher.segment_reader(docs[0].address.segment_ord);
            let columns = self.view.columns(docs[0].address.segment_ord);
            for (term, weight) in words {
                let index = reader.inverted_index(term.field())?;
                let Some(mut postings) = index.read_postings(term, IndexRecordOption::WithFreqs)?
                else {
                    continue;
                };
                for scored in docs.iter_mut() {
                    let doc = scored.address.doc_id;
                    if seek(&mut postings, doc) {
                        let length = self.relative_length(columns, doc);
                        scored.parts.feedback +=
                            weight * saturated(postings.term_freq() as f32, length);
                    }
                }
            }
        }
        for scored in scored.iter_mut() {
            scored.score = scored.parts.total();
        }
        sort_best_first(scored);
        Ok(())
    }

    /// Inverse document frequency of a word that `docs` pages have.
    pub(crate) fn rarity(&self, docs: u64) -> f32 {
        let all = self.view.searcher.num_docs().max(docs) as f32;
        let docs = docs as f32;
        (1.0 + (all - docs + 0.5) / (docs + 0.5)).ln().powf(RARITY_POWER)
    }

    fn relative_length(&self, columns: &Columns, doc: u32) -> f32 {
        columns.words.first(doc).unwrap_or(0) as f32 / self.view.words_mean
    }
}

fn sort_best_first(scored: &mut [Scored]) {
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.address.cmp(&b.address)));
}

/// BM25's view of how much a number of occurrences means in a page of a length.
fn saturated(occurrences: f32, relative_length: f32) -> f32 {
    let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * relative_length);
    occurrences * (SATURATION + 1.0) / (occurrences + norm)
}

fn seek(postings: &mut SegmentPostings, doc: u32) -> bool {
    let at = if postings.doc() < doc { postings.seek(doc) } else { postings.doc() };
    at == doc && at != TERMINATED
}

/// One segment of the index, opened for the words of a query. Pages are asked for in ascending
/// order.
struct Segment<'r> {
    ranking: &'r Ranking<'r>,
    plan: &'r Plan,
    words: Vec<SegmentWord>,
    columns: &'r Columns,
}

struct SegmentWord {
    forms: Vec<SegmentPostings>,
    exact: Option<SegmentPostings>,
    /// Which of the forms is the word as written: a word that is its own stem.
    own_stem: Option<usize>,
    rarity: f32,
    /// Where it stands in the page at hand, ascending.
    positions: Vec<u32>,
}

impl<'r> Segment<'r> {
    fn open(
        ranking: &'r Ranking<'r>,
        plan: &'r Plan,
        reader: &SegmentReader,
        columns: &'r Columns,
    ) -> Result<Self, IndexError> {
        let mut words = Vec::with_capacity(plan.words.len());
        for word in &plan.words {
            words.push(SegmentWord::open(ranking, word, reader)?);
        }
        Ok(Self { ranking, plan, words, columns })
    }

    /// What the page's score is made of; `None` if it has none of the words where they are wanted.
    fn parts(&mut self, doc: u32) -> Option<Parts> {
        let sections = Sections {
            title_end: position(&self.columns.title_end, doc),
            text_start: position(&self.columns.text_start, doc),
        };
        let length = self.ranking.relative_length(self.columns, doc);
        let mut parts = Vec::with_capacity(self.words.len());
        for (word, planned) in self.words.iter_mut().zip(&self.plan.words) {
            word.read_positions(doc);
            sections.keep_columns(&mut word.positions, &self.plan.columns);
            let occurrences = sections.occurrences(&word.positions);
            let mut part = WordPart { occurrences, ..WordPart::default() };
            if occurrences > 0.0 {
                let telling = word.rarity * planned.weight;
                part.score = telling * saturated(occurrences, length);
            }
            // Function words are not among the stems; being there at all is all that is known.
            if (occurrences > 0.0 || planned.says_little) && word.is_exact(doc) {
                part.exact = EXACT_SHARE * word.rarity;
            }
            parts.push(part);
        }
        // Without words, all matching pages are equal.
        if !parts.is_empty()
            && !self.plan.columns.is_empty()
            && parts.iter().all(|part| part.occurrences == 0.0)
        {
            return None;
        }
        let page = self.columns.page.first(doc).unwrap_or(0);
        Some(Parts {
            words: parts,
            near: self.near(length),
            linked: LINKED_SHARE * self.plan.linked_score(page),
            feedback: 0.0,
            link_factor: 1.0 + LINK_SHARE * self.ranking.ranks.power_of_number(page),
            fresh_factor: self.fresh_factor(doc),
        })
    }

    /// What it adds that neighbours in the query are near each other in the page.
    fn near(&self, length: f32) -> f32 {
        let mut near = 0.0;
        for pair in self.words.windows(2) {
            let closeness = closeness(&pair[0].positions, &pair[1].positions);
            if closeness > 0.0 {
                let rarity = pair[0].rarity.min(pair[1].rarity);
                near += NEAR_SHARE * rarity * saturated(closeness, length);
            }
        }
        near
    }

    fn fresh_factor(&self, doc: u32) -> f32 {
        let (Some(now), Some(published)) = (self.ranking.now, self.columns.published.first(doc))
        else {
            return 1.0;
        };
        let age_ms = now.0.saturating_sub(published) as f32;
        1.0 + FRESH_SHARE * (-age_ms / FRESH_HALF_MS).exp2()
    }
}

impl SegmentWord {
    fn open(
        ranking: &Ranking<'_>,
        word: &PlanWord,
        reader: &SegmentReader,
    ) -> Result<Self, IndexError> {
        let mut forms = Vec::with_capacity(word.terms.len());
        let mut own_stem = None;
        for term in &word.terms {
            let index = reader.inverted_index(term.field())?;
            let postings = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?;
            if postings.is_some() && term.value().as_str() == Some(&word.written) {
                own_stem = Some(forms.len());
            }
            forms.extend(postings);
        }
        let index = reader.inverted_index(word.exact.field())?;
        let exact = index.read_postings(&word.exact, IndexRecordOption::Basic)?;
        let rarity = ranking.rarity(word.docs);
        Ok(Self { forms, exact, own_stem, rarity, positions: Vec::new() })
    }

    /// Whether the page at hand has the word as written.
    fn is_exact(&mut self, doc: u32) -> bool {
        self.own_stem.is_some_and(|own| self.forms[own].doc() == doc)
            || self.exact.as_mut().is_some_and(|exact| seek(exact, doc))
    }

    fn read_positions(&mut self, doc: u32) {
        self.positions.clear();
        for form in &mut self.forms {
            if seek(form, doc) {
                form.append_positions_with_offset(0, &mut self.positions);
            }
        }
        if self.forms.len() > 1 {
            self.positions.sort_unstable();
        }
        self.positions.truncate(POSITIONS_MAX);
    }
}

fn position(column: &FastColumn<u64>, doc: u32) -> u32 {
    u32::try_from(column.first(doc).unwrap_or(0)).unwrap_or(u32::MAX)
}

/// Where the sections of a page's words meet.
#[derive(Clone, Copy)]
struct Sections {
    title_end: u32,
    text_start: u32,
}

impl Sections {
    /// Occurrences, weighted by where they are.
    fn occurrences(self, positions: &[u32]) -> f32 {
        let mut sum = 0.0;
        let mut leads = false;
        for &at in positions {
            if at < self.title_end {
                sum += 1.0 + TITLE_EXTRA;
                leads |= at < LEAD_WORDS;
            } else if at < self.text_start {
                sum += AROUND_WEIGHT;
            } else {
                sum += 1.0;
                leads |= at - self.text_start + self.title_end < LEAD_WORDS;
            }
        }
        if leads { sum + LEAD_EXTRA } else { sum }
    }

    /// Keeps the positions in the wanted columns.
    fn keep_columns(self, positions: &mut Vec<u32>, columns: &[Column]) {
        if columns.is_empty() {
            return;
        }
        positions.retain(|&at| {
            columns.iter().any(|column| match column {
                Column::Title => at < self.title_end,
                Column::Text => at >= self.text_start,
                Column::Description | Column::Keywords | Column::Url => {
                    (self.title_end..self.text_start).contains(&at)
                }
            })
        });
    }
}

/// How often and how closely two words stand together: one for each time that they are neighbours,
/// less for each time that they are near. Both lists ascend.
fn closeness(first: &[u32], second: &[u32]) -> f32 {
    let mut sum = 0.0;
    let mut after = 0;
    for &at in first {
        while second.get(after).is_some_and(|&other| other < at) {
            after += 1;
        }
        let ahead = second.get(after).map_or(u32::MAX, |&other| other - at);
        let behind = after.checked_sub(1).map_or(u32::MAX, |before| at - second[before]);
        let distance = ahead.min(behind);
        if (1..=NEAR_WORDS).contains(&distance) {
            sum += 1.0 / distance as f32;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_closest() {
        assert_eq!(closeness(&[5], &[6]), 1.0);
        assert_eq!(closeness(&[5], &[3]), 0.5);
        assert_eq!(closeness(&[5, 50], &[6, 49]), 2.0);
        assert_eq!(closeness(&[5], &[50]), 0.0);
        assert_eq!(closeness(&[], &[1]), 0.0);
    }

    #[test]
    fn the_title_and_the_beginning_count_more() {
        let sections = Sections { title_end: 3, text_start: 10 };
        assert_eq!(sections.occurrences(&[1]), 1.0 + TITLE_EXTRA + LEAD_EXTRA);
        assert_eq!(sections.occurrences(&[12]), 1.0 + LEAD_EXTRA);
        assert_eq!(sections.occurrences(&[100]), 1.0);
        assert_eq!(sections.occurrences(&[5]), AROUND_WEIGHT);
    }

    #[test]
    fn columns_restrict_where_words_count() {
        let sections = Sections { title_end: 3, text_start: 10 };
        let mut positions = vec![1, 5, 20];
        sections.keep_columns(&mut positions, &[Column::Title, Column::Text]);
        assert_eq!(positions, [1, 20]);
    }
}
