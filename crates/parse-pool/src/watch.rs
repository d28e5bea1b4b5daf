//! When a page has cost too much: looked at only while an answer is overdue, so that a page that is
//! parsed in time costs nothing here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::child::ChildLimits;
use crate::socket::Patience;

/// How long a parent waits before it looks whether the child has used too much. Nearly every page
/// is answered within it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Counts the times that all readers were told to let go of what they read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts(Arc<AtomicU64>);

/// What is read now, and let go of at the next interrupt.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    interrupts: Interrupts,
    begun: u64,
}

impl Interrupts {
    pub(crate) fn interrupt(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Something begins that can be interrupted.
    pub(crate) fn task(&self) -> Task {
        Task { interrupts: self.clone(), begun: self.0.load(Ordering::Acquire) }
    }
}

impl Task {
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupts.0.load(Ordering::Acquire) != self.begun
    }
}

/// Watches one page in one child.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: u32,
    limits: ChildLimits,
    task: Task,
    began: Instant,
    /// Looks so far. Time is counted in looks rather than read from a clock: a machine that slept
    /// for an hour has not made its children slow.
    looks: u32,
    /// The CPU time of the child at the first look.
    cpu_first: Option<Duration>,
}

/// The limit that a page has hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitHit {
    #[error("it used more than {0:?} of CPU")]
    Cpu(Duration),
    #[error("it did not answer within {0:?}")]
    Wall(Duration),
    #[error("its reader has been interrupted")]
    Interrupted,
}

impl Watch {
    pub(crate) fn new(pid: u32, limits: ChildLimits, task: Task) -> Self {
        Self { pid, limits, task, began: Instant::now(), looks: 0, cpu_first: None }
    }

    /// Called each time that [`LOOK_EVERY`] went by without a byte.
    fn check(&mut self) -> Result<(), LimitHit> {
        self.looks += 1;
        if self.task.is_interrupted() {
            return Err(LimitHit::Interrupted);
        }
        if self.looks.saturating_mul(millis(LOOK_EVERY)) > millis(self.limits.wall_max) {
            return Err(LimitHit::Wall(self.limits.wall_max));
        }
        // Without a readable /proc, the wall clock alone decides.
        let Some(cpu) = cpu_time(self.pid) else { return Ok(()) };
        // What the page used before the first look is not known exactly, but it had no more time.
        let first = *self.cpu_first.get_or_insert(cpu);
        if LOOK_EVERY + cpu.saturating_sub(first) > self.limits.cpu_max {
            return Err(LimitHit::Cpu(self.limits.cpu_max));
        }
        Ok(())
    }

    /// The CPU that the page has used so far. Short times are those of the clock; for longer ones the
    /// kernel is asked, because a machine that is busy with other things is not the page's fault.
    pub(crate) fn cpu_used(&self) -> Duration {
        let elapsed = self.began.elapsed();
        let Some(first) = self.cpu_first else { return elapsed };
        match cpu_time(self.pid) {
            Some(cpu) => (LOOK_EVERY + cpu.saturating_sub(first)).min(elapsed),
            None => elapsed,
        }
    }

    /// The most time that the page can have taken so far.
    pub(crate) fn time_at_most(&self) -> Duration {
        LOOK_EVERY * (self.looks + 1)
    }
}

impl Patience for Watch {
    const PAUSE: Option<Duration> = Some(LOOK_EVERY);

    fn look(&mut self) -> io::Result<()> {
        self.check().map_err(io::Error::other)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// The CPU time that a process has used, in user space and in the kernel.
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    cpu_ticks(&stat).map(|ticks| {
        Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second())
    })
}

/// Fields 14 and 15 of `/proc/PID/stat`. The name of the program, field 2, stands in parentheses and
/// may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ').skip(11).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 0 0 0 40 2 0 0 20 0 1 0 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_time() {
        assert!(cpu_time(std::process::id()).is_some());
        assert!(cpu_time(u32::MAX).is_none());
    }

    #[test]
    fn a_silent_child_is_given_up_after_the_wall_limit() {
        let limits = ChildLimits { wall_max: LOOK_EVERY * 3, ..ChildLimits::default() };
        let mut watch = Watch::new(u32::MAX, limits, Interrupts::default().task());
        assert_eq!([watch.check(), watch.check(), watch.check()], [Ok(()); 3]);
        assert_eq!(watch.check(), Err(LimitHit::Wall(limits.wall_max)));
    }

    #[test]
    fn an_interrupt_ends_what_was_begun_before_it() {
        let interrupts = Interrupts::default();
        let mut before = Watch::new(u32::MAX, ChildLimits::default(), interrupts.task());
        assert_eq!(before.check(), Ok(()));
        interrupts.interrupt();
        let mut after = Watch::new(u32::MAX, ChildLimits::default(), interrupts.task());
        assert_eq!((before.check(), after.check()), (Err(LimitHit::Interrupted), Ok(())));
    }
}
