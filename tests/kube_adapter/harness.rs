//! What the tests of this suite share: a client of the mock with short limits, objects, and ways to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use per_node::adapters::kube::client::connect;
use per_node::adapters::kube::cluster::KubeCluster;
use per_node::adapters::kube::settings::Settings;
use per_node::adapters::kube::transport::Transport;
use per_node::domain::handle::Handle;
use per_node::domain::signal::Signal;
use per_node::domain::tally::Tally;
use per_node::domain::time::{Monotonic, Wall};
use per_node::ports::clock::Clock;
use per_node::ports::cluster::Cluster;
use serde_json::{Value, json};

use crate::mock_api::{Expected, MockApi, PATIENCE, Reply};

pub const DRIVER: &str = "per-node.liken.sh";
pub const NODE: &str = "node-1";
pub const TOKEN: &str = "SECRET-TOKEN";

pub const STREAMED: &str = "GET /api/v1/persistentvolumes?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
    &resourceVersionMatch=NotOlderThan&resourceVersion=&timeoutSeconds=N";

pub const HEAD: &str = "GET /api/v1/persistentvolumes?limit=1";

/// The request line of a watch that goes on from a revision.
pub fn watch_from(revision: u64) -> String {
    format!(
        "GET /api/v1/persistentvolumes?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=N"
    )
}

/// The read of the head, and what a server at this revision answers.
pub fn head_at(revision: u64) -> Expected {
    let answer = page(revision, Some("more"), &[volume_of("other.example", "z", "uid-z", 3)]);
    Expected::call(HEAD, Reply::json(200, &answer))
}

/// A clock that goes on by a millisecond each time somebody looks.
#[derive(Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn wall(&self) -> Wall {
        Wall { unix_ms: 0 }
    }
}

/// Limits that let a test see a time-out. Those that no test waits for are long.
pub fn short_settings() -> Settings {
    Settings {
        backoff_first: Duration::from_millis(2),
        backoff_max: Duration::from_millis(10),
        reopen_pause: Duration::from_millis(1),
        proof_jitter: Duration::ZERO,
        proof_jitter_per_volume: Duration::ZERO,
        ..Settings::default()
    }
}

/// A client of the mock, through a kubeconfig with a token, as in production.
pub async fn transport(api: &MockApi, settings: Settings) -> Transport {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{server: '{}'}}}}]\nusers: [{{name: u, user: {{token: {TOKEN}}}}}]\n",
        api.url()
    );
    transport_over(&kubeconfig, settings).await
}

/// A client of the cluster that a kubeconfig names.
pub async fn transport_over(kubeconfig: &str, settings: Settings) -> Transport {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), kubeconfig).expect("a kubeconfig");
    let connection = connect(Some(file.path()), &settings).await.expect("a usable kubeconfig");
    Transport::new(connection, settings)
}

/// The adapter under test and what it is wired to.
pub struct Harness {
    pub cluster: Arc<KubeCluster>,
    pub tally: Arc<Tally>,
    pub sweep_wanted: Arc<Signal>,
}

impl Harness {
    pub async fn of(api: &MockApi) -> Self {
        Self::with_settings(api, short_settings()).await
    }

    pub async fn with_settings(api: &MockApi, settings: Settings) -> Self {
        Self::over(transport(api, settings).await)
    }

    pub fn over(transport: Transport) -> Self {
        let tally = Arc::new(Tally::default());
        let sweep_wanted = Arc::new(Signal::default());
        let clock = Arc::new(TestClock::default());
        let cluster =
            Arc::new(KubeCluster::new(transport, DRIVER, clock, sweep_wanted.clone(), tally.clone()));
        Self { cluster, tally, sweep_wanted }
    }

    /// Runs the watcher for as long as what is returned lives.
    pub fn watch(&self) -> Watching {
        let watcher = self.cluster.watcher();
        Watching(tokio::spawn(async move { watcher.run().await }))
    }

    /// Waits until the view is as asked.
    pub async fn until(&self, what: &str, reached: impl Fn(&KubeCluster) -> bool) {
        let waiting = async {
            while !reached(&self.cluster) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let health = || (self.cluster.watch_health(), self.tally.api_calls());
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never {what}: {:?}", health());
    }

    /// How often a kind of call ended in a class.
    pub fn count(&self, call: &str, class: &str) -> u64 {
        let calls = self.tally.api_calls();
        calls.iter().filter(|((known, end), _)| (*known, *end) == (call, class)).map(|(_, count)| count).sum()
    }

    pub fn names(&self, handle: &str) -> bool {
        self.cluster.is_named(&handle_of(handle))
    }

    pub fn deletion_was_seen(&self, handle: &str) -> bool {
        self.cluster.deletion_was_seen(&handle_of(handle))
    }

    pub fn live(&self) -> bool {
        self.cluster.watch_health().live
    }

    pub fn highest(&self) -> Option<u64> {
        self.cluster.watch_health().highest.map(|revision| revision.0)
    }
}

/// A running watcher; dropping it stops it.
pub struct Watching(tokio::task::JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn handle_of(handle: &str) -> Handle {
    Handle::parse(handle).expect("a handle")
}

/// A PersistentVolume of this driver, named like its handle.
pub fn volume(handle: &str, revision: u64) -> Value {
    volume_of(DRIVER, handle, &format!("uid-{handle}"), revision)
}

pub fn volume_of(driver: &str, handle: &str, uid: &str, revision: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": format!("pv-{handle}"), "uid": uid, "resourceVersion": revision.to_string(),
            "annotations": { "pv.kubernetes.io/bound-by-controller": "yes" },
            "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }],
        },
        "spec": {
            "accessModes": ["ReadWriteMany"], "capacity": { "storage": "1Gi" },
            "csi": { "driver": driver, "volumeHandle": handle, "volumeAttributes": { "a": "b" } },
        },
        "status": { "phase": "Bound" },
    })
}

pub fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

pub fn added(handle: &str, revision: u64) -> Value {
    event("ADDED", &volume(handle, revision))
}

pub fn deleted(handle: &str, revision: u64) -> Value {
    event("DELETED", &volume(handle, revision))
}

pub fn bookmark(revision: u64) -> Value {
    let metadata = json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
    event("BOOKMARK", &json!({ "kind": "PersistentVolume", "metadata": metadata, "spec": {}, "status": {} }))
}

pub fn initial_events_end(revision: u64) -> Value {
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    let metadata = json!({ "resourceVersion": revision.to_string(), "annotations": annotations });
    event("BOOKMARK", &json!({ "kind": "PersistentVolume", "metadata": metadata, "spec": {} }))
}

pub fn page(revision: u64, next: Option<&str>, items: &[Value]) -> Value {
    let mut metadata = json!({ "resourceVersion": revision.to_string() });
    if let Some(next) = next {
        metadata["continue"] = json!(next);
    }
    json!({ "kind": "PersistentVolumeList", "apiVersion": "v1", "metadata": metadata, "items": items })
}

pub fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
            "message": "SECRET-MESSAGE" })
}
