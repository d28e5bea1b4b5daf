//! [`ConfigFile`]: one TOML file, checked against the registry. Every mistake is found with its
//! line; nothing unknown is passed over.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::job::{JobMistake, JobProblem, read_job};
use super::{JOB_KEYS, Job, Key, Origin, REGISTRY, Raw, Resolved, Setting};
use crate::message::{Code, Message, shown};

/// Largest configuration file. Every key with a long comment is 10 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A configuration file that was read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its named jobs.
    pub jobs: Vec<Job>,
    rows: Vec<(Key, Resolved)>,
}

impl ConfigFile {
    /// Reads a file; `None` if there is none. All its mistakes are reported, first line first.
    pub fn read(path: &Path) -> Result<Option<Self>, Vec<Message>> {
        match read_small_file(path).map_err(|message| vec![message])? {
            Some(text) => Self::parse(path, &text).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Message>> {
        let text = text.trim_start_matches('\u{feff}');
        let mut reader =
            SettingsParser { path, text, rows: Vec::new(), jobs: Vec::new(), mistakes: Vec::new() };
        match DeTable::parse(text) {
            Ok(table) => reader.top(table.get_ref()),
            Err(error) => {
                let line = reader.line_of(error.span().map_or(0, |span| span.start));
                let why = error.message().replace('\n', ", ");
                reader.mistakes.push((
                    line,
                    Message::new(Code::ConfigSyntax, format!("{}: {why}", reader.place(line)))
                        .hint("See a whole file with: telusur config init -"),
                ));
            }
        }
        if reader.mistakes.is_empty() {
            return Ok(Self { path: path.to_owned(), jobs: reader.jobs, rows: reader.rows });
        }
        reader.mistakes.sort_by_key(|(line, _)| *line);
        Err(reader.mistakes.into_iter().map(|(_, message)| message).collect())
    }

    /// What it says about a setting.
    pub(super) fn row(&self, key: Key) -> Option<&Resolved> {
        self.rows.iter().find(|(found, _)| *found == key).map(|(_, row)| row)
    }
}

struct SettingsParser<'a> {
    path: &'a Path,
    text: &'a str,
    rows: Vec<(Key, Resolved)>,
    jobs: Vec<Job>,
    mistakes: Vec<(usize, Message)>,
}

impl SettingsParser<'_> {
    fn top(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let is_section = REGISTRY.iter().any(|s| s.section == name.get_ref());
            let is_key = REGISTRY.iter().any(|s| s.section.is_empty() && s.name == name.get_ref());
            match value.get_ref() {
                DeValue::Array(jobs) if name.get_ref() == "job" => {
                    jobs.iter().for_each(|job| self.job(job));
                }
                DeValue::Table(section) if is_section => self.section(name.get_ref(), section),
                DeValue::Table(_) if !is_key => self.unknown_section(name),
                _ if is_section => self.not_a_section(name),
                _ => self.entry("", name, value),
            }
        }
    }

    fn job(&mut self, table: &Spanned<DeValue<'_>>) {
        let origin = |offset, key: &str| Origin::File {
            path: self.path.to_owned(),
            line: self.line_of(offset),
            key: place_of_key("[job]", key),
        };
        match read_job(table, origin) {
            Ok(job) => self.jobs.push(job),
            Err(mistakes) => {
                for mistake in mistakes {
                    let line = self.line_of(mistake.offset);
                    self.mistakes.push((line, self.job_message(line, &mistake)));
                }
            }
        }
    }

    fn job_message(&self, line: usize, mistake: &JobMistake) -> Message {
        let place = format!("{}: {}", self.place(line), place_of_key("[job]", &mistake.key));
        match mistake.problem {
            JobProblem::Unknown => {
                let what = format!(
                    "{}: unknown key {}",
                    self.place(line),
                    place_of_key("[job]", &mistake.key)
                );
                let known = ["name", "template", "schedule"].into_iter().chain(JOB_KEYS);
                let hint = match nearest(&mistake.key, known.clone()) {
                    Some(near) => format!("Did you mean \"{near}\"?"),
                    None => format!("Its keys are {}", known.collect::<Vec<_>>().join(", ")),
                };
                Message::new(Code::UnknownKey, what).hint(hint)
            }
            JobProblem::Missing => Message::new(Code::ConfigValue, format!("{place} is missing"))
                .hint("A job has a name and a template: template = \"https://a.org/{id}\""),
            JobProblem::WrongType => {
                Message::new(Code::ConfigValue, format!("{place} has the wrong type")).hint(
                    "Write a number, a text in quotation marks, or rate = { asc = 1, desc = 2 }",
                )
            }
        }
    }

    fn section(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            self.entry(section, name, value);
        }
    }

    fn entry(
        &mut self,
        section: &str,
        name: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let line = self.line_of(name.span().start);
        let name = name.get_ref().as_ref();
        let setting = REGISTRY.iter().find(|s| s.section == section && s.name == name);
        let Some(setting) = setting else {
            return self.unknown_key(line, section, name);
        };
        let origin =
            Origin::File { path: self.path.to_owned(), line, key: place_of_key(section, name) };
        let raw = raw_of(value.get_ref());
        match setting.kind.read(&raw) {
            Ok(value) => self.rows.push((setting.key, Resolved { value, origin })),
            Err(bad) => self.mistakes.push((line, origin.complaint(&raw, &bad))),
        }
    }

    fn unknown_key(&mut self, line: usize, section: &str, name: &str) {
        let what = format!("{}: unknown key {}", self.place(line), place_of_key(section, name));
        let within = REGISTRY.iter().filter(|s| s.section == section);
        let elsewhere = || REGISTRY.iter().find(|s| s.name == name).map(Setting::path);
        let near = nearest(name, within.clone().map(|s| s.name)).map(|near| format!("\"{near}\""));
        let hint = match near.or_else(|| elsewhere().map(|path| format!("\"{path}\""))) {
            Some(near) => format!("Did you mean {near}?"),
            None => {
                format!("Its keys are {}", within.map(|s| s.name).collect::<Vec<_>>().join(", "))
            }
        };
        self.mistakes.push((line, Message::new(Code::UnknownKey, what).hint(hint)));
    }

    fn unknown_section(&mut self, name: &Spanned<impl AsRef<str>>) {
        let line = self.line_of(name.span().start);
        let name = name.get_ref().as_ref();
        let mut sections: Vec<&str> =
            REGISTRY.iter().map(|s| s.section).filter(|section| !section.is_empty()).collect();
        sections.dedup();
        let what = format!("{}: unknown section [{}]", self.place(line), shown(name));
        let hint = match nearest(name, sections.iter().copied()) {
            Some(near) => format!("Did you mean [{near}]?"),
            None => format!("There are [{}]", sections.join("], [")),
        };
        self.mistakes.push((line, Message::new(Code::UnknownKey, what).hint(hint)));
    }

    fn not_a_section(&mut self, name: &Spanned<impl AsRef<str>>) {
        let line = self.line_of(name.span().start);
        let name = name.get_ref().as_ref();
        let what = format!("{}: \"{name}\" is a section, not a value", self.place(line));
        let message = Message::new(Code::ConfigValue, what).hint(format!("Write [{name}]"));
        self.mistakes.push((line, message));
    }

    fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{line}", shown(&self.path.to_string_lossy()))
    }
}

fn place_of_key(section: &str, name: &str) -> String {
    let name = shown(name);
    if section.is_empty() { format!("\"{name}\"") } else { format!("\"{name}\" in [{section}]") }
}

fn raw_of(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => Raw::Number(number.to_string()),
        DeValue::Float(number) => Raw::Number(number.to_string()),
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map_or(Raw::Other("a list of other things"), Raw::List)
        }
    }
}

/// The known name that a misspelt one probably means.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.75;
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

/// The text of a small regular file; `None` if there is no file.
pub fn read_small_file(path: &Path) -> Result<Option<String>, Message> {
    let shown_path = shown(&path.to_string_lossy());
    let refuse = |why: String| {
        Message::new(Code::ConfigFile, format!("cannot read {shown_path}: {why}"))
            .hint("Name another file with --config, or none with --no-config")
    };
    // The kind is looked at before opening: opening a FIFO would wait for a writer for ever.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
    };
    if metadata.is_dir() {
        return Err(refuse("it is a directory".to_owned()));
    }
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refuse("it is larger than 1 MiB".to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        refuse(format!("line {line} is not UTF-8"))
    })
}
