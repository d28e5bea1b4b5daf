//! The few facts in JSON-LD that a page is known by: dates, author, the text of the article.

use serde_json::Value;

use crate::main_content::{Telling, Told};
use crate::text::{cut, one_line};

/// Longest piece that is taken apart; the longest of 993 real pages has 170 KB.
const PARSED_BYTES_MAX: usize = 512 << 10;
/// Objects that are looked into, so that a piece of nothing but brackets costs nothing.
const OBJECTS_MAX: usize = 200;
/// Longest article body that is kept.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest name or date.
const VALUE_BYTES_MAX: usize = 256;

/// What JSON-LD says about a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub published: Option<String>,
    pub modified: Option<String>,
    pub author: Option<String>,
    pub article_body: Option<String>,
}

impl Facts {
    /// Reads a piece, and tells what it says about the content; `None` if it is no JSON. The reader
    /// of JSON refuses what is nested deeper than 128 levels, so that recursion has an end.
    pub(super) fn of(text: &str, told: &mut Told) -> Option<Self> {
        if text.len() > PARSED_BYTES_MAX {
            return None;
        }
        let value: Value = serde_json::from_str(text.trim_ascii()).ok()?;
        let mut facts = Self::default();
        let mut waiting = vec![&value];
        let mut looked_at = 0;
        while let Some(value) = waiting.pop() {
            looked_at += 1;
            if looked_at > OBJECTS_MAX {
                break;
            }
            match value {
                // Backwards, since the last one that waits is the first one looked at.
                Value::Array(values) => waiting.extend(values.iter().rev()),
                Value::Object(object) => {
                    facts.take(object);
                    waiting.extend(object.get("mainEntity"));
                    waiting.extend(object.get("@graph"));
                }
                _ => {}
            }
        }
        tell_texts(&value, told);
        Some(facts)
    }

    fn take(&mut self, object: &serde_json::Map<String, Value>) {
        let line = |name: &str| {
            let text = object.get(name)?.as_str()?;
            one_line([text].into_iter(), VALUE_BYTES_MAX)
        };
        self.published = self.published.take().or_else(|| line("datePublished"));
        self.modified = self.modified.take().or_else(|| line("dateModified"));
        self.author = self.author.take().or_else(|| name_of(object.get("author")?));
        if self.article_body.is_none() {
            let body = object.get("articleBody").and_then(Value::as_str);
            self.article_body = body.map(|body| cut(body.trim(), BODY_BYTES_MAX).to_owned());
        }
    }
}

/// Takes in the texts of all objects, the posts of a thread and the products of a list included.
fn tell_texts(value: &Value, told: &mut Told) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| tell_texts(value, told)),
        Value::Object(object) => {
            for (name, value) in object {
                match (name.as_str(), value) {
                    ("articleBody" | "text", Value::String(text)) => told.tell(Telling::Body, text),
                    ("description" | "reviewBody", Value::String(text)) => {
                        told.tell(Telling::Description, text);
                    }
                    _ => tell_texts(value, told),
                }
            }
        }
        _ => {}
    }
}

/// A name is a text, an object with a name, or the first of several.
fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => one_line([name.as_str()].into_iter(), VALUE_BYTES_MAX)
            .filter(|name| !name.starts_with("http")),
        Value::Object(person) => {
            one_line([person.get("name")?.as_str()?].into_iter(), VALUE_BYTES_MAX)
        }
        Value::Array(several) => match several.first()? {
            Value::Array(_) => None,
            first => name_of(first),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: [Option<&str>; 3]) {
        let facts = Facts::of(json, &mut Told::default()).expect("the piece is JSON");
        assert_eq!(
            [facts.published, facts.modified, facts.author],
            expect.map(|s| s.map(str::to_owned))
        );
    }

    #[test]
    fn facts_of_an_article() {
        let person = r#"{"@type":"Person","name":" Ida  B. "}"#;
        check(
            &format!(r#"{{"@type":"Article","datePublished":"2024-05-01","author":{person}}}"#),
            [Some("2024-05-01"), None, Some("Ida B.")],
        );
        check(
            &format!(
                r#"{{"@graph":[{{"@type":"WebSite"}},{{"dateModified":"2024","author":[{person},1]}}]}}"#
            ),
            [None, Some("2024"), Some("Ida B.")],
        );
        check(r#"[{"author":"http://a.org/me"}]"#, [None, None, None]);
    }

    #[test]
    fn what_is_no_json() {
        let of = |json: &str| Facts::of(json, &mut Told::default());
        assert_eq!(of("{,}"), None);
        assert_eq!(of(&"[".repeat(100_000)), None);
        assert!(of(&format!("[{}1]", "1,".repeat(50_000))).is_some());
    }
}
