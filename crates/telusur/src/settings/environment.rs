//! [`Environment`]: the variables of the process, handed in so that a test can have its own; and
//! which of them set what.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::registry::NumberOf;
use super::{BadValue, Kind, Origin, REGISTRY, Raw, Resolved, Setting, ShortName, Value};
use crate::message::{Message, shown};
use crate::settings::value::read_whole_number;

/// Variables that begin with TELUSUR_ and are no setting.
const OTHER_VARIABLES: [&str; 2] = ["TELUSUR_CONFIG", "TELUSUR_NO_PROGRESS"];

/// The variables of a process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// These variables.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect() }
    }

    /// The value of a variable. One that is set to nothing counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// The value of a variable that must be text to mean anything.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// Warnings about variables that look like settings and are none.
    pub(super) fn misspelt(&self) -> Vec<String> {
        let known: Vec<String> = REGISTRY.iter().map(Setting::variable).collect();
        let names = self.variables.keys().filter_map(|name| name.to_str());
        names
            .filter(|name| name.starts_with("TELUSUR_"))
            .filter(|name| !known.iter().any(|k| k == name) && !OTHER_VARIABLES.contains(name))
            .map(|name| {
                let near = super::file::nearest(name, known.iter().map(String::as_str));
                let hint = near.map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
                format!("the variable {} sets nothing{hint}", shown(name))
            })
            .collect()
    }
}

/// One of the places that have variables: the process, or `.env`.
pub(super) struct Variables<'a> {
    /// The value of a variable, and its origin.
    pub(super) lookup: &'a dyn Fn(&str) -> Option<(OsString, Origin)>,
}

impl Variables<'_> {
    /// What a setting's variables say, if they say anything. Adds a warning if both its names are
    /// set and disagree.
    pub(super) fn read(
        &self,
        setting: &Setting,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Resolved>, Message> {
        let variable = setting.variable();
        let long = self.read_one(&variable, |raw| setting.kind.read(raw))?;
        let Some(short_name) = setting.short else { return Ok(long) };
        let short = self.read_one(short_name.name, |raw| short_name.read(setting.kind, raw))?;
        if let (Some(long), Some(short)) = (&long, &short)
            && long.value != short.value
        {
            let short_name = short_name.name;
            warnings.push(format!("{variable} and {short_name} disagree; {variable} is used"));
        }
        Ok(long.or(short))
    }

    fn read_one(
        &self,
        name: &str,
        read: impl Fn(&Raw) -> Result<Value, BadValue>,
    ) -> Result<Option<Resolved>, Message> {
        let Some((text, origin)) = (self.lookup)(name) else { return Ok(None) };
        let raw = match text.into_string() {
            Ok(text) => Raw::Untyped(text),
            Err(bytes) => Raw::Path(bytes.into()),
        };
        match read(&raw) {
            Ok(value) => Ok(Some(Resolved { value, origin })),
            Err(bad) => Err(origin.complaint(&raw, &bad)),
        }
    }
}

impl ShortName {
    /// Reads the value of the short variable as a value of the setting's kind.
    fn read(self, kind: Kind, raw: &Raw) -> Result<Value, BadValue> {
        let Some(number_of) = self.number_of else { return kind.read(raw) };
        let text = raw.to_string();
        read_whole_number(text.trim(), 0, u64::MAX)?;
        let unit = match number_of {
            NumberOf::Milliseconds => "ms",
            NumberOf::Seconds => "s",
            NumberOf::Workers => "",
        };
        kind.read(&Raw::Untyped(format!("{}{unit}", text.trim())))
    }
}
