//! Where events go: core/v1 Events of the API server, created and patched.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::domain::event_series::Series;

/// Why an event was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventSinkError {
    /// A create found an event of that name: patch it.
    #[error("the event is there already")]
    AlreadyExists,
    /// A patch found no event of that name: create it anew.
    #[error("the event is gone")]
    NotFound,
    /// The namespace is terminating or gone: the series ends.
    #[error("the namespace is terminating or gone")]
    NamespaceGone,
    /// It will never be taken as it is (a 4xx other than those that pass by themselves).
    #[error("the API server rejects the event with status {status}")]
    Rejected { status: u16 },
    /// Come again: no answer, 401, 403, 429, 5xx.
    #[error("the event was not taken: {why}")]
    Retry { why: String, retry_after: Option<Duration> },
}

/// Posts one state of a series: its absolute count and times.
#[async_trait]
pub trait EventSink: Send + Sync {
    async fn create(&self, series: &Series) -> Result<(), EventSinkError>;

    /// Sets count and last time of the event that `create` made.
    async fn patch(&self, series: &Series) -> Result<(), EventSinkError>;
}
