//! Splits text into words. Scripts that write without spaces are split into pairs of characters.
//! Knows no language.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Longer words are cut: queries do not have them, and each would be a dictionary entry of its own.
const WORD_BYTES_MAX: usize = 64;

/// A word's place in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Where it begins, in bytes.
    pub(crate) from: usize,
    /// Where it ends, in bytes.
    pub(crate) to: usize,
    /// How many words stand before it.
    pub(crate) position: usize,
}

/// Iterates over the words of a text.
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
    position: usize,
}

impl<'t> Words<'t> {
    /// The words of `text`.
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, at: 0, position: 0 }
    }

    fn word(&mut self, from: usize, to: usize) -> Word {
        let position = self.position;
        self.position += 1;
        Word { from, to, position }
    }

    /// The end of the run of plain word characters that begins at `from`.
    fn run_end(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = from;
        while let Some(&byte) = bytes.get(end) {
            if byte.is_ascii() {
                if !byte.is_ascii_alphanumeric() {
                    break;
                }
                end += 1;
                continue;
            }
            match self.text[end..].chars().next() {
                Some(c) if is_word_char(c) && !is_gram(c) => end += c.len_utf8(),
                _ => break,
            }
        }
        end
    }

    /// `C++`, `C#`, `F#`: names whose signs make the difference.
    fn with_signs(&self, from: usize, to: usize) -> usize {
        if to - from > 1 || !self.text.as_bytes()[from].is_ascii_alphabetic() {
            return to;
        }
        let rest = &self.text[to..];
        let signs = if rest.starts_with("++") { 2 } else { usize::from(rest.starts_with('#')) };
        let ends_there = !rest[signs..].chars().next().is_some_and(is_word_char);
        if ends_there { to + signs } else { to }
    }

    /// Whether the word is the `s` of `page's`: a mark of grammar, not a word.
    fn is_possessive(&self, from: usize, to: usize) -> bool {
        let before = &self.text[..from];
        matches!(&self.text[from..to], "s" | "S")
            && (before.ends_with('\'') || before.ends_with('\u{2019}'))
            && before.chars().rev().nth(1).is_some_and(char::is_alphanumeric)
    }

    /// Two characters from `from` on, or one at the end of the run; and how far to move on.
    fn gram(&self, from: usize) -> (usize, usize) {
        let mut chars = self.text[from..].chars();
        let first = chars.next().map_or(0, char::len_utf8);
        let second = chars.next().filter(|&c| is_gram(c)).map_or(0, char::len_utf8);
        (from + first + second, from + first)
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        loop {
            let from = self.at;
            let byte = *self.text.as_bytes().get(from)?;
            if byte.is_ascii() {
                if !byte.is_ascii_alphanumeric() {
                    self.at += 1;
                    continue;
                }
            } else {
                let first = self.text[from..].chars().next()?;
                if !is_word_char(first) {
                    self.at += first.len_utf8();
                    continue;
                }
                if is_gram(first) {
                    let (to, next) = self.gram(from);
                    self.at = next;
                    return Some(self.word(from, to));
                }
            }
            let to = self.with_signs(from, self.run_end(from));
            self.at = to;
            if !self.is_possessive(from, to) {
                return Some(self.word(from, to));
            }
        }
    }
}

/// Letters, digits, and the marks that some scripts write inside words.
fn is_word_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    c.is_alphanumeric()
        || matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
            | '\u{64b}'..='\u{65f}' | '\u{93c}' | '\u{94d}' | '\u{9bc}' | '\u{9cd}' | '\u{a4d}'
            | '\u{acd}' | '\u{b4d}' | '\u{bcd}' | '\u{c4d}' | '\u{ccd}' | '\u{d4d}'
            | '\u{e47}'..='\u{e4e}' | '\u{ec8}'..='\u{ecd}' | '\u{1039}' | '\u{103a}' | '\u{17d2}')
}

/// Whether words of this script are not separated by spaces (or, in Korean, are long compounds), so
/// that pairs of characters stand for words.
pub(crate) fn is_gram(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Writes a word in lower case and in one spelling, with accents: what stemmers expect.
pub(crate) fn lower(word: &str, out: &mut String) {
    out.clear();
    if word.is_ascii() {
        out.push_str(&word[..word.len().min(WORD_BYTES_MAX)]);
        out.make_ascii_lowercase();
        return;
    }
    for c in word.chars().flat_map(char::to_lowercase) {
        if out.len() + c.len_utf8() > WORD_BYTES_MAX {
            break;
        }
        out.push(c);
    }
}

/// Takes the accents off Latin and Greek letters and gives variants of a letter one form, because
/// people leave accents out when they type.
pub(crate) fn fold(word: &mut String) {
    if word.is_ascii() || !word.chars().any(has_foldable_form) {
        return;
    }
    let folded: String = DecomposingNormalizerBorrowed::new_nfkd()
        .normalize(word)
        .chars()
        .filter(|c| !matches!(c, '\u{300}'..='\u{36f}'))
        .flat_map(char::to_lowercase)
        .collect();
    *word = folded.replace('ß', "ss").replace('ø', "o").replace('ł', "l").replace('đ', "d");
}

fn has_foldable_form(c: char) -> bool {
    matches!(c, '\u{aa}' | '\u{b5}' | '\u{ba}' | '\u{c0}'..='\u{24f}' | '\u{300}'..='\u{3ff}'
        | '\u{1e00}'..='\u{1fff}' | '\u{fb00}'..='\u{fb06}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut all = Vec::new();
        for word in Words::of(text) {
            let mut form = String::new();
            lower(&text[word.from..word.to], &mut form);
            fold(&mut form);
            all.push(form);
        }
        assert_eq!(all.join(" "), expect);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check("Boundary-layer flow (1958), v2.", "boundary layer flow 1958 v2");
        check("snake_case and CamelCase", "snake case and camelcase");
    }

    #[test]
    fn the_possessive_is_no_word() {
        check("Prandtl's and Prandtl\u{2019}s s", "prandtl and prandtl s");
        check("l'homme don't", "l homme don t");
    }

    #[test]
    fn signs_belong_to_the_names_of_languages() {
        check("C++, C# and F#; a#b, C+, 5#", "c++ c# and f# a b c 5");
    }

    #[test]
    fn accents_and_wide_letters_are_folded() {
        check("Résumé ÅNGSTRÖM naïve straße ＡＢＣ１", "resume angstrom naive strasse abc1");
        check("re\u{301}sume\u{301} ﬁne", "resume fine");
        check("Йод ёлка", "йод ёлка");
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        check("東京都 2020年", "東京 京都 都 2020 年");
        check("ภาษา", "ภา าษ ษา า");
    }

    #[test]
    fn a_very_long_word_is_cut() {
        check(&"x".repeat(500), &"x".repeat(64));
    }

    proptest! {
        #[test]
        fn every_place_is_a_piece_of_the_text(text in "\\PC{0,80}") {
            for (place, word) in Words::of(&text).enumerate() {
                prop_assert!(word.from < word.to);
                prop_assert!(text.get(word.from..word.to).is_some());
                prop_assert_eq!(word.position, place);
            }
        }
    }
}
