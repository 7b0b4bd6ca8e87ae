//! The registration adapter against a double of the kubelet's plugin watcher (C43): real sockets, real files.

mod watcher;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use per_node::adapters::registration::{Pace, Phase, Registration, Watch};
use per_node::adapters::socket::{SocketPath, SocketPathError};
use per_node::proto::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use watcher::{Did, PluginWatcher, Script, dial};

const DRIVER: &str = "per-node.liken.sh";
const ENDPOINT: &str = "/var/lib/kubelet/plugins/per-node.liken.sh/csi.sock";

/// A node: the kubelet's registry directory, and the driver's registration at work in it.
struct Node {
    root: TempDir,
    shutdown: CancellationToken,
    phase: Watch,
    keeper: JoinHandle<()>,
}

impl Node {
    fn start() -> Self {
        let root = TempDir::new().expect("a directory");
        fs::create_dir(registry(&root)).expect("mkdir");
        Self::start_in(root, Duration::from_millis(2))
    }

    fn start_in(root: TempDir, first_pause: Duration) -> Self {
        let pace = Pace {
            look_every: Duration::from_millis(2),
            first_pause,
            longest_pause: first_pause.max(Duration::from_millis(8)),
        };
        let endpoint = SocketPath::parse(ENDPOINT).expect("a path");
        let registration = Registration::new(&registry(&root), DRIVER, &endpoint, pace).expect("it fits");
        let phase = registration.watch();
        let shutdown = CancellationToken::new();
        let keeper = tokio::spawn(registration.run(shutdown.clone()));
        Self { root, shutdown, phase, keeper }
    }

    fn directory(&self) -> PathBuf {
        registry(&self.root)
    }

    fn socket(&self) -> PathBuf {
        self.directory().join("per-node.liken.sh@registration.sock")
    }

    async fn reaches(&mut self, phase: Phase) {
        let reached = tokio::time::timeout(Duration::from_secs(60), self.phase.wait_for(|now| *now == phase));
        let reached = reached.await.is_ok_and(|result| result.is_ok());
        assert!(reached, "{phase:?} was not reached, it is {:?}", self.phase.borrow());
    }

    /// Ends the registration and hands back the node's directories, which go when they are dropped.
    async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        self.keeper.await.expect("it ends without a panic");
        self.root
    }
}

fn registry(root: &TempDir) -> PathBuf {
    root.path().join("plugins_registry")
}

fn info() -> PluginInfo {
    PluginInfo {
        r#type: "CSIPlugin".to_owned(),
        name: DRIVER.to_owned(),
        endpoint: ENDPOINT.to_owned(),
        supported_versions: vec!["1.0.0".to_owned()],
    }
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).expect("it is there").ino()
}

#[tokio::test]
async fn c43_the_kubelet_finds_the_driver_and_is_told_who_it_is() {
    let mut node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.reaches(Phase::Registered).await;
    assert!(node.phase.borrow().is_ready());
    node.stop().await;
}

#[tokio::test]
async fn c43_a_shutdown_takes_the_driver_out_of_the_kubelet() {
    let node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    let socket = node.socket();
    let _root = node.stop().await;
    assert!(!socket.exists());
    assert_eq!(kubelet.next().await, Did::Deregistered);
}

#[tokio::test]
async fn c43_a_kubelet_that_restarts_finds_the_same_socket() {
    let mut node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.reaches(Phase::Registered).await;
    let before = inode(&node.socket());
    drop(kubelet);
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    assert_eq!(inode(&node.socket()), before);
    node.stop().await;
}

#[tokio::test]
async fn c43_a_deleted_socket_is_made_again() {
    let node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    fs::remove_file(node.socket()).expect("somebody cleans up");
    assert_eq!(kubelet.next().await, Did::Deregistered);
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.stop().await;
}

#[tokio::test]
async fn c43_a_registry_that_is_wiped_and_comes_back_is_found_again() {
    let mut node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    fs::remove_dir_all(node.directory()).expect("wiped");
    assert_eq!(kubelet.next().await, Did::Deregistered);
    node.reaches(Phase::NoDirectory).await;
    assert!(!node.directory().exists(), "the directory is the kubelet's to make");
    fs::create_dir(node.directory()).expect("mkdir");
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.stop().await;
}

#[tokio::test]
async fn c43_a_registry_that_is_not_there_yet_is_waited_for() {
    let root = TempDir::new().expect("a directory");
    let mut node = Node::start_in(root, Duration::from_millis(2));
    node.reaches(Phase::NoDirectory).await;
    assert!(!node.phase.borrow().is_ready());
    fs::create_dir(node.directory()).expect("the kubelet makes it");
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.stop().await;
}

