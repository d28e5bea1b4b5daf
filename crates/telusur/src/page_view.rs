//! [`PageView`]: a page as it is printed, in whichever form the user wants. For pages that were just
//! fetched, that are stored, and that lie in a file.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use telusur_engine::control::FoundContent;
use telusur_engine::export::write_pieces;
use telusur_model::{ContentKind, PageContent};

use crate::json::write_json_line;
use crate::message::{printable_lines, shown};
use crate::units::{show_count, show_size};

/// What is printed of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageForm {
    /// What is in it, in a screenful.
    Overview,
    /// The main content as Markdown.
    Markdown,
    /// The main content as plain text.
    Text,
    /// The page as it came.
    Html,
    /// The headers of the answer.
    Headers,
    /// Everything.
    Json,
    /// One kind of content.
    Kind(ContentKind),
}

impl PageForm {
    /// The forms besides the kinds of content.
    pub const SIMPLE: [Self; 6] =
        [Self::Overview, Self::Markdown, Self::Text, Self::Html, Self::Headers, Self::Json];

    /// The word that the user writes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Markdown => "markdown",
            Self::Text => "text",
            Self::Html => "html",
            Self::Headers => "headers",
            Self::Json => "json",
            Self::Kind(kind) => kind.word(),
        }
    }

    /// The form with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        let simple = Self::SIMPLE.into_iter().find(|form| form.word() == word);
        simple.or_else(|| ContentKind::from_word(word).map(Self::Kind))
    }

    /// Whether it needs the body.
    pub fn needs_body(self) -> bool {
        self == Self::Html
    }
}

/// A page, and what is known about it besides its content.
pub struct PageView<'a, A> {
    /// Its URL.
    pub url: &'a str,
    /// The id of the crawl that stored it; empty if none did.
    pub crawl: &'a str,
    /// What is shown above the content in an overview: a name and a value each.
    pub rows: Vec<(&'static str, String)>,
    /// What goes in front of the content in the JSON form.
    pub about: A,
    /// The headers of the answer.
    pub headers: &'a [(String, String)],
    /// The body, if there is one.
    pub body: &'a [u8],
    /// What is in it.
    pub content: &'a PageContent,
}

/// The JSON form.
#[derive(Serialize)]
struct Everything<'a, A> {
    #[serde(flatten)]
    about: &'a A,
    #[serde(flatten)]
    content: &'a PageContent,
}

impl<A: Serialize> PageView<'_, A> {
    /// Prints the page. With `json`, whatever has a machine's form is printed in it.
    pub fn write(&self, form: PageForm, json: bool, output: &mut dyn Write) -> io::Result<()> {
        match form {
            PageForm::Kind(kind) => self.write_kind(kind, json, output),
            _ if json => self.write_json(output),
            PageForm::Json => self.write_json(output),
            PageForm::Overview => self.write_overview(output),
            PageForm::Markdown => write_text(output, &self.content.markdown),
            PageForm::Text => write_text(output, &self.content.text),
            PageForm::Headers => self.write_headers(output),
            PageForm::Html => self.write_body(output),
        }
    }

    /// Why nothing is printed although nothing went wrong.
    pub fn silence(&self, form: PageForm) -> Option<&'static str> {
        let is_text = matches!(form, PageForm::Markdown | PageForm::Text);
        (is_text && self.content.charset.is_empty())
            .then_some("this is not read as text; --as html prints it as it came")
    }

    fn write_json(&self, output: &mut dyn Write) -> io::Result<()> {
        write_json_line(output, &Everything { about: &self.about, content: self.content })
    }

    /// Links are printed as bare URLs, for other programs to take; every other kind as JSON lines.
    fn write_kind(&self, kind: ContentKind, json: bool, output: &mut dyn Write) -> io::Result<()> {
        if kind == ContentKind::Links && !json {
            return self.content.links.iter().try_for_each(|link| writeln!(output, "{}", link.url));
        }
        let found = FoundContent {
            crawl: self.crawl.to_owned(),
            page: self.url.to_owned(),
            content: self.content.clone().only(kind),
        };
        write_pieces(output, kind, &found).map(drop)
    }

    fn write_headers(&self, output: &mut dyn Write) -> io::Result<()> {
        for (name, value) in self.headers {
            writeln!(output, "{}", printable_lines(&format!("{name}: {value}")))?;
        }
        Ok(())
    }

    /// Into a file or another program the bytes go as they are; a terminal would obey them.
    fn write_body(&self, output: &mut dyn Write) -> io::Result<()> {
        if io::stdout().is_terminal() {
            return write_text(output, &String::from_utf8_lossy(self.body));
        }
        output.write_all(self.body)
    }

    fn write_overview(&self, output: &mut dyn Write) -> io::Result<()> {
        let mut row = |name: &str, value: &str| writeln!(output, "{name:<13}{}", shown(value));
        row("url", self.url)?;
        for (name, value) in &self.rows {
            row(name, value)?;
        }
        for (name, value) in content_rows(self.content) {
            row(name, &value)?;
        }
        Ok(())
    }
}

