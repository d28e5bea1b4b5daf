//! What a child can do: parse, and nothing else.

use std::process::{Command, Stdio};

use telusur_parse_pool::{
    InProcess, LazyPool, Parser, PoolError, ReadPage, Reading, VisibleText, Wall,
};

use crate::attempts::{self, ATTEMPTS};
use crate::children;
use crate::support::{Plan, html, one_child, page};

/// What was read, without its cost.
fn readings<T>(pages: Result<Vec<ReadPage<T>>, PoolError>) -> Vec<Reading<T>> {
    pages.unwrap().into_iter().map(|page| page.reading).collect()
}

pub(crate) fn pages_are_read_as_in_this_process() {
    let test = one_child();
    let here = InProcess::default();
    let long = format!("<p>{}", "<a href=/x>word</a> ".repeat(50_000));
    let odd = "<title>\u{0}\u{fffd}é</title><base href=//b.org><a href='?\u{1f980}'>";
    let mut pages = vec![page("/"), html("/empty", ""), html("/long", &long), html("/odd", odd)];
    pages.extend((0..40).map(|index| html("/small", &format!("<title>{index}</title>"))));
    let pages: Vec<_> = pages.iter().collect();
    let outcomes = readings(here.parse_all(&pages, VisibleText::Taken));
    assert_eq!(readings(test.pool.parse_all(&pages, VisibleText::Taken)), outcomes);
    let bare = readings(here.parse_all(&pages, VisibleText::Left));
    assert_eq!(readings(test.pool.parse_all(&pages, VisibleText::Left)), bare);
    assert_ne!(bare, outcomes);
    for (page, outcome) in pages.iter().zip(outcomes) {
        assert_eq!(test.pool.parse(page).unwrap(), outcome);
    }
    assert_eq!(readings(test.pool.read_all(&pages)), readings(here.read_all(&pages)));
    assert_eq!(
        readings(test.pool.read_for_search(&pages, VisibleText::Taken)),
        readings(here.read_for_search(&pages, VisibleText::Taken))
    );
    assert!(test.pool.parse_all(&[], VisibleText::Taken).unwrap().is_empty());
}

pub(crate) fn the_walls_stand() {
    let test = one_child();
    let jail = test.pool.jail();
    assert_eq!(jail.seccomp, Wall::Whole, "{jail}");
    if jail.landlock != Wall::Whole {
        eprintln!("this kernel builds a lesser jail: {jail}");
    }
}

pub(crate) fn nothing_can_be_reached() {
    let outside = attempts::report();
    let inside = one_child().parsed("/attempts").visible_text;
    let all = |word: &str| -> String {
        ATTEMPTS.iter().map(|attempt| format!("{word}: {}\n", attempt.name)).collect()
    };
    assert_eq!(outside, all("yes"));
    assert_eq!(inside, all("no"));
}

pub(crate) fn the_environment_is_empty() {
    assert!(std::env::vars_os().count() > 1, "there is nothing to hide");
    let environment = one_child().parsed("/environment").visible_text;
    assert_eq!(environment, r#"[("MIMALLOC_ARENA_RESERVE", "32MiB")]"#);
}

pub(crate) fn a_process_without_a_parent_is_no_child() {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args([children::COMMAND, "jailed", "1000000"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("this command is for the program itself"), "{said}");
}

/// A command that never comes to a page starts no process.
pub(crate) fn the_first_page_starts_a_lazy_pool() {
    let pool = LazyPool::new(Plan::default().settings());
    assert!(pool.parse_all(&[], VisibleText::Taken).unwrap().is_empty());
    assert!(pool.read_all(&[]).unwrap().is_empty());
    pool.interrupt();
    assert!(!pool.is_started());
    let here = InProcess::default();
    assert_eq!(pool.read(&page("/")).unwrap(), here.read(&page("/")).unwrap());
    assert!(pool.is_started());
    match pool.parse(&page("/abort")).unwrap() {
        Reading::Failed { why } => assert!(why.contains("aborted"), "{why}"),
        Reading::Read(parsed) => panic!("{parsed:?}"),
    }
}
