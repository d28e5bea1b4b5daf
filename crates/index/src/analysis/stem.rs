//! Stems: the part of a word that its forms share. Remembers what it worked out, because a few
//! thousand words make up most of any text.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::Language;
use super::words::{fold, lower};

/// Words remembered per language: about 3 MB. Beyond that all are forgotten at once, which is
/// cheaper than to keep an order among them.
const REMEMBERED_MAX: usize = 32_768;

/// Works out stems.
#[derive(Clone, Default)]
pub(crate) struct Stems {
    remembered: Vec<HashMap<Box<str>, Box<str>, RandomState>>,
    lowered: String,
}

impl Stems {
    /// Writes the stem of a word as written, in the language of its text. Without a language the
    /// stem is the word itself, folded.
    pub(crate) fn stem(&mut self, word: &str, language: Option<Language>, out: &mut String) {
        let mut lowered = std::mem::take(&mut self.lowered);
        lower(word, &mut lowered);
        self.stem_lowered(&lowered, language, out);
        self.lowered = lowered;
    }

    /// The same for a word that is in lower case already.
    pub(super) fn stem_lowered(
        &mut self,
        word: &str,
        language: Option<Language>,
        out: &mut String,
    ) {
        out.clear();
        let Some(language) = language.filter(|_| !word.as_bytes()[0].is_ascii_digit()) else {
            out.push_str(word);
            fold(out);
            return;
        };
        if self.remembered.len() <= language.index() {
            self.remembered.resize_with(language.index() + 1, HashMap::default);
        }
        let remembered = &mut self.remembered[language.index()];
        if let Some(stem) = remembered.get(word) {
            out.push_str(stem);
            return;
        }
        out.push_str(&language.stemmer().stem(word));
        fold(out);
        if out.is_empty() {
            out.push_str(word);
        }
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(word.into(), out.as_str().into());
    }

    /// Writes the word in lower case and folded, without looking for a stem.
    pub(crate) fn exact(word: &str, out: &mut String) {
        lower(word, out);
        fold(out);
    }
}

/// Lends out memories of stems to searches, so that a search need not begin with an empty one.
#[derive(Default)]
pub(crate) struct StemPool(Mutex<Vec<Stems>>);

impl StemPool {
    /// Memories that are kept: as many as searches commonly run at the same time.
    const KEPT_MAX: usize = 8;

    /// Runs something with a memory that nobody else uses meanwhile.
    pub(crate) fn lend<T>(&self, run: impl FnOnce(&mut Stems) -> T) -> T {
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
