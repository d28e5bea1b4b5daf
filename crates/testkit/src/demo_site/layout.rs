//! The frame around every page of the demo site, and the few pieces of HTML that pages share.

use std::fmt::Write as _;

use super::texts::Language;

/// A page before it gets its frame.
pub(super) struct PageContent {
    pub(super) language: Language,
    pub(super) title: String,
    pub(super) description: String,
    /// Further elements of the head.
    pub(super) head: String,
    /// What stands in the main part, below the title.
    pub(super) main: String,
}

impl PageContent {
    pub(super) fn english(title: impl Into<String>, main: impl Into<String>) -> Self {
        let title = title.into();
        Self {
            language: Language::English,
            description: format!("{title}: a page of the Telusur demo site."),
            title,
            head: String::new(),
            main: main.into(),
        }
    }

    /// The whole document.
    pub(super) fn html(&self) -> String {
        let Self { language, head, main, .. } = self;
        let (title, description) = (escape(&self.title), escape(&self.description));
        let code = language.code();
        format!(
            "<!doctype html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>{title} - Telusur demo</title>\n\
             <meta name=\"description\" content=\"{description}\">\n\
             <link rel=\"stylesheet\" href=\"/style.css\">\n{head}</head>\n<body>\n\
             <header>\n<nav>\n{NAVIGATION}</nav>\n</header>\n<main>\n<h1>{title}</h1>\n{main}</main>\n\
             <footer>\n<p>This site is built into Telusur. It exists to be crawled.</p>\n</footer>\n\
             </body>\n</html>\n"
        )
    }
}

const NAVIGATION: &str = "<a href=\"/\">Home</a>\n<a href=\"/id/\">Beranda</a>\n\
    <a href=\"/items\">Shop</a>\n<a href=\"/gallery\">Gallery</a>\n<a href=\"/oddities\">Oddities</a>\n\
    <a href=\"/about\">About</a>\n<a href=\"/contact\">Contact</a>\n";

/// A link as an element.
pub(super) fn link(href: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(href), escape(text))
}

/// A list of links: pairs of address and text.
pub(super) fn link_list<H: AsRef<str>, T: AsRef<str>>(
    links: impl IntoIterator<Item = (H, T)>,
) -> String {
    let mut html = String::from("<ul>\n");
    for (href, text) in links {
        writeln!(html, "<li>{}</li>", link(href.as_ref(), text.as_ref())).expect(STRING_TAKES_IT);
    }
    html + "</ul>\n"
}

/// A table whose first row holds the headings.
pub(super) fn table<C: AsRef<str>>(caption: &str, rows: &[Vec<C>]) -> String {
    let mut html = format!("<table>\n<caption>{}</caption>\n", escape(caption));
    for (number, row) in rows.iter().enumerate() {
        let element = if number == 0 { "th" } else { "td" };
        html.push_str("<tr>");
        for cell in row {
            let text = escape(cell.as_ref());
            write!(html, "<{element}>{text}</{element}>").expect(STRING_TAKES_IT);
        }
        html.push_str("</tr>\n");
    }
    html + "</table>\n"
}

pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// Text as it stands in HTML, in elements and in attributes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) const STRING_TAKES_IT: &str = "writing to a string cannot fail";
