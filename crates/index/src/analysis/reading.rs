//! [`DocumentReader`]: everything that the index keeps of a document's words, from reading each text
//! once.
//!
//! The engine's tokenizers belong to a field and cannot see which document, and so which language,
//! they read. So words are worked out here, and handed over as pieces between spaces, which the
//! engine merely splits. An empty piece keeps the place of a word that is left out.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

use super::stem::KnownWord;
use super::words::Words;
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

/// A part of a document, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// The stems of words that say something, in order, as pieces.
    pub(crate) stems: String,
    /// The place after the last stem.
    pub(crate) end: usize,
    /// How many words say what the text is about.
    pub(crate) content_words: usize,
    /// What near-duplicates are found by.
    pub(crate) sketch: Sketch,
}

/// Reads the texts of one document.
pub(crate) struct DocumentReader<'s> {
    language: Option<Language>,
    stems: &'s mut Stems,
    /// Its number among those that were read.
    document: u64,
    written: String,
}

impl<'s> DocumentReader<'s> {
    /// A reader of one document in a language.
    pub(crate) fn new(language: Option<Language>, stems: &'s mut Stems) -> Self {
        let document = stems.next_document();
        Self { language, stems, document, written: String::new() }
    }

    /// Reads a section of the document; so much of its words as written joins those of the others.
    pub(crate) fn section(&mut self, text: &str, written: Depth) -> Section {
        let mut section =
            Section { stems: String::with_capacity(text.len()), ..Section::default() };
        let mut sketcher = Sketcher::default();
        for word in Words::of(text) {
            let known = self.stems.know(&text[word.from..word.to], self.language);
            sketcher.push(known.hash);
            section.content_words += usize::from(known.is_content);
            if !known.is_function {
                section.stems.push_str(&known.stem);
                section.end = word.position + 1;
            }
            section.stems.push(' ');
            let is_told = written == Depth::Sparse && known.is_own_stem() && !known.is_function;
            // Ranking does not use the frequency of a word as written: once is enough, and half the work.
            if !is_told && known.listed_in != self.document {
                known.listed_in = self.document;
                self.written.push_str(known.written());
                self.written.push(' ');
            }
        }
        section.sketch = sketcher.finish();
        section
    }

    /// The words as written, folded, of all sections so far, as pieces in no order that counts.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// The stems of all words of a text, as pieces.
    pub(crate) fn stems_of(&mut self, text: &str) -> String {
        self.pieces(text, |known, pieces| pieces.push_str(&known.stem))
    }

    /// All words of a text as written, folded, as pieces.
    pub(crate) fn written_of(&mut self, text: &str) -> String {
        self.pieces(text, |known, pieces| pieces.push_str(known.written()))
    }

    fn pieces(&mut self, text: &str, push: impl Fn(&KnownWord, &mut String)) -> String {
        let mut pieces = String::with_capacity(text.len());
        for word in Words::of(text) {
            push(self.stems.know(&text[word.from..word.to], self.language), &mut pieces);
            pieces.push(' ');
        }
        pieces
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
        PieceStream { pieces: value, at: 0, place: 0, token: &mut self.token }
    }
}

struct PieceStream<'a> {
    pieces: &'a str,
    /// Where the next piece begins, and how many there were before it.
    at: usize,
    place: usize,
    token: &'a mut Token,
}

impl TokenStream for PieceStream<'_> {
    fn advance(&mut self) -> bool {
        // Pieces are a few bytes long: looking at each byte is quicker than any search for the space.
        let bytes = self.pieces.as_bytes();
        while let Some(length) = bytes[self.at..].iter().position(|byte| *byte == b' ') {
            let piece = self.at..self.at + length;
            self.at += length + 1;
            self.place += 1;
            if length > 0 {
                self.token.text.clear();
                self.token.text.push_str(&self.pieces[piece]);
                self.token.position = self.place - 1;
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

    fn read(language: &str, written: Depth, text: &str) -> (Section, String) {
        let mut stems = Stems::default();
        let mut reader = DocumentReader::new(Language::from_code(language), &mut stems);
        let section = reader.section(text, written);
        (section, reader.written().to_owned())
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
    fn stems_keep_their_places() {
        let (section, written) = read("en", Depth::Whole, "The Running page of 5");
        check(&section.stems, &[(1, "run"), (2, "page"), (4, "5")]);
        assert_eq!(written, "the running page of 5 ");
        assert_eq!((section.end, section.content_words), (5, 2));
        assert_eq!(read("en", Depth::Sparse, "page of").0.end, 1);
    }

    #[test]
    fn sparse_readings_say_nothing_twice() {
        let (section, written) = read("en", Depth::Sparse, "The running page of 5");
        check(&section.stems, &[(1, "run"), (2, "page"), (4, "5")]);
        assert_eq!(written, "the running of ");
    }

    #[test]
    fn without_a_language_words_are_their_own_stems() {
        let (section, written) = read("", Depth::Sparse, "The Running");
        check(&section.stems, &[(0, "the"), (1, "running")]);
        assert_eq!(written, "");
    }

    #[test]
    fn each_word_as_written_is_listed_once_per_document() {
        let mut stems = Stems::default();
        let english = Language::from_code("en");
        for _ in 0..2 {
            let mut reader = DocumentReader::new(english, &mut stems);
            reader.section("pages", Depth::Whole);
            reader.section("pages running; running of running", Depth::Sparse);
            assert_eq!(reader.written(), "pages running of ");
        }
    }

    #[test]
    fn short_texts_are_read_whole() {
        let mut stems = Stems::default();
        let mut reader = DocumentReader::new(Language::from_code("en"), &mut stems);
        check(&reader.stems_of("The Running page"), &[(0, "the"), (1, "run"), (2, "page")]);
        check(&reader.written_of("The Running page"), &[(0, "the"), (1, "running"), (2, "page")]);
        assert_eq!(reader.written(), "");
    }
}
