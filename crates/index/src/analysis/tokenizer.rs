//! Hands words to the index engine, as stems or as written.
//!
//! The engine's tokenizers belong to a field and cannot see which document they read. So the
//! language travels as the first character of a value, from a range that no text uses; such values
//! are never stored.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

use super::language::StopWords;
use super::words::Words;
use super::{Language, Stems};

/// The name of the tokenizer that gives stems.
pub(crate) const STEMMED: &str = "stemmed";
/// The name of the tokenizer that gives words as written, folded.
pub(crate) const EXACT: &str = "exact";

/// How much of a value is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Every word.
    Whole,
    /// Of stems, those of words that say something; of words as written, only those that their stem
    /// does not give away: function words, and inflected forms. A third of all words are function
    /// words, and half of the others are their own stem, so that this halves the index.
    Sparse,
}

/// The first of the private characters that name a language, by depth.
const WHOLE_MARK: u32 = 0xF_0000;
const SPARSE_MARK: u32 = 0xF_1000;

/// A text with its language in front, as the tokenizers expect it.
pub(crate) fn with_language(language: Option<Language>, depth: Depth, text: &str) -> String {
    let first = if depth == Depth::Whole { WHOLE_MARK } else { SPARSE_MARK };
    let mark = language
        .and_then(|language| u32::try_from(language.index()).ok())
        .and_then(|index| char::from_u32(first + index));
    let mut value = String::with_capacity(text.len() + 4);
    value.extend(mark);
    value.push_str(text);
    value
}

fn split_language(value: &str) -> (Option<Language>, Depth, &str) {
    let mut chars = value.chars();
    let mark = chars.next().map_or(0, u32::from);
    let (first, depth) =
        if mark < SPARSE_MARK { (WHOLE_MARK, Depth::Whole) } else { (SPARSE_MARK, Depth::Sparse) };
    let index = mark.checked_sub(first).and_then(|index| usize::try_from(index).ok());
    match index.and_then(Language::from_index) {
        Some(language) => (Some(language), depth, chars.as_str()),
        None => (None, Depth::Whole, value),
    }
}

/// The tokenizer of fields that hold stems.
pub(crate) fn stemmed_analyzer() -> TextAnalyzer {
    TextAnalyzer::from(WordTokenizer { stemmed: true, ..WordTokenizer::default() })
}

/// The tokenizer of fields that hold words as written.
pub(crate) fn exact_analyzer() -> TextAnalyzer {
    TextAnalyzer::from(WordTokenizer::default())
}

#[derive(Clone, Default)]
struct WordTokenizer {
    stemmed: bool,
    stems: Stems,
    stem: String,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, value: &'a str) -> WordStream<'a> {
        let (language, depth, text) = split_language(value);
        self.token.reset();
        let stop_words = language.map(Language::stop_words).unwrap_or_default();
        WordStream { text, language, depth, stop_words, words: Words::of(text), tokenizer: self }
    }
}

/// Reads the words of one value.
struct WordStream<'a> {
    text: &'a str,
    language: Option<Language>,
    depth: Depth,
    stop_words: StopWords,
    words: Words<'a>,
    tokenizer: &'a mut WordTokenizer,
}

impl WordStream<'_> {
    /// Writes a word's form into the token; says whether it is indexed.
    fn read(&mut self, written: &str) -> bool {
        let WordTokenizer { stemmed, stems, stem, token } = &mut *self.tokenizer;
        Stems::exact(written, &mut token.text);
        let is_sparse = self.depth == Depth::Sparse;
        let says_little = is_sparse && self.stop_words.has(&token.text);
        if *stemmed {
            stems.stem(written, self.language, &mut token.text);
            return !says_little;
        }
        if is_sparse && !says_little {
            stems.stem(written, self.language, stem);
            return *stem != token.text;
        }
        true
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(word) = self.words.next() {
            if self.read(&self.text[word.from..word.to]) {
                let token = &mut self.tokenizer.token;
                token.offset_from = word.from;
                token.offset_to = word.to;
                token.position = word.position;
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.tokenizer.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokenizer.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut analyzer: TextAnalyzer, value: &str, expect: &[(usize, &str)]) {
        let mut stream = analyzer.token_stream(value);
        let mut tokens = Vec::new();
        stream.process(&mut |token| tokens.push((token.position, token.text.clone())));
        let expect: Vec<_> = expect.iter().map(|&(at, text)| (at, text.to_owned())).collect();
        assert_eq!(tokens, expect);
    }

    #[test]
    fn the_language_travels_with_the_value() {
        let english = with_language(Language::from_code("en"), Depth::Whole, "The running page");
        check(stemmed_analyzer(), &english, &[(0, "the"), (1, "run"), (2, "page")]);
        check(exact_analyzer(), &english, &[(0, "the"), (1, "running"), (2, "page")]);
        let unknown = with_language(None, Depth::Sparse, "The running page");
        check(stemmed_analyzer(), &unknown, &[(0, "the"), (1, "running"), (2, "page")]);
    }

    #[test]
    fn sparse_values_leave_out_what_the_other_field_has() {
        let english = with_language(Language::from_code("en"), Depth::Sparse, "The running page");
        check(stemmed_analyzer(), &english, &[(1, "run"), (2, "page")]);
        check(exact_analyzer(), &english, &[(0, "the"), (1, "running")]);
    }
}
