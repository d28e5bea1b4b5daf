//! Puts the layers of settings on top of each other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::environment::Variables;
use super::{
    BadValue, ConfigFile, Environment, Key, Origin, REGISTRY, Raw, Resolved, Setting, Settings,
    Value, dot_env,
};
use crate::message::Message;

/// A value that was given on the command line.
#[derive(Clone, Debug)]
pub struct Given {
    /// What it sets.
    pub key: Key,
    /// The flag, as the user wrote it.
    pub flag: &'static str,
    /// The value.
    pub raw: Raw,
}

/// Everything that settings come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The command line.
    pub flags: Vec<Given>,
    /// The environment.
    pub environment: Environment,
    /// The text of `.env`, if it is read.
    pub dot_env: Option<String>,
    /// Configuration files; a later one wins.
    pub files: Vec<ConfigFile>,
}

/// Settings, and what should be said about how they came to be.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The settings.
    pub settings: Settings,
    /// One line each.
    pub warnings: Vec<String>,
}

/// The value of every setting. A mistake anywhere is an error, also where a higher layer hides it:
/// it would surface on the day the higher layer goes away.
pub fn resolve(sources: &Sources) -> Result<Resolution, Message> {
    let mut warnings = sources.environment.misspelt();
    let dot_env = sources.dot_env.as_deref().map(dot_env::parse).transpose()?.unwrap_or_default();
    let in_environment = |name: &str| {
        let value = sources.environment.get(name)?.to_owned();
        Some((value, Origin::Environment { name: name.to_owned() }))
    };
    let in_dot_env = |name: &str| {
        let found = dot_env.iter().rev().find(|variable| variable.name == name)?;
        let origin = Origin::DotEnv { name: name.to_owned(), line: found.line };
        let value = OsString::from(&found.value);
        (!value.is_empty()).then_some((value, origin))
    };
    let mut rows = Vec::with_capacity(REGISTRY.len());
    for setting in REGISTRY {
        let flag = from_flags(&sources.flags, setting)?;
        let environment = Variables { lookup: &in_environment }.read(setting, &mut warnings)?;
        let dot_env = Variables { lookup: &in_dot_env }.read(setting, &mut warnings)?;
        let file = sources.files.iter().rev().find_map(|file| file.row(setting.key)).cloned();
        // A generated file leaves the place to the environment.
        let file = file.map(|row| match setting.key == Key::DataDir && is_empty_path(&row.value) {
            true => Resolved { origin: row.origin, ..default(setting, &sources.environment) },
            false => row,
        });
        let resolved = flag
            .or(environment)
            .or(dot_env)
            .or(file)
            .unwrap_or_else(|| default(setting, &sources.environment));
        rows.push(in_home(resolved, &sources.environment)?);
    }
    Ok(Resolution { settings: Settings { rows }, warnings })
}

fn is_empty_path(value: &Value) -> bool {
    matches!(value, Value::Path(path) if path.as_os_str().is_empty())
}

fn from_flags(flags: &[Given], setting: &Setting) -> Result<Option<Resolved>, Message> {
    let Some(given) = flags.iter().rev().find(|given| given.key == setting.key) else {
        return Ok(None);
    };
    let origin = Origin::Flag { flag: given.flag };
    match setting.kind.read(&given.raw) {
        Ok(value) => Ok(Some(Resolved { value, origin })),
        Err(bad) => Err(origin.complaint(&given.raw, &bad)),
    }
}

/// The row with a path that begins with `~/` below the home directory: no shell has seen it.
fn in_home(mut row: Resolved, environment: &Environment) -> Result<Resolved, Message> {
    if let Value::Path(path) = &row.value
        && let Ok(below) = path.strip_prefix("~")
    {
        row.value = match environment.get("HOME") {
            Some(home) => Value::Path(Path::new(home).join(below)),
            None => {
                let bad = BadValue {
                    part: None,
                    problem: "begins with ~, but HOME is not set".to_owned(),
                    form: "Write the whole path".to_owned(),
                };
                return Err(row.origin.complaint(&Raw::Path(path.clone()), &bad));
            }
        };
    }
    Ok(row)
}

fn default(setting: &Setting, environment: &Environment) -> Resolved {
    let data_dir = || Value::Path(data_dir(environment).unwrap_or_default());
    Resolved { value: built_in(setting).unwrap_or_else(data_dir), origin: Origin::Default }
}

/// The default of a setting; `None` if it depends on the environment.
pub(super) fn built_in(setting: &Setting) -> Option<Value> {
    let read = || setting.kind.read(&Raw::Untyped(setting.default.to_owned()));
    let value = || read().expect("the defaults of the registry are tested");
    (setting.key != Key::DataDir).then(value)
}

/// `$XDG_DATA_HOME/telusur`, or its place below the home directory.
fn data_dir(environment: &Environment) -> Option<PathBuf> {
    Some(base_directory(environment, "XDG_DATA_HOME", ".local/share")?.join("telusur"))
}

/// The configuration files that are looked for when none is named, first to last.
pub fn config_files(environment: &Environment) -> Vec<PathBuf> {
    let of_user = base_directory(environment, "XDG_CONFIG_HOME", ".config")
        .map(|directory| directory.join("telusur/config.toml"));
    of_user.into_iter().chain([PathBuf::from("telusur.toml")]).collect()
}

/// A directory of the XDG base directory specification, which says that relative ones are ignored.
fn base_directory(environment: &Environment, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = environment.get(variable).map(Path::new).filter(|path| path.is_absolute());
    let in_home = || environment.get("HOME").map(|home| Path::new(home).join(below_home));
    named.map(Path::to_owned).or_else(in_home)
}
