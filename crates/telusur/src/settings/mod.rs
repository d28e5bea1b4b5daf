//! [`Settings`]: every value that can be set, from wherever it was set, with the place it came from.
//!
//! Order of precedence, highest first: flags, the environment's TELUSUR_ names, the environment's
//! short names (`CRAWL_DELAY_MS` and its kin), the same two in `.env`, configuration files (a later
//! file wins), defaults. A list that is set replaces the list below it.

mod registry;
mod value;

mod origin;
mod resolve;

mod environment;

mod dot_env;
mod file;
mod job;

mod opening;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use environment::Environment;
pub use file::{ConfigFile, read_small_file};
pub use job::{JOB_KEYS, Job, JobValue};
pub use opening::{Opening, address_of};
pub use origin::Origin;
pub use registry::{Key, REGISTRY, Setting, ShortName};
pub use resolve::{Given, Resolution, Sources, config_files, resolve};
pub use value::{BadValue, FailOn, Kind, Login, Raw, Value};

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The value that rules.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
}

/// Every setting's value, in the order of the [`REGISTRY`].
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    rows: Vec<Resolved>,
}

impl Settings {
    /// The value of a setting and its origin.
    pub fn row(&self, key: Key) -> &Resolved {
        &self.rows[key.index()]
    }

    /// The value of a setting.
    pub fn value(&self, key: Key) -> &Value {
        &self.row(key).value
    }

    /// Whether the user decided about it: by a flag, or by a value other than the default. A file that
    /// `config init` wrote names every setting, and decides nothing.
    pub fn is_chosen(&self, key: Key) -> bool {
        let row = self.row(key);
        let is_default =
            || resolve::built_in(key.setting()).is_some_and(|built_in| row.value == built_in);
        matches!(row.origin, Origin::Flag { .. }) || !is_default()
    }

    /// Every setting with its value.
    pub fn all(&self) -> impl Iterator<Item = (&'static Setting, &Resolved)> {
        REGISTRY.iter().zip(&self.rows)
    }

    /// A number of a [`Kind::Count`].
    pub fn count(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Count(count) => *count,
            other => mismatch(key, other),
        }
    }

    /// A number of a [`Kind::Count`] whose bounds fit a smaller type.
    pub fn small_count<T: TryFrom<u64>>(&self, key: Key) -> T {
        T::try_from(self.count(key)).ok().expect("the registry's bounds fit the type")
    }

    /// A number of a [`Kind::Workers`]; `None` is `auto`.
    pub fn workers(&self, key: Key) -> Option<u16> {
        match self.value(key) {
            Value::Workers(workers) => *workers,
            other => mismatch(key, other),
        }
    }

    /// Milliseconds of a [`Kind::Duration`].
    pub fn duration_ms(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::DurationMs(ms) => *ms,
            other => mismatch(key, other),
        }
    }

    /// Bytes of a [`Kind::Size`].
    pub fn bytes(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Bytes(bytes) => *bytes,
            other => mismatch(key, other),
        }
    }

    /// The state of a [`Kind::Switch`].
    pub fn switch(&self, key: Key) -> bool {
        match self.value(key) {
            Value::Switch(on) => *on,
            other => mismatch(key, other),
        }
    }

    /// The text of a [`Kind::Text`].
    pub fn text(&self, key: Key) -> &str {
        match self.value(key) {
            Value::Text(text) => text,
            other => mismatch(key, other),
        }
    }

    /// The word of a [`Kind::Word`].
    pub fn word(&self, key: Key) -> &'static str {
        match self.value(key) {
            Value::Word(word) => word,
            other => mismatch(key, other),
        }
    }

    /// The items of a [`Kind::List`], [`Kind::Patterns`] or [`Kind::Hosts`].
    pub fn list(&self, key: Key) -> &[String] {
        match self.value(key) {
            Value::List(items) => items,
            other => mismatch(key, other),
        }
    }

    /// The path of a [`Kind::Path`]; `None` where it is empty.
    pub fn path(&self, key: Key) -> Option<&Path> {
        match self.value(key) {
            Value::Path(path) => Some(path.as_path()).filter(|path| !path.as_os_str().is_empty()),
            other => mismatch(key, other),
        }
    }

    /// The exceptions from "public addresses only".
    pub fn openings(&self) -> &[Opening] {
        match self.value(Key::AllowPrivate) {
            Value::Openings(openings) => openings,
            other => mismatch(Key::AllowPrivate, other),
        }
    }
}

/// A caller asked for a setting as something that it is not: a mistake in this program that its
/// first run shows.
fn mismatch(key: Key, value: &Value) -> ! {
    unreachable!("{key:?} is read as another kind than {value:?}")
}
