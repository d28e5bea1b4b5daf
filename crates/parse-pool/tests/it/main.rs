//! The pool, its children and their jail, with real processes.
//!
//! The program is its own parser child: `children` says what the children of these tests do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attempts;
mod children;
mod deaths;
mod jail;
mod limits;
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

// The allocator of the real program, which must get along with the jail and its memory limit.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let trials = trials! {
        jail: pages_are_read_as_in_this_process, the_walls_stand, nothing_can_be_reached,
            the_environment_is_empty, a_process_without_a_parent_is_no_child,
            the_first_page_starts_a_lazy_pool;
        limits: a_page_that_loops, a_page_that_eats_memory, a_page_without_end_of_stack,
            a_page_too_large_to_send, an_answer_too_large_to_send;
        deaths: a_page_that_always_kills, a_panic_costs_no_child, a_crash_is_tried_again,
            a_kill_in_the_middle_of_a_page, a_kill_between_pages, kills_without_end,
            malformed_answers, more_answers_than_pages, announced_but_too_large, malformed_greeting,
            children_that_never_start, children_that_die_of_everything, neighbours_are_not_blamed,
            other_pages_go_on, the_cost_of_a_page_is_told,
            a_page_does_not_pay_for_the_one_behind_it, only_the_page_that_kills_is_charged_for_it,
            an_interrupt_ends_what_is_under_way, children_end_with_the_pool, children_end_with_the_parent;
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
