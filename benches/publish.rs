//! What a publish costs beside the least it could cost: a kubelet-shaped mount through the socket (a fresh connection
//! for each of four NodeGetCapabilities and one NodePublishVolume), divided by the same calls to a bare tonic server
//! that does the mkdir and the mount and nothing else. Both run in one mount namespace, as processes of their own,
//! and take turns call by call, so that only the ratio is read.
//!
//! `cargo bench --bench publish` as root. `PER_NODE_BENCH_ROUNDS` and `PER_NODE_BENCH_MOUNTS` (a list) change the size.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use per_node::proto::csi;
use per_node::proto::csi::node_client::NodeClient;
use per_node::proto::csi::node_server::{Node, NodeServer};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

const BARE: &str = "--bare-server";
const ROUNDS_DEFAULT: usize = 300;
const WARM_UP_ROUNDS: usize = 20;
const MOUNTS_DEFAULT: [usize; 3] = [10, 1_000, 10_000];
const START_LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == BARE) {
        return bare_server(Path::new(&arguments[at + 1]));
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("this benchmark mounts, so it needs root");
        std::process::exit(1);
    }
    // Before any thread: a namespace belongs to the thread that made it.
    unshare(CloneFlags::CLONE_NEWNS).expect("unshare");
    change("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    println!("foreign mounts | mount p50 (ratio) | unmount p50 (ratio)");
    for mounts in mounts_from_environment() {
        measure(mounts);
    }
}

fn mounts_from_environment() -> Vec<usize> {
    match std::env::var("PER_NODE_BENCH_MOUNTS") {
        Ok(list) => list.split(',').map(|number| number.trim().parse().expect("a number")).collect(),
        Err(_) => MOUNTS_DEFAULT.to_vec(),
    }
}

fn change(path: &str, flags: MsFlags) {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>).expect("change propagation");
}

fn bind(from: &Path, onto: &Path) {
    mount(Some(from), onto, None::<&str>, MsFlags::MS_BIND, None::<&str>).expect("bind");
}

/// The two contestants in one place.
struct Field {
    root: tempfile::TempDir,
    children: Vec<Child>,
    foreign: Vec<PathBuf>,
}

impl Field {
    fn new(foreign_count: usize) -> Field {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["kubelet", "bare", "store", "foreign"] {
            std::fs::create_dir(root.path().join(name)).expect(name);
        }
        // As on a node: what is mounted below the kubelet's directory propagates.
        for name in ["kubelet", "bare"] {
            let path = root.path().join(name);
            bind(&path, &path);
            change(path.to_str().expect("UTF-8"), MsFlags::MS_SHARED);
        }
        let mut foreign = Vec::new();
        for number in 0..foreign_count {
            let path = root.path().join("foreign").join(number.to_string());
            std::fs::create_dir(&path).expect("a mount point");
            bind(&path, &path);
            foreign.push(path);
        }
        Field { root, children: Vec::new(), foreign }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn start(&mut self) {
        let driver = Command::new(env!("CARGO_BIN_EXE_per-node"))
            .args(["serve", "--standalone", "--node-id=bench", "--registration-dir=", "--http=127.0.0.1:0"])
            .arg(format!("--kubelet-dir={}", self.path("kubelet").display()))
            .arg(format!("--store={}", self.path("store").display()))
            .arg(format!("--endpoint=unix://{}", self.path("driver.sock").display()))
            .env("RUST_LOG", "warn")
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the driver");
        self.children.push(driver);
        let bare = Command::new(std::env::current_exe().expect("own path"))
            .arg(BARE)
            .arg(self.root.path())
            .spawn()
            .expect("the bare server");
        self.children.push(bare);
        let limit = Instant::now() + START_LIMIT;
        for socket in ["driver.sock", "bare.sock"] {
            while !self.path(socket).exists() {
                assert!(Instant::now() < limit, "{socket} did not come up");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for path in self.foreign.iter().chain([&self.path("kubelet"), &self.path("bare")]) {
            let _ = umount2(path, MntFlags::MNT_DETACH);
        }
    }
}

/// One contestant: its socket, and where its targets are.
struct Contestant {
    socket: String,
    targets: PathBuf,
    mount: Vec<Duration>,
    unmount: Vec<Duration>,
}

impl Contestant {
    async fn client(&self) -> NodeClient<Channel> {
        let endpoint = tonic::transport::Endpoint::from_shared(self.socket.clone()).expect("an address");
        NodeClient::new(endpoint.connect().await.expect("a connection"))
    }

    async fn round(&mut self, number: usize) {
        let directory = self.targets.join(format!("pod-{}", number % 8));
        std::fs::create_dir_all(&directory).expect("the target's parent");
        let target_path = directory.join("mount").to_str().expect("UTF-8").to_owned();
        let volume_id = format!("volume-{}", number % 8);
        let began = Instant::now();
        for _ in 0..4 {
            let request = csi::NodeGetCapabilitiesRequest {};
            self.client().await.node_get_capabilities(request).await.expect("capabilities");
        }
        let request = publish_request(volume_id.clone(), target_path.clone());
        self.client().await.node_publish_volume(request).await.expect("a publish");
        self.mount.push(began.elapsed());
        let began = Instant::now();
        let request = csi::NodeUnpublishVolumeRequest { volume_id, target_path };
        self.client().await.node_unpublish_volume(request).await.expect("an unpublish");
        self.unmount.push(began.elapsed());
    }
}

fn publish_request(volume_id: String, target_path: String) -> csi::NodePublishVolumeRequest {
    use csi::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
    csi::NodePublishVolumeRequest {
        volume_id,
        target_path,
        volume_capability: Some(csi::VolumeCapability {
            access_type: Some(AccessType::Mount(MountVolume::default())),
            access_mode: Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() }),
        }),
        volume_context: [
            ("csi.storage.k8s.io/pod.name".to_owned(), "pod".to_owned()),
            ("csi.storage.k8s.io/pod.namespace".to_owned(), "bench".to_owned()),
        ]
        .into(),
        ..csi::NodePublishVolumeRequest::default()
    }
}

fn measure(foreign_count: usize) {
    let rounds = std::env::var("PER_NODE_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS_DEFAULT);
    let mut field = Field::new(foreign_count);
    field.start();
    let contestant = |socket: &str, targets: &str| Contestant {
        socket: format!("unix://{}", field.path(socket).display()),
        targets: field.path(targets),
        mount: Vec::new(),
        unmount: Vec::new(),
    };
    let mut driver = contestant("driver.sock", "kubelet");
    let mut bare = contestant("bare.sock", "bare");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for number in 0..WARM_UP_ROUNDS + rounds {
            driver.round(number).await;
            bare.round(number).await;
            if number + 1 == WARM_UP_ROUNDS {
                for contestant in [&mut driver, &mut bare] {
                    contestant.mount.clear();
                    contestant.unmount.clear();
                }
            }
        }
    });
    let line = |driver: &mut Vec<Duration>, bare: &mut Vec<Duration>| {
        let (driver, bare) = (median(driver), median(bare));
        format!("{:.2} ms / {:.2} ms ({:.2})", driver * 1e3, bare * 1e3, driver / bare)
    };
    println!(
        "{foreign_count:>14} | {} | {}",
        line(&mut driver.mount, &mut bare.mount),
        line(&mut driver.unmount, &mut bare.unmount)
    );
}

