//! `telusur config`: writes, checks and shows the configuration.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{ConfigPath, Outcome, Session, missing};
use crate::cli::ConfigCommand;
use crate::json::write_json_line;
use crate::message::{Code, Message, exit, shown};
use crate::process::give_to_user;
use crate::settings::{ConfigFile, Settings, Sources, resolve};

pub(super) fn config(session: &Session, command: ConfigCommand, output: &mut dyn Write) -> Outcome {
    match command {
        ConfigCommand::Init { file, overwrite } => init(session, &file, overwrite, output),
        ConfigCommand::Check { files } => check(session, files, output),
        ConfigCommand::Show { origin } => show(session, origin, output),
        ConfigCommand::Path => path(session, output),
    }
}

fn init(session: &Session, file: &Path, overwrite: bool, output: &mut dyn Write) -> Outcome {
    let text = template();
    if file == Path::new("-") {
        output.write_all(text.as_bytes())?;
        return Ok(0);
    }
    let shown_path = shown(&file.to_string_lossy());
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).create(overwrite).create_new(!overwrite);
    let is_new = !file.exists();
    let written = options.open(file).and_then(|mut file| {
        if is_new {
            give_to_user(&file)?;
        }
        file.write_all(text.as_bytes())
    });
    match written {
        Ok(()) => {
            session.talk.note(&format!("wrote {shown_path}"));
            Ok(0)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Message::new(Code::FileExists, format!("{shown_path} exists already"))
                .hint("Overwrite it with -O")
                .into())
        }
        Err(error) => {
            Err(Message::new(Code::Output, format!("cannot write {shown_path}: {error}")).into())
        }
    }
}

/// A configuration file with every key, its meaning and its default.
fn template() -> String {
    let defaults = resolve(&Sources::default()).expect("the registry is tested").settings;
    let mut text = "# Every line is the default: delete what you do not change.\n".to_owned();
    let mut section = "";
    for (setting, row) in defaults.all() {
        if setting.section != section {
            section = setting.section;
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&format!("# {}\n{} = {}\n", setting.help, setting.name, row.value.toml()));
    }
    text
}

fn check(session: &Session, files: Vec<PathBuf>, output: &mut dyn Write) -> Outcome {
    let named = |path| ConfigPath { path, is_named: true };
    let paths = if files.is_empty() {
        session.config_paths()
    } else {
        files.into_iter().map(named).collect()
    };
    let (mut fine, mut mistakes) = (Vec::new(), Vec::new());
    for ConfigPath { path, is_named } in paths {
        match ConfigFile::read(&path) {
            Ok(Some(_)) => fine.push(path),
            Ok(None) if is_named => mistakes.push(missing(&path)),
            Ok(None) => {}
            Err(found) => mistakes.extend(found),
        }
    }
    if session.global.json {
        let rows: Vec<_> =
            fine.iter().map(|path| json!({ "path": path.to_string_lossy(), "ok": true })).collect();
        write_json_line(output, &rows)?;
    } else {
        for path in &fine {
            writeln!(output, "{}: ok", shown(&path.to_string_lossy()))?;
        }
    }
    for mistake in &mistakes {
        session.talk.error(mistake);
    }
    if !mistakes.is_empty() {
        return Ok(exit::USAGE);
    }
    // The files are fine; the environment and .env may still not be.
    resolve(&session.sources(Vec::new())?)?;
    Ok(0)
}

fn show(session: &Session, with_origin: bool, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(Vec::new())?.settings;
    if session.global.json {
        show_json(&settings, output)
    } else {
        show_toml(&settings, with_origin, output)
    }
}

fn show_json(settings: &Settings, output: &mut dyn Write) -> Outcome {
    let rows: Vec<_> = settings
        .all()
        .map(|(setting, row)| {
            json!({
                "key": setting.path(), "value": row.value.json(),
                "origin": row.origin.to_string(), "variable": setting.variable(),
            })
        })
        .collect();
    write_json_line(output, &rows)?;
    Ok(0)
}

fn show_toml(settings: &Settings, with_origin: bool, output: &mut dyn Write) -> Outcome {
    const ORIGIN_COLUMN: usize = 44;
    let mut section = "";
    for (setting, row) in settings.all() {
        if setting.section != section {
            section = setting.section;
            writeln!(output, "\n[{section}]")?;
        }
        let line = format!("{} = {}", setting.name, row.value.toml());
        if with_origin {
            writeln!(output, "{line:ORIGIN_COLUMN$} # {}", row.origin)?;
        } else {
            writeln!(output, "{line}")?;
        }
    }
    Ok(0)
}

fn path(session: &Session, output: &mut dyn Write) -> Outcome {
    let mut paths: Vec<PathBuf> =
        session.config_paths().into_iter().map(|config| config.path).collect();
    if !session.global.no_config {
        paths.push(".env".into());
    }
    if session.global.json {
        let rows: Vec<_> = paths
            .iter()
            .map(|path| json!({ "path": path.to_string_lossy(), "exists": path.exists() }))
            .collect();
        write_json_line(output, &rows)?;
        return Ok(0);
    }
    for path in paths {
        let state = if path.exists() { "read" } else { "not there" };
        writeln!(output, "{:9}  {}", state, shown(&path.to_string_lossy()))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::REGISTRY;

    #[test]
    fn the_template_holds_every_key_and_changes_nothing() {
        let file = ConfigFile::parse(Path::new("t"), &template()).unwrap();
        let files = vec![file];
        let with_file = resolve(&Sources { files, ..Sources::default() }).unwrap().settings;
        let without = resolve(&Sources::default()).unwrap().settings;
        for setting in REGISTRY {
            assert_eq!(with_file.value(setting.key), without.value(setting.key));
            assert_ne!(with_file.row(setting.key).origin, without.row(setting.key).origin);
        }
    }
}
