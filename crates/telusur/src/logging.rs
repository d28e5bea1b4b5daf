//! The log: what the program notes about its own work, for those who look for a fault. It never
//! carries results, and nothing in it is needed to understand an error.

use std::fs::OpenOptions;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::message::{Code, Message, shown};
use crate::settings::{Environment, Key, Origin, Settings};

/// Who is not heard unless `RUST_LOG` asks for it: html5ever has a line for each mistake of a page, and a
/// page can be made of nothing else.
const SILENT: &str = "html5ever=off";

/// Starts the log as the settings say. `RUST_LOG` is honoured unless a flag chose the level.
pub fn start(settings: &Settings, environment: &Environment) -> Result<(), Message> {
    let is_chosen = matches!(settings.row(Key::LogLevel).origin, Origin::Flag { .. });
    let level = settings.word(Key::LogLevel);
    let filter = environment
        .text("RUST_LOG")
        .filter(|_| !is_chosen)
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(format!("{level},{SILENT}")));
    let is_json = settings.word(Key::LogFormat) == "json";
    match settings.path(Key::LogFile) {
        None => install(filter, is_json, io::stderr),
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| {
                let path = shown(&path.to_string_lossy());
                Message::new(Code::LogFile, format!("cannot open the log file {path}: {error}"))
                    .hint("Name another with --log-file")
            })?;
            install(filter, is_json, std::sync::Mutex::new(file));
        }
    }
    Ok(())
}

fn install(
    filter: EnvFilter,
    is_json: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) {
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(writer);
    // A second start in one process is only met in tests; the first one stays.
    let _ = if is_json { log.json().try_init() } else { log.try_init() };
}
