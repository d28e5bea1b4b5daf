//! The reading part of the demo site: the home page of each language, topics and their articles.

use super::layout::{PageContent, link, link_list, paragraph, table};
use super::texts::{Article, Language, Topic, topics};

/// All topics in both languages.
pub(super) struct Library {
    english: Vec<Topic>,
    indonesian: Vec<Topic>,
}

/// Where an article or a topic stands; the same place in the other language is its translation.
#[derive(Clone, Copy)]
struct Place {
    topic: usize,
    /// `None` for the topic itself.
    article: Option<usize>,
}

impl Library {
    pub(super) fn new() -> Self {
        Self { english: topics(Language::English), indonesian: topics(Language::Indonesian) }
    }

    fn topics(&self, language: Language) -> &[Topic] {
        match language {
            Language::English => &self.english,
            Language::Indonesian => &self.indonesian,
        }
    }

    /// The addresses of all its pages.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for language in Language::ALL {
            paths.push(home_path(language).to_owned());
            for (number, topic) in self.topics(language).iter().enumerate() {
                paths.push(self.path(language, Place { topic: number, article: None }));
                for article in 0..topic.articles.len() {
                    let place = Place { topic: number, article: Some(article) };
                    paths.push(self.path(language, place));
                }
            }
        }
        paths
    }

    /// The page at this address, if it is one of the library's.
    pub(super) fn page(&self, path: &str) -> Option<PageContent> {
        if let Some(language) = Language::ALL.into_iter().find(|it| home_path(*it) == path) {
            return Some(self.home(language));
        }
        let mut segments = path.strip_prefix('/')?.split('/');
        let code = segments.next()?;
        let language = Language::ALL.into_iter().find(|it| it.code() == code)?;
        let slug = segments.next()?;
        let topic = self.topics(language).iter().position(|it| it.slug == slug)?;
        let Some(slug) = segments.next() else {
            return Some(self.topic_page(language, topic));
        };
        let articles = &self.topics(language)[topic].articles;
        let article = articles.iter().position(|it| it.slug == slug)?;
        segments.next().is_none().then(|| self.article_page(language, topic, article))
    }

    fn home(&self, language: Language) -> PageContent {
        let (title, welcome) = match language {
            Language::English => (
                "A small site to crawl",
                "Rivers, coffee, trains and a few traps: about two hundred pages in two languages, \
                 served by the program that crawls them.",
            ),
            Language::Indonesian => (
                "Situs kecil untuk dirayapi",
                "Sungai, kopi, kereta api, dan beberapa jebakan: sekitar dua ratus halaman dalam dua \
                 bahasa, disajikan oleh program yang merayapinya.",
            ),
        };
        let topics = self.topics(language).iter().enumerate();
        let links = topics.map(|(number, topic)| {
            (self.path(language, Place { topic: number, article: None }), topic.title)
        });
        let main = paragraph(welcome)
            + &link_list(links)
            + &link_list([(home_path(language.other()), language.other().name())]);
        PageContent {
            language,
            title: title.to_owned(),
            description: welcome.to_owned(),
            head: String::new(),
            main,
        }
    }

    fn topic_page(&self, language: Language, number: usize) -> PageContent {
        let topic = &self.topics(language)[number];
        let place = Place { topic: number, article: None };
        let articles = topic.articles.iter().enumerate().map(|(article, it)| {
            (self.path(language, Place { topic: number, article: Some(article) }), it.title)
        });
        let image = format!("<p><img src=\"{}\" alt=\"\"></p>\n", image_path(number));
        let main = paragraph(topic.summary)
            + &link_list(articles)
            + &table(topic.title, &topic.table)
            + &image
            + &self.translation(language, place);
        PageContent {
            language,
            title: topic.title.to_owned(),
            description: topic.summary.to_owned(),
            head: self.alternate(language, place),
            main,
        }
    }

    fn article_page(&self, language: Language, topic: usize, article: usize) -> PageContent {
        let topics = self.topics(language);
        let count = topics[topic].articles.len();
        let text = &topics[topic].articles[article];
        let place = Place { topic, article: Some(article) };
        let up = link(&self.path(language, Place { topic, article: None }), topics[topic].title);
        let neighbours = [
            Place { topic, article: Some((article + 1) % count) },
            Place { topic, article: Some((article + count - 1) % count) },
            Place { topic: (topic + 1) % topics.len(), article: Some(article) },
        ];
        let neighbours = neighbours.map(|it| (self.path(language, it), self.title(language, it)));
        let paragraphs: String = text.paragraphs.iter().map(|it| paragraph(it)).collect();
        let main = format!(
            "<p>{up}</p>\n<article>\n{paragraphs}</article>\n<aside>\n<h2>{}</h2>\n{}</aside>\n{}",
            match language {
                Language::English => "Read on",
                Language::Indonesian => "Baca juga",
            },
            link_list(neighbours),
            self.translation(language, place),
        );
        PageContent {
            language,
            title: text.title.to_owned(),
            description: first_sentence(text).to_owned(),
            head: self.alternate(language, place),
            main,
        }
    }

    fn path(&self, language: Language, place: Place) -> String {
        let topic = &self.topics(language)[place.topic];
        let path = format!("/{}/{}", language.code(), topic.slug);
        match place.article {
            Some(article) => format!("{path}/{}", topic.articles[article].slug),
            None => path,
        }
    }

    fn title(&self, language: Language, place: Place) -> &'static str {
        let topic = &self.topics(language)[place.topic];
        place.article.map_or(topic.title, |article| topic.articles[article].title)
    }

    /// The translation, for programs.
    fn alternate(&self, language: Language, place: Place) -> String {
        let other = language.other();
        let (code, path) = (other.code(), self.path(other, place));
        format!("<link rel=\"alternate\" hreflang=\"{code}\" href=\"{path}\">\n")
    }

    /// The translation, for readers.
    fn translation(&self, language: Language, place: Place) -> String {
        let other = language.other();
        format!("<p>{}</p>\n", link(&self.path(other, place), other.name()))
    }
}

fn home_path(language: Language) -> &'static str {
    match language {
        Language::English => "/",
        Language::Indonesian => "/id/",
    }
}

/// The picture of a topic.
pub(super) fn image_path(topic: usize) -> String {
    format!("/img/topic-{topic}.svg")
}

fn first_sentence(article: &Article) -> &'static str {
    let text = article.paragraphs.first().copied().unwrap_or_default();
    text.split_inclusive(". ").next().unwrap_or_default().trim_end()
}
