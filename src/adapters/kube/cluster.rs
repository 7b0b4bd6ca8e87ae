//! The `Cluster` port on a real API server.
//!
//! Answers from memory come from the live view that a [`Watcher`] keeps; the head and a list are
//! asked of the server each time, after a wait that keeps the nodes of a cluster from asking all at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tokio::time::sleep;

use crate::domain::handle::Handle;
use crate::domain::proof::{ClusterUid, Revision};
use crate::domain::signal::Signal;
use crate::domain::tally::Tally;
use crate::ports::clock::Clock;
use crate::ports::cluster::{Cluster, ClusterError, NamedHandles, WatchHealth};

use super::api_error::ApiError;
use super::backoff::jitter;
use super::calls::Call;
use super::listing::Lister;
use super::live_view::LiveView;
use super::settings::ANSWER_BYTES_MAX;
use super::transport::Transport;
use super::watcher::Watcher;

/// The namespace whose UID stands for the cluster (C22 (e)).
const CLUSTER_NAMESPACE: &str = "/api/v1/namespaces/kube-system";

/// What a refused list lacks, for a person.
const LISTING: &str = "to list and watch persistentvolumes";

/// PersistentVolumes of this driver in a real cluster.
pub struct KubeCluster {
    transport: Transport,
    lister: Arc<Lister>,
    view: Arc<LiveView>,
    tally: Arc<Tally>,
}

impl KubeCluster {
    /// The cluster behind `transport`, as the driver `driver_name` sees it. Asks nothing until the watcher runs.
    #[must_use]
    pub fn new(
        transport: Transport,
        driver_name: &str,
        clock: Arc<dyn Clock>,
        sweep_wanted: Arc<Signal>,
        tally: Arc<Tally>,
    ) -> Self {
        let lister = Arc::new(Lister::new(transport.clone(), driver_name));
        let view = Arc::new(LiveView::new(clock, sweep_wanted));
        Call::count_from_zero(&tally);
        Self { transport, lister, view, tally }
    }

    /// The task that keeps the view: whoever wires spawns its `run`.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        let settings = self.transport.settings().clone();
        Watcher::new(self.lister.clone(), self.view.clone(), self.tally.clone(), settings)
    }

    /// The view, for metrics.
    #[must_use]
    pub fn view(&self) -> &Arc<LiveView> {
        &self.view
    }

    /// Waits for this node's turn: longer in a larger cluster, and not longer than `longest`.
    async fn wait_for_turn(&self, longest: Duration) {
        let settings = self.transport.settings();
        let volumes = u32::try_from(self.view.health().volumes).unwrap_or(u32::MAX);
        let spread =
            settings.proof_jitter_per_volume.saturating_mul(volumes).saturating_add(settings.proof_jitter);
        sleep(jitter(spread.min(longest))).await;
    }

    async fn read_cluster_uid(&self) -> Result<ClusterUid, ApiError> {
        #[derive(Deserialize)]
        struct Namespace {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let body = self.transport.get(CLUSTER_NAMESPACE, ANSWER_BYTES_MAX).await?;
        let read: Result<Namespace, _> = serde_json::from_slice(&body);
        match read {
            Ok(namespace) if !namespace.metadata.uid.is_empty() => Ok(ClusterUid(namespace.metadata.uid)),
            Ok(_) | Err(_) => Err(ApiError::Undecodable { what: "the uid of the namespace kube-system" }),
        }
    }
}

#[async_trait]
impl Cluster for KubeCluster {
    fn watch_health(&self) -> WatchHealth {
        self.view.health()
    }

    fn is_named(&self, handle: &Handle) -> bool {
        self.view.names(handle)
    }

    fn deletion_was_seen(&self, handle: &Handle) -> bool {
        self.view.deletion_was_seen(handle)
    }

    fn start_over(&self) {
        self.view.start_over();
    }

    async fn head(&self) -> Result<Revision, ClusterError> {
        self.wait_for_turn(self.transport.settings().head_jitter_max).await;
        let writer = self.view.writer();
        let read = self.lister.head().await;
        Call::Head.count(&self.tally, read.as_ref().err());
        let head = read.map_err(|error| cluster_error(error, LISTING))?;
        writer.heard_of(head);
        Ok(Revision(head))
    }

    async fn list(&self) -> Result<NamedHandles, ClusterError> {
        self.wait_for_turn(self.transport.settings().list_jitter_max).await;
        let writer = self.view.writer();
        let listed = self.lister.full_list().await;
        Call::ProofList.count(&self.tally, listed.as_ref().err());
        let listing = listed.map_err(|error| cluster_error(error, LISTING))?;
        writer.listed_beside(&listing);
        let handles = listing.volumes.into_values().collect();
        Ok(NamedHandles { revision: Revision(listing.revision), handles })
    }

    async fn cluster_uid(&self) -> Result<ClusterUid, ClusterError> {
        let read = self.read_cluster_uid().await;
        Call::Namespace.count(&self.tally, read.as_ref().err());
        read.map_err(|error| cluster_error(error, "to get the namespace kube-system"))
    }
}

/// The port's class of a failed call.
fn cluster_error(error: ApiError, what: &'static str) -> ClusterError {
    match error {
        ApiError::Unauthorized => ClusterError::Unauthorized,
        ApiError::Forbidden => ClusterError::Forbidden { what },
        ApiError::NotFound | ApiError::NamespaceEnding => ClusterError::Server { status: 404 },
        ApiError::AlreadyExists | ApiError::Conflict => ClusterError::Server { status: 409 },
        ApiError::Gone => ClusterError::Gone,
        ApiError::Throttled { retry_after } => ClusterError::Throttled { retry_after },
        ApiError::Server { code } | ApiError::Refused { code, .. } => ClusterError::Server { status: code },
        ApiError::Unreachable { why } => ClusterError::Unreachable { why },
        ApiError::Timeout { .. } => ClusterError::TimedOut,
        ApiError::Closed => ClusterError::Cut,
        error @ (ApiError::Undecodable { .. } | ApiError::WentBack { .. } | ApiError::Oversize { .. }) => {
            ClusterError::Undecodable { why: error.to_string() }
        }
    }
}
