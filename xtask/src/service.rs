//! [`Service`]: the program, serving a data directory on loopback while a task loads it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// A service that ends when it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Service {
    /// Serves a directory with these flags, on a port that it picks.
    pub(crate) fn start(program: &Path, data: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::run(Command::new(program).arg("--no-config"), data, flags)
    }

    /// The same with a file of settings.
    pub(crate) fn start_with(
        program: &Path,
        settings: &Path,
        data: &Path,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        Self::run(Command::new(program).arg("--config").arg(settings), data, flags)
    }

    /// Runs the command on a directory; what it logs stays beside that.
    fn run(command: &mut Command, data: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        let mut child = command
            .arg("--log-file")
            .arg(data.with_extension("log"))
            .arg("--data")
            .arg(data)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start the program")?;
        let mut line = String::new();
        let output = child.stdout.take().context("read where it listens")?;
        BufReader::new(output).read_line(&mut line).context("read where it listens")?;
        let address = line.trim().trim_start_matches("listening on http://").trim_end_matches('/');
        let address = address.parse().with_context(|| format!("it said {line:?}"))?;
        Ok(Self { child, address })
    }

    /// Asks it to end, and waits until it has. Says how long that took.
    pub(crate) fn end(mut self) -> anyhow::Result<Duration> {
        let asked = Instant::now();
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().context("run kill")?;
        ensure!(sent.success(), "the service is gone");
        self.child.wait().context("wait for the end")?;
        Ok(asked.elapsed())
    }

    /// Its process, to [`look`](crate::process::look) at.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
