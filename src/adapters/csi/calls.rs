//! Where the driver's work for a call runs: in the driver's runtime, which may block, and not on the thread that serves the
//! socket, which may not.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The calls at work in one runtime.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    runtime: Handle,
    tracker: TaskTracker,
}

impl Calls {
    /// In the runtime that this is called in.
    pub(super) fn here() -> Self {
        Self { runtime: Handle::current(), tracker: TaskTracker::new() }
    }

    /// The calls that run to their end: what a shutdown waits for.
    pub(super) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Runs a call to its end, also when whoever waits for it here goes away.
    pub(super) async fn to_its_end<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        self.tracker.spawn_on(call, &self.runtime).await
    }

    /// Runs a call that changes nothing: it ends with whoever waits for it here.
    pub(super) async fn while_awaited<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        AbortOnDropHandle::new(self.runtime.spawn(call)).await
    }
}
