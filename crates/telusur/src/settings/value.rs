//! [`Kind`]: what a setting's value looks like; [`Value`]: the value, read and checked once.

use std::fmt;
use std::path::PathBuf;

use serde_json::json;
use telusur_model::{
    HeaderFault, Limits, QueryParams, Scope, ScopeRules, Secret, check_header, is_header_text,
    origin_of,
};

use super::Opening;
use crate::units;

/// What a setting's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file or directory.
    Path,
    /// One line that can stand in an HTTP header.
    Text {
        /// Whether it may not be empty.
        is_required: bool,
    },
    /// A duration within bounds.
    Duration {
        /// Least milliseconds.
        ms_min: u64,
        /// Most milliseconds.
        ms_max: u64,
    },
    /// A number of bytes within bounds.
    Size {
        /// Least bytes.
        min: u64,
        /// Most bytes.
        max: u64,
    },
    /// A whole number within bounds.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A whole number, or `auto`.
    Workers {
        /// The least.
        min: u16,
        /// The most.
        max: u16,
    },
    /// Events per second; zero is no limit.
    Rate,
    /// True or false.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Words.
    List,
    /// Regular expressions.
    Patterns,
    /// Host names.
    Hosts,
    /// Exceptions from "public addresses only".
    Openings,
    /// HTTP headers.
    Headers,
    /// What to do with queries.
    QueryParams,
    /// When a crawl counts as failed.
    FailOn,
    /// The address of a proxy, which may hold a password; empty for none.
    Proxy,
    /// Logins whose passwords are in the environment.
    Logins,
}

/// A value as it was written, before its kind is known to fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// From a flag or the environment, where everything is text.
    Untyped(String),
    /// A string of a configuration file.
    Text(String),
    /// A number of a configuration file.
    Number(String),
    /// A boolean of a configuration file.
    Switch(bool),
    /// Several values.
    List(Vec<String>),
    /// A path, which need not be text.
    Path(PathBuf),
    /// Something that no setting takes, such as a date.
    Other(&'static str),
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untyped(text) | Self::Text(text) | Self::Number(text) => f.write_str(text),
            Self::Switch(on) => write!(f, "{on}"),
            Self::List(items) => f.write_str(&items.join(" ")),
            Self::Path(path) => f.write_str(&path.to_string_lossy()),
            Self::Other(kind) => f.write_str(kind),
        }
    }
}

/// A value that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// See [`Kind::Path`]; empty where there is none.
    Path(PathBuf),
    /// See [`Kind::Text`].
    Text(String),
    /// See [`Kind::Duration`].
    DurationMs(u64),
    /// See [`Kind::Size`].
    Bytes(u64),
    /// See [`Kind::Count`].
    Count(u64),
    /// See [`Kind::Workers`]; `None` is `auto`.
    Workers(Option<u16>),
    /// See [`Kind::Rate`].
    RatePerSecond(f64),
    /// See [`Kind::Switch`].
    Switch(bool),
    /// See [`Kind::Word`].
    Word(&'static str),
    /// See [`Kind::List`], [`Kind::Patterns`] and [`Kind::Hosts`].
    List(Vec<String>),
    /// See [`Kind::Openings`].
    Openings(Vec<Opening>),
    /// See [`Kind::Headers`].
    Headers(Vec<(String, String)>),
    /// See [`Kind::QueryParams`].
    QueryParams(QueryParams),
    /// See [`Kind::FailOn`].
    FailOn(FailOn),
    /// See [`Kind::Proxy`].
    Proxy(Option<Secret>),
    /// See [`Kind::Logins`].
    Logins(Vec<Login>),
}

/// A login whose password is in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Where: `host` or `host:port`.
    pub host: String,
    /// Who.
    pub user: String,
    /// The variable that holds the password.
    pub variable: String,
}

/// When a finished crawl counts as failed (exit code 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailOn {
    /// Never.
    None,
    /// If any URL failed.
    AnyError,
    /// If any start URL failed.
    Seed,
    /// If more than this share of the URLs failed.
    Ratio(f64),
}

/// Stands for a value that may be a secret.
const HIDDEN: &str = "(hidden)";

/// Why a raw value does not fit its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// The item of a list that is wrong.
    pub part: Option<String>,
    /// What is wrong with it: `is not a duration`.
    pub problem: String,
    /// How it is written.
    pub form: String,
}

impl BadValue {
    fn new(problem: impl Into<String>, form: impl Into<String>) -> Self {
        Self { part: None, problem: problem.into(), form: form.into() }
    }

    fn of(part: &str, problem: impl Into<String>, form: impl Into<String>) -> Self {
        Self { part: Some(part.to_owned()), ..Self::new(problem, form) }
    }
}

