//! Where blocking kernel calls run: on tokio's threads for such, so that none of them holds up a caller's task.
//!
//! A job that was begun ends, whether or not somebody still waits for it: a mount that is half attached is worse than
//! an answer that nobody reads.

use rustix::io::Errno;

use super::failure::Failure;

/// Runs `job` to its end. The error says that it was lost (it panicked, or the runtime is shutting down): whether it
/// acted is unknown.
pub async fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(job)
        .await
        .map_err(|_| Failure { step: "run a blocking call for", errno: Errno::CANCELED })
}
