//! The tables of a page as rows of cells, with cells that span several places put into all of them.
//!
//! "Forming a table" of the HTML standard, §4.9.12, as far as rows and cells go. A table inside a
//! cell is a table of its own, and its text is not that of the cell around it.

use html5ever::local_name;
use telusur_model::{Cell, PageContent, Table};

use crate::ContentLimits;
use crate::content::html::write_html;
use crate::content::push_bounded;
use crate::text::TextWriter;
use crate::tree::{ElementRef, NodeId, Tree};

/// Most columns that a cell may span, says the standard.
const COLSPAN_MAX: usize = 1_000;
/// Most rows that a cell may span, says the standard.
const ROWSPAN_MAX: usize = 65_534;

pub(super) struct TableCollector<'t> {
    tree: &'t Tree,
    limits: &'t ContentLimits,
    tables: Vec<Table>,
    dropped: u32,
    /// The open tables, the innermost last.
    open: Vec<OpenTable>,
    /// Cells that all tables together may still have.
    cells_left: usize,
}

struct OpenTable {
    table: Table,
    row: Vec<Cell>,
    row_open: bool,
    /// For each column: the cell that reaches into it from above, and for how many rows more.
    from_above: Vec<(Cell, usize)>,
    cell: Option<OpenCell>,
    caption: Option<TextWriter>,
}

struct OpenCell {
    text: TextWriter,
    is_header: bool,
    columns: usize,
    rows: usize,
}

impl<'t> TableCollector<'t> {
    pub(super) fn new(tree: &'t Tree, limits: &'t ContentLimits) -> Self {
        let (tables, open) = Default::default();
        Self { tree, limits, tables, dropped: 0, open, cells_left: limits.cells_max }
    }

    pub(super) fn open(&mut self, node: NodeId, element: ElementRef<'t>) {
        let name = &element.name.local;
        if *name == local_name!("table") {
            return self.open_table(node);
        }
        let Some(open) = self.open.last_mut() else { return };
        match *name {
            local_name!("tr") => {
                open.end_row(&mut self.cells_left);
                open.row_open = true;
            }
            local_name!("td") | local_name!("th") => {
                open.end_cell(&mut self.cells_left);
                let span = |name, max| {
                    let written = element.attribute(name).and_then(|span| span.trim().parse().ok());
                    written.unwrap_or(1usize).clamp(1, max)
                };
                open.row_open = true;
                open.cell = Some(OpenCell {
                    text: TextWriter::new(self.limits.cell_bytes_max),
                    is_header: *name == local_name!("th"),
                    columns: span(&local_name!("colspan"), COLSPAN_MAX),
                    rows: span(&local_name!("rowspan"), ROWSPAN_MAX),
                });
            }
            local_name!("caption") => {
                open.caption = Some(TextWriter::new(self.limits.cell_bytes_max));
            }
            _ => {}
        }
    }

    fn open_table(&mut self, node: NodeId) {
        let mut table = Table::default();
        if self.open.is_empty() && self.tables.len() < self.limits.tables_max {
            // The markup of tables inside is part of it.
            let markup = write_html(self.tree, node, self.limits.table_html_bytes_max);
            (table.html, table.truncated) = (markup.text, markup.truncated);
        }
        self.open.push(OpenTable {
            table,
            row: Vec::new(),
            row_open: false,
            from_above: Vec::new(),
            cell: None,
            caption: None,
        });
    }

    pub(super) fn text(&mut self, text: &str) {
        let Some(open) = self.open.last_mut() else { return };
        if let Some(caption) = &mut open.caption {
            caption.flowing(text);
        } else if let Some(cell) = &mut open.cell {
            cell.text.flowing(text);
        }
    }

    pub(super) fn close(&mut self, element: ElementRef<'t>) {
        let Some(open) = self.open.last_mut() else { return };
        match element.name.local {
            local_name!("td") | local_name!("th") => open.end_cell(&mut self.cells_left),
            local_name!("tr") => open.end_row(&mut self.cells_left),
            // A cell never spans beyond its group of rows.
            local_name!("thead") | local_name!("tbody") | local_name!("tfoot") => {
                open.end_row(&mut self.cells_left);
                open.from_above.clear();
            }
            local_name!("caption") => {
                let caption = open.caption.take().map(TextWriter::into_string);
                open.table.caption = caption.filter(|caption| !caption.is_empty());
            }
            local_name!("table") => self.close_table(),
            _ => {}
        }
    }

    fn close_table(&mut self) {
        let Some(mut open) = self.open.pop() else { return };
        open.end_row(&mut self.cells_left);
        if !open.table.rows.is_empty() {
            let max = self.limits.tables_max;
            push_bounded(&mut self.tables, open.table, max, &mut self.dropped);
        }
    }

    pub(super) fn finish(self, content: &mut PageContent) {
        content.tables = self.tables;
        content.dropped.tables = self.dropped;
    }
}

impl OpenTable {
    fn end_cell(&mut self, cells_left: &mut usize) {
        let Some(open) = self.cell.take() else { return };
        self.fill_from_above(cells_left);
        let mut cell =
            Cell { text: open.text.into_string(), header: open.is_header, spanned: false };
        for _ in 0..open.columns {
            if !self.take_place(cells_left) {
                return;
            }
            let column = self.row.len();
            self.row.push(cell.clone());
            cell.spanned = true;
            if open.rows > 1 {
                if self.from_above.len() <= column {
                    self.from_above.resize(column + 1, (Cell::default(), 0));
                }
                // The row that is being filled takes one of them itself.
                self.from_above[column] = (cell.clone(), open.rows);
            }
        }
    }

    /// Puts the cells that reach into this row from above where the next cell would go.
    fn fill_from_above(&mut self, cells_left: &mut usize) {
        while let Some((cell, rows_left)) = self.from_above.get(self.row.len()) {
            if *rows_left == 0 {
                return;
            }
            let cell = cell.clone();
            if !self.take_place(cells_left) {
                return;
            }
            self.row.push(cell);
        }
    }

    fn take_place(&mut self, cells_left: &mut usize) -> bool {
        if *cells_left == 0 {
            self.table.truncated = true;
            return false;
        }
        *cells_left -= 1;
        true
    }

    fn end_row(&mut self, cells_left: &mut usize) {
        if !self.row_open {
            return;
        }
        self.end_cell(cells_left);
        self.fill_from_above(cells_left);
        self.row_open = false;
        for (_, rows_left) in &mut self.from_above {
            *rows_left = rows_left.saturating_sub(1);
        }
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.table.rows.push(row);
        }
    }
}
