//! [`TableText`]: a table on its way to Markdown, row by row.

/// Columns that a single cell may span; real tables of text have fewer columns in all.
const COLUMNS_SPANNED_MAX: usize = 50;

/// The cells of a table, each on one line.
#[derive(Default)]
pub(super) struct TableText {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    first_row_has_headers: bool,
}

impl TableText {
    pub(super) fn add_cell(&mut self, text: String, is_header: bool, columns: usize) {
        if self.rows.is_empty() && is_header {
            self.first_row_has_headers = true;
        }
        self.row.push(text);
        let spanned = columns.clamp(1, COLUMNS_SPANNED_MAX) - 1;
        self.row.extend(std::iter::repeat_n(String::new(), spanned));
    }

    pub(super) fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.rows.push(row);
        }
    }

    /// The lines of the table; none if it has no text.
    pub(super) fn into_lines(mut self) -> Vec<String> {
        self.end_row();
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns <= 1 {
            // One column is no table but lines of text.
            return self.rows.into_iter().flatten().collect();
        }
        let line = |row: &[String]| {
            let cells = (0..columns).map(|at| row.get(at).map_or("", String::as_str));
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut lines = Vec::with_capacity(self.rows.len() + 2);
        let mut rows = self.rows.iter();
        // Markdown wants a row of headers; it may be empty.
        let headers = if self.first_row_has_headers { rows.next() } else { None };
        lines.push(headers.map_or_else(|| line(&[]), |headers| line(headers)));
        lines.push(format!("|{}", " --- |".repeat(columns)));
        lines.extend(rows.map(|row| line(row)));
        lines
    }
}
