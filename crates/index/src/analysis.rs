//! From text to terms: words, languages, stems. The same code reads pages and queries, so that both
//! sides agree. It never drops a word: which words say little is decided when a query is asked.

mod language;
mod stem;
mod stop_words;
mod tokenizer;
mod words;

pub use language::Language;
pub(crate) use stem::{StemPool, Stems};
pub(crate) use tokenizer::{
    Depth, EXACT, STEMMED, exact_analyzer, stemmed_analyzer, with_language,
};
pub(crate) use words::{Words, is_gram, lower};
