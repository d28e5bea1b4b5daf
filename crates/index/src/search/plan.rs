//! From what a query says to what is looked up: which pages match, and which words they are ranked
//! by.
//!
//! The language of a query is rarely known, and pages were stemmed each in its own language. So a
//! word is looked up under its stem in every language that the index holds, and as written: a page
//! that has the word exactly is found in any language. Only the common words of a long query
//! find nothing by themselves.

use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, PhraseQuery,
    Query as EngineQuery, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption, Term};

use crate::IndexError;
use crate::analysis::{Depth, Language, Stems, Words, is_gram, lower};
use crate::dictionary;
use crate::fields::{Fields, link_number};
use crate::links::{Digest, LinkedPage};
use crate::query::{Atom, Column, Filter, Parsed, Query};
use crate::view::View;

/// Languages that a word is looked up in. Stems of different languages mostly coincide, so that a
/// word has two or three forms; more languages than this in one index are not worth the time.
const LANGUAGES_MAX: usize = 12;
/// Words that a beginning stands for.
const PREFIXED_MAX: usize = 24;
/// Words that are unknown to the index and get others in their place, per query: looking for them
/// walks the dictionary.
const LIKE_WORDS_MAX: usize = 4;
/// Words of a query that find pages however common they are: the rarest.
const FINDING_WORDS: usize = 6;
/// A word is common if one page in this many has it.
const COMMON_ONE_IN: u64 = 10;
/// How many words stand in for an unknown one.
const LIKE_MAX: usize = 3;
/// How much a word counts that stands in for an unknown one.
const LIKE_WEIGHT: f32 = 0.8;

/// Pages that are found by the words of links to them. As many as are ranked in full.
pub(super) const LINKED_MAX: usize = 300;

/// What is planned with.
#[derive(Clone, Copy)]
pub(crate) struct PlannedIndex<'v> {
    pub(crate) view: &'v View,
    pub(crate) fields: &'v Fields,
    pub(crate) links: &'v Digest,
}

/// What is looked up.
pub(crate) struct Plan {
    /// Which pages match. Its score chooses candidates, nothing more.
    pub(crate) matching: Box<dyn EngineQuery>,
    /// The words that pages are ranked by, in the order of the query, each once.
    pub(crate) words: Vec<PlanWord>,
    /// The columns that words must occur in; all if empty.
    pub(crate) columns: Vec<Column>,
    /// Whether words are all that is asked for: every page with one that finds matches, and no other.
    pub(crate) is_any_of_words: bool,
    /// The pages that links call by the words, if there are any.
    pub(crate) linked: Option<Linked>,
}

/// Pages that are found by the words of links to them.
pub(crate) struct Linked {
    /// Those of them that meet all conditions.
    pub(crate) query: Box<dyn EngineQuery>,
    /// How well the words fit, by page. Ascending.
    scores: Vec<LinkedPage>,
}

impl Plan {
    /// All pages that are found, by their own words or by those of links.
    pub(crate) fn found(&self) -> Box<dyn EngineQuery> {
        match &self.linked {
            None => self.matching.box_clone(),
            Some(linked) => any(vec![self.matching.box_clone(), linked.query.box_clone()]),
        }
    }

    /// How well the words of links to a page fit.
    pub(crate) fn linked_score(&self, page: u64) -> f32 {
        let scores = self.linked.as_ref().map_or(&[][..], |linked| &linked.scores);
        match scores.binary_search_by_key(&page, |it| it.page) {
            Ok(at) => scores[at].score,
            Err(_) => 0.0,
        }
    }
}

