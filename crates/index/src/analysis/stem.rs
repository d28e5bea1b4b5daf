//! Words that are known: their stems, that is the part that the forms of a word share, and what else
//! reading asks of them. A few thousand words make up most of any text, so that what was worked out is
//! remembered, under the word as it stands in the text: one look-up then answers everything.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use xxhash_rust::xxh3::xxh3_64;

use super::Language;
use super::words::{fold, lower};

/// Words remembered per language: about 5 MB. Beyond that all are forgotten at once, which is
/// cheaper than to keep an order among them.
const REMEMBERED_MAX: usize = 32_768;

/// Works out stems.
#[derive(Clone, Default)]
pub(crate) struct Stems {
    /// Of texts without a language, then of each language at its place.
    vocabularies: Vec<Vocabulary>,
    /// How many documents were read.
    documents: u64,
}

/// The words of a language.
#[derive(Clone, Default)]
struct Vocabulary {
    /// Where in `words` a word is, as it stands in a text.
    places: HashMap<Box<str>, usize, RandomState>,
    words: Vec<KnownWord>,
    /// The last number: there are too many to remember them, and nothing to work out.
    number: KnownWord,
}

/// What is known of a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWord {
    /// Its stem, folded.
    pub(crate) stem: Box<str>,
    /// As written, in lower case and folded; `None` if that is the stem.
    written: Option<Box<str>>,
    /// The same for all spellings that differ in capital letters only.
    pub(super) hash: u64,
    /// Whether it is a function word.
    pub(super) is_function: bool,
    /// Whether it says what a text is about: function words, single characters and numbers make a
    /// text longer, not richer.
    pub(crate) is_content: bool,
    /// The last document whose words as written hold it.
    pub(super) listed_in: u64,
}

impl KnownWord {
    /// Works out what there is to know of a word.
    fn of(word: &str, language: Option<Language>) -> Self {
        let mut written = String::new();
        lower(word, &mut written);
        let is_function = language.is_some_and(|language| language.stop_words().has(&written));
        let is_number = written.bytes().all(|byte| byte.is_ascii_digit());
        let is_content = !is_function && !is_number && written.len() > 1;
        let hash = xxh3_64(written.as_bytes());
        let mut stem = match language.filter(|_| !begins_with_digit(word)) {
            Some(language) => language.stemmer().stem(&written).into_owned(),
            None => written.clone(),
        };
        fold(&mut stem);
        if stem.is_empty() {
            stem.clone_from(&written);
        }
        fold(&mut written);
        let written = (written != stem).then(|| written.into_boxed_str());
        Self { stem: stem.into(), written, hash, is_function, is_content, listed_in: 0 }
    }

    /// The word as written, in lower case and folded.
    pub(crate) fn written(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.stem)
    }

    /// Whether the stem is the word itself.
    pub(super) fn is_own_stem(&self) -> bool {
        self.written.is_none()
    }
}

impl Stems {
    /// Writes the stem of a word as written, in the language of its text. Without a language the
    /// stem is the word itself, folded.
    pub(crate) fn stem(&mut self, word: &str, language: Option<Language>, out: &mut String) {
        out.clear();
        out.push_str(&self.vocabulary(language).know(word, language).stem);
    }

    /// The number of a new document, greater than those before.
    pub(super) fn next_document(&mut self) -> u64 {
        self.documents += 1;
        self.documents
    }

    /// What is known of a word.
    pub(crate) fn know(&mut self, word: &str, language: Option<Language>) -> &mut KnownWord {
        self.vocabulary(language).know(word, language)
    }

    fn vocabulary(&mut self, language: Option<Language>) -> &mut Vocabulary {
        let place = language.map_or(0, |language| language.index() + 1);
        if self.vocabularies.len() <= place {
            self.vocabularies.resize_with(place + 1, Vocabulary::default);
        }
        &mut self.vocabularies[place]
    }

    /// Writes the word in lower case and folded, without looking for a stem.
    pub(crate) fn exact(word: &str, out: &mut String) {
        lower(word, out);
        fold(out);
    }
}

impl Vocabulary {
    fn know(&mut self, word: &str, language: Option<Language>) -> &mut KnownWord {
        if let Some(place) = self.places.get(word) {
            return &mut self.words[*place];
        }
        let known = KnownWord::of(word, language);
        if begins_with_digit(word) {
            self.number = known;
            return &mut self.number;
        }
        if self.words.len() >= REMEMBERED_MAX {
            self.places.clear();
            self.words.clear();
        }
        let place = self.words.len();
        self.places.insert(word.into(), place);
        self.words.push(known);
        &mut self.words[place]
    }
}

fn begins_with_digit(word: &str) -> bool {
    word.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// Leases out memories of stems to searches, so that a search need not begin with an empty one.
#[derive(Default)]
pub(crate) struct StemPool(Mutex<Vec<Stems>>);

impl StemPool {
    /// Memories that are kept: as many as searches commonly run at the same time.
    const KEPT_MAX: usize = 8;

    /// Runs something with exclusive use of a cache of stems.
    pub(crate) fn lease<T>(&self, run: impl FnOnce(&mut Stems) -> T) -> T {
        let mut stems = self.kept().pop().unwrap_or_default();
        let result = run(&mut stems);
        let mut kept = self.kept();
        if kept.len() < Self::KEPT_MAX {
            kept.push(stems);
        }
        result
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Stems>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: &str, word: &str, expect: &str) {
        let mut stems = Stems::default();
        let mut stem = String::new();
        for _ in 0..2 {
            stems.stem(word, Language::from_code(language), &mut stem);
            assert_eq!(stem, expect);
        }
    }

    #[test]
    fn each_language_has_its_own_stems() {
        check("en", "Running", "run");
        check("id", "pembangunan", "bangun");
        check("id-ID", "berjalanlah", "jalan");
        check("de", "Häuser", "haus");
        check("fr", "résumés", "resum");
        check("xx", "Running", "running");
    }

    #[test]
    fn numbers_have_no_stem() {
        check("en", "1990s", "1990s");
    }
}
