//! `telusur key`: makes, lists and revokes the keys of the API. A running service notices within a second.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_model::Clock;
use telusur_server::{KeyFile, KeyRingError, Scope, StoredKey};

use super::{Outcome, Session};
use crate::backend::{self, DataDir};
use crate::cli::KeyCommand;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};

const DAY: Duration = Duration::from_secs(86_400);

const NEW_KEYS: &str = "Restore keys.json and keys.lock together from a backup, or delete keys.json and make new keys: \
     telusur key create --scope admin";

pub(super) fn key(session: &Session, command: &KeyCommand, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(Vec::new())?.settings;
    let dir = backend::data_dir(&settings)?;
    if !backend::is_there(dir)? {
        // The first key is made before the service runs for the first time.
        drop(backend::open(dir)?);
    }
    let file = KeyFile::new(&DataDir::keys_file(dir));
    match command {
        KeyCommand::Create { scope, name, expires } => {
            let scopes =
                scope.iter().map(|word| read_scope(word)).collect::<Result<Vec<_>, _>>()?;
            let now = SystemClock::new().wall();
            let ends = expires.map(|days| now.plus(DAY * days));
            let (key, stored) =
                file.create(name, &scopes, now, ends).map_err(|error| message(&error))?;
            if session.global.json {
                let mut about = about(&stored);
                about["key"] = json!(key);
                writeln!(output, "{about}")?;
            } else {
                writeln!(output, "{key}")?;
                session.talk.note(&format!("{} is shown this once; keep it safe", stored.id));
            }
        }
        KeyCommand::Ls => {
            if file.is_lost() {
                let what = "keys.json is gone, and held keys: nobody is let in without one";
                return Err(Message::new(Code::Keys, what).hint(NEW_KEYS).into());
            }
            for key in file.keys().map_err(|error| message(&error))? {
                if session.global.json {
                    write_json_line(output, &about(&key))?;
                } else {
                    let ends = key.expires_at.map_or("for ever".to_owned(), |at| at.rfc3339());
                    let (scopes, name) = (words(&key).join(","), shown(&key.name));
                    writeln!(output, "{}  {scopes:<20}  {ends:<20}  {name}", key.id)?;
                }
            }
        }
        KeyCommand::Revoke { id } => {
            if !file.revoke(id).map_err(|error| message(&error))? {
                let what = format!("there is no key \"{}\"", shown(id));
                return Err(Message::new(Code::Keys, what)
                    .hint("List them: telusur key ls")
                    .into());
            }
            match session.global.json {
                true => write_json_line(output, &json!({ "id": id, "done": "revoked" }))?,
                false => writeln!(output, "{} revoked", shown(id))?,
            }
        }
    }
    Ok(0)
}

fn read_scope(word: &str) -> Result<Scope, Message> {
    Scope::from_word(word).ok_or_else(|| {
        Message::new(Code::Keys, format!("\"{}\" is no scope", shown(word)))
            .hint("Write search, read, crawl, metrics or admin")
    })
}

fn words(key: &StoredKey) -> Vec<&'static str> {
    key.scopes.iter().map(|scope| scope.word()).collect()
}

fn about(key: &StoredKey) -> serde_json::Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scopes": words(key),
        "created_at": key.created_at.rfc3339(),
        "expires_at": key.expires_at.map(|at| at.rfc3339()),
    })
}

pub(super) fn message(error: &KeyRingError) -> Message {
    let message = Message::new(Code::Keys, error.to_string());
    match error {
        KeyRingError::Damaged { .. } => {
            message.hint(format!("Nobody is let in until then. {NEW_KEYS}"))
        }
        KeyRingError::Io { .. } | KeyRingError::Refused(_) => message,
    }
}
