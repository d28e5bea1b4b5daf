//! Searches the stored columns for a regular expression. The matcher takes linear time for every
//! pattern, and reads pages, newest first, until it has the hits that were asked for.

use regex::{Regex, RegexBuilder};
use tantivy::DocAddress;
use tantivy::Order;
use tantivy::collector::TopDocs;
use tantivy::query::{AllQuery, Query as EngineQuery};

use super::snippet::Snippet;
use super::{Results, Search, addresses};
use crate::IndexError;
use crate::analysis::Stems;
use crate::fields::name;
use crate::inert::inert;
use crate::query::{Column, HITS_MAX, Parsed};

/// Largest compiled pattern. Patterns that people write take a few kilobytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Pages that are read for one pattern, newest first: about ten seconds.
const PAGES_READ_MAX: usize = 500_000;
/// Characters shown before the match.
const CHARS_BEFORE: usize = 60;
/// Characters of a snippet.
const SNIPPET_CHARS_MAX: usize = 240;

const ALL_COLUMNS: &[Column] =
    &[Column::Title, Column::Description, Column::Keywords, Column::Text, Column::Url];

impl Search<'_> {
    /// The pages in which the pattern matches, newest first.
    pub(super) fn by_pattern(&self, stems: &mut Stems) -> Result<Results, IndexError> {
        let pattern = compile(&self.query.text)?;
        let columns = if self.query.columns.is_empty() { ALL_COLUMNS } else { &self.query.columns };
        let offset = self.query.offset.min(HITS_MAX);
        let wanted = offset + self.query.limit.min(HITS_MAX - offset);
        let mut results = Results::default();
        let mut found = 0;
        let pages = self.newest_first(stems)?;
        let pages_count = pages.len();
        for (read, address) in pages.into_iter().enumerate() {
            if found == wanted {
                results.ignored.push(format!("{} older pages were not read", pages_count - read));
                break;
            }
            let Some(snippet) = self.first_match(address, &pattern, columns)? else { continue };
            found += 1;
            if found > offset {
                let mut hit = self.hit(address, &[], stems)?;
                hit.snippet = snippet;
                results.hits.push(hit);
            }
        }
        results.estimated_total = u64::try_from(found).unwrap_or(u64::MAX);
        Ok(results)
    }

    fn newest_first(&self, stems: &mut Stems) -> Result<Vec<DocAddress>, IndexError> {
        let top =
            TopDocs::with_limit(PAGES_READ_MAX).order_by_fast_field::<u64>(name::TIME, Order::Desc);
        let no_words = Parsed::default();
        let matching: Box<dyn EngineQuery> = if self.query.filters.is_empty() {
            Box::new(AllQuery)
        } else {
            self.plan(stems, &no_words)?.matching
        };
        Ok(addresses(self.view.searcher.search(&matching, &top)?))
    }

    fn first_match(
        &self,
        address: DocAddress,
        pattern: &Regex,
        columns: &[Column],
    ) -> Result<Option<Snippet>, IndexError> {
        let page = self.page(address)?;
        for column in columns {
            let text = self.text(
                &page,
                match column {
                    Column::Title => self.fields.title,
                    Column::Description => self.fields.description,
                    Column::Keywords => self.fields.keywords,
                    Column::Text => self.fields.text,
                    Column::Url => self.fields.url,
                },
            );
            if let Some(found) = pattern.find(text) {
                return Ok(Some(around(text, found.start(), found.end())));
            }
        }
        Ok(None)
    }
}

fn compile(pattern: &str) -> Result<Regex, IndexError> {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| IndexError::Pattern(in_one_line(&error)))
}

/// What is wrong with a pattern, without the drawing of where.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The text around a match.
fn around(text: &str, from: usize, to: usize) -> Snippet {
    let start = text[..from].char_indices().rev().nth(CHARS_BEFORE - 1).map_or(0, |(at, _)| at);
    let mut shown = inert(&text[start..from], CHARS_BEFORE);
    if text[..from].ends_with(char::is_whitespace) && !shown.is_empty() {
        shown.push(' ');
    }
    let mark_start = shown.len();
    shown.push_str(&inert(&text[from..to], SNIPPET_CHARS_MAX));
    let marks = if shown.len() > mark_start { vec![(mark_start, shown.len())] } else { Vec::new() };
    if text[to..].starts_with(char::is_whitespace) {
        shown.push(' ');
    }
    let left = SNIPPET_CHARS_MAX.saturating_sub(shown.chars().count());
    shown.push_str(&inert(&text[to..], left));
    Snippet { text: shown, marks }
}
