//! [`LinearOptions`]: what the user said about ids, on the command line or in a job, turned into a request. Every
//! mistake names its place and the way out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use telusur_engine::request::{LinearRequest, RatesRequest};
use telusur_model::{Direction, IdRanges, MissingRules, Resume, ScopeKind, Template};

use crate::cli::LinearArgs;
use crate::message::{Code, Message, shown};
use crate::settings::{BadValue, Job, Origin, Raw};
use crate::units::{read_count, read_duration_ms};

/// Largest file of ids: sixteen million ids of ten digits.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// What was said about ids.
#[derive(Clone, Debug, Default)]
pub struct LinearOptions {
    templates: Vec<String>,
    /// By the name of the flag, without the dashes.
    values: BTreeMap<&'static str, Told>,
}

/// A value as it was written, and where.
#[derive(Clone, Debug)]
struct Told {
    text: String,
    origin: Origin,
}

impl Told {
    fn refused(&self, problem: impl Into<String>, form: impl Into<String>) -> Message {
        let bad = BadValue { part: None, problem: problem.into(), form: form.into() };
        self.origin.complaint(&Raw::Untyped(self.text.clone()), &bad)
    }
}

impl LinearOptions {
    /// What the command line says.
    pub fn of_flags(arguments: &LinearArgs) -> Self {
        let mut options = Self { templates: arguments.crawl.urls.clone(), ..Self::default() };
        let list = arguments.list_ids.as_ref().map(|path| path.to_string_lossy().into_owned());
        let rate = arguments.crawl.rate.clone().filter(|_| !arguments.is_request_rate());
        let switch = |is_given: bool| is_given.then(|| "true".to_owned());
        let given = [
            ("--from", &arguments.from),
            ("--to", &arguments.to),
            ("--start", &arguments.start),
            ("--min", &arguments.min),
            ("--max", &arguments.max),
            ("--ascending", &switch(arguments.ascending)),
            ("--descending", &switch(arguments.descending)),
            ("--list-ids", &list),
            ("--step", &arguments.step),
            ("--margin", &arguments.margin),
            ("--attempts", &arguments.attempts),
            ("--cooldown", &arguments.cooldown),
            ("--rate", &rate),
            ("--resume", &arguments.resume),
            ("--missing", &arguments.missing),
            ("--follow", &arguments.follow),
        ];
        for (flag, text) in given {
            if let Some(text) = text {
                let told = Told { text: text.clone(), origin: Origin::Flag { flag } };
                options.values.insert(key_of(&flag[2..]), told);
            }
        }
        options
    }

    /// The name of a job, if the user named one instead of templates.
    pub fn job_name(&self) -> Option<&str> {
        match self.templates.as_slice() {
            [name] => name.strip_prefix('@'),
            _ => None,
        }
    }

    /// The same, on top of what a job says.
    pub fn on_job(mut self, job: &Job) -> Self {
        self.templates.clone_from(&job.templates);
        for value in &job.values {
            let told = Told { text: value.text.clone(), origin: value.origin.clone() };
            self.values.entry(key_of(value.key)).or_insert(told);
        }
        self
    }

    /// The request.
    pub fn request(&self) -> Result<LinearRequest, Message> {
        if self.templates.is_empty() {
            let hint = "Name one: telusur linear 'https://example.org/item/{id}' --from 1 --to 100";
            return Err(Message::new(Code::Template, "there is no template").hint(hint));
        }
        let attempts = match self.values.get("attempts") {
            Some(told) => Some(
                told.text
                    .parse()
                    .map_err(|_| told.refused("is not a number of attempts", "Write 1 to 255"))?,
            ),
            None => None,
        };
        let cooldown_s = match self.values.get("cooldown") {
            Some(told) => Some(
                read_duration_ms(&told.text)
                    .map(seconds)
                    .ok_or_else(|| told.refused("is not a duration", "Write 30s, 10m or 1h"))?,
            ),
            None => None,
        };
        let missing = match self.values.get("missing") {
            Some(told) => {
                MissingRules::parse(&told.text).map_err(|error| {
                    Message::new(Code::FlagValue, format!("{}: {error}", place(&told.origin)))
                        .hint(error.hint())
                })?;
                Some(told.text.clone())
            }
            None => None,
        };
        Ok(LinearRequest {
            templates: self.templates.clone(),
            direction: self.direction()?.map(|direction| direction.word().to_owned()),
            start: self.id("start")?,
            min: self.id("min")?,
            max: self.id("max")?,
            ids: self.ids()?,
            step: self.count("step")?,
            margin: self.count("margin")?,
            attempts,
            cooldown_s,
            rates: self.rates()?,
            missing,
            follow: self.follow_scope()?.map(|kind| kind.word().to_owned()),
            resume: self.resume()?,
            ..LinearRequest::default()
        })
    }

