//! The articles of the demo site, read from two plain text files. Topic by topic and article by
//! article, the second file says in Indonesian what the first says in English.

/// The languages of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Indonesian,
}

impl Language {
    pub(super) const ALL: [Self; 2] = [Self::English, Self::Indonesian];

    /// The code that stands in addresses and in `lang` attributes.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Indonesian => "id",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::English => Self::Indonesian,
            Self::Indonesian => Self::English,
        }
    }

    /// The name of the language, in itself.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Indonesian => "Bahasa Indonesia",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::English => include_str!("texts/en.txt"),
            Self::Indonesian => include_str!("texts/id.txt"),
        }
    }
}

/// A subject with its articles. `# slug | title | summary` in the file.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) slug: &'static str,
    pub(super) title: &'static str,
    pub(super) summary: &'static str,
    /// Rows of cells, the first one with the headings. `| cell | cell |` in the file.
    pub(super) table: Vec<Vec<&'static str>>,
    pub(super) articles: Vec<Article>,
}

/// A text. `## slug | title` in the file, then one line per paragraph.
#[derive(Debug)]
pub(super) struct Article {
    pub(super) slug: &'static str,
    pub(super) title: &'static str,
    pub(super) paragraphs: Vec<&'static str>,
}

/// All topics in one language, in the order of the file.
pub(super) fn topics(language: Language) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for line in language.source().lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            let [slug, title, summary] = cells(heading).try_into().expect(SOURCE_IS_TESTED);
            topics.push(Topic { slug, title, summary, table: Vec::new(), articles: Vec::new() });
            continue;
        }
        let topic = topics.last_mut().expect(SOURCE_IS_TESTED);
        if let Some(heading) = line.strip_prefix("## ") {
            let [slug, title] = cells(heading).try_into().expect(SOURCE_IS_TESTED);
            topic.articles.push(Article { slug, title, paragraphs: Vec::new() });
        } else if let Some(row) = line.strip_prefix("| ") {
            topic.table.push(cells(row.trim_end_matches('|')));
        } else {
            topic.articles.last_mut().expect(SOURCE_IS_TESTED).paragraphs.push(line);
        }
    }
    topics
}

const SOURCE_IS_TESTED: &str = "the texts are part of the program, and a test reads them";

fn cells(line: &'static str) -> Vec<&'static str> {
    line.split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn both_languages_have_the_same_shape() {
        let [english, indonesian] = Language::ALL.map(topics);
        assert_eq!(english.len(), 10);
        for (ours, theirs) in english.iter().zip(&indonesian) {
            assert_eq!(ours.articles.len(), 5, "{}", ours.slug);
            assert_eq!(theirs.articles.len(), 5, "{}", theirs.slug);
            assert_eq!(ours.table.len(), theirs.table.len(), "{}", ours.slug);
        }
    }

    #[test]
    fn every_text_is_there_and_said_once() {
        let mut seen = HashSet::new();
        for topic in Language::ALL.into_iter().flat_map(topics) {
            assert!(topic.table.iter().all(|row| row.len() == topic.table[0].len()), "{topic:?}");
            for article in topic.articles {
                assert_eq!(article.paragraphs.len(), 2, "{}", article.slug);
                for paragraph in article.paragraphs {
                    assert!(paragraph.len() > 100, "{paragraph}");
                    assert!(seen.insert(paragraph), "{paragraph}");
                }
            }
        }
    }
}
