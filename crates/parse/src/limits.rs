//! [`ParseLimits`]: every bound of the parser, with its name and its reason.

/// What a page may cost. Content beyond a limit is left out and leaves a
/// [`Warning`](telusur_model::Warning); the rest of the page is read as usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Elements open at the same time. 512 is what Blink and WebKit allow; html5ever walks the
    /// whole stack for many tags, so that its time grows with the square of the depth.
    pub depth_max: usize,
    /// Attributes of one tag that are looked at.
    pub attributes_max: usize,
    /// Elements that the tree builder may add by repairing `<b>`, `<i>`, `<font>` and the like
    /// after wrong nesting. The standard allows dozens for every `<p>`; of 812 real pages that
    /// were counted, the worst needed 28.
    pub repairs_max: usize,
    /// Links that are kept, each URL once.
    pub links_max: usize,
    /// Bytes of the title.
    pub title_bytes_max: usize,
    /// Bytes of the text of one link.
    pub anchor_bytes_max: usize,
    /// Bytes of the description, of the keywords and of the robots rules, each.
    pub meta_bytes_max: usize,
    /// Bytes of visible text. Four times the default limit of a body: a body in an old encoding
    /// grows up to threefold when it becomes UTF-8, so that a whole body always fits.
    pub text_bytes_max: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self {
            depth_max: 512,
            attributes_max: 1_000,
            repairs_max: 10_000,
            links_max: 10_000,
            title_bytes_max: 1 << 10,
            anchor_bytes_max: 256,
            meta_bytes_max: 4 << 10,
            text_bytes_max: 4 << 20,
        }
    }
}

/// What the whole content of a page may cost, kind by kind. What lies beyond is counted as dropped.
/// Unless a field says otherwise, its number is some ten times what the largest of 993 real pages
/// has, so that honest pages are whole and the sum of all kinds stays below a few megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLimits {
    /// The limits of the tree, the links and the visible text.
    pub parse: ParseLimits,
    /// Headings.
    pub headings_max: usize,
    /// Bytes of one heading.
    pub heading_bytes_max: usize,
    /// Images.
    pub images_max: usize,
    /// Bytes of what an image says that it shows.
    pub alt_bytes_max: usize,
    /// Tables.
    pub tables_max: usize,
    /// Cells of all tables together, the places that a cell spans counted each: `colspan=1000` a
    /// thousand times over is one row of a million cells.
    pub cells_max: usize,
    /// Bytes of one cell.
    pub cell_bytes_max: usize,
    /// Bytes of the markup of one table.
    pub table_html_bytes_max: usize,
    /// Lists.
    pub lists_max: usize,
    /// Items of one list.
    pub items_max: usize,
    /// Bytes of one item.
    pub item_bytes_max: usize,
    /// Forms.
    pub forms_max: usize,
    /// Fields of one form.
    pub fields_max: usize,
    /// Bytes of the text in one field.
    pub field_bytes_max: usize,
    /// Scripts.
    pub scripts_max: usize,
    /// Style sheets.
    pub styles_max: usize,
    /// Bytes of all scripts and style sheets that are in the page.
    pub code_bytes_max: usize,
    /// Pieces of JSON-LD.
    pub json_ld_max: usize,
    /// Bytes of one piece of JSON-LD.
    pub json_ld_bytes_max: usize,
    /// Open Graph properties.
    pub open_graph_max: usize,
    /// Bytes of one value of `<meta>`.
    pub meta_bytes_max: usize,
    /// Feeds that a page names.
    pub feeds_max: usize,
    /// Alternates in other languages.
    pub alternates_max: usize,
    /// Entries of a feed.
    pub feed_entries_max: usize,
    /// Bytes of the text of one entry.
    pub entry_bytes_max: usize,
    /// Bytes of the Markdown.
    pub markdown_bytes_max: usize,
}

impl ContentLimits {
    /// What a search index wants of a page: its main text, and whether it has a table, a form or an
    /// image at all. Writing out all of them, and Markdown, would take as long as all the rest.
    pub fn for_search() -> Self {
        Self {
            images_max: 1,
            tables_max: 1,
            cells_max: 1,
            table_html_bytes_max: 0,
            lists_max: 0,
            forms_max: 1,
            fields_max: 0,
            scripts_max: 0,
            styles_max: 0,
            code_bytes_max: 0,
            markdown_bytes_max: 0,
            ..Self::default()
        }
    }
}

impl Default for ContentLimits {
    fn default() -> Self {
        Self {
            parse: ParseLimits::default(),
            headings_max: 2_000,
            heading_bytes_max: 1 << 10,
            images_max: 2_000,
            alt_bytes_max: 1 << 10,
            tables_max: 500,
            cells_max: 50_000,
            cell_bytes_max: 4 << 10,
            table_html_bytes_max: 256 << 10,
            lists_max: 1_000,
            items_max: 2_000,
            item_bytes_max: 4 << 10,
            forms_max: 100,
            fields_max: 200,
            field_bytes_max: 1 << 10,
            scripts_max: 500,
            styles_max: 500,
            code_bytes_max: 2 << 20,
            json_ld_max: 50,
            json_ld_bytes_max: 256 << 10,
            open_graph_max: 200,
            meta_bytes_max: 4 << 10,
            feeds_max: 100,
            alternates_max: 500,
            feed_entries_max: 2_000,
            entry_bytes_max: 64 << 10,
            markdown_bytes_max: 4 << 20,
        }
    }
}