    /// How far links are followed, if they are.
    fn follow_scope(&self) -> Result<Option<ScopeKind>, Message> {
        let Some(told) = self.values.get("follow") else { return Ok(None) };
        match told.text.as_str() {
            "false" => Ok(None),
            "" | "true" => Ok(Some(ScopeKind::default())),
            word => ScopeKind::from_word(word)
                .map(Some)
                .ok_or_else(|| told.refused("is not a scope", "Write prefix, host, domain or any")),
        }
    }

    fn direction(&self) -> Result<Option<Direction>, Message> {
        let is_set = |key: &str| match self.values.get(key) {
            None => Ok(false),
            Some(told) => match told.text.as_str() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(told.refused("is neither true nor false", "Write true or false")),
            },
        };
        match (is_set("ascending")?, is_set("descending")?) {
            (true, true) => Err(Message::new(Code::Walk, "both directions are the only one")
                .hint("Leave out --ascending and --descending to go both ways from --start")),
            (true, false) => Ok(Some(Direction::Ascending)),
            (false, true) => Ok(Some(Direction::Descending)),
            (false, false) => Ok(None),
        }
    }

    fn resume(&self) -> Result<Option<Resume>, Message> {
        let Some(told) = self.values.get("resume") else { return Ok(None) };
        let resume = Resume::from_word(&told.text);
        let refuse = || told.refused("is not a way to resume", "Write all, new or holes");
        resume.map(Some).ok_or_else(refuse)
    }

    fn id(&self, key: &str) -> Result<Option<u64>, Message> {
        let Some(told) = self.values.get(key) else { return Ok(None) };
        let id = told.text.replace('_', "").parse().map_err(|_| {
            told.refused("is not an id", format!("Write a whole number from 0 to {}", u64::MAX))
        })?;
        Ok(Some(id))
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Message> {
        let Some(told) = self.values.get(key) else { return Ok(None) };
        let count = read_count(&told.text)
            .ok_or_else(|| told.refused("is not a whole number", "Write 50, 1_000 or 10k"))?;
        Ok(Some(count))
    }

    /// The rates of each template; none if nothing was said about them.
    fn rates(&self) -> Result<Vec<RatesRequest>, Message> {
        let Some(told) = self.values.get("rate") else { return Ok(Vec::new()) };
        // A template that cannot be read has no host to be named by; whoever builds the walks refuses it.
        let hosts: Vec<Option<String>> = self
            .templates
            .iter()
            .map(|text| Some(Template::parse(text).ok()?.host().to_string()))
            .collect();
        let mut rates = vec![RatesRequest { asc: 1, desc: 1 }; hosts.len()];
        let form = "Write asc=1,desc=2; HOST=2 or N=2 for the Nth template; or requests as 5/s";
        for part in told.text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad = |problem: &str| {
                let part = Some(part.to_owned());
                let bad = BadValue { part, problem: problem.to_owned(), form: form.to_owned() };
                told.origin.complaint(&Raw::Untyped(told.text.clone()), &bad)
            };
            let (name, weight) = part.split_once('=').ok_or_else(|| bad("is not a rate"))?;
            let weight: u32 = weight.trim().parse().map_err(|_| bad("is not a whole number"))?;
            let mut is_used = false;
            for (number, (host, rates)) in (1..).zip(hosts.iter().zip(&mut rates)) {
                match name.trim() {
                    "asc" | "ascending" => rates.asc = weight,
                    "desc" | "descending" => rates.desc = weight,
                    name if is_named(name, number, host.as_deref()) => {
                        *rates = RatesRequest { asc: weight, desc: weight };
                    }
                    _ => continue,
                }
                is_used = true;
            }
            if !is_used {
                return Err(bad("names no direction and no template"));
            }
        }
        Ok(rates)
    }

    /// The ids of a list, as text.
    fn ids(&self) -> Result<Option<String>, Message> {
        let Some(told) = self.values.get("list-ids") else { return Ok(None) };
        let path = Path::new(&told.text);
        let refuse = |why: String| {
            Message::new(Code::IdList, format!("cannot use {}: {why}", shown(&told.text)))
                .hint("Name a file with an id or a range 10-20 on each line; # begins a comment")
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
        let read = file.take(LIST_BYTES_MAX + 1).read_to_string(&mut text);
        let bytes = read.map_err(|error| refuse(error.to_string()))?;
        if bytes as u64 > LIST_BYTES_MAX {
            return Err(refuse("it is larger than 256 MiB".to_owned()));
        }
        let ids = IdRanges::parse(&text).map_err(|error| refuse(error.to_string()))?;
        if ids.is_empty() {
            return Err(refuse("there is no id in it".to_owned()));
        }
        Ok(Some(text))
    }
}

