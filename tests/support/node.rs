//! The node that driver processes live and die on: a scratch file system with a shared kubelet directory and a store,
//! and an API server where a sweep needs proofs. It outlives every process that is started in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::holds::TargetRecord;
use per_node::ports::records::Records;
use per_node::proto::csi::node_client::NodeClient;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume};
use per_node::proto::csi::{NodePublishVolumeRequest, NodeUnpublishVolumeRequest, VolumeCapability};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::api_server::ApiServer;

/// How long a test waits for what must happen. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const DRIVER: &str = "per-node.liken.sh";

/// The runtime of all clients and API servers of the suite.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}

/// The group of every volume; none where the suite's user namespace has no other than its own.
fn group() -> &'static str {
    static GROUP: OnceLock<&str> = OnceLock::new();
    GROUP.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let is_had = std::os::unix::fs::chown(file.path(), None, Some(4711)).is_ok();
        if is_had { "4711" } else { "" }
    })
}

pub struct Node {
    root: PathBuf,
    pub api: Option<ApiServer>,
    _scratch: tempfile::TempDir,
}

/// A driver process.
pub struct Driver(Child);

impl Driver {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(mut self) {
        self.0.kill().expect("it lives");
        self.0.wait().expect("wait");
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Node {
    /// A node without an API server.
    pub fn standalone() -> Node {
        Node::new(None)
    }

    /// A node whose cluster has these volumes of the driver, each named like its handle.
    pub fn in_a_cluster(handles: &[&str]) -> Node {
        let api = runtime().block_on(ApiServer::start());
        for handle in handles {
            api.store(|store| store.create_volume(handle, DRIVER, handle)).expect("a new volume");
        }
        Node::new(Some(api))
    }

    fn new(api: Option<ApiServer>) -> Node {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(scratch.path()).expect("a path");
        mount("scratch", &root, "tmpfs", MountFlags::empty(), c"mode=0755").expect("a tmpfs");
        for directory in ["kubelet", "kubelet/plugins_registry", "store", "elsewhere"] {
            fs::create_dir(root.join(directory)).expect("mkdir");
        }
        mount_bind(root.join("kubelet"), root.join("kubelet")).expect("a bind");
        mount_change(root.join("kubelet"), MountPropagationFlags::SHARED).expect("shared");
        if let Some(api) = &api {
            fs::write(root.join("kubeconfig"), api.kubeconfig()).expect("a kubeconfig");
        }
        Node { root, api, _scratch: scratch }
    }

    pub fn path(&self, rest: &str) -> PathBuf {
        self.root.join(rest)
    }

    pub fn copy(&self, handle: &str) -> PathBuf {
        self.path("store/copies").join(handle)
    }

    /// The driver's command line. Its flags are environment variables.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_per-node"));
        command
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("NODE_NAME", "node-1")
            .env("CSI_ENDPOINT", format!("unix://{}", self.path("csi.sock").display()))
            .env("PER_NODE_KUBELET_DIR", self.path("kubelet"))
            .env("PER_NODE_STORE", self.path("store"))
            .env("PER_NODE_REGISTRATION_DIR", self.path("kubelet/plugins_registry"))
            .env("PER_NODE_KUBELET_ENDPOINT", format!("unix://{}", self.path("csi.sock").display()))
            .env("PER_NODE_HTTP", "127.0.0.1:0");
        match self.api {
            Some(_) => command.env("PER_NODE_KUBECONFIG", self.path("kubeconfig")),
            None => command.env("PER_NODE_STANDALONE", "true"),
        };
        command
    }

    /// Starts a driver and waits until it takes calls.
    pub fn start(&self) -> Driver {
        self.start_with(&[])
    }

    /// The same, with these flags.
    pub fn start_with(&self, flags: &[(&str, &str)]) -> Driver {
        let before = self.socket();
        let mut command = self.command();
        command.envs(flags.iter().copied());
        let log = File::options().create(true).append(true).open(self.path("log")).expect("a log");
        let driver = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut driver = Driver(driver.expect("the driver starts"));
        self.eventually("the driver to serve", || {
            let ended = driver.0.try_wait().expect("wait");
            assert!(ended.is_none(), "the driver ended: {ended:?}\n{}", self.log());
            self.socket() != before && self.client().is_ok()
        });
        driver
    }

    /// What all drivers of this node wrote to standard error.
    pub fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        format!("--- traced\n{}--- after\n{}", read("traced.log"), read("log"))
    }

    /// Which socket is there: a number and when it was made.
    fn socket(&self) -> Option<(u64, i64, i64)> {
        let found = fs::symlink_metadata(self.path("csi.sock")).ok()?;
        found.file_type().is_socket().then(|| (found.ino(), found.ctime(), found.ctime_nsec()))
    }

