//! Learns from the best candidates which other words the query is about, and lets those words
//! rearrange the rest (pseudo-relevance feedback). It never brings in a page that the query itself
//! did not find.

use std::cmp::Ordering;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use tantivy::schema::{Term, Value};
use tantivy::{DocAddress, TantivyDocument};

use super::plan::Plan;
use super::rank::{Ranking, Scored};
use crate::IndexError;
use crate::analysis::{Language, Stems, Words};
use crate::fields::Fields;

/// Candidates that are learned from.
const TEACHERS: usize = 5;
/// Words that are learned.
const WORDS_LEARNED: usize = 10;
/// Words whose frequency in the index is looked up, of which the best are learned.
const WORDS_TRIED: usize = 40;
/// Words of a candidate that are read: what a page is about shows early.
const WORDS_READ: usize = 400;
/// How much a learned word counts against a word of the query.
const SHARE: f32 = 0.3;
/// BM25's saturation, here for the frequency of a word in a candidate.
const SATURATION: f32 = 1.2;

/// Something that is counted per stem.
type Counts<T> = HashMap<Box<str>, T, RandomState>;

/// Rearranges scored candidates, best first, by what the best of them have in common.
pub(crate) fn apply(
    ranking: &Ranking<'_>,
    fields: &Fields,
    plan: &Plan,
    stems: &mut Stems,
    scored: &mut [Scored],
) -> Result<(), IndexError> {
    let best = scored.first().map_or(0.0, |best| best.score);
    if best <= 0.0 || scored.len() <= TEACHERS {
        return Ok(());
    }
    let mut shares: Counts<f32> = Counts::default();
    let mut trust_sum = 0.0;
    for teacher in &scored[..TEACHERS] {
        let trust = (teacher.score / best).powi(2);
        trust_sum += trust;
        for (stem, count) in stem_counts(ranking, fields, stems, teacher.address)? {
            let count = count as f32;
            *shares.entry(stem).or_default() += trust * count / (count + SATURATION);
        }
    }
    let words = learn(ranking, fields, plan, shares, trust_sum)?;
    ranking.add_feedback(&words, scored)
}

/// The words worth learning, with their weights.
fn learn(
    ranking: &Ranking<'_>,
    fields: &Fields,
    plan: &Plan,
    shares: Counts<f32>,
    trust_sum: f32,
) -> Result<Vec<(Term, f32)>, IndexError> {
    let mut tried: Vec<(Term, f32)> = shares
        .into_iter()
        .map(|(stem, share)| (Term::from_field_text(fields.body, &stem), share / trust_sum))
        .filter(|(term, _)| plan.words.iter().all(|word| !word.terms.contains(term)))
        .collect();
    if tried.len() > WORDS_TRIED {
        tried.select_nth_unstable_by(WORDS_TRIED, heavier_first);
        tried.truncate(WORDS_TRIED);
    }
    let mut words = Vec::with_capacity(tried.len());
    for (term, share) in tried {
        let docs = ranking.view.searcher.doc_freq(&term)?;
        // A word of a single page says nothing about others.
        if docs > 1 {
            words.push((term, SHARE * share * ranking.rarity(docs)));
        }
    }
    words.sort_by(heavier_first);
    words.truncate(WORDS_LEARNED);
    Ok(words)
}

/// An order that does not depend on the order of what is ordered.
fn heavier_first(a: &(Term, f32), b: &(Term, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0))
}

/// How often each stem stands at the beginning of a page, without words that say little.
fn stem_counts(
    ranking: &Ranking<'_>,
    fields: &Fields,
    stems: &mut Stems,
    address: DocAddress,
) -> Result<Counts<u32>, IndexError> {
    let page: TantivyDocument = ranking.view.searcher.doc(address)?;
    let text_of =
        |field| page.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
    let (title, text) = (text_of(fields.title), text_of(fields.text));
    let language = Language::from_code(text_of(fields.language));
    let mut counts = Counts::default();
    let words_of = |text| Words::of(text).map(move |word| &text[word.from..word.to]);
    for word in words_of(title).chain(words_of(text)).take(WORDS_READ) {
        let known = stems.know(word, language);
        let is_telling = known.is_content
            && known.written().len() > 2
            && !known.written().bytes().any(|byte| byte.is_ascii_digit());
        if is_telling {
            match counts.get_mut(&known.stem) {
                Some(count) => *count += 1,
                None => _ = counts.insert(known.stem.clone(), 1),
            }
        }
    }
    Ok(counts)
}
