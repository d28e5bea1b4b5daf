//! Why a page stands where it stands, as a tree of numbers and words. The numbers are those that the
//! ranking itself used.

use serde::Serialize;
use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::schema::{IndexRecordOption, Term};

use super::fold::Row;
use super::plan::Plan;
use super::rank::{Parts, Scored};
use super::{Search, addresses};
use crate::IndexError;
use crate::analysis::Stems;

/// A number, what it is, and what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What the number is.
    pub what: String,
    /// The number.
    pub value: f32,
    /// What it is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Explanation>,
}

impl Explanation {
    fn new(what: impl Into<String>, value: f32) -> Self {
        Self { what: what.into(), value, parts: Vec::new() }
    }

    fn with(mut self, parts: Vec<Self>) -> Self {
        self.parts = parts;
        self
    }
}

impl Search<'_> {
    /// Explains one page, whether or not it is among the hits.
    pub(super) fn explain(
        &self,
        url: &str,
        stems: &mut Stems,
    ) -> Result<Option<Explanation>, IndexError> {
        let term = Term::from_field_text(self.fields.url, url);
        let by_url = TermQuery::new(term, IndexRecordOption::Basic);
        let found = self.view.searcher.search(&by_url, &TopDocs::with_limit(1).order_by_score())?;
        let Some(address) = addresses(found).pop() else { return Ok(None) };
        let (parsed, plan) = self.read(stems)?;
        let ranked = self.ranked(&plan, stems)?.pages;
        let rows = self.tidy(&ranked, &parsed);
        let place = rows.iter().position(|row| ranked[row.place].address == address);
        if let Some(place) = place {
            let row = &rows[place];
            let mut explanation = self.explanation(&plan, &ranked[row.place], row);
            explanation.what = format!("hit {} of {}", place + 1, rows.len());
            return Ok(Some(explanation));
        }
        let Some(scored) = self.ranking().score(&plan, &[address])?.pop() else {
            return Ok(Some(Explanation::new("has none of the words where they are wanted", 0.0)));
        };
        let folded = rows
            .iter()
            .find(|row| row.similar.iter().any(|&place| ranked[place].address == address));
        let mut explanation = self.explanation(&plan, &scored, &Row::default());
        explanation.what = match folded {
            Some(row) => {
                let page = self.page(ranked[row.place].address)?;
                format!("says nearly the same as {}", self.text(&page, self.fields.url))
            }
            None => "not among the candidates that were ranked".to_owned(),
        };
        Ok(Some(explanation))
    }

    /// A score as a tree.
    pub(super) fn explanation(&self, plan: &Plan, scored: &Scored, row: &Row) -> Explanation {
        let Parts { words, near, linked, feedback, link_factor, fresh_factor } = &scored.parts;
        let mut parts: Vec<Explanation> = Vec::new();
        let ranking = self.ranking();
        let (mut tf_idf, mut bm25) = (0.0, 0.0);
        for (word, part) in plan.words.iter().zip(words) {
            let rarity = ranking.rarity(word.docs);
            tf_idf += part.occurrences * rarity;
            bm25 += part.score;
            let what = format!("word {:?}, found as {}", word.written, word.stems().join(", "));
            parts.push(Explanation::new(what, part.score + part.exact).with(vec![
                Explanation::new(
                    "occurrences, weighted by title, beginning, surroundings, text",
                    part.occurrences,
                ),
                Explanation::new(format!("rarity: in {} pages", word.docs), rarity),
                Explanation::new("how often it was asked for", word.weight),
                Explanation::new("stands there exactly as typed", part.exact),
            ]));
        }
        parts.push(Explanation::new("words of the query near each other", *near));
        parts.push(Explanation::new("words of links to this page", *linked));
        parts.push(Explanation::new("words in common with the best hits", *feedback));
        parts.push(Explanation::new("factor: link rank", *link_factor));
        parts.push(Explanation::new("factor: freshness", *fresh_factor));
        parts
            .push(Explanation::new("similar pages folded into this one", row.similar_count as f32));
        parts.push(Explanation::new("for comparison: BM25 of the words alone", bm25));
        parts.push(Explanation::new("for comparison: TF-IDF", tf_idf));
        Explanation::new(
            "score: the sum of words, nearness, links and feedback, times the factors",
            scored.score,
        )
        .with(parts)
    }
}