impl Kind {
    /// Reads a raw value.
    pub fn read(self, raw: &Raw) -> Result<Value, BadValue> {
        match self {
            Self::Path => match raw {
                Raw::Path(path) => Ok(Value::Path(path.clone())),
                _ => Ok(Value::Path(PathBuf::from(self.text(raw)?))),
            },
            Self::Text { is_required } => read_header_text(self.text(raw)?, is_required),
            Self::Duration { ms_min, ms_max } => read_bounded(
                units::read_duration_ms(self.number(raw)?),
                (ms_min, ms_max),
                units::write_duration_ms,
                ("is not a duration", "Write it like 500ms, 2s, 10m or 1h30m"),
            )
            .map(Value::DurationMs),
            Self::Size { min, max } => read_bounded(
                units::read_size(self.number(raw)?),
                (min, max),
                units::write_size,
                ("is not a size", "Write it like 10kB, 1MiB or 2GiB"),
            )
            .map(Value::Bytes),
            Self::Count { min, max } => read_whole_number(self.number(raw)?, min, max),
            Self::Workers { min, max } => read_workers(self.number(raw)?, (min, max)),
            Self::Rate => read_rate(self.number(raw)?),
            Self::Switch => read_switch(raw),
            Self::Word(words) => read_word(self.text(raw)?, words),
            Self::List => Ok(Value::List(self.items(raw)?)),
            Self::Patterns => read_patterns(self.items(raw)?),
            Self::Hosts => read_hosts(self.items(raw)?),
            Self::Openings => read_openings(&self.items(raw)?),
            Self::Headers => read_headers(&self.items(raw)?),
            Self::QueryParams => read_query_params(self.text(raw)?),
            Self::FailOn => read_fail_on(self.text(raw)?),
            Self::Proxy => read_proxy(self.text(raw)?),
            Self::Logins => {
                let logins: Result<_, _> =
                    self.items(raw)?.iter().map(|text| read_login(text)).collect();
                logins.map(Value::Logins)
            }
        }
    }

    /// The text of a kind that is written as a string.
    fn text(self, raw: &Raw) -> Result<&str, BadValue> {
        match raw {
            Raw::Untyped(text) | Raw::Text(text) => Ok(text.trim()),
            Raw::Path(_) => Err(BadValue::new("is not valid UTF-8", "Write it in UTF-8")),
            _ => Err(BadValue::new("is not a text", "Put it in quotes")),
        }
    }

    /// The text of a kind that may also be written as a bare number.
    fn number(self, raw: &Raw) -> Result<&str, BadValue> {
        match raw {
            Raw::Number(text) => Ok(text),
            Raw::Untyped(_) | Raw::Text(_) | Raw::Path(_) => self.text(raw),
            _ => Err(BadValue::new("is not a number", "Write a number, or a text in quotes")),
        }
    }

    /// The items of a kind that is a list.
    fn items(self, raw: &Raw) -> Result<Vec<String>, BadValue> {
        let items: Vec<String> = match raw {
            Raw::List(items) => items.clone(),
            // Headers hold spaces, nothing else in a list does.
            Raw::Untyped(text) if self == Self::Headers => {
                text.lines().map(str::to_owned).collect()
            }
            Raw::Untyped(text) => text.split_whitespace().map(str::to_owned).collect(),
            Raw::Path(_) => return self.text(raw).map(|_| Vec::new()),
            _ => {
                let form = "Write it like [\"one\", \"two\"]";
                let mut bad = BadValue::new("is not a list", form);
                bad.part = (self == Self::Headers).then(|| HIDDEN.to_owned());
                return Err(bad);
            }
        };
        Ok(items)
    }
}

fn read_bounded(
    number: Option<u64>,
    (min, max): (u64, u64),
    write: fn(u64) -> String,
    (problem, form): (&str, &str),
) -> Result<u64, BadValue> {
    let number = number.ok_or_else(|| BadValue::new(problem, form))?;
    if number < min {
        return Err(BadValue::new("is too small", format!("The least is {}", write(min))));
    }
    if number > max {
        return Err(BadValue::new("is too large", format!("The most is {}", write(max))));
    }
    Ok(number)
}

pub(super) fn read_whole_number(text: &str, min: u64, max: u64) -> Result<Value, BadValue> {
    let form = ("is not a whole number", "Write it like 1000, 1_000, 10k or 1m");
    read_bounded(units::read_count(text), (min, max), |n| n.to_string(), form).map(Value::Count)
}

