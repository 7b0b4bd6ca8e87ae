//! The driver as a process of its own, as a DaemonSet runs it: beside an API server, with its default log.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::Side;
use crate::field::{Field, wait_until};
use crate::process::Process;

/// The name under which PersistentVolumes are this driver's.
pub const DRIVER_NAME: &str = "per-node.liken.sh";

const LOG: &str = "driver.log";

impl Field {
    /// Starts the driver, and comes back when it takes calls.
    pub fn start_driver(&self, binary: &Path, kubeconfig: &Path) -> Process {
        let process = self.spawn_driver(binary, kubeconfig);
        wait_until("the driver takes calls", Duration::from_millis(5), || self.takes_calls());
        process
    }

    pub fn spawn_driver(&self, binary: &Path, kubeconfig: &Path) -> Process {
        let log = File::create(self.path(LOG)).expect("the log");
        let child = Command::new(binary)
            .args(["serve", "--node-id=bench", "--registration-dir=", "--http=127.0.0.1:0"])
            .arg(format!("--kubelet-dir={}", self.path("kubelet").display()))
            .arg(format!("--store={}", self.path("store").display()))
            .arg(format!("--endpoint=unix://{}", self.driver_socket().display()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .env_remove("RUST_LOG")
            .stderr(Stdio::from(log))
            .spawn()
            .expect("the driver starts");
        Process(child)
    }

    /// Whether somebody listens on the driver's socket.
    pub fn takes_calls(&self) -> bool {
        UnixStream::connect(self.driver_socket()).is_ok()
    }

    pub fn driver_socket(&self) -> PathBuf {
        self.path("driver.sock")
    }

    /// The driver as its clients see it.
    pub fn driver_side(&self) -> Side {
        Side::new(&self.driver_socket(), &self.path("kubelet"))
    }

    /// Where the driver keeps a copy.
    pub fn copy(&self, handle: &str) -> PathBuf {
        self.path("store").join("copies").join(handle)
    }

    /// The store's marker is written: from now on what the API server deletes may go.
    pub fn wait_for_marker(&self) {
        wait_until("the store is this cluster's", Duration::from_millis(20), || {
            let log = std::fs::read_to_string(self.path(LOG)).unwrap_or_default();
            log.contains("this store is now that cluster's")
        });
    }
}
