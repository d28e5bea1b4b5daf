//! [`Findings`]: what a page is found by.

use serde::{Deserialize, Serialize};

use crate::ParsedPage;

/// What a page is found by, beside what a crawl goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// `<meta name=description>`, else what Open Graph says.
    pub description: Option<String>,
    /// The headings, in the order of the page.
    pub headings: Vec<String>,
    /// The main content as plain text; if a page has no main content, all its visible text.
    pub text: String,
    /// The language of the text as an ISO 639-1 code: the detected one, else the declared one.
    pub language: Option<String>,
    /// When it was published, as the page writes it.
    pub published: Option<String>,
    /// Whether there is a table.
    pub has_table: bool,
    /// Whether there is a form.
    pub has_form: bool,
    /// Whether there is an image.
    pub has_image: bool,
    /// Whether there is preformatted text, which is code more often than not.
    pub has_code: bool,
}

/// A page as a crawl whose pages are searched wants it: read once, for both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPage {
    /// What a crawl goes by. Its title, keywords and links are searched as well.
    pub parsed: ParsedPage,
    /// What else the page is found by.
    pub findings: Findings,
}

/// An extract as a page that can be found: what it shows is all that is known of its text.
impl From<ParsedPage> for SearchPage {
    fn from(mut parsed: ParsedPage) -> Self {
        let findings = Findings {
            description: parsed.description.clone(),
            text: std::mem::take(&mut parsed.visible_text),
            ..Findings::default()
        };
        Self { parsed, findings }
    }
}
