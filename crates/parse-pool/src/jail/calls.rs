//! The system calls that a jailed child may make. All others fail with `EPERM`.
//!
//! A call that takes a file descriptor is allowed for the socket alone (and standard error, for last
//! words), so that a descriptor that the child inherited by accident is of no use to it. Memory
//! may be mapped, but not from a file, and not to be run as code.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Allowed with any arguments.
const FREE: &[i64] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Time, chance, waiting.
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_restart_syscall,
    // Dying: a panic, an overflowed stack, the end.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Allowed on the socket.
const TALK: [i64; 7] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

const PROT_EXEC: u64 = libc::PROT_EXEC as u64;
const SIGABRT: u64 = libc::SIGABRT as u64;
const STANDARD_ERROR: u64 = libc::STDERR_FILENO as u64;
/// The descriptor of memory that is not backed by a file. Only the lower half of the argument
/// counts, as in the kernel.
const NO_FILE: u64 = u32::MAX as u64;

/// Puts the filter up. The words say why it could not be.
pub(super) fn close(socket: BorrowedFd<'_>) -> Result<(), String> {
    let program = filter(socket).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

fn filter(socket: BorrowedFd<'_>) -> Result<BpfProgram, seccompiler::BackendError> {
    let socket = u64::from(socket.as_raw_fd().unsigned_abs());
    let own_pid = u64::from(std::process::id());
    let mut rules = BTreeMap::new();
    for call in FREE {
        rules.insert(*call, Vec::new());
    }
    for call in TALK {
        rules.insert(call, vec![rule(&[argument(0, SeccompCmpOp::Eq, socket)])?]);
    }
    for call in [libc::SYS_write, libc::SYS_writev] {
        let last_words = rule(&[argument(0, SeccompCmpOp::Eq, STANDARD_ERROR)])?;
        rules.entry(call).or_default().push(last_words);
    }
    let not_code = || argument(2, SeccompCmpOp::MaskedEq(PROT_EXEC), 0);
    let not_a_file = argument(4, SeccompCmpOp::Eq, NO_FILE);
    rules.insert(libc::SYS_mmap, vec![rule(&[not_code(), not_a_file])?]);
    rules.insert(libc::SYS_mprotect, vec![rule(&[not_code()])?]);
    // How `abort` ends a process; aimed at another process it would be a weapon.
    let abort = [argument(0, SeccompCmpOp::Eq, own_pid), argument(2, SeccompCmpOp::Eq, SIGABRT)];
    rules.insert(libc::SYS_tgkill, vec![rule(&abort)?]);

    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, denied, SeccompAction::Allow, machine)?.try_into()
}

/// An argument of a call, what it is held against, and how.
struct Argument {
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
}

fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Argument {
    Argument { index, operator, value }
}

fn rule(arguments: &[Argument]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = arguments.iter().map(|Argument { index, operator, value }| {
        SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}