/// A word that pages are ranked by.
pub(crate) struct PlanWord {
    /// As it was typed.
    pub(crate) typed: String,
    /// As it was typed, folded.
    pub(crate) written: String,
    /// Its forms in the index.
    pub(crate) terms: Vec<Term>,
    /// The form under which it is indexed as written.
    pub(crate) exact: Term,
    /// Whether it is a function word in some language of the index, so that pages in that language
    /// hold it as written only.
    pub(crate) says_little: bool,
    /// In how many pages it stands, in any form of its own.
    pub(crate) typed_docs: u64,
    /// The same for the words that it is looked up by, which may be others that stand in for it.
    pub(crate) docs: u64,
    /// Whether it finds pages, or only says which of the found ones fit better.
    pub(crate) finds: bool,
    /// How much it counts: how often it was asked for, less if it stands in for another.
    pub(crate) weight: f32,
}

impl PlanWord {
    /// Its forms in the index, as texts.
    pub(crate) fn stems(&self) -> Vec<String> {
        self.terms.iter().filter_map(|term| term.value().as_str().map(str::to_owned)).collect()
    }
}

/// Plans a query.
pub(crate) fn plan(
    index: PlannedIndex<'_>,
    stems: &mut Stems,
    query: &Query,
    parsed: &Parsed,
) -> Result<Plan, IndexError> {
    let PlannedIndex { view, fields, links } = index;
    let mut planner = Planner {
        view,
        fields,
        languages: view.languages.iter().copied().take(LANGUAGES_MAX).collect(),
        stems,
        like_left: LIKE_WORDS_MAX,
    };
    let words = planner.ranked_words(query, parsed)?;
    let mut clauses: Vec<(Occur, Box<dyn EngineQuery>)> = Vec::new();
    for group in &parsed.required {
        let atoms = group.iter().map(|atom| planner.atom(atom)).collect::<Result<_, _>>()?;
        clauses.push((Occur::Must, any(atoms)));
    }
    for atom in &parsed.excluded {
        clauses.push((Occur::MustNot, planner.atom(atom)?));
    }
    for filter in parsed.filters.iter().chain(&query.filters) {
        clauses.push(planner.filter(filter)?);
    }
    if !query.columns.is_empty() && !words.is_empty() {
        clauses.push((Occur::Must, quiet(planner.in_columns(&words, &query.columns))));
    }
    let ranked: Vec<Box<dyn EngineQuery>> =
        words.iter().filter(|word| word.finds).flat_map(word_queries).collect();
    let is_any_of_words = clauses.is_empty();
    // Words that must stand in the page, or in a column of it, cannot stand in a link instead.
    let linked = if parsed.required.is_empty() && query.columns.is_empty() {
        linked(links, fields, &words, &clauses)?
    } else {
        None
    };
    let matching = join(clauses, ranked, !parsed.required.is_empty());
    Ok(Plan { matching, words, columns: query.columns.clone(), is_any_of_words, linked })
}

/// The pages that links call by the words, under the conditions of the query.
fn linked(
    links: &Digest,
    fields: &Fields,
    words: &[PlanWord],
    clauses: &[(Occur, Box<dyn EngineQuery>)],
) -> Result<Option<Linked>, IndexError> {
    let Some(anchors) = &links.anchors else { return Ok(None) };
    let sought = words.iter().map(|word| {
        let mut forms = word.stems();
        if !forms.contains(&word.written) {
            forms.push(word.written.clone());
        }
        (forms, word.weight)
    });
    let mut scores = anchors.best(sought, LINKED_MAX)?;
    if scores.is_empty() {
        return Ok(None);
    }
    let pages = scores.iter().map(|it| -> Box<dyn EngineQuery> {
        let term = term_query(Term::from_field_u64(fields.page, it.page));
        Box::new(ConstScoreQuery::new(term, it.score))
    });
    let mut all: Vec<_> = clauses.iter().map(|(occur, it)| (*occur, it.box_clone())).collect();
    all.push((Occur::Must, any(pages.collect())));
    scores.sort_unstable_by_key(|it| it.page);
    Ok(Some(Linked { query: Box::new(BooleanQuery::new(all)), scores }))
}