/// What an overview says about the content. What a page does not have is not mentioned.
fn content_rows(content: &PageContent) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let texts = [
        ("title", &content.title),
        ("description", &content.description),
        ("keywords", &content.keywords),
        ("author", &content.author),
        ("published", &content.published),
        ("modified", &content.modified),
        ("language", &content.language),
        ("robots", &content.robots),
    ];
    for (name, text) in texts {
        rows.extend(text.clone().map(|text| (name, text)));
    }
    rows.extend(content.canonical.as_ref().map(|url| ("canonical", url.to_string())));
    if content.charset.is_empty() {
        rows.push(("content", format!("{}, not read as text", show_size(content.bytes))));
        return rows;
    }
    let charset = &content.charset;
    rows.push(("content", format!("{} in {charset}", show_size(content.bytes))));
    rows.push(("main text", size_of_text(&content.text)));
    rows.push(("visible text", size_of_text(&content.visible_text)));
    let dropped = &content.dropped;
    let counts = [
        ("headings", content.headings.len(), dropped.headings),
        ("links", content.links.len(), dropped.links),
        ("images", content.images.len(), dropped.images),
        ("tables", content.tables.len(), dropped.tables),
        ("lists", content.lists.len(), dropped.lists),
        ("forms", content.forms.len(), dropped.forms),
        ("scripts", content.scripts.len(), dropped.scripts),
        ("styles", content.styles.len(), dropped.styles),
        ("json-ld", content.json_ld.len(), dropped.json_ld),
        ("open graph", content.open_graph.len(), dropped.open_graph),
        ("feeds", content.feeds.len(), dropped.feeds),
        ("alternates", content.alternates.len(), dropped.alternates),
        ("entries", content.feed_entries.len(), dropped.feed_entries),
    ];
    for (name, count, dropped) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
        let beyond = match dropped {
            0 => String::new(),
            dropped => format!(", {} more left out", show_count(dropped.into())),
        };
        rows.push((name, format!("{}{beyond}", show_count(count as u64))));
    }
    for warning in &content.warnings {
        rows.push(("warning", words_of(*warning).to_owned()));
    }
    rows
}

fn size_of_text(text: &str) -> String {
    let words = text.split_whitespace().count() as u64;
    format!("{} words, {} characters", show_count(words), show_count(text.chars().count() as u64))
}

fn words_of(warning: telusur_model::Warning) -> &'static str {
    use telusur_model::Warning;
    match warning {
        Warning::TooDeep => "elements nested too deeply were flattened",
        Warning::TooManyAttributes => "a tag has more attributes than are read",
        Warning::TooManyLinks => "there are more links than are kept",
        Warning::TooMuchText => "there is more text than is kept",
        Warning::BadBytes => "bytes that do not exist in its encoding were replaced",
        Warning::Truncated => "the page was cut at the size limit",
        Warning::UnsupportedType => {
            "stored, but not read: it is no HTML, no feed and no text, so it has no words and no links"
        }
        Warning::UnknownCoding => {
            "its Content-Encoding names no coding that exists; the body was taken as it came"
        }
    }
}

/// Writes text of a page so that it ends with a line break and commands no terminal.
fn write_text(output: &mut dyn Write, text: &str) -> io::Result<()> {
    let text = printable_lines(text);
    output.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { output.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use telusur_model::{PageUrl, RawPage};
    use telusur_parse_pool::{InProcess, Parser, Reading};

    fn view(form: PageForm, json: bool, html: &str) -> String {
        let headers = vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
        let raw = RawPage {
            url: PageUrl::parse("http://a.org/").unwrap(),
            status: 200,
            headers: headers.clone(),
            body: html.to_owned().into(),
            truncated: false,
            wire_bytes: 0,
        };
        let Ok(Reading::Read(content)) = InProcess::default().read(&raw) else { panic!("{html}") };
        let view = PageView {
            url: "http://a.org/",
            crawl: "",
            rows: vec![("status", "200".to_owned())],
            about: json!({ "url": "http://a.org/" }),
            headers: &headers,
            body: &raw.body,
            content: &content,
        };
        let mut output = Vec::new();
        view.write(form, json, &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn words_lead_back_to_their_form() {
        for form in PageForm::SIMPLE {
            assert_eq!(PageForm::from_word(form.word()), Some(form));
        }
        let tables = PageForm::Kind(ContentKind::Tables);
        assert_eq!(PageForm::from_word("tables"), Some(tables));
        assert_eq!(PageForm::from_word("pages"), None);
    }

    #[test]
    fn an_overview_names_what_is_there() {
        let html = "<!doctype html><html lang=en><title>A \x1b[31mtitle</title>\
            <article><h1>Head</h1><p>Two words.</p><a href=/x>x</a></article>";
        assert_eq!(
            view(PageForm::Overview, false, html),
            "url          http://a.org/
status       200
title        A \u{fffd}[31mtitle
language     en
content      121 B in UTF-8
main text    4 words, 17 characters
visible text 4 words, 17 characters
headings     1
links        1
"
        );
    }

    #[test]
    fn text_and_markdown_command_no_terminal() {
        let html = "<h1>Head</h1><p>a\u{9b}31m \u{202e}b</p>";
        assert_eq!(view(PageForm::Markdown, false, html), "# Head\n\na\u{fffd}31m \u{fffd}b\n");
        assert!(view(PageForm::Text, false, html).ends_with("a\u{fffd}31m \u{fffd}b\n"));
        assert_eq!(view(PageForm::Html, false, html), html, "bytes for a program stay as they are");
        assert!(view(PageForm::Json, false, html).contains("a\\u009b31m \\u202eb"));
    }

    #[test]
    fn kinds_are_for_programs() {
        let html = "<h2>Two</h2><a href=/x>x</a> <a href=/y>y</a>";
        let links = PageForm::Kind(ContentKind::Links);
        assert_eq!(view(links, false, html), "http://a.org/x\nhttp://a.org/y\n");
        assert_eq!(view(links, true, html).lines().count(), 2);
        let headings = PageForm::Kind(ContentKind::Headings);
        let line: serde_json::Value = serde_json::from_str(&view(headings, false, html)).unwrap();
        assert_eq!((&line["level"], &line["page"]), (&2.into(), &"http://a.org/".into()));
        assert_eq!(
            view(PageForm::Headers, false, html),
            "content-type: text/html; charset=utf-8\n"
        );
    }
}
