//! `telusur crawl --detach`: the same command again, in the background.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Outcome, Session};
use crate::backend::{self, DataDir};
use crate::json::write_json_line;
use crate::message::{Code, Message};
use crate::process::as_user;
use crate::settings::Settings;

/// Longest that the background process may take to own the data directory.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs it in a process of its own, which owns the directory.
pub(super) fn detach(session: &Session, settings: &Settings, output: &mut dyn Write) -> Outcome {
    let dir = backend::data_dir(settings)?;
    let refuse = |what: String| Message::new(Code::Storage, what);
    let log = log_path(session);
    let started =
        start(&log).map_err(|error| refuse(format!("start in the background: {error}")))?;
    let (pid, mut child) = (started.id(), started);
    let deadline = Instant::now() + START_TIME_MAX;
    while !DataDir::control_socket(dir).exists() {
        if let Ok(Some(status)) = child.try_wait() {
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            let last =
                told.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            return match status.code() {
                // A small crawl may be over before anybody looked.
                Some(0) => Ok(0),
                _ => Err(refuse(format!("the background process ended ({status}): {last}")).into()),
            };
        }
        if Instant::now() > deadline {
            return Err(
                refuse(format!("pid {pid} does not answer; its log is {}", log.display())).into()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if session.global.json {
        write_json_line(output, &json!({ "pid": pid, "log": log }))?;
    } else {
        writeln!(output, "running in the background as pid {pid}; log {}", log.display())?;
        writeln!(output, "watch it: telusur show last    end it: telusur stop last")?;
    }
    Ok(0)
}

fn start(log: &PathBuf) -> std::io::Result<std::process::Child> {
    if let Some(parent) = log.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let file = File::create(log)?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    // A group of its own: Ctrl-C in this terminal is not meant for it.
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0);
    as_user(|| command.spawn())
}

fn log_path(session: &Session) -> PathBuf {
    let home =
        || session.environment.get("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = session.environment.get("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    let state = state.unwrap_or_else(std::env::temp_dir);
    state.join("telusur").join(format!("crawl-{}.log", std::process::id()))
}
