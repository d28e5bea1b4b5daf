//! Children die; the crawl goes on.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use telusur_parse_pool::{ChildLimits, InProcess, Parser, PoolError, Reading, VisibleText};

use crate::support::{Plan, TestPool, kill, one_child, page, wait_until_busy, wait_until_gone};

pub(crate) fn a_page_that_always_kills() {
    let test = one_child();
    let first = test.child_pid();
    let why = test.failed("/abort");
    assert!(why.contains("aborted"), "{why}");
    assert_ne!(test.child_pid(), first);
    assert_eq!(test.parsed("/").title.as_deref(), Some("A title"));
}

pub(crate) fn a_panic_costs_no_child() {
    let test = one_child();
    let pid = test.child_pid();
    let why = test.failed("/panic");
    assert!(why.contains("at the sight of http://a.org/panic"), "{why}");
    assert_eq!(test.child_pid(), pid);
    test.parsed("/");
}

pub(crate) fn a_crash_is_tried_again() {
    let test = one_child();
    let first = test.child_pid();
    test.parsed("/abort-unless-first");
    assert_ne!(test.child_pid(), first, "the first child had read a page before, and died");
}

pub(crate) fn a_kill_in_the_middle_of_a_page() {
    let test = one_child();
    let first = test.child_pid();
    std::thread::scope(|threads| {
        let parsing = threads.spawn(|| test.parsed("/loop-unless-first"));
        wait_until_busy(first);
        kill(first);
        assert_eq!(parsing.join().unwrap().title.as_deref(), Some("A title"));
    });
}

pub(crate) fn a_kill_between_pages() {
    let test = Plan { children: 4, ..Plan::default() }.start();
    for pid in test.pool.resting_pids() {
        kill(pid);
        wait_until_gone(pid);
    }
    // Were the dead counted against the page, two of them would make it fail.
    test.parsed("/");
}

pub(crate) fn kills_without_end() {
    let test = one_child();
    for _ in 0..30 {
        let pid = test.child_pid();
        kill(pid);
        wait_until_gone(pid);
        test.parsed("/");
    }
}

pub(crate) fn malformed_answers() {
    let test = Plan { behaviour: &["answers-badly"], ..Plan::default() }.start();
    let why = test.failed("/");
    assert!(why.contains("unknown kind of frame"), "{why}");
}

/// The next page would get an answer to this one, so that the child is not leased again.
pub(crate) fn more_answers_than_pages() {
    let test = Plan { behaviour: &["answers-twice"], ..Plan::default() }.start();
    test.parsed("/");
    assert!(test.pool.resting_pids().is_empty());
}

pub(crate) fn announced_but_too_large() {
    let test = Plan { behaviour: &["answers-too-much"], ..Plan::default() }.start();
    let why = test.failed("/");
    assert!(why.contains("is the limit"), "{why}");
}