/// The one name of what has two: `--from` is the lowest id, and keys of files have underscores.
fn key_of(name: &str) -> &'static str {
    const NAMES: [&str; 14] = [
        "start",
        "min",
        "max",
        "ascending",
        "descending",
        "list-ids",
        "step",
        "margin",
        "attempts",
        "cooldown",
        "rate",
        "resume",
        "missing",
        "follow",
    ];
    match name {
        "from" => "min",
        "to" => "max",
        "list_ids" => "list-ids",
        name => NAMES.into_iter().find(|known| *known == name).expect("flags and keys are listed"),
    }
}

fn is_named(name: &str, number: usize, host: Option<&str>) -> bool {
    name.parse() == Ok(number) || host.is_some_and(|host| host.eq_ignore_ascii_case(name))
}

#[expect(clippy::cast_precision_loss, reason = "durations end at a year")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn place(origin: &Origin) -> String {
    match origin {
        Origin::File { key, .. } => format!("{origin}: {key}"),
        _ => origin.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use telusur_engine::request::CrawlRequest;
    use telusur_model::LinearSeeds;

    use super::*;
    use crate::crawl_request::crawl_of;

    fn options(templates: &[&str], values: &[(&'static str, &str)]) -> LinearOptions {
        let told =
            |text: &str| Told { text: text.to_owned(), origin: Origin::Flag { flag: "--x" } };
        LinearOptions {
            templates: templates.iter().map(|text| (*text).to_owned()).collect(),
            values: values.iter().map(|(name, text)| (key_of(name), told(text))).collect(),
        }
    }

    fn seeds(options: &LinearOptions) -> LinearSeeds {
        let linear = Some(options.request().unwrap());
        let crawl = crawl_of(&CrawlRequest { linear, ..CrawlRequest::default() }).unwrap();
        crawl.seeds.linear().unwrap().clone()
    }

    #[test]
    fn everything_arrives() {
        let values = [
            ("start", "5"),
            ("min", "1"),
            ("max", "1_000"),
            ("step", "2"),
            ("margin", "1k"),
            ("attempts", "3"),
            ("cooldown", "5s"),
            ("rate", "asc=1, desc=2, 2=7, c.org=9"),
            ("resume", "holes"),
            ("missing", "404,empty"),
            ("follow", "host"),
        ];
        let templates = ["https://a.org/{id}", "https://b.org/{id}", "https://c.org/{id}"];
        let seeds = seeds(&options(&templates, &values));
        assert_eq!((seeds.resume, seeds.follow), (Resume::Holes, true));
        let rates: Vec<_> = seeds
            .walks
            .iter()
            .map(|walk| (walk.rules().rates.ascending, walk.rules().rates.descending))
            .collect();
        assert_eq!(rates, [(1, 2), (7, 7), (9, 9)]);
        let rules = seeds.walks[0].rules();
        assert_eq!((rules.start, rules.min, rules.max), (Some(5), Some(1), Some(1000)));
        assert_eq!((rules.step, rules.margin, rules.attempts), (2, 1000, 3));
        assert_eq!(rules.cooldown_ms, 5_000);
        assert!(rules.missing.empty);
    }

    #[test]
    fn flags_win_over_a_job() {
        let origin = Origin::File { path: "t.toml".into(), line: 2, key: "\"min\"".into() };
        let value = |key, text: &str| crate::settings::JobValue {
            key,
            text: text.to_owned(),
            origin: origin.clone(),
        };
        let job = Job {
            name: "sirup".into(),
            templates: vec!["https://a.org/{id}".into()],
            values: vec![value("min", "1"), value("max", "9"), value("rate", "asc=1,desc=2")],
        };
        let options = options(&["@sirup"], &[("to", "5")]);
        assert_eq!(options.job_name(), Some("sirup"));
        let seeds = seeds(&options.on_job(&job));
        let rules = seeds.walks[0].rules();
        assert_eq!((rules.min, rules.max, rules.rates.descending), (Some(1), Some(5), 2));
    }
}