fn read_workers(text: &str, (min, max): (u16, u16)) -> Result<Value, BadValue> {
    if text == "auto" {
        return Ok(Value::Workers(None));
    }
    let form = ("is not a whole number", "Write a whole number, or auto");
    let bounds = (min.into(), max.into());
    let count = read_bounded(units::read_count(text), bounds, |n| n.to_string(), form)?;
    Ok(Value::Workers(Some(u16::try_from(count).expect("at most max"))))
}

fn read_rate(text: &str) -> Result<Value, BadValue> {
    units::read_rate(text)
        .map(Value::RatePerSecond)
        .ok_or_else(|| BadValue::new("is not a rate", "Write it like 5/s, 0.5/s or 30/m"))
}

fn read_switch(raw: &Raw) -> Result<Value, BadValue> {
    let on = match raw {
        Raw::Switch(on) => Some(*on),
        Raw::Untyped(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    };
    on.map(Value::Switch)
        .ok_or_else(|| BadValue::new("is neither true nor false", "Write true or false"))
}

fn read_word(text: &str, words: &'static [&'static str]) -> Result<Value, BadValue> {
    match words.iter().find(|word| **word == text) {
        Some(word) => Ok(Value::Word(word)),
        None => {
            Err(BadValue::new("is not a choice", format!("The choices are {}", words.join(", "))))
        }
    }
}

fn read_header_text(text: &str, is_required: bool) -> Result<Value, BadValue> {
    if is_required && text.is_empty() {
        return Err(BadValue::new("is empty", "Write at least one word"));
    }
    if !is_header_text(text) {
        let problem = "holds a character that a header cannot carry";
        return Err(BadValue::new(problem, "Write it in one line of plain ASCII"));
    }
    Ok(Value::Text(text.to_owned()))
}

fn read_patterns(patterns: Vec<String>) -> Result<Value, BadValue> {
    for pattern in &patterns {
        let rules = ScopeRules { exclude: vec![pattern.clone()], ..ScopeRules::default() };
        Scope::new(&rules, &[], &Limits::default()).map_err(|error| {
            BadValue::of(
                pattern,
                format!("is not a usable pattern: {}", error.why),
                "Write a regular expression, with a backslash before . ? + ( ) [ ] to mean the \
                 character itself",
            )
        })?;
    }
    Ok(Value::List(patterns))
}

fn read_hosts(hosts: Vec<String>) -> Result<Value, BadValue> {
    let hosts = hosts.into_iter().map(|text| {
        url::Host::parse(&text)
            .map(|host| host.to_string())
            .map_err(|_| BadValue::of(&text, "is not a host", "Write a name like docs.example.org"))
    });
    hosts.collect::<Result<_, _>>().map(Value::List)
}

fn read_openings(items: &[String]) -> Result<Value, BadValue> {
    let openings = items.iter().map(|text| {
        Opening::parse(text).ok_or_else(|| {
            BadValue::of(
                text,
                "is not an address, a range or HOST:PORT",
                "Write it like 10.1.2.0/24, 127.0.0.1 or localhost:8080",
            )
        })
    });
    openings.collect::<Result<_, _>>().map(Value::Openings)
}

fn read_headers(items: &[String]) -> Result<Value, BadValue> {
    items.iter().map(|text| read_header(text)).collect::<Result<_, _>>().map(Value::Headers)
}

fn read_header(text: &str) -> Result<(String, String), BadValue> {
    let form = "Write it like 'Accept-Language: id', or 'https://example.org=Authorization: …' for one \
                origin alone";
    let not_a_header = || BadValue::of(HIDDEN, "is not a header", form);
    // An URL elsewhere in the text belongs to the value.
    let starts_with = |scheme: &str| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let (origin, text) = if starts_with("http://") || starts_with("https://") {
        let split =
            text.split_once('=').and_then(|(origin, rest)| Some((origin_of(origin)?, rest)));
        let not_an_origin = || BadValue::of(HIDDEN, "does not begin with an origin", form);
        let (origin, rest) = split.ok_or_else(not_an_origin)?;
        (Some(origin), rest)
    } else {
        (None, text)
    };
    // The value may be a secret, and so may text in which no name can be told from it: only a name is
    // ever repeated.
    let (name, value) = text.split_once(':').ok_or_else(not_a_header)?;
    check_header(name, value).map_err(|fault| match fault {
        HeaderFault::Name => BadValue::of(HIDDEN, "does not begin with the name of a header", form),
        HeaderFault::Value => {
            let problem = "has a value with a character that a header cannot carry";
            BadValue::of(name, problem, form)
        }
        HeaderFault::Own => {
            BadValue::of(name, "is a header that Telusur sets itself", "Leave it out")
        }
    })?;
    let name = origin.map_or_else(|| name.to_owned(), |origin| format!("{origin}={name}"));
    Ok((name, value.trim().to_owned()))
}