#[track_caller]
fn start_fails(behaviour: &str, expected: &str) {
    match (Plan { behaviour: &[behaviour], ..Plan::default() }).try_start() {
        Err(PoolError::Start { why }) => assert!(why.contains(expected), "{why}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
}

pub(crate) fn malformed_greeting() {
    start_fails("greets-badly", "unknown kind of frame");
}

pub(crate) fn children_that_never_start() {
    start_fails("dies", "exit code 1");
}

/// When no child starts any more, no page is blamed for it: the pool says so.
pub(crate) fn children_that_die_of_everything() {
    let directory = tempfile::tempdir().unwrap();
    let omen = directory.path().join("omen");
    let behaviour = ["jailed-unless", omen.to_str().unwrap()];
    let test = Plan { behaviour: &behaviour, ..Plan::default() }.start();
    std::fs::write(&omen, "").unwrap();
    let error = test.pool.parse(&page("/abort")).unwrap_err();
    assert!(matches!(error, PoolError::ChildrenDie { times: 12, .. }), "{error}");
    // When the cause is gone, so is the error.
    std::fs::remove_file(&omen).unwrap();
    test.parsed("/");
}

/// Pages that were given to a child together with one that kills it.
pub(crate) fn neighbours_are_not_blamed() {
    let test = one_child();
    let pages = ["/1", "/abort", "/2", "/panic", "/3"].map(page);
    let outcomes = test.pool.parse_all(&pages.each_ref(), VisibleText::Taken).unwrap();
    let parsed = outcomes.iter().map(|page| matches!(page.reading, Reading::Read(_)));
    assert_eq!(parsed.collect::<Vec<_>>(), [true, false, true, false, true]);
    let readings = test.pool.read_all(&pages.each_ref()).unwrap();
    let read = readings.iter().map(|page| matches!(page.reading, Reading::Read(_)));
    assert_eq!(read.collect::<Vec<_>>(), [true, false, true, false, true]);
}

/// What a page took is known from outside, also of one that has killed its children.
pub(crate) fn the_cost_of_a_page_is_told() {
    let limits = ChildLimits { cpu_max: Duration::from_millis(200), ..ChildLimits::default() };
    let test = Plan { limits, ..Plan::default() }.start();
    let read = test.pool.parse_all(&[&page("/loop")], VisibleText::Left).unwrap();
    assert!(matches!(read[0].reading, Reading::Failed { .. }));
    // Two attempts.
    assert!(read[0].cpu >= Duration::from_millis(300), "{:?}", read[0].cpu);
    assert_eq!(read[0].deaths, 2);
    let read = InProcess::default().parse_all(&[&page("/")], VisibleText::Left).unwrap();
    assert!(!read[0].cpu.is_zero());
}

/// The answer of a cheap page is held until the costly one behind it is read.
pub(crate) fn a_page_does_not_pay_for_the_one_behind_it() {
    let test = one_child();
    let pages = ["/", "/work-100-ms", "/"].map(page);
    let read = test.pool.parse_all(&pages.each_ref(), VisibleText::Left).unwrap();
    assert!(read[1].cpu >= Duration::from_millis(50), "{:?}", read[1].cpu);
    assert!(read[0].cpu < read[1].cpu / 2, "{:?}", read[0].cpu);
    assert!(read[2].cpu < read[1].cpu / 2, "{:?}", read[2].cpu);
}

/// The page whose answer is held did not kill, and neither did the one that was never begun.
pub(crate) fn only_the_page_that_kills_is_charged_for_it() {
    let limits = ChildLimits { cpu_max: Duration::from_millis(200), ..ChildLimits::default() };
    let test = Plan { limits, ..Plan::default() }.start();
    let pages = ["/", "/loop", "/"].map(page);
    let read = test.pool.parse_all(&pages.each_ref(), VisibleText::Left).unwrap();
    assert_eq!(read.iter().map(|page| page.deaths).collect::<Vec<_>>(), [0, 2, 0]);
    assert!(read[1].cpu >= Duration::from_millis(300), "{:?}", read[1].cpu);
    assert!(read[0].cpu < Duration::from_millis(100), "{:?}", read[0].cpu);
    // One that dies only in a batch: no single page is known to have done it.
    let pages = ["/abort-unless-first", "/"].map(page);
    let read = test.pool.parse_all(&pages.each_ref(), VisibleText::Left).unwrap();
    assert_eq!(read.iter().map(|page| page.deaths).collect::<Vec<_>>(), [0, 0]);
}

/// An interrupt ends a wait for a page as well as a wait for a child.
pub(crate) fn an_interrupt_ends_what_is_under_way() {
    let test = one_child();
    let pid = test.child_pid();
    std::thread::scope(|threads| {
        let reading = threads.spawn(|| test.pool.parse(&page("/loop")));
        wait_until_busy(pid);
        let waiting = threads.spawn(|| test.pool.parse(&page("/loop")));
        while !(reading.is_finished() && waiting.is_finished()) {
            test.pool.interrupt();
            std::thread::yield_now();
        }
        for ended in [reading, waiting] {
            assert!(matches!(ended.join().unwrap(), Err(PoolError::Interrupted)));
        }
    });
    // What comes later is read as usual.
    test.parsed("/");
}

/// More threads than children, and every third page kills.
pub(crate) fn other_pages_go_on() {
    let test = Plan { children: 2, ..Plan::default() }.start();
    let parsed = |thread: usize, index: usize| {
        let path = if (thread + index).is_multiple_of(3) { "/abort" } else { "/" };
        matches!(test.pool.parse(&page(path)).unwrap(), Reading::Read(_))
    };
    let read = |thread| (0..12).filter(|index| parsed(thread, *index)).count();
    std::thread::scope(|threads| {
        let readers: Vec<_> = (0..4).map(|thread| threads.spawn(move || read(thread))).collect();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 8);
        }
    });
    assert!(test.pool.resting_pids().len() <= 2);
}

pub(crate) fn children_end_with_the_pool() {
    let test = Plan { children: 2, ..Plan::default() }.start();
    let pids = test.pool.resting_pids();
    drop(test);
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

/// A child that is deep in a page does not notice that its parent is gone; the kernel does.
pub(crate) fn children_end_with_the_parent() {
    let mut parent = Command::new("/proc/self/exe")
        .args([crate::children::COMMAND, "parent"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    wait_until_busy(child);
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until_gone(child);
}

/// Runs in a process of its own: the parent that is killed.
pub(crate) fn parent_of_a_busy_child(_: impl Iterator<Item = OsString>) -> ExitCode {
    let test: TestPool = one_child();
    println!("{}", test.child_pid());
    test.failed("/loop");
    ExitCode::FAILURE
}
