//! Pages that make the parser loop, overflow its stack and allocate without end, through every entrance to
//! it: the process that owns the data lives, and says `parse_failed`.
//!
//! The program under test is this very one: as `telusur` it is the real thing, and its parser children obey
//! the path of a page. The real program has no such children.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod children;
mod commands;
mod service;
mod site;

use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

use crate::site::Site;

// The allocator of the real program, which must get along with the jail and its memory limit.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The first argument of this program when it is to be `telusur`.
const AS_TELUSUR: &str = "as-telusur";

/// Paths of pages that break the parser.
const BREAKING: [&str; 3] = ["/loop", "/overflow", "/eat"];

/// Names each test after its function, as the usual harness would.
macro_rules! trials {
    ($($module:ident: $($test:ident),+;)+) => {
        vec![$($(Trial::test(
            concat!(stringify!($module), "::", stringify!($test)),
            || { $module::$test(); Ok(()) },
        )),+),+]
    };
}

fn main() -> ExitCode {
    if let Some(code) = children::run_if_asked() {
        return code;
    }
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == AS_TELUSUR) {
        telusur::process::prepare();
        return telusur::commands::run(std::iter::once("telusur".into()).chain(arguments));
    }
    let trials = trials! {
        commands: a_crawl_stores_them, fetch_says_so, inspect_page_says_so, page_says_so,
            an_export_names_them, reparse_records_them, verify_names_them, a_rebuilt_index_is_without_them;
        service: every_route_says_so;
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A directory of its own, with nothing from the machine's environment.
struct Place {
    directory: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
struct Seen {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A place in which a crawl has stored the pages of a site, with a parser that none of them breaks.
    fn crawled(site: &Site) -> Self {
        let place = Self::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_telusur"));
        let seen = seen(place.in_place(command.args(crawl_of(site))));
        assert_eq!(seen.code, 0, "{seen:?}");
        place
    }

    fn in_place<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = self.directory.path();
        command.current_dir(path).env_clear().env("HOME", path).stdin(Stdio::null())
    }

    /// The program whose parser children obey pages.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.in_place(command.arg(AS_TELUSUR).args(arguments));
        command
    }

    fn run(&self, arguments: &[&str]) -> Seen {
        seen(&mut self.command(arguments))
    }
}

/// A crawl of all pages of a site.
fn crawl_of(site: &Site) -> Vec<String> {
    let words = "--scope host --delay 0s --no-sitemap --ignore-robots --min-free-disk 0B \
                 --allow-private 127.0.0.0/8 --keep raw";
    let crawl = ["crawl".to_owned(), site.url("/")].into_iter();
    crawl.chain(words.split_whitespace().map(str::to_owned)).collect()
}

fn seen(command: &mut Command) -> Seen {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Seen { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}
