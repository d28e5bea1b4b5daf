//! [`BlockingPool`]: a few threads that work on questions one after the other. A thread that has answered takes
//! the next question itself: a runtime that is asked for a thread for each question makes new ones as long
//! as the old ones have not quite come to rest, and each keeps memory of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Questions to the store that are worked on at the same time; the next one waits. Reading is work for
/// a core and a disk: more at once would only take turns.
const STORE_READERS_MAX: usize = 16;
/// Fewest searches that are worked on at the same time.
const SEARCHERS_MIN: usize = 2;
/// Requests for crawls that are checked at the same time. Patterns and lists of ids take a core for some
/// tenths of a second and some dozen megabytes.
const CHECKERS_MAX: usize = 2;

type Question = Box<dyn FnOnce() + Send>;

/// Who works on questions, and what waits for them.
#[derive(Clone)]
pub(super) struct BlockingPool {
    /// Questions that are worked on at the same time.
    at_once_max: usize,
    /// Held to take or to add a question, never while one is worked on.
    line: Arc<Mutex<PoolQueue>>,
}

#[derive(Default)]
struct PoolQueue {
    waiting: VecDeque<Question>,
    working: usize,
}

impl BlockingPool {
    /// Those who read the store.
    pub(super) fn of_store() -> Self {
        Self { at_once_max: STORE_READERS_MAX, line: Arc::default() }
    }

    /// Those who search. A search by words is a few milliseconds of work for a core: as many as there are
    /// cores, one after the other, are all done sooner than if they took turns.
    pub(super) fn of_index() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { at_once_max: cores.max(SEARCHERS_MIN), line: Arc::default() }
    }

    /// Those who check what is asked for, apart from those who answer everybody.
    pub(super) fn of_checks() -> Self {
        Self { at_once_max: CHECKERS_MAX, line: Arc::default() }
    }

    /// Works on a question, unless whoever asked has left by the time that it is its turn. `None` if it
    /// failed in the middle.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (said, answer) = oneshot::channel();
        self.add(Box::new(move || {
            if !said.is_closed() {
                drop(said.send(question()));
            }
        }));
        answer.await.ok()
    }

    fn add(&self, question: Question) {
        let mut line = self.line();
        line.waiting.push_back(question);
        if line.working == self.at_once_max {
            return;
        }
        line.working += 1;
        let pool = self.clone();
        tokio::task::spawn_blocking(move || pool.work());
    }

    fn work(&self) {
        while let Some(question) = self.next() {
            // Whoever asked is told: the other end of the channel is gone.
            let _ = catch_unwind(AssertUnwindSafe(question));
        }
    }

    /// The next question, or the end of this thread's work.
    fn next(&self) -> Option<Question> {
        let mut line = self.line();
        let next = line.waiting.pop_front();
        if next.is_none() {
            line.working -= 1;
        }
        next
    }

    fn line(&self) -> MutexGuard<'_, PoolQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::ThreadId;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn many_questions_are_answered_by_a_few_threads() {
        let pool = BlockingPool::of_store();
        let gate = Arc::new(Mutex::new(()));
        let (said, answers) = std::sync::mpsc::channel();
        let closed = gate.lock().unwrap();
        for number in 0..STORE_READERS_MAX * 50 {
            let (gate, said) = (Arc::clone(&gate), said.clone());
            pool.add(Box::new(move || {
                drop(gate.lock());
                said.send((number, std::thread::current().id())).unwrap();
            }));
        }
        drop((closed, said));
        let (numbers, threads): (HashSet<usize>, HashSet<ThreadId>) = answers.into_iter().unzip();
        assert_eq!(numbers.len(), STORE_READERS_MAX * 50);
        assert!(threads.len() <= STORE_READERS_MAX, "{} threads", threads.len());
    }

    #[tokio::test]
    async fn nobody_works_for_those_who_have_left() {
        let pool = BlockingPool::of_checks();
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap();
        for _ in 0..CHECKERS_MAX {
            let gate = Arc::clone(&gate);
            pool.add(Box::new(move || drop(gate.lock())));
        }
        let was_worked_on = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&was_worked_on);
        let left = pool.run(move || mark.store(true, Ordering::SeqCst));
        assert!(left.now_or_never().is_none(), "it waits for its turn, and whoever asked leaves");
        drop(closed);
        assert_eq!(pool.run(|| 7).await, Some(7));
        assert!(!was_worked_on.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_question_that_fails_costs_nobody_else_an_answer() {
        let pool = BlockingPool::of_store();
        for _ in 0..=STORE_READERS_MAX {
            assert_eq!(pool.run(|| -> u32 { panic!("on purpose") }).await, None);
        }
        assert_eq!(pool.run(|| 7).await, Some(7));
    }
}
