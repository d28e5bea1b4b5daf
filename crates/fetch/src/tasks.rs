//! Tasks that run beside visits.

use std::panic::resume_unwind;

use tokio::task::JoinSet;

/// Joins tasks that have ended. A panic is resumed in the caller: it is a fault of ours, which the
/// visit must not report as one of the server.
pub(crate) fn let_go_of_ended(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.try_join_next() {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_not_let_go_of_quietly() {
        let mut tasks = JoinSet::new();
        let (ended, end) = tokio::sync::oneshot::channel();
        tasks.spawn(async { ended.send(()).unwrap() });
        end.await.unwrap();
        while !tasks.is_empty() {
            let_go_of_ended(&mut tasks);
            tokio::task::yield_now().await;
        }
        tasks.spawn(async { panic!("on purpose") });
        loop {
            if catch_unwind(AssertUnwindSafe(|| let_go_of_ended(&mut tasks))).is_err() {
                break;
            }
            assert!(!tasks.is_empty(), "it was let go of");
            tokio::task::yield_now().await;
        }
    }
}