/// All clauses together. Wanted words decide about matching unless others are required; alone, they
/// stay a plain list of terms, of which the engine can skip most.
fn join(
    mut clauses: Vec<(Occur, Box<dyn EngineQuery>)>,
    ranked: Vec<Box<dyn EngineQuery>>,
    has_required: bool,
) -> Box<dyn EngineQuery> {
    if clauses.is_empty() {
        return any(ranked);
    }
    if !ranked.is_empty() {
        let occur = if has_required { Occur::Should } else { Occur::Must };
        clauses.push((occur, any(ranked)));
    } else if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        clauses.push((Occur::Must, quiet(Box::new(AllQuery))));
    }
    Box::new(BooleanQuery::new(clauses))
}

struct Planner<'v> {
    view: &'v View,
    fields: &'v Fields,
    languages: Vec<Language>,
    stems: &'v mut Stems,
    like_left: usize,
}

impl Planner<'_> {
    /// The words that pages are ranked by: all that were typed but excluded ones, without words that
    /// say little as long as others remain.
    fn ranked_words(
        &mut self,
        query: &Query,
        parsed: &Parsed,
    ) -> Result<Vec<PlanWord>, IndexError> {
        let typed = typed_words(parsed);
        let language = self.query_language(query, &typed);
        let stop_words = language.map(Language::stop_words).unwrap_or_default();
        let is_telling = |typed: &Typed<'_>| typed.is_prefix || !stop_words.has(&typed.lowered);
        let any_telling = typed.iter().any(is_telling);
        let mut words: Vec<PlanWord> = Vec::new();
        for typed in typed.iter().filter(|typed| !any_telling || is_telling(typed)) {
            let mut written = String::new();
            Stems::exact(typed.word, &mut written);
            let terms = if typed.is_prefix || is_single_gram(typed.word) {
                self.prefixed_terms(&written)?
            } else {
                self.terms(typed.word, Depth::Sparse)
            };
            // Two forms of one word are one word, asked for twice.
            let is_same = |known: &&mut PlanWord| !terms.is_empty() && known.terms == terms;
            if let Some(known) = words.iter_mut().find(is_same) {
                known.weight += 1.0;
                continue;
            }
            words.push(self.ranked_word(typed.word, written, terms)?);
        }
        self.choose_finding(&mut words);
        Ok(words)
    }

    /// Lets the common words of a long query find nothing: they would have the engine look at most of the
    /// index, for pages that the rarer words leave far behind.
    fn choose_finding(&self, words: &mut [PlanWord]) {
        let mut docs: Vec<u64> =
            words.iter().map(|word| word.docs).filter(|docs| *docs > 0).collect();
        docs.sort_unstable();
        let Some(&rare) = docs.get(FINDING_WORDS - 1) else { return };
        let docs_max = rare.max(self.view.searcher.num_docs() / COMMON_ONE_IN);
        for word in words {
            word.finds = word.docs <= docs_max;
        }
    }

    fn ranked_word(
        &mut self,
        typed: &str,
        written: String,
        mut terms: Vec<Term>,
    ) -> Result<PlanWord, IndexError> {
        let exact = Term::from_field_text(self.fields.exact, &written);
        let says_little = self.languages.iter().any(|language| language.stop_words().has(&written));
        let mut typed_docs = self.docs(&terms)?;
        if says_little {
            typed_docs = typed_docs.max(self.view.searcher.doc_freq(&exact)?);
        }
        let mut docs = typed_docs;
        let mut weight = 1.0;
        if docs == 0 && self.like_left > 0 {
            self.like_left -= 1;
            let like = self.terms_like(&written, &terms)?;
            if !like.is_empty() {
                docs = self.docs(&like)?;
                terms = like;
                weight = LIKE_WEIGHT;
            }
        }
        Ok(PlanWord {
            typed: typed.to_owned(),
            written,
            terms,
            exact,
            says_little,
            typed_docs,
            docs,
            finds: true,
            weight,
        })
    }

    /// The forms of words that stand in for an unknown one. Words as written are compared first: the
    /// stem of a misspelt word is far from the right one. Words that are their own stem are found
    /// among the stems.
    fn terms_like(&mut self, written: &str, terms: &[Term]) -> Result<Vec<Term>, IndexError> {
        let words = dictionary::like(self.view, self.fields.exact, written, LIKE_MAX)?;
        let mut like: Vec<Term> =
            words.iter().flat_map(|entry| self.terms(&entry.word, Depth::Sparse)).collect();
        let stem = terms.first().and_then(|term| term.value().as_str().map(str::to_owned));
        let stem = stem.unwrap_or_default();
        let stems = dictionary::like(self.view, self.fields.body, &stem, LIKE_MAX)?;
        like.extend(stems.iter().map(|entry| self.body_term(&entry.word)));
        like.sort_unstable();
        like.dedup();
        Ok(like)
    }

    /// In which of the index's languages the query is: the one that knows most of its function words.
    fn query_language(&self, query: &Query, typed: &[Typed<'_>]) -> Option<Language> {
        if let Some(code) = &query.language {
            return Language::from_code(code);
        }
        let known = |language: &Language| {
            let stop_words = language.stop_words();
            typed.iter().filter(|typed| stop_words.has(&typed.lowered)).count()
        };
        // The last of equal ones wins, so the most frequent language comes last.
        self.languages.iter().copied().rev().max_by_key(known)
    }

    /// The forms of a word: its stem in each language, and the word itself. Sparse fields do not
    /// hold the function words of a page's language.
    fn terms(&mut self, written: &str, depth: Depth) -> Vec<Term> {
        let mut terms = Vec::new();
        let mut form = String::new();
        Stems::exact(written, &mut form);
        let folded = form.clone();
        let languages = self.languages.iter().copied().map(Some).chain([None]);
        for language in languages {
            let stop_words = language.map(Language::stop_words).unwrap_or_default();
            if depth == Depth::Sparse && stop_words.has(&folded) {
                continue;
            }
            self.stems.stem(written, language, &mut form);
            let term = Term::from_field_text(self.fields.body, &form);
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        terms
    }

    fn prefixed_terms(&self, prefix: &str) -> Result<Vec<Term>, IndexError> {
        let entries = dictionary::prefixed(self.view, self.fields.body, prefix, PREFIXED_MAX)?;
        Ok(entries.iter().map(|entry| self.body_term(&entry.word)).collect())
    }

    fn body_term(&self, form: &str) -> Term {
        Term::from_field_text(self.fields.body, form)
    }

    fn docs(&self, terms: &[Term]) -> Result<u64, IndexError> {
        let mut docs = 0;
        for term in terms {
            docs += self.view.searcher.doc_freq(term)?;
        }
        Ok(docs.min(self.view.searcher.num_docs()))
    }

    /// The pages that have a word or phrase. The words of a phrase must all be there as written, and
    /// in this order by their stems.
    fn atom(&mut self, atom: &Atom) -> Result<Box<dyn EngineQuery>, IndexError> {
        let text = match atom {
            Atom::Prefix(prefix) => {
                let mut folded = String::new();
                Stems::exact(prefix, &mut folded);
                return Ok(any(self
                    .prefixed_terms(&folded)?
                    .into_iter()
                    .map(term_query)
                    .collect()));
            }
            Atom::Word(text) | Atom::Phrase(text) => text,
        };
        let words: Vec<&str> = query_words(text).collect();
        let in_order = self.in_order(&words);
        if matches!(atom, Atom::Word(_)) {
            return Ok(in_order);
        }
        let mut clauses = vec![(Occur::Must, in_order)];
        for word in words {
            let mut folded = String::new();
            Stems::exact(word, &mut folded);
            // A word that is its own stem stands among the stems only.
            let exact = Term::from_field_text(self.fields.exact, &folded);
            let own_stem = self.body_term(&folded);
            clauses.push((Occur::Must, quiet(any(vec![term_query(exact), term_query(own_stem)]))));
        }
        Ok(Box::new(BooleanQuery::new(clauses)))
    }

    /// The pages that have these words one after the other, by the stems of any one language. Where
    /// a function word was left out of the index, its place stays free.
    fn in_order(&mut self, words: &[&str]) -> Box<dyn EngineQuery> {
        let mut sequences: Vec<Vec<(usize, Term)>> = Vec::new();
        let languages: Vec<_> = self.languages.iter().copied().map(Some).chain([None]).collect();
        for language in languages {
            let stop_words = language.map(Language::stop_words).unwrap_or_default();
            let mut sequence = Vec::with_capacity(words.len());
            for (place, word) in words.iter().enumerate() {
                let mut form = String::new();
                Stems::exact(word, &mut form);
                if stop_words.has(&form) {
                    continue;
                }
                self.stems.stem(word, language, &mut form);
                sequence.push((place, self.body_term(&form)));
            }
            if !sequences.contains(&sequence) {
                sequences.push(sequence);
            }
        }
        let queries = sequences.into_iter().map(|mut sequence| match sequence.len() {
            0 => all_exact(&words.join(" "), self.fields.exact),
            1 => term_query(sequence.remove(0).1),
            _ => Box::new(PhraseQuery::new_with_offset(sequence)),
        });
        any(queries.collect())
    }

    fn filter(&mut self, filter: &Filter) -> Result<(Occur, Box<dyn EngineQuery>), IndexError> {
        let fields = *self.fields;
        let text = |field: Field, value: &str| -> Box<dyn EngineQuery> {
            term_query(Term::from_field_text(field, value))
        };
        let number = |field: Field, value: u64| term_query(Term::from_field_u64(field, value));
        let query = match filter {
            Filter::Not(filter) => {
                let (occur, query) = self.filter(filter)?;
                let occur = if occur == Occur::Must { Occur::MustNot } else { Occur::Must };
                return Ok((occur, query));
            }
            Filter::Site(domain) => text(fields.host, domain),
            Filter::TitleWords(words) => self.all_words(words, fields.title_words),
            Filter::UrlWords(words) => all_exact(words, fields.url_words),
            Filter::Language(code) => text(fields.language, code),
            Filter::Kind(kind) => text(fields.kind, kind),
            Filter::From(time) => range(fields.time, time.0, u64::MAX),
            Filter::Until(time) => match time.0.checked_sub(1) {
                Some(last) => range(fields.time, 0, last),
                None => Box::new(EmptyQuery),
            },
            Filter::Year(year) => number(fields.year, u64::from(*year)),
            Filter::Has(what) => text(fields.has, what),
            Filter::Crawl(crawl) => number(fields.crawl, u64::from(*crawl)),
            Filter::Status(first, last) => {
                range(fields.status, u64::from(*first), u64::from(*last))
            }
            Filter::Link(url) => {
                let link = link_number(url);
                range(fields.link, link, link)
            }
            Filter::Rights(word) => text(fields.rights, word),
        };
        Ok((Occur::Must, quiet(query)))
    }

    /// The pages that have all these words in a column of stems.
    fn all_words(&mut self, text: &str, field: Field) -> Box<dyn EngineQuery> {
        let words: Vec<&str> = query_words(text).collect();
        let mut clauses = Vec::with_capacity(words.len());
        for word in words {
            let forms = self.terms(word, Depth::Whole);
            let forms = forms.iter().map(|term| term_query(in_field(term, field))).collect();
            clauses.push((Occur::Must, any(forms)));
        }
        all(clauses)
    }

    /// The pages that have at least one of the words in one of the columns.
    fn in_columns(&self, words: &[PlanWord], columns: &[Column]) -> Box<dyn EngineQuery> {
        let mut queries: Vec<Box<dyn EngineQuery>> = Vec::new();
        for column in columns {
            let field = match column {
                Column::Title => self.fields.title_words,
                Column::Description => self.fields.description_words,
                Column::Keywords => self.fields.keyword_words,
                Column::Text => self.fields.body,
                Column::Url => {
                    let urls = words
                        .iter()
                        .map(|word| Term::from_field_text(self.fields.url_words, &word.written));
                    queries.extend(urls.map(term_query));
                    continue;
                }
            };
            let terms = words.iter().flat_map(|word| &word.terms);
            queries.extend(terms.map(|term| term_query(in_field(term, field))));
        }
        any(queries)
    }
}

/// A word of the query.
struct Typed<'q> {
    word: &'q str,
    lowered: String,
    is_prefix: bool,
}

