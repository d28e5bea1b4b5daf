//! A network of its own: a namespace in which *every* address reaches this process. Some addresses
//! are public and serve a web full of lures; a connection to any other one is a break-in.
//!
//! [`GuardProof`] runs the real program in there. It needs Linux, `unshare` and `ip`, and says so
//! where they are missing: a proof that was not made is no proof.

mod lures;
mod name_server;
mod proof;
mod shore;

use std::path::Path;
use std::process::{Command, Stdio};

pub use self::proof::{GuardProof, GuardReport};

/// Where the island's name server answers.
const NAME_SERVER: &str = "93.184.216.53";

/// A command that runs a program on an island: no other machine is there, and no route leads away.
pub fn on_island(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--mount", "--"]).arg(program);
    command
}

/// Why there is no island.
pub const MEANS: &str = "the proof needs `unshare` (util-linux), `ip` (iproute2) and user namespaces \
                         (sysctl kernel.unprivileged_userns_clone=1, or root)";

/// Makes every address lead here, and all names be looked up here. Only on an island.
fn set_up(scratch: &Path) -> Result<(), String> {
    let configuration = scratch.join("resolv.conf");
    std::fs::write(&configuration, format!("nameserver {NAME_SERVER}\n"))
        .map_err(|error| format!("write {}: {error}", configuration.display()))?;
    run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    run(Command::new("ip").args(["route", "add", "local", "0.0.0.0/0", "dev", "lo"]))?;
    run(Command::new("ip").args(["-6", "route", "add", "local", "::/0", "dev", "lo"]))?;
    run(Command::new("mount").arg("--bind").arg(&configuration).arg("/etc/resolv.conf"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{shown}: {error}; {MEANS}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{shown}: {}; {MEANS}", String::from_utf8_lossy(&output.stderr).trim()))
}
