//! What a page may cost.

use std::time::Duration;

use bytes::Bytes;
use telusur_model::RawPage;
use telusur_parse_pool::frames::FRAME_BYTES_MAX;
use telusur_parse_pool::{ChildLimits, Parser, Reading};

use crate::support::{Plan, one_child, page};

#[track_caller]
fn check(why: &str, expected: &str) {
    assert!(why.contains(expected), "{why:?} does not say {expected:?}");
}

pub(crate) fn a_page_that_loops() {
    let limits = ChildLimits { cpu_max: Duration::from_millis(100), ..ChildLimits::default() };
    let test = Plan { limits, ..Plan::default() }.start();
    check(&test.failed("/loop"), "more than 100ms of CPU");
    test.parsed("/");
}

pub(crate) fn a_page_that_eats_memory() {
    let test = one_child();
    assert_eq!(test.parsed("/eat-200-mib").visible_text, (200 << 20).to_string());
    check(&test.failed("/eat-300-mib"), "memory allocation");
    test.parsed("/");
}

pub(crate) fn a_page_without_end_of_stack() {
    let test = one_child();
    check(&test.failed("/overflow"), "overflowed its stack");
    test.parsed("/");
}

pub(crate) fn a_page_too_large_to_send() {
    let test = one_child();
    let pid = test.child_pid();
    let large = RawPage { body: Bytes::from(vec![0; FRAME_BYTES_MAX]), ..page("/") };
    let outcome = test.pool.parse(&large).unwrap();
    assert!(matches!(outcome, Reading::Failed { .. }));
    assert_eq!(test.child_pid(), pid, "the child was not even asked");
}

pub(crate) fn an_answer_too_large_to_send() {
    let limits = ChildLimits { memory_bytes: 1 << 30, ..ChildLimits::default() };
    let test = Plan { limits, ..Plan::default() }.start();
    let pid = test.child_pid();
    check(&test.failed("/say-too-much"), "larger than");
    assert_eq!(test.child_pid(), pid, "the child is still good");
}
