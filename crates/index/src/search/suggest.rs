//! Ways to go on typing, and what was probably meant. Both come from the words of the crawled pages.

use crate::IndexError;
use crate::analysis::Stems;
use crate::dictionary::{self, Entry};
use crate::fields::Fields;
use crate::view::View;

use super::plan::Plan;

/// Words of a query that are looked up for a correction: each may walk the dictionary.
const CORRECTED_WORDS_MAX: usize = 4;
/// A word in no more pages than this may be a slip, if a similar one is far more frequent.
const RARE_DOCS_MAX: u64 = 2;
/// How many times more frequent the similar word must be.
const FREQUENT_FACTOR: u64 = 100;
/// Longest text that completions are offered for.
const TYPED_BYTES_MAX: usize = 200;

/// The typed text with its last word completed, most frequent first.
pub(super) fn completions(
    view: &View,
    fields: &Fields,
    typed: &str,
    max: usize,
) -> Result<Vec<String>, IndexError> {
    let last = typed.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_plain = !last.is_empty() && last.chars().all(char::is_alphanumeric);
    if !is_plain || typed.len() > TYPED_BYTES_MAX {
        return Ok(Vec::new());
    }
    let before = &typed[..typed.len() - last.len()];
    let mut folded = String::new();
    Stems::exact(last, &mut folded);
    let entries = dictionary::prefixed(view, fields.exact, &folded, max)?;
    Ok(entries.into_iter().map(|entry| format!("{before}{}", entry.word)).collect())
}

/// The query with its unknown words replaced by similar known ones; `None` if nothing is unknown.
pub(super) fn correction(
    view: &View,
    fields: &Fields,
    text: &str,
    plan: &Plan,
) -> Result<Option<String>, IndexError> {
    let mut corrected = text.to_owned();
    let rare = plan.words.iter().filter(|word| word.typed_docs <= RARE_DOCS_MAX);
    for word in rare.take(CORRECTED_WORDS_MAX) {
        let likely = |entry: &Entry| entry.docs > word.typed_docs * FREQUENT_FACTOR;
        let similar = dictionary::like(view, fields.exact, &word.written, CORRECTED_WORDS_MAX)?;
        if let Some(entry) = similar.into_iter().find(likely) {
            corrected = replace_word(&corrected, &word.typed, &entry.word);
        }
    }
    Ok((corrected != text).then_some(corrected))
}

/// Replaces the first place where `word` stands as a whole word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_edge = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    for (at, _) in text.match_indices(word) {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        if is_edge(before.chars().next_back()) && is_edge(after.chars().next()) {
            return format!("{before}{by}{after}");
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_replaced() {
        assert_eq!(replace_word("ham hamlet-ham", "ham", "jam"), "jam hamlet-ham");
        assert_eq!(replace_word("hamlet ham", "ham", "jam"), "hamlet jam");
        assert_eq!(replace_word("hamlet", "ham", "jam"), "hamlet");
    }
}
