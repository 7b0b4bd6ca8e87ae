//! A driver on a node in memory, served on a socket.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use per_node::adapters::csi::{About, CsiService};
use per_node::adapters::memory::{ApiServer, Node, NodeCall, SteppedClock, StoredEvent, ports};
use per_node::adapters::socket::{self, Drain, SocketPath};
use per_node::domain::handle::Handle;
use per_node::domain::signal::Signal;
use per_node::domain::tally::Tally;
use per_node::domain::target::KubeletDir;
use per_node::domain::time::Wall;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::proto::csi::identity_client::IdentityClient;
use per_node::proto::csi::node_client::NodeClient;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume};
use per_node::proto::csi::{
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodeUnpublishVolumeRequest, VolumeCapability,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

pub const DRIVER: &str = "per-node.liken.sh";
pub const NODE_ID: &str = "node-1";
pub const KUBELET_DIR: &str = "/var/lib/kubelet";

/// How long a test waits for what must happen. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Rig {
    pub node: Node,
    pub api: ApiServer,
    pub driver: Arc<Driver>,
    pub ports: Ports,
    pub shutdown: CancellationToken,
    pub server: JoinHandle<Drain>,
    root: TempDir,
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::start_with(false).await
    }

    /// A driver that tells the health of volumes, as `--volume-health` makes it.
    pub async fn start_with_health() -> Rig {
        Rig::start_with(true).await
    }

    async fn start_with(volume_health: bool) -> Rig {
        let clock = SteppedClock::at(Wall { unix_ms: 1_800_000_000_000 });
        let (node, api) = (Node::default(), ApiServer::new(&clock));
        let settings = Settings {
            driver_name: DRIVER.to_owned(),
            node_name: "node-1".to_owned(),
            kubelet_dir: KubeletDir::new(KUBELET_DIR.into(), KUBELET_DIR.into()),
            sweep_every: Duration::from_secs(600),
            event_window: Duration::from_secs(600),
            brakes: Brakes::default(),
        };
        let ports = ports(&node, &api, Some(api.follow(DRIVER)), &clock);
        let driver = Arc::new(Driver::new(
            ports.clone(),
            settings,
            Arc::new(Tally::default()),
            Arc::new(Signal::default()),
        ));
        let root = TempDir::new().expect("a directory");
        let shutdown = CancellationToken::new();
        let about = About { driver_name: DRIVER.to_owned(), node_id: NODE_ID.to_owned(), volume_health };
        let csi = CsiService::new(driver.clone(), about, shutdown.clone());
        let path = root.path().join("csi.sock").display().to_string();
        let bound = socket::bind(&SocketPath::parse(&path).expect("a path")).await.expect("bind");
        let serve = socket::serve(csi.routes(), bound, shutdown.clone(), csi.calls());
        let server = tokio::spawn(async { serve.await.expect("serves") });
        Rig { node, api, driver, ports, shutdown, server, root }
    }

    pub fn socket(&self) -> PathBuf {
        self.root.path().join("csi.sock")
    }

    /// A fresh connection.
    pub async fn connect(&self) -> Channel {
        let url = format!("unix://{}", self.socket().display());
        Endpoint::from_shared(url).expect("an endpoint").connect().await.expect("the driver takes calls")
    }

    pub async fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.connect().await)
    }

    pub async fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.connect().await)
    }

    pub async fn publish(&self, request: NodePublishVolumeRequest) -> Result<(), Status> {
        self.node().await.node_publish_volume(request).await.map(|_| ())
    }

    pub async fn unpublish(&self, volume_id: &str, target_path: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume_id.to_owned(),
            target_path: target_path.to_owned(),
        };
        self.node().await.node_unpublish_volume(request).await.map(|_| ())
    }

    pub async fn statistics(
        &self,
        volume_id: &str,
        path: &str,
    ) -> Result<NodeGetVolumeStatsResponse, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: volume_id.to_owned(),
            volume_path: path.to_owned(),
            ..Default::default()
        };
        self.node().await.node_get_volume_stats(request).await.map(tonic::Response::into_inner)
    }

    /// The target of a pod as a kubelet lays it out; the kubelet makes its parent, the driver the rest.
    pub fn target(&self, pod: &str) -> String {
        let volume = format!("{KUBELET_DIR}/pods/{pod}/volumes/kubernetes.io~csi/pv");
        self.node.make_directory(&volume);
        format!("{volume}/mount")
    }

    /// A publish as a kubelet sends it for a ReadWriteMany volume.
    pub fn request(&self, handle: &str, pod: &str) -> NodePublishVolumeRequest {
        NodePublishVolumeRequest {
            volume_id: handle.to_owned(),
            target_path: self.target(pod),
            volume_capability: Some(capability(&[], Mode::MultiNodeMultiWriter)),
            volume_context: [
                ("csi.storage.k8s.io/pod.uid", pod),
                ("csi.storage.k8s.io/pod.name", &format!("name-{pod}")),
                ("csi.storage.k8s.io/pod.namespace", "example"),
                ("csi.storage.k8s.io/serviceAccount.name", "default"),
                ("csi.storage.k8s.io/ephemeral", "false"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
            ..Default::default()
        }
    }

    /// Posts what is due and tells the events that are there then.
    pub async fn events(&self) -> Vec<StoredEvent> {
        self.driver.step_events().await;
        self.api.events()
    }

    /// Fails unless the node is as if nothing had ever been asked of it.
    #[track_caller]
    pub fn is_untouched(&self, what: &str) {
        assert_eq!(self.node.copy_names(), Vec::<String>::new(), "{what} left a copy");
        assert!(self.node.store_mounts().is_empty(), "{what} left a mount");
        assert!(self.node.records_on_disk().is_empty(), "{what} left a record");
        assert!(self.node.trash_ids().is_empty(), "{what} left something in the trash");
    }

    /// Waits until calls of this kind hang.
    pub async fn hangs(&self, call: NodeCall) {
        eventually(|| self.node.gate().hanging(call) > 0).await;
    }

    /// How many mounts show a copy.
    pub fn mounts(&self) -> usize {
        self.node.store_mounts().len()
    }
}

pub fn capability(flags: &[&str], mode: Mode) -> VolumeCapability {
    let mount_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume { mount_flags, ..Default::default() })),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

pub fn handle(name: &str) -> Handle {
    Handle::parse(name).expect("a handle")
}

/// Waits until something is so.
pub async fn eventually(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it came about");
}

/// Waits for an answer, not for ever.
pub async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.expect("an answer came")
}
