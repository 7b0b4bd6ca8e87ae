//! The binary, serving in a mount namespace of its own, and csi-sanity beside it in the same namespace.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::report::Report;
use super::tool;

/// Makes the kubelet's directory a shared mount, as a node has it, and becomes the driver.
const IN_NAMESPACE: &str = r#"
set -eu
mount --bind "$1" "$1"
mount --make-shared "$1"
shift
exec "$@"
"#;

/// How long anything may take before the test fails rather than hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The driver's log, in the test's directory.
const LOG: &str = "per-node.log";

/// A driver that runs.
pub struct Plugin {
    root: TempDir,
    socket: PathBuf,
    process: Child,
}

impl Plugin {
    /// Starts `per-node serve --standalone` with these flags, too, and waits until it takes calls.
    pub async fn start(flags: &[&str]) -> Plugin {
        assert!(Uid::effective().is_root(), "csi-sanity runs on real mounts: be root");
        let root = TempDir::new().expect("a directory");
        let (kubelet, store) = (root.path().join("kubelet"), root.path().join("store"));
        std::fs::create_dir_all(&kubelet).expect("mkdir");
        std::fs::create_dir_all(&store).expect("mkdir");
        let socket = root.path().join("csi.sock");
        let log = File::create(root.path().join(LOG)).expect("the log");
        let mut process = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", IN_NAMESPACE, "sh"])
            .arg(&kubelet)
            .args([env!("CARGO_BIN_EXE_per-node"), "serve", "--standalone", "--node-id", "node-1"])
            .args(["--registration-dir", "", "--http", "127.0.0.1:0"])
            .arg("--endpoint")
            .arg(format!("unix://{}", socket.display()))
            .arg("--kubelet-dir")
            .arg(&kubelet)
            .arg("--store")
            .arg(&store)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("unshare runs");
        let served = async {
            while UnixStream::connect(&socket).await.is_err() {
                if let Some(status) = process.try_wait().expect("wait") {
                    panic!("the driver ended before it served: {status}\n{}", log_in(root.path()));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, served).await.expect("the driver serves");
        Plugin { root, socket, process }
    }

    /// The driver's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A path beside it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs csi-sanity's Identity and Node specs, in the driver's mount namespace.
    pub async fn judge(&self, endpoint: &Path, controller: &Path) -> Report {
        let program = tokio::task::spawn_blocking(tool::csi_sanity).await.expect("csi-sanity is built");
        let report = self.path("report.json");
        let sanity = Command::new("nsenter")
            .arg(format!("--target={}", self.pid()))
            .arg("--mount")
            .arg(program)
            .arg(format!("--csi.endpoint={}", endpoint.display()))
            .arg(format!("--csi.controllerendpoint={}", controller.display()))
            .arg(format!("--csi.mountdir={}", self.path("kubelet/target").display()))
            .arg(format!("--csi.stagingdir={}", self.path("kubelet/staging").display()))
            .arg("--ginkgo.focus=Identity Service|Node Service")
            .arg(format!("--ginkgo.json-report={}", report.display()))
            .arg("--ginkgo.no-color")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        // Its exit status says no more than the report does.
        let output =
            tokio::time::timeout(PATIENCE, sanity).await.expect("csi-sanity ends").expect("nsenter runs");
        let printed = [output.stdout, output.stderr].concat();
        let transcript = format!("{}\n{}", String::from_utf8_lossy(&printed), log_in(self.root.path()));
        Report::read(&report, transcript)
    }

    /// Ends the driver as a kubelet does: it leaves with 0 (C42).
    pub async fn stop(mut self) {
        kill(self.pid(), Signal::SIGTERM).expect("the driver is there");
        let status =
            tokio::time::timeout(PATIENCE, self.process.wait()).await.expect("it ends").expect("wait");
        assert!(status.success(), "{status}");
        assert!(!self.socket.exists(), "its socket went with it");
    }

    /// `unshare` and `sh` became the driver, so it has their process id.
    fn pid(&self) -> Pid {
        let id = self.process.id().expect("it was not waited for");
        Pid::from_raw(i32::try_from(id).expect("a process id"))
    }
}

fn log_in(directory: &Path) -> String {
    std::fs::read_to_string(directory.join(LOG)).unwrap_or_default()
}
