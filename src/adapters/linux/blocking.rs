//! Where blocking kernel calls run: in the place of the task that wants them, after its thread has handed its other
//! tasks to another one; at once where the thread may block ([`in_place`]). A publish is a row of such calls, and waking a
//! thread for each would cost more than the calls.
//!
//! A job that was begun ends, whether or not somebody still waits for it: a mount that is half attached is worse than
//! an answer that nobody reads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::failure::Failure;
use crate::ports::in_place;

/// Runs `job` to its end. The error says that it was lost (it panicked, or the runtime is shutting down): whether it
/// acted is unknown.
pub async fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let lost = Failure { step: "run a blocking call for", errno: Errno::CANCELED };
    // A panic is that job's alone, as it would be on a thread of its own.
    let here = |job| catch_unwind(AssertUnwindSafe(job)).map_err(|_| lost);
    if in_place::may_block() {
        return here(job);
    }
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| here(job)),
        // One thread has nobody to hand its tasks to.
        _ => tokio::task::spawn_blocking(job).await.map_err(|_| lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn c19_a_call_that_blocks_holds_up_no_other_task() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let blocked = tokio::spawn(run(move || held.recv()));
        // Runs though the only worker thread is the one that blocks.
        tokio::spawn(async move { release.send(()) }).await.unwrap().unwrap();
        blocked.await.unwrap().unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn c16_a_call_that_panics_is_lost_and_takes_nothing_along() {
        let lost: Result<(), Failure> = run(|| panic!("as a bug would")).await;
        assert_eq!(lost.unwrap_err().errno, Errno::CANCELED);
        assert_eq!(run(|| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn where_the_thread_may_block_it_runs_there() {
        let here = std::thread::current().id();
        let ran_on = in_place::scope(run(|| std::thread::current().id())).await;
        assert_eq!(ran_on, Ok(here));
        let lost: Result<(), Failure> = in_place::scope(run(|| panic!("as a bug would"))).await;
        assert_eq!(lost.unwrap_err().errno, Errno::CANCELED);
    }

    #[tokio::test]
    async fn one_thread_does_the_same() {
        let lost: Result<(), Failure> = run(|| panic!("as a bug would")).await;
        assert_eq!(lost.unwrap_err().errno, Errno::CANCELED);
        assert_eq!(run(|| 1).await, Ok(1));
    }
}
