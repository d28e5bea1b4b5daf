//! Pieces of content as rows with a fixed number of columns. What has parts (tables, lists, forms)
//! gives one row for each part, so that every column means one thing.

use std::fmt::Display;
use std::io::{self, Write};

use telusur_model::{ContentKind, Form, Image, Link, LinkKind, List, Script, Style, Table};

use super::Collected;
use super::csv::write_row;
use crate::control::{ExportLine, FoundContent};

/// The names of the columns.
pub(super) fn columns(collected: Collected) -> Vec<&'static str> {
    let of_kind: &[&str] = match collected {
        Collected::Pages => return PAGE_COLUMNS.to_vec(),
        Collected::Content(ContentKind::Headings) => &["level", "text"],
        Collected::Content(ContentKind::Links) => &["url", "anchor", "kind", "nofollow", "rel"],
        Collected::Content(ContentKind::Images) => &["url", "alt", "width", "height"],
        Collected::Content(ContentKind::Tables) => {
            &["caption", "row", "column", "header", "spanned", "text"]
        }
        Collected::Content(ContentKind::Lists) => &["ordered", "item", "level", "text"],
        Collected::Content(ContentKind::Forms) => {
            &["action", "method", "field", "name", "kind", "value", "required"]
        }
        Collected::Content(ContentKind::Scripts) => &["url", "kind", "bytes", "text"],
        Collected::Content(ContentKind::Styles) => &["url", "media", "bytes", "text"],
    };
    [&["crawl", "page", "index"], of_kind].concat()
}

/// The columns of pages. Links are another collection; here is their number.
const PAGE_COLUMNS: [&str; 19] = [
    "url",
    "final_url",
    "status",
    "title",
    "description",
    "keywords",
    "lang",
    "canonical",
    "referrer",
    "depth",
    "fetched_at",
    "content_type",
    "bytes",
    "truncated",
    "attempts",
    "took_ms",
    "digest",
    "links",
    "text",
];

/// Writes a page.
pub(super) fn write_page(output: &mut dyn Write, line: &ExportLine) -> io::Result<()> {
    let some = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields: [String; PAGE_COLUMNS.len()] = [
        line.url.clone(),
        line.final_url.clone(),
        line.status.to_string(),
        some(&line.title),
        some(&line.description),
        some(&line.keywords),
        some(&line.lang),
        some(&line.canonical),
        some(&line.referrer),
        line.depth.to_string(),
        line.fetched_at.clone(),
        some(&line.content_type),
        line.bytes.to_string(),
        line.truncated.to_string(),
        line.attempts.to_string(),
        line.took_ms.to_string(),
        some(&line.digest),
        line.links.len().to_string(),
        some(&line.text),
    ];
    write_row(output, fields)
}

/// Writes the pieces of one page. Gives the number of rows.
pub(super) fn write(
    output: &mut dyn Write,
    kind: ContentKind,
    found: &FoundContent,
) -> io::Result<u64> {
    let content = &found.content;
    let mut rows = Rows { output, found, written: 0 };
    match kind {
        ContentKind::Headings => rows.write(&content.headings, |heading| {
            vec![vec![heading.level.to_string(), heading.text.clone()]]
        }),
        ContentKind::Links => rows.write(&content.links, |link| vec![link_row(link)]),
        ContentKind::Images => rows.write(&content.images, |image| vec![image_row(image)]),
        ContentKind::Tables => rows.write(&content.tables, table_rows),
        ContentKind::Lists => rows.write(&content.lists, list_rows),
        ContentKind::Forms => rows.write(&content.forms, form_rows),
        ContentKind::Scripts => rows.write(&content.scripts, |script| vec![script_row(script)]),
        ContentKind::Styles => rows.write(&content.styles, |style| vec![style_row(style)]),
    }?;
    Ok(rows.written)
}

/// Writes rows behind the key of their page.
struct Rows<'a> {
    output: &'a mut dyn Write,
    found: &'a FoundContent,
    written: u64,
}

impl Rows<'_> {
    fn write<T>(
        &mut self,
        pieces: &[T],
        rows_of: impl Fn(&T) -> Vec<Vec<String>>,
    ) -> io::Result<()> {
        for (index, piece) in (1..).zip(pieces) {
            for row in rows_of(piece) {
                let key = [self.found.crawl.clone(), self.found.page.clone(), text(index)];
                write_row(self.output, key.into_iter().chain(row))?;
                self.written += 1;
            }
        }
        Ok(())
    }
}

fn link_row(link: &Link) -> Vec<String> {
    let kind = match link.kind {
        LinkKind::Anchor => "anchor",
        LinkKind::Frame => "frame",
        LinkKind::Relation => "relation",
        LinkKind::Refresh => "refresh",
    };
    vec![
        text(&link.url),
        link.anchor.clone(),
        kind.to_owned(),
        text(link.nofollow),
        link.rel.clone(),
    ]
}

fn image_row(image: &Image) -> Vec<String> {
    vec![text(&image.url), image.alt.clone(), some(image.width), some(image.height)]
}

/// One row for each cell; row and column count from 1.
fn table_rows(table: &Table) -> Vec<Vec<String>> {
    let caption = table.caption.clone().unwrap_or_default();
    let mut rows = Vec::new();
    for (row_no, row) in (1..).zip(&table.rows) {
        for (column_no, cell) in (1..).zip(row) {
            rows.push(vec![
                caption.clone(),
                text(row_no),
                text(column_no),
                text(cell.header),
                text(cell.spanned),
                cell.text.clone(),
            ]);
        }
    }
    rows
}

fn list_rows(list: &List) -> Vec<Vec<String>> {
    let items = (1..).zip(&list.items);
    let row = |(no, item): (u32, &telusur_model::ListItem)| {
        vec![text(list.ordered), text(no), text(item.level), item.text.clone()]
    };
    items.map(row).collect()
}

/// One row for each field; a form without fields has one all the same.
fn form_rows(form: &Form) -> Vec<Vec<String>> {
    let head = || [some(form.action.as_ref()), form.method.clone()];
    if form.fields.is_empty() {
        return vec![head().into_iter().chain(vec![String::new(); 5]).collect()];
    }
    let fields = (1..).zip(&form.fields);
    let row = |(no, field): (u32, &telusur_model::FormField)| {
        let fields = [
            text(no),
            field.name.clone(),
            field.kind.clone(),
            field.value.clone(),
            text(field.required),
        ];
        head().into_iter().chain(fields).collect()
    };
    fields.map(row).collect()
}

fn script_row(script: &Script) -> Vec<String> {
    vec![some(script.url.as_ref()), script.kind.clone(), text(script.bytes), script.text.clone()]
}

fn style_row(style: &Style) -> Vec<String> {
    vec![some(style.url.as_ref()), style.media.clone(), text(style.bytes), style.text.clone()]
}

fn text(value: impl Display) -> String {
    value.to_string()
}

fn some(value: Option<impl Display>) -> String {
    value.map(text).unwrap_or_default()
}
