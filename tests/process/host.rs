//! A node for the binary: a mount namespace with a shared kubelet directory and a store, which outlives the driver
//! processes that are started in it. As root it is a mount namespace; else one in a user namespace.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use per_node::proto::csi::node_client::NodeClient;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume};
use per_node::proto::csi::{NodePublishVolumeRequest, NodeUnpublishVolumeRequest, VolumeCapability};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// How long a test waits for what must happen. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the kubelet's directory a shared mount, as a node has it, says so, and stays.
const HOLD_NAMESPACE: &str = r#"
set -eu
mount --bind "$1" "$1"
mount --make-shared "$1"
touch "$2"
exec sleep infinity
"#;

pub struct Host {
    root: TempDir,
    holder: Child,
}

impl Host {
    pub async fn start() -> Host {
        let root = TempDir::new().expect("a directory");
        for name in ["kubelet/plugins_registry", "store"] {
            fs::create_dir_all(root.path().join(name)).expect("mkdir");
        }
        let ready = root.path().join("ready");
        let mut unshare = Command::new("unshare");
        if !Uid::effective().is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        let holder = unshare
            .args(["--mount", "--propagation", "private", "sh", "-c", HOLD_NAMESPACE, "sh"])
            .arg(root.path().join("kubelet"))
            .arg(&ready)
            .kill_on_drop(true)
            .spawn()
            .expect("unshare runs");
        let host = Host { root, holder };
        eventually(|| ready.exists()).await;
        host
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("csi.sock")
    }

    /// Which socket is there, if one is.
    pub fn socket_inode(&self) -> Option<u64> {
        fs::symlink_metadata(self.socket()).ok().map(|found| found.ino())
    }

    /// The beginning of a command that runs on the node.
    pub fn inside(&self) -> Command {
        let holder = self.holder.id().expect("the holder lives");
        let mut command = Command::new("nsenter");
        if !Uid::effective().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(format!("--target={holder}")).arg("--mount").kill_on_drop(true);
        command
    }

    /// The command line of a driver without an API server; a test adds to it, and a later flag wins.
    pub fn serve(&self) -> Command {
        let mut command = self.inside();
        command
            .args([env!("CARGO_BIN_EXE_per-node"), "serve"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("NODE_NAME", "node-1")
            .env("CSI_ENDPOINT", format!("unix://{}", self.socket().display()))
            .env("PER_NODE_KUBELET_DIR", self.path("kubelet"))
            .env("PER_NODE_STORE", self.path("store"))
            .env("PER_NODE_REGISTRATION_DIR", "")
            .env("PER_NODE_HTTP", "127.0.0.1:0")
            .env("PER_NODE_STANDALONE", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Starts a driver and waits until it takes calls.
    pub async fn start_driver(&self) -> Driver {
        let driver = self.spawn(self.serve(), "driver.log");
        self.is_served().await;
        driver
    }

    pub fn spawn(&self, mut command: Command, log: &str) -> Driver {
        let log = self.path(log);
        let process = command.stderr(File::create(&log).expect("the log")).spawn().expect("nsenter runs");
        Driver { process, log }
    }

    /// Waits until somebody answers on the socket.
    pub async fn is_served(&self) {
        let served = async {
            while self.try_connect().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, served).await.expect("the driver serves");
    }

    async fn try_connect(&self) -> Result<Channel, tonic::transport::Error> {
        let url = format!("unix://{}", self.socket().display());
        Endpoint::from_shared(url).expect("an endpoint").connect().await
    }

    pub async fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.try_connect().await.expect("the driver takes calls"))
    }

    /// The target of a pod as a kubelet lays it out.
    pub fn target(&self, pod: &str) -> PathBuf {
        let volume = self.path(&format!("kubelet/pods/{pod}/volumes/kubernetes.io~csi/pv"));
        fs::create_dir_all(&volume).expect("mkdir");
        // The kubelet's own note that it knows the volume (C16).
        fs::write(volume.join("vol_data.json"), "{}").expect("write");
        volume.join("mount")
    }

    /// A publish as the kubelet sends it.
    pub fn request(&self, handle: &str, pod: &str) -> NodePublishVolumeRequest {
        let mount = AccessType::Mount(MountVolume::default());
        let access_mode = Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() });
        NodePublishVolumeRequest {
            volume_id: handle.to_owned(),
            target_path: self.target(pod).display().to_string(),
            volume_capability: Some(VolumeCapability { access_type: Some(mount), access_mode }),
            volume_context: [
                ("csi.storage.k8s.io/pod.uid", pod),
                ("csi.storage.k8s.io/pod.name", &format!("name-{pod}")),
                ("csi.storage.k8s.io/pod.namespace", "example"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
            ..Default::default()
        }
    }

    pub async fn publish(&self, handle: &str, pod: &str) -> Result<(), Status> {
        self.node().await.node_publish_volume(self.request(handle, pod)).await.map(|_| ())
    }

    pub async fn unpublish(&self, handle: &str, pod: &str) -> Result<(), Status> {
        let target_path = self.target(pod).display().to_string();
        let request = NodeUnpublishVolumeRequest { volume_id: handle.to_owned(), target_path };
        self.node().await.node_unpublish_volume(request).await.map(|_| ())
    }

    /// A path as processes of the node see it.
    pub fn seen(&self, path: &Path) -> PathBuf {
        let holder = self.holder.id().expect("the holder lives");
        format!("/proc/{holder}/root{}", path.display()).into()
    }

    /// How many mounts of the namespace are at the pod's target.
    pub fn mounts_at(&self, pod: &str) -> usize {
        let holder = self.holder.id().expect("the holder lives");
        let table = fs::read_to_string(format!("/proc/{holder}/mountinfo")).expect("mountinfo");
        let target = self.target(pod).display().to_string();
        table.lines().filter(|line| line.split(' ').nth(4) == Some(&target)).count()
    }
}

/// A driver process.
pub struct Driver {
    process: Child,
    log: PathBuf,
}

impl Driver {
    /// `nsenter` became the driver, so it has its process id.
    pub fn signal(&self, signal: Signal) {
        let id = self.process.id().expect("it was not waited for");
        kill(Pid::from_raw(i32::try_from(id).expect("a process id")), signal).expect("it is there");
    }

    /// One field of `/proc/PID/status` for each of its threads, which are at least the workers and the main one.
    pub fn status_of_threads(&self, field: &str) -> Vec<String> {
        let id = self.process.id().expect("it was not waited for");
        let threads = fs::read_dir(format!("/proc/{id}/task")).expect("its threads");
        let statuses = threads
            .filter_map(|thread| fs::read_to_string(thread.expect("a thread").path().join("status")).ok());
        let value = |status: String| {
            let line =
                status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::trim));
            line.expect("the field").to_owned()
        };
        statuses.map(value).collect()
    }

    pub async fn ends(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.process.wait()).await.expect("it ends").expect("wait")
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("wait").is_none()
    }

    /// What it wrote to standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log")
    }
}

/// A port that nobody listens on.
pub fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

/// A page of the driver's: status line and body.
pub async fn page(address: SocketAddr, path: &str) -> String {
    page_with(address, path, &[]).await
}

/// The same; `None` where nobody answers, or not to the end.
pub async fn page_if_served(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer).filter(|answer| answer.contains("\r\n\r\n"))
}

/// The same, asked for with these headers.
pub async fn page_with(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("write");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}

/// Waits until something is so.
pub async fn eventually(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it came about");
}

/// The registration socket in a directory, whatever its name.
pub fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).expect("read").map(|entry| entry.expect("entry").path()).collect()
}