    /// Waits until something is so.
    #[track_caller]
    pub fn eventually(&self, what: &str, is_so: impl FnMut() -> bool) {
        let mut is_so = is_so;
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "waited in vain for {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    pub fn client(&self) -> Result<NodeClient<Channel>, tonic::transport::Error> {
        let url = format!("unix://{}", self.path("csi.sock").display());
        let connect = async { Endpoint::from_shared(url).expect("an endpoint").connect().await };
        runtime().block_on(connect).map(NodeClient::new)
    }

    /// The target of a pod as a kubelet lays it out. The kubelet makes its parent and keeps its own note beside it.
    pub fn target(&self, pod: &str) -> PathBuf {
        let volume = self.path("kubelet/pods").join(pod).join("volumes/kubernetes.io~csi/pv");
        fs::create_dir_all(&volume).expect("mkdir");
        fs::write(volume.join("vol_data.json"), "{}").expect("write");
        volume.join("mount")
    }

    /// The kubelet's publish, as a future of its own.
    pub fn publishing(&self, handle: &str, pod: &str) -> impl Future<Output = Result<(), Status>> + use<> {
        let capability = MountVolume { volume_mount_group: group().to_owned(), ..Default::default() };
        let request = NodePublishVolumeRequest {
            volume_id: handle.to_owned(),
            target_path: self.target(pod).display().to_string(),
            volume_capability: Some(VolumeCapability {
                access_type: Some(AccessType::Mount(capability)),
                access_mode: Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() }),
            }),
            volume_context: BTreeMap::from([
                ("csi.storage.k8s.io/pod.uid".to_owned(), pod.to_owned()),
                ("csi.storage.k8s.io/pod.name".to_owned(), format!("name-{pod}")),
                ("csi.storage.k8s.io/pod.namespace".to_owned(), "example".to_owned()),
            ])
            .into_iter()
            .collect(),
            ..Default::default()
        };
        let socket = self.path("csi.sock");
        async move { connected(&socket).await?.node_publish_volume(request).await.map(drop) }
    }

    /// The kubelet's unpublish, as a future of its own.
    pub fn unpublishing(&self, handle: &str, pod: &str) -> impl Future<Output = Result<(), Status>> + use<> {
        let target_path = self.target(pod).display().to_string();
        let request = NodeUnpublishVolumeRequest { volume_id: handle.to_owned(), target_path };
        let socket = self.path("csi.sock");
        async move { connected(&socket).await?.node_unpublish_volume(request).await.map(drop) }
    }

    pub fn publish(&self, handle: &str, pod: &str) -> Result<(), Status> {
        runtime().block_on(within_patience(self.publishing(handle, pod)))
    }

    pub fn unpublish(&self, handle: &str, pod: &str) -> Result<(), Status> {
        runtime().block_on(within_patience(self.unpublishing(handle, pod)))
    }

    /// Mount points below the scratch, relative to it, in order.
    pub fn mounts(&self) -> Vec<String> {
        let table = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let points =
            table.lines().filter_map(|line| Path::new(line.split(' ').nth(4)?).strip_prefix(&self.root).ok());
        let mut below: Vec<String> =
            points.map(|rest| rest.display().to_string()).filter(|rest| !rest.is_empty()).collect();
        below.sort();
        below
    }

    /// How many mounts are at the pod's target.
    pub fn mounts_at(&self, pod: &str) -> usize {
        let target = self.target(pod);
        let rest = target.strip_prefix(&self.root).expect("below").display().to_string();
        self.mounts().iter().filter(|point| **point == rest).count()
    }

    /// Names in a directory of the store, in order.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path("store").join(directory)).into_iter().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What the store's records say, as the next process will read them.
    pub fn records(&self) -> SlotRecords {
        let store = StoreDirs::open(&self.path("store")).expect("a store");
        SlotRecords::open(&store).expect("records")
    }

    pub fn target_records(&self) -> Vec<TargetRecord> {
        self.records().targets()
    }

    pub fn trash_records(&self) -> usize {
        self.records().trash_records().len()
    }

    /// In a cluster, waits until the store carries its marker: a kubelet gets to know the driver of a new store then.
    pub fn wait_marked(&self) {
        let is_marked = || self.api.is_none() || self.records().marker().is_some();
        self.eventually("the marker", is_marked);
    }
}

async fn connected(socket: &Path) -> Result<NodeClient<Channel>, Status> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).expect("an endpoint");
    let channel = endpoint.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(NodeClient::new(channel))
}

async fn within_patience<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, call).await.expect("an answer, or a broken connection")
}

impl Drop for Node {
    fn drop(&mut self) {
        // Lazily: a case that failed may have left anything.
        let _ = unmount(&self.root, UnmountFlags::DETACH);
    }
}
