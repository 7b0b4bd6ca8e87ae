//! The port `EventSink` on an API server in memory: events by name, which age, in namespaces that can end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;

use super::api_server::ApiServer;
use super::gate::Gate;
use crate::domain::event_series::Series;
use crate::domain::pod::{PodReference, Subject};
use crate::domain::refusal::Reason;
use crate::domain::time::Wall;
use crate::ports::event_sink::{EventSink, EventSinkError};

/// The calls of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventCall {
    Create,
    Patch,
}

pub(super) type EventGate = Gate<EventCall, EventSinkError>;

/// A core/v1 Event as the API server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub name: String,
    pub subject: Subject,
    pub reason: Reason,
    pub message: String,
    pub first: Wall,
    pub last: Wall,
    pub count: u32,
    /// Uptime of the server's clock when it was last written.
    written: Duration,
}

/// All events of a cluster, by namespace and name.
#[derive(Debug)]
pub(super) struct EventStore {
    ttl: Duration,
    events: BTreeMap<(String, String), StoredEvent>,
    terminating: BTreeSet<String>,
    gone: BTreeSet<String>,
}

impl EventStore {
    pub fn new(ttl: Duration) -> EventStore {
        EventStore { ttl, events: BTreeMap::new(), terminating: BTreeSet::new(), gone: BTreeSet::new() }
    }

    fn age(&mut self, now: Duration) {
        let ttl = self.ttl;
        self.events.retain(|_, event| now.saturating_sub(event.written) < ttl);
    }

    fn create(&mut self, series: &Series, now: Duration) -> Result<(), EventSinkError> {
        self.age(now);
        let namespace = series.key.subject.namespace();
        if self.terminating.contains(namespace) || self.gone.contains(namespace) {
            return Err(EventSinkError::NamespaceGone);
        }
        let key = key_of(series);
        if self.events.contains_key(&key) {
            return Err(EventSinkError::AlreadyExists);
        }
        let event = StoredEvent {
            name: series.name.as_str().to_owned(),
            subject: series.key.subject.clone(),
            reason: series.key.reason,
            message: series.key.message.clone(),
            first: series.first,
            last: series.last,
            count: series.count,
            written: now,
        };
        self.events.insert(key, event);
        Ok(())
    }

    /// Works in a terminating namespace too.
    fn patch(&mut self, series: &Series, now: Duration) -> Result<(), EventSinkError> {
        self.age(now);
        let event = self.events.get_mut(&key_of(series)).ok_or(EventSinkError::NotFound)?;
        event.count = series.count;
        event.last = series.last;
        event.written = now;
        Ok(())
    }
}

fn key_of(series: &Series) -> (String, String) {
    (series.key.subject.namespace().to_owned(), series.name.as_str().to_owned())
}

impl ApiServer {
    /// Every event that has not aged out, by namespace and name.
    pub fn events(&self) -> Vec<StoredEvent> {
        let now = self.clock().uptime();
        let mut state = self.state();
        state.events.age(now);
        state.events.events.values().cloned().collect()
    }

    /// What `kubectl describe pod` would show of a pod: its events, the latest written last.
    pub fn events_of(&self, pod: &PodReference) -> Vec<StoredEvent> {
        self.events_about(&Subject::Pod(pod.clone()))
    }

    /// The same of whatever has events.
    pub fn events_about(&self, subject: &Subject) -> Vec<StoredEvent> {
        let mut events: Vec<StoredEvent> =
            self.events().into_iter().filter(|event| &event.subject == subject).collect();
        events.sort_by_key(|event| event.last);
        events
    }

    /// How long events are kept after they were last written.
    pub fn set_event_ttl(&self, ttl: Duration) {
        self.state().events.ttl = ttl;
    }

    /// The namespace begins to end: creates are refused in it.
    pub fn terminate_namespace(&self, namespace: &str) {
        self.state().events.terminating.insert(namespace.to_owned());
    }

    /// The namespace is gone, with its events.
    pub fn remove_namespace(&self, namespace: &str) {
        let mut state = self.state();
        state.events.gone.insert(namespace.to_owned());
        state.events.events.retain(|(of, _), _| of != namespace);
    }

    /// A namespace of that name is there again.
    pub fn create_namespace(&self, namespace: &str) {
        let mut state = self.state();
        state.events.terminating.remove(namespace);
        state.events.gone.remove(namespace);
    }
}

/// Events of one process; all state is the server's.
pub struct MemorySink {
    api: ApiServer,
}

impl MemorySink {
    pub fn new(api: &ApiServer) -> MemorySink {
        MemorySink { api: api.clone() }
    }
}

#[async_trait]
impl EventSink for MemorySink {
    async fn create(&self, series: &Series) -> Result<(), EventSinkError> {
        let act = || {
            let now = self.api.clock().uptime();
            self.api.state().events.create(series, now)
        };
        self.api.event_gate().pass(EventCall::Create, act, |error| error).await
    }

    async fn patch(&self, series: &Series) -> Result<(), EventSinkError> {
        let act = || {
            let now = self.api.clock().uptime();
            self.api.state().events.patch(series, now)
        };
        self.api.event_gate().pass(EventCall::Patch, act, |error| error).await
    }
}
