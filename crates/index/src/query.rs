//! What can be asked: a [`Query`] in the words of a person, with what a program may add to it.

mod parse;

use serde::{Deserialize, Serialize};
use telusur_model::Timestamp;

pub(crate) use parse::{Atom, Parsed, parse};

/// Deepest hit that can be asked for. Nobody reads further, and everything above it is held in
/// memory at once.
pub const HITS_MAX: usize = 1000;

/// A question to the index.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What was typed, in the query language; or, with `pattern`, a regular expression.
    pub text: String,
    /// Whether `text` is a regular expression, case-insensitive, matched in the stored columns.
    pub pattern: bool,
    /// The columns that words or pattern must occur in; all if empty.
    pub columns: Vec<Column>,
    /// Conditions on top of those in the text.
    pub filters: Vec<Filter>,
    /// The language of the words, if known; it decides which words say little.
    pub language: Option<String>,
    /// The order of hits.
    pub sort: Sort,
    /// How many hits to leave out at the beginning.
    pub offset: usize,
    /// How many hits to give; together with `offset` at most [`HITS_MAX`].
    pub limit: usize,
    /// What to count the matching pages by.
    pub facets: Vec<FacetBy>,
    /// Whether pages that say the same are shown once.
    pub fold_similar: bool,
    /// Whether a site shows at most two hits while other sites have hits.
    pub group_sites: bool,
    /// Whether each hit says why it stands where it stands.
    pub explain: bool,
    /// The time now, for freshness. Without it all pages are equally fresh.
    pub now: Option<Timestamp>,
}

impl Query {
    /// The query that a person types, with the defaults of the product.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pattern: false,
            columns: Vec::new(),
            filters: Vec::new(),
            language: None,
            sort: Sort::Relevance,
            offset: 0,
            limit: 10,
            facets: Vec::new(),
            fold_similar: true,
            group_sites: true,
            explain: false,
            now: None,
        }
    }

    /// The query of somebody who measures relevance: every document for itself.
    pub fn batch(text: &str, limit: usize) -> Self {
        Self { limit, fold_similar: false, group_sites: false, ..Self::new(text) }
    }
}

/// The columns that a search can be restricted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// The title.
    Title,
    /// What the page says about itself.
    Description,
    /// The words it wants to be found by.
    Keywords,
    /// The main text.
    Text,
    /// The address.
    Url,
}

impl Column {
    /// All words, in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["title", "description", "keywords", "text", "url"];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::Keywords => "keywords",
            Self::Text => "text",
            Self::Url => "url",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Title, Self::Description, Self::Keywords, Self::Text, Self::Url]
            .into_iter()
            .find(|column| column.word() == word)
    }
}

/// The orders of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Best first.
    #[default]
    Relevance,
    /// Youngest first.
    Newest,
    /// By address.
    Url,
}

impl Sort {
    /// All words, in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["relevance", "newest", "url"];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Newest => "newest",
            Self::Url => "url",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Relevance, Self::Newest, Self::Url].into_iter().find(|sort| sort.word() == word)
    }
}

/// What matching pages are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FacetBy {
    /// Registrable domain.
    Site,
    /// Language code.
    #[serde(rename = "lang")]
    Language,
    /// What it was made from.
    #[serde(rename = "type")]
    Kind,
    /// Year of publication, else of fetching.
    Year,
    /// Crawl number.
    Crawl,
}

impl FacetBy {
    /// All words, in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["site", "lang", "type", "year", "crawl"];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Language => "lang",
            Self::Kind => "type",
            Self::Year => "year",
            Self::Crawl => "crawl",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Site, Self::Language, Self::Kind, Self::Year, Self::Crawl]
            .into_iter()
            .find(|by| by.word() == word)
    }
}

/// A condition that a page meets or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// On this host, or on a host below this domain.
    Site(String),
    /// All these words are in the title.
    TitleWords(String),
    /// All these words are in the address.
    UrlWords(String),
    /// In this language, by its code.
    Language(String),
    /// Of this kind: `pdf`, `html` …
    Kind(String),
    /// Younger than or as old as this.
    From(Timestamp),
    /// Older than this.
    Until(Timestamp),
    /// With something of this sort: `table`, `form`, `image`, `code`.
    Has(String),
    /// Of this crawl.
    Crawl(u32),
    /// With a status from the first to the last.
    Status(u16, u16),
    /// With a link to this address.
    Link(String),
    /// With this word about rights.
    Rights(String),
    /// Published, or else fetched, in this year.
    Year(u16),
    /// The pages that do not meet the condition.
    Not(Box<Filter>),
}

impl Filter {
    /// The condition that a field of the query language sets: `site`, `lang`, `filetype` … `None` if
    /// there is no such field, or the value cannot be used. However long and odd the value is, it is
    /// this one condition and nothing else.
    pub fn of(field: &str, value: &str) -> Option<Self> {
        parse::filter(field, value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;

    use super::*;

    #[test]
    fn words_are_those_of_json_and_lead_back() {
        for word in Column::WORDS {
            let column = Column::from_word(word).unwrap();
            assert_eq!((column.word(), to_value(column).unwrap()), (*word, (*word).into()));
        }
        for word in Sort::WORDS {
            let sort = Sort::from_word(word).unwrap();
            assert_eq!((sort.word(), to_value(sort).unwrap()), (*word, (*word).into()));
        }
        for word in FacetBy::WORDS {
            let by = FacetBy::from_word(word).unwrap();
            assert_eq!((by.word(), to_value(by).unwrap()), (*word, (*word).into()));
        }
    }

    #[test]
    fn a_value_is_one_condition_whatever_is_in_it() {
        let odd = "a.org\" OR site:b.org";
        assert_eq!(Filter::of("lang", "EN-us"), Some(Filter::Language("en".into())));
        assert_eq!(Filter::of("filetype", odd), Some(Filter::Kind(odd.to_lowercase())));
        assert_eq!(Filter::of("colour", "red"), None);
        assert_eq!(Filter::of("site", ""), None);
    }
}
