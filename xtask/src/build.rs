//! What every task starts from: the program, and a directory to work in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the program as users get it, and says where it is.
pub(crate) fn release_program() -> anyhow::Result<PathBuf> {
    if let Some(built) = std::env::var_os("XTASK_PROGRAM") {
        return std::path::absolute(built).context("find the program");
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "telusur"])
        .status()
        .context("run cargo")?;
    if !built.success() {
        bail!("the program does not build");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    std::path::absolute(target.join("release/telusur")).context("find the program")
}

/// A directory of its own, which stays behind for a look unless it is deleted.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(task: &str) -> anyhow::Result<Self> {
        let name = format!("telusur-{task}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).context("make a scratch directory")?;
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn delete(self) -> anyhow::Result<()> {
        std::fs::remove_dir_all(&self.0).context("delete the scratch directory")
    }
}
