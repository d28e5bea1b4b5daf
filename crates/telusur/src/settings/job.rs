//! [`Job`]: a named linear crawl of a configuration file, `[[job]]`. Its values are kept as text and
//! read like the flags of the same names.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Origin;

/// A named job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its templates.
    pub templates: Vec<String>,
    /// The other keys: name, value and place.
    pub values: Vec<JobValue>,
}

/// A value of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobValue {
    /// The key.
    pub key: &'static str,
    /// The value, as it would be written after the flag.
    pub text: String,
    /// Where it stands.
    pub origin: Origin,
}

/// The keys of a job besides `name`, `template` and `templates`.
pub const JOB_KEYS: [&str; 16] = [
    "from",
    "to",
    "start",
    "min",
    "max",
    "ascending",
    "descending",
    "list_ids",
    "step",
    "margin",
    "attempts",
    "cooldown",
    "rate",
    "resume",
    "missing",
    "follow",
];

/// When `serve` runs the job.
pub(super) const SCHEDULE_KEY: &str = "schedule";

/// A key of a job that cannot be used: where it begins, and what is wrong.
pub(super) struct JobMistake {
    pub(super) offset: usize,
    pub(super) key: String,
    pub(super) problem: JobProblem,
}

pub(super) enum JobProblem {
    Unknown,
    Missing,
    WrongType,
}

/// Reads a job. `origin` names the place of a key.
pub(super) fn read_job(
    table: &Spanned<DeValue<'_>>,
    origin: impl Fn(usize, &str) -> Origin,
) -> Result<Job, Vec<JobMistake>> {
    let at = table.span().start;
    let mistake = |offset, key: &str, problem| JobMistake { offset, key: key.to_owned(), problem };
    let DeValue::Table(table) = table.get_ref() else {
        return Err(vec![mistake(at, "job", JobProblem::WrongType)]);
    };
    let mut job = Job { name: String::new(), templates: Vec::new(), values: Vec::new() };
    let mut mistakes = Vec::new();
    for (name, value) in table {
        let (offset, name) = (name.span().start, name.get_ref().as_ref());
        let known = JOB_KEYS.iter().find(|key| **key == name);
        let is_read = match (name, known) {
            ("name", _) => text_of(value.get_ref()).map(|text| job.name = text).is_some(),
            ("template" | "templates", _) => {
                let templates = texts_of(value.get_ref());
                templates.map(|templates| job.templates.extend(templates)).is_some()
            }
            // It is kept for `serve`; here it only must have the form of a text.
            (SCHEDULE_KEY, _) => text_of(value.get_ref()).is_some(),
            (_, Some(&key)) => match text_of(value.get_ref()) {
                Some(text) => {
                    job.values.push(JobValue { key, text, origin: origin(offset, key) });
                    true
                }
                None => false,
            },
            (_, None) => {
                mistakes.push(mistake(offset, name, JobProblem::Unknown));
                true
            }
        };
        if !is_read {
            mistakes.push(mistake(offset, name, JobProblem::WrongType));
        }
    }
    for (key, is_missing) in [("name", job.name.is_empty()), ("template", job.templates.is_empty())]
    {
        if is_missing && mistakes.is_empty() {
            mistakes.push(mistake(at, key, JobProblem::Missing));
        }
    }
    if mistakes.is_empty() { Ok(job) } else { Err(mistakes) }
}

/// A value as it would be written after a flag; a table as `key=value,key=value`.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Table(table) => pairs_of(table),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) => None,
    }
}

fn pairs_of(table: &DeTable<'_>) -> Option<String> {
    let pairs = table.iter().map(|(key, value)| match value.get_ref() {
        DeValue::Integer(number) => Some(format!("{}={number}", key.get_ref())),
        _ => None,
    });
    Some(pairs.collect::<Option<Vec<_>>>()?.join(","))
}

fn texts_of(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Array(items) => {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}
