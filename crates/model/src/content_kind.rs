//! [`ContentKind`]: the kinds of content that are kept apart, each a collection of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{PageContent, ParsedPage};

/// A kind of content of which a page has any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Headings.
    Headings,
    /// Links.
    Links,
    /// Images.
    Images,
    /// Tables.
    Tables,
    /// Lists.
    Lists,
    /// Forms.
    Forms,
    /// Scripts.
    Scripts,
    /// Style sheets.
    Styles,
}

impl ContentKind {
    /// Every kind there is.
    pub const ALL: [Self; 8] = [
        Self::Headings,
        Self::Links,
        Self::Images,
        Self::Tables,
        Self::Lists,
        Self::Forms,
        Self::Scripts,
        Self::Styles,
    ];

    /// The stable word, such as `tables`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Headings => "headings",
            Self::Links => "links",
            Self::Images => "images",
            Self::Tables => "tables",
            Self::Lists => "lists",
            Self::Forms => "forms",
            Self::Scripts => "scripts",
            Self::Styles => "styles",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PageContent {
    /// The content of one kind, and nothing else.
    pub fn only(self, kind: ContentKind) -> Self {
        let nothing = Self::default();
        match kind {
            ContentKind::Headings => Self { headings: self.headings, ..nothing },
            ContentKind::Links => Self { links: self.links, ..nothing },
            ContentKind::Images => Self { images: self.images, ..nothing },
            ContentKind::Tables => Self { tables: self.tables, ..nothing },
            ContentKind::Lists => Self { lists: self.lists, ..nothing },
            ContentKind::Forms => Self { forms: self.forms, ..nothing },
            ContentKind::Scripts => Self { scripts: self.scripts, ..nothing },
            ContentKind::Styles => Self { styles: self.styles, ..nothing },
        }
    }
}

/// The part of a page's content that a crawl goes by; the rest stays empty.
impl From<ParsedPage> for PageContent {
    fn from(parsed: ParsedPage) -> Self {
        Self::default().with(parsed)
    }
}

impl PageContent {
    /// The same content together with what a crawl goes by.
    pub fn with(self, parsed: ParsedPage) -> Self {
        let mut content = Self {
            charset: parsed.charset,
            title: parsed.title,
            description: parsed.description.or(self.description),
            keywords: parsed.keywords,
            language_declared: parsed.language,
            canonical: parsed.canonical,
            robots: parsed.robots,
            robots_own: parsed.robots_own,
            refresh: parsed.refresh,
            links: parsed.links,
            visible_text: parsed.visible_text,
            warnings: parsed.warnings,
            ..self
        };
        content.dropped.links = parsed.links_dropped;
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heading, List};

    #[test]
    fn words_lead_back_to_their_kind() {
        for kind in ContentKind::ALL {
            assert_eq!(ContentKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(ContentKind::from_word("pages"), None);
    }

    #[test]
    fn one_kind_is_kept() {
        let headings = vec![Heading { level: 1, text: "a".to_owned() }];
        let lists = vec![List::default()];
        let text = "a".to_owned();
        let content = PageContent { headings, lists, text, ..PageContent::default() };
        for kind in ContentKind::ALL {
            let only = content.clone().only(kind);
            assert_eq!(only.headings.len(), usize::from(kind == ContentKind::Headings), "{kind}");
            assert_eq!(only.lists.len(), usize::from(kind == ContentKind::Lists), "{kind}");
            assert!(only.text.is_empty());
        }
    }
}
