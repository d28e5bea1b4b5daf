//! [`Reading`]: everything that the index keeps of a text's words, from reading the text once.
//!
//! The engine's tokenizers belong to a field and cannot see which document, and so which language,
//! they read. So words are worked out here, and handed over as pieces between spaces, which the
//! engine merely splits. An empty piece keeps the place of a word that is left out.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};
use xxhash_rust::xxh3::xxh3_64;

use super::words::{Words, fold, lower};
use super::{Language, Stems};
use crate::near_duplicates::{Sketch, Sketcher};

/// The name of the tokenizer that splits pieces.
pub(crate) const PIECES: &str = "pieces";

/// How many of a text's words are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Every word.
    Whole,
    /// Of stems, those of words that say something; of words as written, only those that their stem
    /// does not give away: function words, and inflected forms. A third of all words are function
    /// words, and half of the others are their own stem, so that this nearly halves the index.
    Sparse,
}

/// What reading a text gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The stems, in order, as pieces.
    pub(crate) stems: String,
    /// The words as written, folded, as pieces.
    pub(crate) written: String,
    /// The place after the last stem.
    pub(crate) end: usize,
    /// How many words say what the text is about. Function words, single characters and numbers
    /// make a text longer, not richer.
    pub(crate) content_words: usize,
    /// What near-duplicates are found by.
    pub(crate) sketch: Sketch,
}

impl Reading {
    /// Reads a text in a language.
    pub(crate) fn of(
        text: &str,
        language: Option<Language>,
        depth: Depth,
        stems: &mut Stems,
    ) -> Self {
        let mut reading = Self { stems: String::with_capacity(text.len()), ..Self::default() };
        let stop_words = language.map(Language::stop_words).unwrap_or_default();
        let mut sketcher = Sketcher::default();
        let (mut written, mut stem) = (String::new(), String::new());
        for word in Words::of(text) {
            lower(&text[word.from..word.to], &mut written);
            sketcher.push(xxh3_64(written.as_bytes()));
            let is_function = stop_words.has(&written);
            let is_number = written.bytes().all(|byte| byte.is_ascii_digit());
            reading.content_words += usize::from(!is_function && !is_number && written.len() > 1);
            let is_sparse = depth == Depth::Sparse;
            let mut is_told_by_stem = false;
            if !(is_sparse && is_function) {
                stems.stem_lowered(&written, language, &mut stem);
                reading.stems.push_str(&stem);
                reading.end = word.position + 1;
                fold(&mut written);
                is_told_by_stem = is_sparse && stem == written;
            } else {
                fold(&mut written);
            }
            reading.stems.push(' ');
            if !is_told_by_stem {
                reading.written.push_str(&written);
                reading.written.push(' ');
            }
        }
        reading.sketch = sketcher.finish();
        reading
    }
}

/// The tokenizers of an index: the one that splits pieces.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::default();
    tokenizers.register(PIECES, pieces_analyzer());
    tokenizers
}

fn pieces_analyzer() -> TextAnalyzer {
    TextAnalyzer::from(PieceTokenizer::default())
}

#[derive(Clone, Default)]
struct PieceTokenizer {
    token: Token,
}

impl Tokenizer for PieceTokenizer {
    type TokenStream<'a> = PieceStream<'a>;

    fn token_stream<'a>(&'a mut self, value: &'a str) -> PieceStream<'a> {
        self.token.reset();
        PieceStream { rest: value, place: 0, token: &mut self.token }
    }
}

struct PieceStream<'a> {
    rest: &'a str,
    place: usize,
    token: &'a mut Token,
}

impl TokenStream for PieceStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some((piece, rest)) = self.rest.split_once(' ') {
            let place = self.place;
            self.place += 1;
            self.rest = rest;
            if !piece.is_empty() {
                self.token.text.clear();
                self.token.text.push_str(piece);
                self.token.position = place;
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(language: &str, depth: Depth, text: &str) -> Reading {
        Reading::of(text, Language::from_code(language), depth, &mut Stems::default())
    }

    #[track_caller]
    fn check(pieces: &str, expect: &[(usize, &str)]) {
        let mut analyzer = pieces_analyzer();
        let mut tokens = Vec::new();
        analyzer
            .token_stream(pieces)
            .process(&mut |token| tokens.push((token.position, token.text.clone())));
        let expect: Vec<_> = expect.iter().map(|&(at, text)| (at, text.to_owned())).collect();
        assert_eq!(tokens, expect);
    }

    #[test]
    fn whole_readings_have_every_word() {
        let reading = read("en", Depth::Whole, "The Running page");
        check(&reading.stems, &[(0, "the"), (1, "run"), (2, "page")]);
        check(&reading.written, &[(0, "the"), (1, "running"), (2, "page")]);
        assert_eq!((reading.end, reading.content_words), (3, 2));
    }

    #[test]
    fn sparse_readings_say_nothing_twice() {
        let reading = read("en", Depth::Sparse, "The running page of 5");
        check(&reading.stems, &[(1, "run"), (2, "page"), (4, "5")]);
        check(&reading.written, &[(0, "the"), (1, "running"), (2, "of")]);
        assert_eq!((reading.end, reading.content_words), (5, 2));
        assert_eq!(read("en", Depth::Sparse, "page of").end, 1);
    }

    #[test]
    fn without_a_language_words_are_their_own_stems() {
        let reading = read("", Depth::Sparse, "The Running");
        check(&reading.stems, &[(0, "the"), (1, "running")]);
        check(&reading.written, &[]);
    }
}
