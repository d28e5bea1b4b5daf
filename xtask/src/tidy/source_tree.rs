//! The text files of the workspace, by path. Read once; rules never touch the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rust_text::RustText;

/// Text files by their path from the root, with `/` between the parts.
pub(super) struct SourceTree {
    files: BTreeMap<String, String>,
    /// Those that are Rust, of the workspace. The fuzz targets are another workspace.
    rust: BTreeMap<String, RustText>,
    /// Rust files that hold nothing but tests, examples or benchmarks.
    tests: BTreeSet<String>,
}

/// Folders that hold no sources of ours.
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules"];

impl SourceTree {
    /// Reads all text files below `root`. What is not UTF-8 is no text.
    pub(super) fn read(root: &Path) -> std::io::Result<Self> {
        let mut files = BTreeMap::new();
        read_folder(root, "", &mut files)?;
        Ok(Self::new(files))
    }

    fn new(files: BTreeMap<String, String>) -> Self {
        let of_rust = files.iter().filter(|(path, _)| {
            path.ends_with(".rs") && (path.starts_with("crates/") || path.starts_with("xtask/"))
        });
        let rust = of_rust.map(|(path, text)| (path.clone(), RustText::new(text))).collect();
        let tests = test_files(&rust);
        Self { files, rust, tests }
    }

    /// A tree made up for a test.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect())
    }

    /// All files, by path.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of a file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a folder is there.
    pub(super) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|it| it.0.starts_with(&folder))
    }

    /// Rust files that are part of a program: no tests, examples or benchmarks.
    pub(super) fn program_files(&self) -> impl Iterator<Item = (&str, &RustText)> {
        let files = self.rust.iter().filter(|(path, _)| !self.tests.contains(*path));
        files.map(|(path, text)| (path.as_str(), text))
    }

    /// The names of the folders of `crates/`.
    pub(super) fn crates(&self) -> BTreeSet<&str> {
        let below = self.files.keys().filter_map(|path| path.strip_prefix("crates/"));
        below.filter_map(|path| path.split_once('/')).map(|(name, _)| name).collect()
    }
}

/// Files below `tests/`, `examples/` and `benches/`, and modules behind `#[cfg(test)]` with those inside them.
fn test_files(rust: &BTreeMap<String, RustText>) -> BTreeSet<String> {
    let mut roots: Vec<String> = Vec::new();
    for (path, text) in rust {
        let of_tests = text.modules.iter().filter(|module| module.is_test);
        roots.extend(of_tests.map(|module| format!("{}{}", module_folder(path), module.name)));
    }
    let is_test = |path: &str| {
        let below = path.splitn(3, '/').nth(2).unwrap_or_default();
        let beside = ["tests/", "examples/", "benches/"];
        beside.iter().any(|folder| below.starts_with(folder))
            || roots.iter().any(|root| {
                path.strip_prefix(root.as_str())
                    .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            })
    };
    rust.keys().filter(|path| is_test(path)).cloned().collect()
}

/// The folder of the modules of a file, with a `/` at the end.
fn module_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/"),
        _ => format!("{folder}/{}/", name.trim_end_matches(".rs")),
    }
}

fn read_folder(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, String>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !name.starts_with('.') && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(std::fs::read(entry.path())?)
        {
            files.insert(path, text);
        }
    }
    Ok(())
}
