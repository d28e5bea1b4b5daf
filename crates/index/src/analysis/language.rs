//! The languages that have stems and stop words, and a cheap guess which one a text is in.

use frostem::{Algorithm, Stemmer};

use super::stop_words::{self, STOP_WORDS};
use super::words::{Words, lower};

/// Words that are looked at when a language is guessed. The function words of a language are a
/// third of its running text, so that this many words show dozens of them.
const GUESS_WORDS_MAX: usize = 300;

/// A language with a stemmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(u8);

/// Codes by ISO 639-1 and their Snowball algorithms. The place in this list is written into no
/// file. Malay shares the affixes of Indonesian, and both Norwegian codes one algorithm.
const LANGUAGES: &[(&str, Algorithm)] = &[
    ("en", Algorithm::English),
    ("id", Algorithm::Indonesian),
    ("ms", Algorithm::Indonesian),
    ("de", Algorithm::German),
    ("fr", Algorithm::French),
    ("es", Algorithm::Spanish),
    ("pt", Algorithm::Portuguese),
    ("it", Algorithm::Italian),
    ("nl", Algorithm::Dutch),
    ("sv", Algorithm::Swedish),
    ("no", Algorithm::Norwegian),
    ("nb", Algorithm::Norwegian),
    ("da", Algorithm::Danish),
    ("fi", Algorithm::Finnish),
    ("et", Algorithm::Estonian),
    ("hu", Algorithm::Hungarian),
    ("ro", Algorithm::Romanian),
    ("ca", Algorithm::Catalan),
    ("pl", Algorithm::Polish),
    ("cs", Algorithm::Czech),
    ("tr", Algorithm::Turkish),
    ("lt", Algorithm::Lithuanian),
    ("ru", Algorithm::Russian),
    ("uk", Algorithm::Ukrainian),
    ("sr", Algorithm::Serbian),
    ("el", Algorithm::Greek),
    ("ar", Algorithm::Arabic),
    ("fa", Algorithm::Persian),
    ("hi", Algorithm::Hindi),
    ("ne", Algorithm::Nepali),
    ("ta", Algorithm::Tamil),
    ("hy", Algorithm::Armenian),
    ("eu", Algorithm::Basque),
    ("ga", Algorithm::Irish),
    ("eo", Algorithm::Esperanto),
];

/// The function words of a language, or of none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StopWords(stop_words::Languages);

impl StopWords {
    /// Whether a word, in lower case, is one of them.
    pub(crate) fn has(self, word: &str) -> bool {
        self.0 != 0 && stop_words::languages_of(word) & self.0 != 0
    }
}

impl Language {
    /// The language of a code such as `id`, `en-US` or `pt_BR`.
    pub fn from_code(code: &str) -> Option<Self> {
        let primary = code.split(['-', '_']).next()?;
        let at = LANGUAGES.iter().position(|(known, _)| primary.eq_ignore_ascii_case(known))?;
        u8::try_from(at).ok().map(Self)
    }

    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        LANGUAGES[self.index()].0
    }

    /// The language in which most of the text's function words are at home. `None` for texts that
    /// are too short or in none of the languages with a list.
    pub fn guess(text: &str) -> Option<Self> {
        let mut votes = [0_u32; STOP_WORDS.len()];
        let mut word_lower = String::new();
        for word in Words::of(text).take(GUESS_WORDS_MAX) {
            // Single letters are initials and list marks more often than words.
            if word.to - word.from < 2 {
                continue;
            }
            lower(&text[word.from..word.to], &mut word_lower);
            let mut languages = stop_words::languages_of(&word_lower);
            while languages != 0 {
                votes[languages.trailing_zeros() as usize] += 1;
                languages &= languages - 1;
            }
        }
        let (best, &most) = votes.iter().enumerate().max_by_key(|&(at, votes)| (votes, !at))?;
        // A single function word proves nothing: "die" is German, English and Dutch.
        if most < 2 { None } else { Self::from_code(STOP_WORDS[best].0) }
    }

    /// The words that say nothing about what a text in this language is about.
    pub(crate) fn stop_words(self) -> StopWords {
        StopWords(stop_words::language(self.code()))
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(LANGUAGES[self.index()].1)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(Language::guess(text).map(Language::code), expect, "{text}");
    }

    #[test]
    fn function_words_give_a_language_away() {
        check("what are the structural problems associated with flight", Some("en"));
        check("Ibu kota dari negara yang terletak di Asia adalah kota ini", Some("id"));
        check("Der Hund und die Katze sind nicht im Haus", Some("de"));
        check("le chat est dans la maison avec les enfants", Some("fr"));
        check("el perro que vive en la casa de los niños", Some("es"));
        check("в этом доме не было ничего, что можно было бы взять", Some("ru"));
        check("tantivy 0.27", None);
        check("", None);
    }

    #[test]
    fn codes_come_in_many_spellings() {
        assert_eq!(Language::from_code("pt_BR").map(Language::code), Some("pt"));
        assert_eq!(Language::from_code("EN-us").map(Language::code), Some("en"));
        assert_eq!(Language::from_code(""), None);
        assert_eq!(Language::from_code("tlh"), None);
    }
}
