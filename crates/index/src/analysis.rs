//! From text to terms: words, languages, stems. The same code reads pages and queries, so that both
//! sides agree. It never drops a word: which words say little is decided when a query is asked.

mod language;
mod reading;
mod stem;
mod stop_words;
mod words;

pub use language::Language;
pub(crate) use reading::{Depth, DocumentReader, PIECES, tokenizers};
pub(crate) use stem::{StemPool, Stems};
pub(crate) use words::{Words, is_gram, lower};
