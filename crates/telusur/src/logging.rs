//! The log: what the program notes about its own work, for those who look for a fault. It never
//! carries results, and nothing in it is needed to understand an error.

use std::fs::OpenOptions;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::message::{Code, Message, shown};
use crate::settings::{Environment, Key, Origin, Settings};

/// Who is not heard unless `RUST_LOG` asks for it, because strangers choose what they say and how much of
/// it: html5ever has a line for each mistake of a page, and a page can be made of nothing else; the
/// verifier of certificates prints all names of one that it refuses. What came of the page is recorded.
/// The storage engines call a full disk a fatal failure of the hardware; we say what it is.
const SILENT: &str =
    "html5ever=off,rustls_platform_verifier=off,fjall=off,lsm_tree=off,tantivy=off";

/// Starts the log as the settings say. `RUST_LOG` is honoured unless a flag chose the level.
pub fn start(settings: &Settings, environment: &Environment) -> Result<(), Message> {
    let is_chosen = matches!(settings.row(Key::LogLevel).origin, Origin::Flag { .. });
    let level = settings.word(Key::LogLevel);
    let filter = environment
        .text("RUST_LOG")
        .filter(|_| !is_chosen)
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| default_filter(level));
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

fn default_filter(level: &str) -> EnvFilter {
    EnvFilter::new(format!("{level},{SILENT}"))
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A refused certificate with hundreds of names once printed them all.
    #[test]
    fn strangers_do_not_write_into_the_log() {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt()
            .with_env_filter(default_filter("debug"))
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            tracing::error!(target: "rustls_platform_verifier::verification::others", "names");
            tracing::error!(target: "html5ever::tree_builder", "mistakes");
            tracing::error!(target: "fjall::batch", "a FATAL failure");
            tracing::error!("our own");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("our own"), "{text}");
        assert!(!text.contains("names") && !text.contains("mistakes"), "{text}");
        assert!(!text.contains("FATAL"), "{text}");
    }
}