/// All words of a query but excluded ones.
fn typed_words(parsed: &Parsed) -> Vec<Typed<'_>> {
    let mut typed = Vec::new();
    let mut push = |word, is_prefix| {
        let mut lowered = String::new();
        lower(word, &mut lowered);
        typed.push(Typed { word, lowered, is_prefix });
    };
    for atom in parsed.wanted.iter().chain(parsed.required.iter().flatten()) {
        match atom {
            Atom::Prefix(prefix) => push(prefix.as_str(), true),
            Atom::Word(text) | Atom::Phrase(text) => {
                query_words(text).for_each(|word| push(word, false));
            }
        }
    }
    typed
}

/// The words of a piece of a query. Where pairs of characters stand for words, the single last
/// character of a run is left out: the pair before it has it.
pub(crate) fn query_words(text: &str) -> impl Iterator<Item = &str> {
    let mut end_before = 0;
    Words::of(text).filter_map(move |word| {
        let repeats = word.to == end_before;
        end_before = word.to;
        (!repeats).then(|| &text[word.from..word.to])
    })
}

fn is_single_gram(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_gram) && chars.next().is_none()
}

fn in_field(term: &Term, field: Field) -> Term {
    Term::from_field_text(field, term.value().as_str().unwrap_or_default())
}

fn all_exact(text: &str, field: Field) -> Box<dyn EngineQuery> {
    let mut folded = String::new();
    let clauses = query_words(text).map(|word| {
        Stems::exact(word, &mut folded);
        (Occur::Must, term_query(Term::from_field_text(field, &folded)))
    });
    all(clauses.collect())
}