fn median(samples: &mut [Duration]) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64()
}

/// The reachable limit: gRPC, mkdir, mount.
fn bare_server(root: &Path) {
    let copies = root.join("bare-copies");
    std::fs::create_dir(&copies).expect("the copies");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(root.join("bare.sock")).expect("the socket");
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        let server = tonic::transport::Server::builder().add_service(NodeServer::new(Bare { copies }));
        server.serve_with_incoming(incoming).await.expect("served");
    });
}

struct Bare {
    copies: PathBuf,
}

type Answer<T> = Result<Response<T>, Status>;

/// The calls that no contestant is asked for.
macro_rules! not_served {
    ($($call:ident($request:ident) -> $response:ident),*) => {
        $(
            #[allow(clippy::type_complexity, clippy::type_repetition_in_bounds)]
            fn $call<'a, 'async_trait>(
                &'a self,
                _request: Request<csi::$request>,
            ) -> Pin<Box<dyn Future<Output = Answer<csi::$response>> + Send + 'async_trait>>
            where
                'a: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async { Err(Status::unimplemented("not part of the benchmark")) })
            }
        )*
    };
}

#[tonic::async_trait]
impl Node for Bare {
    not_served!(node_stage_volume(NodeStageVolumeRequest) -> NodeStageVolumeResponse, node_unstage_volume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse, node_get_volume_stats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse, node_expand_volume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse, node_get_info(NodeGetInfoRequest) -> NodeGetInfoResponse, node_get_volume_health(NodeGetVolumeHealthRequest) -> NodeGetVolumeHealthResponse, node_get_storage_health(NodeGetStorageHealthRequest) -> NodeGetStorageHealthResponse);

    async fn node_publish_volume(
        &self,
        request: Request<csi::NodePublishVolumeRequest>,
    ) -> Answer<csi::NodePublishVolumeResponse> {
        let request = request.into_inner();
        let copy = self.copies.join(&request.volume_id);
        let _ = std::fs::create_dir(&copy);
        std::fs::create_dir(&request.target_path).map_err(|error| Status::internal(error.to_string()))?;
        bind(&copy, Path::new(&request.target_path));
        Ok(Response::new(Default::default()))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<csi::NodeUnpublishVolumeRequest>,
    ) -> Answer<csi::NodeUnpublishVolumeResponse> {
        let target = request.into_inner().target_path;
        umount2(target.as_str(), MntFlags::empty()).expect("umount");
        std::fs::remove_dir(&target).expect("rmdir");
        Ok(Response::new(Default::default()))
    }

    async fn node_get_capabilities(
        &self,
        _request: Request<csi::NodeGetCapabilitiesRequest>,
    ) -> Answer<csi::NodeGetCapabilitiesResponse> {
        use csi::node_service_capability::{Rpc, Type, rpc};
        let capability = |capability: rpc::Type| csi::NodeServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: capability.into() })),
        };
        let capabilities =
            [rpc::Type::SingleNodeMultiWriter, rpc::Type::GetVolumeStats, rpc::Type::VolumeMountGroup];
        Ok(Response::new(csi::NodeGetCapabilitiesResponse {
            capabilities: capabilities.into_iter().map(capability).collect(),
        }))
    }
}