/// The text may hold a password and is not repeated.
fn read_proxy(text: &str) -> Result<Value, BadValue> {
    if text.is_empty() {
        return Ok(Value::Proxy(None));
    }
    let form = "Write it like http://host:3128 or socks5://host:1080";
    let bad = || BadValue::of(HIDDEN, "is not the address of a proxy", form);
    let url = url::Url::parse(text).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "socks5") || url.host_str().is_none_or(str::is_empty) {
        return Err(bad());
    }
    Ok(Value::Proxy(Some(Secret::new(text))))
}

fn read_login(text: &str) -> Result<Login, BadValue> {
    let form = "Write it like docs.example.org=me:env:DOCS_PASSWORD, or https://docs.example.org=… for one \
                origin alone; the password stays in the environment";
    let bad = || BadValue::of(HIDDEN, "is not a login", form);
    let (host, login) = text.split_once('=').ok_or_else(bad)?;
    let (user, variable) = login.split_once(":env:").ok_or_else(bad)?;
    if host.is_empty() || user.is_empty() || variable.is_empty() {
        return Err(bad());
    }
    let host = match host.contains("://") {
        true => origin_of(host).ok_or_else(bad)?,
        false => host.to_ascii_lowercase(),
    };
    Ok(Login { host, user: user.to_owned(), variable: variable.to_owned() })
}

fn read_query_params(text: &str) -> Result<Value, BadValue> {
    QueryParams::parse(text)
        .map(Value::QueryParams)
        .ok_or_else(|| BadValue::new("is not a choice", "Write keep, drop or drop=name,name"))
}

fn read_fail_on(text: &str) -> Result<Value, BadValue> {
    let ratio = |text: &str| text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    let fail_on = match text {
        "none" => Some(FailOn::None),
        "any-error" => Some(FailOn::AnyError),
        "seed" => Some(FailOn::Seed),
        _ => text.strip_prefix("ratio=").and_then(ratio).map(FailOn::Ratio),
    };
    fail_on.map(Value::FailOn).ok_or_else(|| {
        BadValue::new("is not a choice", "Write none, any-error, seed, or a share like ratio=0.2")
    })
}

/// The address of a proxy as it may be shown.
fn without_userinfo(proxy: &str) -> String {
    let Ok(mut url) = url::Url::parse(proxy) else { return HIDDEN.to_owned() };
    if !url.username().is_empty() || url.password().is_some() {
        let _ = url.set_username("***");
        let _ = url.set_password(None);
    }
    url.to_string()
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::AnyError => f.write_str("any-error"),
            Self::Seed => f.write_str("seed"),
            Self::Ratio(ratio) => write!(f, "ratio={ratio}"),
        }
    }
}

impl Value {
    /// The value as it is written in a configuration file and in JSON: a string, a number, a boolean
    /// or a list of strings. What headers hold is hidden.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Path(path) => json!(path.to_string_lossy()),
            Self::Text(text) => json!(text),
            Self::DurationMs(ms) => json!(units::write_duration_ms(*ms)),
            Self::Bytes(bytes) => json!(units::write_size(*bytes)),
            Self::Count(count) => json!(count),
            Self::Workers(None) => json!("auto"),
            Self::Workers(Some(count)) => json!(count),
            Self::RatePerSecond(rate) => json!(format!("{rate}/s")),
            Self::Switch(on) => json!(on),
            Self::Word(word) => json!(word),
            Self::List(items) => json!(items),
            Self::Openings(openings) => {
                json!(openings.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            Self::Headers(headers) => {
                json!(headers.iter().map(|(name, _)| format!("{name}: ***")).collect::<Vec<_>>())
            }
            Self::QueryParams(params) => json!(params.text()),
            Self::FailOn(fail_on) => json!(fail_on.to_string()),
            Self::Proxy(None) => json!(""),
            Self::Proxy(Some(proxy)) => json!(without_userinfo(proxy.reveal())),
            Self::Logins(logins) => {
                let shown = logins
                    .iter()
                    .map(|login| format!("{}={}:env:{}", login.host, login.user, login.variable));
                json!(shown.collect::<Vec<_>>())
            }
        }
    }

    /// The value as it is written in a configuration file.
    pub fn toml(&self) -> String {
        // Strings, numbers, booleans and lists of strings are written alike in JSON and TOML, but
        // for the escape of DEL, which JSON leaves bare.
        self.json().to_string().replace('\u{7f}', "\\u007f")
    }
}
