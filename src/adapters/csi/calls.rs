//! Where the driver's work for a call runs: on the thread that read it from the socket, from its first step to its last. A
//! publish is a row of short kernel calls; waking another thread for it, and this one for the answer, would cost as much as they.
//! Nor is it a task of its own there: it ends in the step that begins it.
//!
//! The kernel may keep any of them for ever, and other calls must not wait then (C19): a call that finds no place
//! ([`Places`]), or that has to wait in its middle, goes on on a thread of the driver's runtime. It begins when its turn has come
//! ([`Pending`](super::pending::Pending)), so that however many of one volume pile up behind one that hangs, they hold one thread.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_util::context::TokioContext;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pending::InFlight;
use super::places::Places;
use crate::ports::in_place;

/// Why a call has no answer.
#[derive(Debug, Error)]
pub(super) enum Lost {
    #[error(transparent)]
    Ended(#[from] JoinError),
    #[error("it panicked")]
    Panicked,
    #[error("nobody waits for it any more")]
    NotAwaited,
}

/// The calls at work in one runtime.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    runtime: Handle,
    tracker: TaskTracker,
    places: Arc<Places>,
}

impl Calls {
    /// In the runtime that this is called in.
    pub(super) fn here() -> Self {
        Self { runtime: Handle::current(), tracker: TaskTracker::new(), places: Arc::default() }
    }

    /// The calls that run to their end: what a shutdown waits for.
    pub(super) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Runs a call when its turn has come. What has begun goes on to its end, also when whoever waits for it here goes away.
    pub(super) async fn to_its_end<T: Send + 'static>(
        &self,
        in_flight: InFlight,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let turn = in_flight.turn().await;
        self.run(call, (turn, self.tracker.token())).await
    }

    /// Runs a call that changes nothing: it ends with whoever waits for it here.
    pub(super) async fn while_awaited<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let over = CancellationToken::new();
        let _awaited = over.clone().drop_guard();
        let call = async move { over.run_until_cancelled_owned(call).await };
        self.run(call, ()).await?.ok_or(Lost::NotAwaited)
    }

    /// Begins the call here and, nearly always, ends it in the same step, which nobody can interrupt. `meanwhile` is kept until
    /// it has ended.
    async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
        meanwhile: impl Send + 'static,
    ) -> Result<T, Lost> {
        // Timers and tasks of the call are the driver's, wherever it runs.
        let mut call = Box::pin(TokioContext::new(in_place::scope(call), self.runtime.clone()));
        let Some(place) = self.places.take(&self.runtime).await else {
            return self.on_a_thread(call, meanwhile).await;
        };
        let begun =
            poll_fn(|context| Poll::Ready(catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)))));
        let begun = begun.await;
        drop(place);
        match begun {
            Ok(Poll::Ready(answer)) => Ok(answer),
            Ok(Poll::Pending) => self.on_a_thread(call, meanwhile).await,
            Err(_) => Err(Lost::Panicked),
        }
    }

    async fn on_a_thread<F>(
        &self,
        call: Pin<Box<F>>,
        meanwhile: impl Send + 'static,
    ) -> Result<F::Output, Lost>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let context = self.runtime.clone();
        let to_its_end = move || {
            let _meanwhile = meanwhile;
            context.block_on(call)
        };
        Ok(self.runtime.spawn_blocking(to_its_end).await?)
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
