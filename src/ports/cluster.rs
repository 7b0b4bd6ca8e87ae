//! The cluster: which handles its PersistentVolumes name, by a live watch and by a fresh, complete list, and how far its
//! history is.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::domain::handle::Handle;
use crate::domain::proof::{ClusterUid, Revision};
use crate::domain::time::Monotonic;

/// Why the API server gave no complete answer. Each keeps every copy where it is (C22).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClusterError {
    #[error("the API server does not know our credentials (401)")]
    Unauthorized,
    #[error("the API server forbids {what} (403): apply the ClusterRole of the deployment")]
    Forbidden { what: &'static str },
    #[error("the API server no longer has the revision asked for (410)")]
    Gone,
    #[error("the API server asks to wait")]
    Throttled { retry_after: Option<Duration> },
    #[error("the API server failed with status {status}")]
    Server { status: u16 },
    #[error("the API server is not reached: {why}")]
    Unreachable { why: String },
    #[error("the API server was silent for too long")]
    TimedOut,
    #[error("an answer of the API server was cut short")]
    Cut,
    #[error("an answer of the API server cannot be read: {why}")]
    Undecodable { why: String },
}

impl ClusterError {
    /// Every word there is.
    pub const WORDS: [&str; 9] = [
        "unauthorized",
        "forbidden",
        "gone",
        "throttled",
        "server",
        "unreachable",
        "timed_out",
        "cut",
        "undecodable",
    ];

    /// The error's class as a word, for a metric's label.
    pub fn word(&self) -> &'static str {
        match self {
            ClusterError::Unauthorized => "unauthorized",
            ClusterError::Forbidden { .. } => "forbidden",
            ClusterError::Gone => "gone",
            ClusterError::Throttled { .. } => "throttled",
            ClusterError::Server { .. } => "server",
            ClusterError::Unreachable { .. } => "unreachable",
            ClusterError::TimedOut => "timed_out",
            ClusterError::Cut => "cut",
            ClusterError::Undecodable { .. } => "undecodable",
        }
    }
}

/// Every handle that a PersistentVolume of this driver named, at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedHandles {
    pub revision: Revision,
    pub handles: BTreeSet<Handle>,
}

/// How the watch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchHealth {
    /// A complete list was read since the process started.
    pub synced: bool,
    /// The stream is open and in order now.
    pub live: bool,
    /// The highest revision that an answer carried since the view was last begun from nothing.
    pub highest: Option<Revision>,
    /// A consistent answer carried a revision below one that was seen before it was asked for: the API server's history
    /// was put back since the view was last begun from nothing.
    pub went_back: bool,
    /// When a list was last complete or the stream last brought something.
    pub last_sync: Option<Monotonic>,
    /// The revision up to which the view is complete: its list, or what the unbroken chain of streams after that list has
    /// delivered (C22 (b)).
    pub reached: Option<Revision>,
    /// How many bookmarks the streams have brought since the process started.
    pub bookmarks: u64,
    /// How many PersistentVolumes, of any driver, the view's list had: what another one would cost (C27).
    pub volumes: usize,
}

/// PersistentVolumes of this driver, and the identity of the cluster.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// From memory.
    fn watch_health(&self) -> WatchHealth;

    /// Whether the newest view names the handle. From memory.
    fn is_named(&self, handle: &Handle) -> bool;

    /// Whether the watch itself saw the deletion after which nobody named the handle. From memory.
    fn deletion_was_seen(&self, handle: &Handle) -> bool;

    /// Forgets the view and begins it from a new list: at once neither synced nor live, and without a highest
    /// revision (a person has confirmed that the API server's history began anew).
    fn start_over(&self);

    /// A consistent read, begun after this call: the revision that the cluster's history has reached (C22 (a)). It costs the
    /// server one object, whatever the number of volumes.
    async fn head(&self) -> Result<Revision, ClusterError>;

    /// A full consistent list, begun after this call (C22 (b)). Any doubt about its completeness is an error.
    async fn list(&self) -> Result<NamedHandles, ClusterError>;

    /// The UID of the namespace `kube-system`, asked now.
    async fn cluster_uid(&self) -> Result<ClusterUid, ClusterError>;
}
