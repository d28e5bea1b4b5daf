//! Looks through the words that the index holds: by their beginning, and by their likeness.

use std::collections::HashMap;

use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, Term};
use tantivy::termdict::TermDictionary;

use crate::IndexError;
use crate::view::View;

/// Words with one beginning that are looked at per segment: a beginning of one letter would read
/// the whole dictionary.
const PREFIXED_SCANNED_MAX: usize = 5_000;
/// Shortest word that another may stand in for. Shorter ones have too many neighbours.
const LIKE_CHARS_MIN: usize = 4;
/// From this length on, a word may differ in two letters.
const TWO_LETTERS_CHARS_MIN: usize = 8;

/// A word of the index, and in how many pages it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) word: String,
    pub(crate) docs: u64,
}

/// The most frequent words that begin like this, best first.
pub(crate) fn prefixed(
    view: &View,
    field: Field,
    prefix: &str,
    max: usize,
) -> Result<Vec<Entry>, IndexError> {
    let mut docs: HashMap<String, u64> = HashMap::new();
    for_each_dictionary(view, field, |dictionary| {
        let mut terms = dictionary.range().ge(prefix.as_bytes()).into_stream()?;
        let mut scanned = 0;
        while scanned < PREFIXED_SCANNED_MAX && terms.advance() {
            let Ok(word) = std::str::from_utf8(terms.key()) else { continue };
            if !word.starts_with(prefix) {
                break;
            }
            *docs.entry(word.to_owned()).or_default() += u64::from(terms.value().doc_freq);
            scanned += 1;
        }
        Ok(())
    })?;
    let mut entries: Vec<_> = docs.into_iter().map(|(word, docs)| Entry { word, docs }).collect();
    entries.sort_by(|a, b| b.docs.cmp(&a.docs).then_with(|| a.word.cmp(&b.word)));
    entries.truncate(max);
    Ok(entries)
}

/// The words that differ from this one in a letter (two, if it is long) but not in the first, nearest
/// and most frequent first. The word itself is not among them.
pub(crate) fn like(
    view: &View,
    field: Field,
    word: &str,
    max: usize,
) -> Result<Vec<Entry>, IndexError> {
    let chars = word.chars().count();
    if chars < LIKE_CHARS_MIN || !word.chars().all(char::is_alphabetic) {
        return Ok(Vec::new());
    }
    let first = word.chars().next();
    let letters_max = if chars < TWO_LETTERS_CHARS_MIN { 1 } else { 2 };
    let mut entries: Vec<Entry> = Vec::new();
    for letters in 1..=letters_max {
        let mut docs: HashMap<String, u64> = HashMap::new();
        for_each_dictionary(view, field, |dictionary| {
            let query = FuzzyTermQuery::new(Term::from_field_text(field, word), letters, true);
            let mut terms = dictionary.search(query.automaton()?).into_stream()?;
            while terms.advance() {
                let Ok(found) = std::str::from_utf8(terms.key()) else { continue };
                if found != word && found.chars().next() == first {
                    *docs.entry(found.to_owned()).or_default() += u64::from(terms.value().doc_freq);
                }
            }
            Ok(())
        })?;
        let mut nearest: Vec<_> = docs
            .into_iter()
            .filter(|(word, _)| entries.iter().all(|entry| entry.word != *word))
            .map(|(word, docs)| Entry { word, docs })
            .collect();
        nearest.sort_by(|a, b| b.docs.cmp(&a.docs).then_with(|| a.word.cmp(&b.word)));
        entries.extend(nearest);
        if entries.len() >= max {
            break;
        }
    }
    entries.truncate(max);
    Ok(entries)
}

fn for_each_dictionary(
    view: &View,
    field: Field,
    mut visit: impl FnMut(&TermDictionary) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    for segment in view.searcher.segment_readers() {
        visit(segment.inverted_index(field)?.terms())?;
    }
    Ok(())
}
