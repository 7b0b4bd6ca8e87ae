//! The `EventSink` port on a real API server: core/v1 Events on pods and on the node, created and patched.
//!
//! Events carry no `eventTime`, so that the API server lets their count and last time be patched (C32). This file only makes
//! the calls: what is posted, when, and what a failure means for a series is the domain's.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};

use crate::domain::event_series::Series;
use crate::domain::pod::Subject;
use crate::domain::tally::Tally;
use crate::domain::time::Wall;
use crate::ports::event_sink::{EventSink, EventSinkError};

use super::api_error::ApiError;
use super::calls::Call;
use super::transport::{Transport, WriteKind, query_escaped};

/// Events in a real cluster.
pub struct KubeEvents {
    transport: Transport,
    driver_name: String,
    node_name: String,
    tally: Arc<Tally>,
}

impl KubeEvents {
    /// Events that come `From` the driver, on the node.
    #[must_use]
    pub fn new(transport: Transport, driver_name: &str, node_name: &str, tally: Arc<Tally>) -> Self {
        Self { transport, driver_name: driver_name.to_owned(), node_name: node_name.to_owned(), tally }
    }

    /// The whole object. `kubectl describe` finds it by name, namespace and UID of the involved object.
    fn object(&self, series: &Series) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": series.name.as_str(), "namespace": series.key.subject.namespace() },
            "involvedObject": involved(&series.key.subject),
            "type": "Warning",
            "reason": series.key.reason.as_str(),
            "message": series.key.message,
            "source": { "component": self.driver_name, "host": self.node_name },
            "reportingComponent": self.driver_name,
            "reportingInstance": self.node_name,
            "count": series.count,
            "firstTimestamp": timestamp(series.first),
            "lastTimestamp": timestamp(series.last),
        })
    }
}

#[async_trait]
impl EventSink for KubeEvents {
    async fn create(&self, series: &Series) -> Result<(), EventSinkError> {
        let path = events_path(series);
        let body = self.object(series).to_string().into_bytes();
        let written = self.transport.write(WriteKind::Create, &path, body).await;
        Call::EventCreate.count(&self.tally, written.as_ref().err());
        written.map_err(|error| match error {
            // Not the namespace is missing but the path: something else than an API server answers.
            ApiError::NotFound => retry(&error),
            other => sink_error(other),
        })
    }

    async fn patch(&self, series: &Series) -> Result<(), EventSinkError> {
        let path = format!("{}/{}", events_path(series), query_escaped(series.name.as_str()));
        let body = json!({ "count": series.count, "lastTimestamp": timestamp(series.last) });
        let written = self.transport.write(WriteKind::MergePatch, &path, body.to_string().into_bytes()).await;
        Call::EventPatch.count(&self.tally, written.as_ref().err());
        written.map_err(sink_error)
    }
}

/// A node is in no namespace, and an event about one must not say that it is.
fn involved(subject: &Subject) -> Value {
    let (name, uid) = (subject.name(), subject.uid());
    match subject {
        Subject::Pod(_) => json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": subject.namespace(),
            "name": name,
            "uid": uid,
        }),
        Subject::Node(_) => json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid }),
    }
}

/// An event lives in its pod's namespace: the API server asks for that where there is no `eventTime`.
fn events_path(series: &Series) -> String {
    format!("/api/v1/namespaces/{}/events", query_escaped(series.key.subject.namespace()))
}

/// RFC 3339 in whole seconds, as `metav1.Time` is written.
fn timestamp(wall: Wall) -> String {
    let since_epoch = SignedDuration::from_millis(i64::try_from(wall.unix_ms).unwrap_or(i64::MAX));
    let timestamp = Timestamp::from_duration(since_epoch).unwrap_or(Timestamp::MAX);
    // Rounded down: an event is never shown as of the future.
    let seconds = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Trunc);
    timestamp.round(seconds).unwrap_or(timestamp).to_string()
}

fn retry(error: &ApiError) -> EventSinkError {
    EventSinkError::Retry { why: error.to_string(), retry_after: error.retry_after() }
}

/// The port's class of a failed write.
fn sink_error(error: ApiError) -> EventSinkError {
    match error {
        ApiError::AlreadyExists => EventSinkError::AlreadyExists,
        ApiError::NotFound => EventSinkError::NotFound,
        ApiError::NamespaceEnding => EventSinkError::NamespaceGone,
        ApiError::Refused { code, .. } => EventSinkError::Rejected { status: code },
        // A role that is mended, a token that is renewed, a server that comes back: all pass by themselves.
        ApiError::Unauthorized
        | ApiError::Forbidden
        | ApiError::Conflict
        | ApiError::Gone
        | ApiError::Throttled { .. }
        | ApiError::Server { .. }
        | ApiError::Unreachable { .. }
        | ApiError::Timeout { .. }
        | ApiError::Closed
        | ApiError::Undecodable { .. }
        | ApiError::WentBack { .. }
        | ApiError::Oversize { .. } => retry(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_of_utc() {
        assert_eq!(timestamp(Wall { unix_ms: 0 }), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(Wall { unix_ms: 1_796_000_000_999 }), "2026-11-30T00:53:20Z");
        assert_eq!(timestamp(Wall { unix_ms: u64::MAX }), "9999-12-30T22:00:00Z");
    }
}
