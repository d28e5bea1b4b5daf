//! [`Table`]: what the attacks measured, beside what they were allowed to cost.

use std::fmt;

/// Rows in the order in which they were measured.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

struct Row {
    attack: &'static str,
    what: String,
    measured: String,
    limit: String,
    is_kept: bool,
}

impl Table {
    /// A figure that must not be above its limit.
    pub(super) fn at_most(&mut self, attack: &'static str, what: &str, value: f64, limit: f64) {
        self.push(attack, what, value, format!("<= {limit}"), value <= limit);
    }

    /// A figure that must not be below its limit.
    pub(super) fn at_least(&mut self, attack: &'static str, what: &str, value: f64, limit: f64) {
        self.push(attack, what, value, format!(">= {limit}"), value >= limit);
    }

    /// A figure that is told, and has no limit.
    pub(super) fn told(&mut self, attack: &'static str, what: &str, value: f64) {
        self.push(attack, what, value, String::new(), true);
    }

    /// Whether every limit was kept.
    pub(super) fn is_kept(&self) -> bool {
        self.rows.iter().all(|row| row.is_kept)
    }

    fn push(&mut self, attack: &'static str, what: &str, value: f64, limit: String, is_kept: bool) {
        let digits = if value.fract() == 0.0 { 0 } else { 2 };
        let measured = format!("{value:.digits$}");
        let row = Row { attack, what: what.to_owned(), measured, limit, is_kept };
        eprintln!("  {row}");
        self.rows.push(row);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_kept { "ok" } else { "MISSED" };
        let Self { attack, what, measured, limit, .. } = self;
        write!(out, "{attack:<9}  {what:<62}  {measured:>9}  {limit:<8}  {verdict}")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<9}  {:<62}  {:>9}  {:<8}", "attack", "what", "measured", "limit")?;
        self.rows.iter().try_for_each(|row| writeln!(out, "{row}"))
    }
}