/// The forms of a word as queries that the engine can rank candidates by.
fn word_queries(word: &PlanWord) -> impl Iterator<Item = Box<dyn EngineQuery>> + '_ {
    let stems = word.terms.iter().map(|term| -> Box<dyn EngineQuery> {
        let query = TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
        Box::new(BoostQuery::new(Box::new(query), word.weight))
    });
    stems.chain(word.says_little.then(|| term_query(word.exact.clone())))
}

fn term_query(term: Term) -> Box<dyn EngineQuery> {
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

fn range(field: Field, first: u64, last: u64) -> Box<dyn EngineQuery> {
    use std::ops::Bound::Included;
    let term = |value| Included(Term::from_field_u64(field, value));
    Box::new(RangeQuery::new(term(first), term(last)))
}

fn any(mut queries: Vec<Box<dyn EngineQuery>>) -> Box<dyn EngineQuery> {
    match queries.len() {
        0 => Box::new(EmptyQuery),
        1 => queries.remove(0),
        _ => Box::new(BooleanQuery::union(queries)),
    }
}

fn all(clauses: Vec<(Occur, Box<dyn EngineQuery>)>) -> Box<dyn EngineQuery> {
    if clauses.is_empty() { Box::new(EmptyQuery) } else { Box::new(BooleanQuery::new(clauses)) }
}

/// A condition that does not change the score.
fn quiet(query: Box<dyn EngineQuery>) -> Box<dyn EngineQuery> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}
