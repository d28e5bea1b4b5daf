//! Hands words to the index engine, as stems or as written.
//!
//! The engine's tokenizers belong to a field and cannot see which document they read. So the
//! language travels as the first character of a value, from a range that no text uses; such values
//! are never stored.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

use super::words::Words;
use super::{Language, Stems};

/// The name of the tokenizer that gives stems.
pub(crate) const STEMMED: &str = "stemmed";
/// The name of the tokenizer that gives words as written, folded.
pub(crate) const EXACT: &str = "exact";

/// The first of the private characters that name a language.
const LANGUAGE_MARK: u32 = 0xF_0000;

/// A text with its language in front, for a field with the stemming tokenizer.
pub(crate) fn with_language(language: Option<Language>, text: &str) -> String {
    let mark = language
        .and_then(|language| u32::try_from(language.index()).ok())
        .and_then(|index| char::from_u32(LANGUAGE_MARK + index));
    let mut value = String::with_capacity(text.len() + 4);
    value.extend(mark);
    value.push_str(text);
    value
}

fn split_language(value: &str) -> (Option<Language>, &str) {
    let mut chars = value.chars();
    let language = chars
        .next()
        .and_then(|mark| u32::from(mark).checked_sub(LANGUAGE_MARK))
        .and_then(|index| Language::from_index(usize::try_from(index).ok()?));
    if language.is_some() { (language, chars.as_str()) } else { (None, value) }
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
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, value: &'a str) -> WordStream<'a> {
        let (language, text) = split_language(value);
        self.token.reset();
        WordStream { text, language, words: Words::of(text), tokenizer: self }
    }
}

struct WordStream<'a> {
    text: &'a str,
    language: Option<Language>,
    words: Words<'a>,
    tokenizer: &'a mut WordTokenizer,
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        let written = &self.text[word.from..word.to];
        let WordTokenizer { stemmed, stems, token } = &mut *self.tokenizer;
        if *stemmed {
            stems.stem(written, self.language, &mut token.text);
        } else {
            Stems::exact(written, &mut token.text);
        }
        token.offset_from = word.from;
        token.offset_to = word.to;
        token.position = word.position;
        true
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
        let english = with_language(Language::from_code("en"), "Running pages");
        check(stemmed_analyzer(), &english, &[(0, "run"), (1, "page")]);
        check(exact_analyzer(), &english, &[(0, "running"), (1, "pages")]);
        let unknown = with_language(None, "Running pages");
        check(stemmed_analyzer(), &unknown, &[(0, "running"), (1, "pages")]);
    }
}