#[tokio::test]
async fn c43_a_refused_driver_makes_its_socket_anew_until_it_is_taken() {
    let mut node = Node::start();
    let script = Script::default();
    script.lock().expect("lock").extend(["no CSINode".to_owned(), "conflict".to_owned()]);
    let mut kubelet = PluginWatcher::start(&node.directory(), &script);
    assert_eq!(kubelet.next().await, Did::Refused("no CSINode".to_owned()));
    assert_eq!(kubelet.next().await, Did::Refused("conflict".to_owned()));
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.reaches(Phase::Registered).await;
    node.stop().await;
}

#[tokio::test]
async fn c43_what_the_kubelet_said_can_be_read_while_the_driver_pauses() {
    let root = TempDir::new().expect("a directory");
    fs::create_dir(registry(&root)).expect("mkdir");
    let mut node = Node::start_in(root, Duration::from_secs(3600));
    let script = Script::default();
    script.lock().expect("lock").push_back("no CSINode".to_owned());
    let mut kubelet = PluginWatcher::start(&node.directory(), &script);
    assert_eq!(kubelet.next().await, Did::Refused("no CSINode".to_owned()));
    node.reaches(Phase::Refused("no CSINode".to_owned())).await;
    assert!(!node.phase.borrow().is_ready());
    let says = node.phase.borrow().to_string();
    assert_eq!(says, "the kubelet could not register the driver: no CSINode");
    node.stop().await;
}

#[tokio::test]
async fn c43_a_stale_socket_of_a_killed_predecessor_is_replaced() {
    let root = TempDir::new().expect("a directory");
    fs::create_dir(registry(&root)).expect("mkdir");
    drop(UnixListener::bind(registry(&root).join("per-node.liken.sh@registration.sock")).expect("bind"));
    let node = Node::start_in(root, Duration::from_millis(2));
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    loop {
        match kubelet.next().await {
            Did::CouldNotAsk(_) => {}
            did => break assert_eq!(did, Did::Registered(info())),
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn c43_another_registrar_of_the_driver_keeps_its_socket() {
    let root = TempDir::new().expect("a directory");
    fs::create_dir(registry(&root)).expect("mkdir");
    let path = registry(&root).join("per-node.liken.sh@registration.sock");
    let other = UnixListener::bind(&path).expect("the sidecar binds");
    let before = inode(&path);
    let mut node = Node::start_in(root, Duration::from_millis(2));
    let told = node.phase.wait_for(|now| matches!(now, Phase::NoSocket(_))).await.expect("told").to_string();
    assert!(told.contains("another process serves"), "{told}");
    assert_eq!(inode(&path), before);
    drop(other);
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    loop {
        match kubelet.next().await {
            Did::CouldNotAsk(_) => {}
            did => break assert_eq!(did, Did::Registered(info())),
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn c43_a_file_that_is_no_socket_is_left_alone_and_told() {
    let root = TempDir::new().expect("a directory");
    fs::create_dir(registry(&root)).expect("mkdir");
    let path = registry(&root).join("per-node.liken.sh@registration.sock");
    fs::write(&path, "notes").expect("write");
    let mut node = Node::start_in(root, Duration::from_millis(2));
    let told = node.phase.wait_for(|now| matches!(now, Phase::NoSocket(_))).await.expect("told").to_string();
    assert!(told.contains("is no socket"), "{told}");
    let _root = node.stop().await;
    assert_eq!(fs::read(&path).expect("still there"), b"notes");
}

#[tokio::test]
async fn c43_many_words_of_the_kubelet_do_not_fill_anything_up() {
    let mut node = Node::start();
    node.reaches(Phase::Waiting).await;
    while !node.socket().exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut client = dial(&node.socket()).await.expect("dial");
    for _ in 0..100 {
        assert_eq!(client.get_info(InfoRequest {}).await.expect("answers").into_inner(), info());
        let status = RegistrationStatus { plugin_registered: true, error: String::new() };
        client.notify_registration_status(status).await.expect("answers");
    }
    node.reaches(Phase::Registered).await;
    node.stop().await;
}

#[tokio::test]
async fn c43_a_registered_driver_is_left_in_peace() {
    let mut node = Node::start();
    let mut kubelet = PluginWatcher::start(&node.directory(), &Script::default());
    assert_eq!(kubelet.next().await, Did::Registered(info()));
    node.reaches(Phase::Registered).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(kubelet.is_quiet(), "nothing was made anew");
    node.stop().await;
}

#[test]
fn c43_a_registry_too_deep_for_a_socket_is_an_error_at_start() {
    let endpoint = SocketPath::parse(ENDPOINT).expect("a path");
    let deep = format!("/{}", "d".repeat(90));
    let error =
        Registration::new(Path::new(&deep), DRIVER, &endpoint, Pace::default()).expect_err("too long");
    assert!(matches!(error, SocketPathError::TooLong { .. }), "{error}");
}
