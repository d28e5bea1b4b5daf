//! [`Origin`]: where a value was set, and how a mistake in it is reported.

use std::fmt;
use std::path::PathBuf;

use super::{BadValue, Raw};
use crate::message::{Code, Message, shown};

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is built in.
    Default,
    /// By a line of a configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, counting from 1.
        line: usize,
        /// The key and its section, as `"delay" in [manners]`.
        key: String,
    },
    /// By a line of `.env`.
    DotEnv {
        /// The variable.
        name: String,
        /// Its line, counting from 1.
        line: usize,
    },
    /// By an environment variable.
    Environment {
        /// The variable.
        name: String,
    },
    /// On the command line.
    Flag {
        /// The flag, as `--delay`.
        flag: &'static str,
    },
}

impl Origin {
    /// The message for a value that was set here and cannot be used.
    pub fn complaint(&self, raw: &Raw, bad: &BadValue) -> Message {
        let value = shown(&bad.part.clone().unwrap_or_else(|| raw.to_string()));
        let problem = &bad.problem;
        let (code, what) = match self {
            Self::Default => unreachable!("defaults are tested"),
            Self::File { key, .. } => {
                (Code::ConfigValue, format!("{self}: {key}: \"{value}\" {problem}"))
            }
            Self::DotEnv { name, line } => (
                Code::EnvironmentValue,
                format!("{name}=\"{value}\" {problem} (from ./.env line {line})"),
            ),
            Self::Environment { name } => {
                (Code::EnvironmentValue, format!("{name}=\"{value}\" {problem}"))
            }
            Self::Flag { flag } => (Code::FlagValue, format!("{flag} \"{value}\" {problem}")),
        };
        Message::new(code, what).hint(bad.form.clone())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => {
                write!(f, "{}:{line}", shown(&path.to_string_lossy()))
            }
            Self::DotEnv { name, line } => write!(f, "./.env:{line} {name}"),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}
