//! The tool's `ui` as a process, for a fake cluster.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::objects_api::ObjectsApi;

/// What a start never takes longer than.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `ui`. It ends when it is dropped.
pub struct Served {
    pub process: Child,
    pub address: String,
    _kubeconfig: tempfile::NamedTempFile,
}

impl Served {
    pub async fn start(api: &ObjectsApi) -> Self {
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), api.kubeconfig()).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-per_node"));
        command.args(["ui", "--every", "2s", "--node-deadline", "2s"]).env_clear();
        command.env("KUBECONFIG", kubeconfig.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().expect("it runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it starts").expect("read");
        Self { process, address: line.expect("an address"), _kubeconfig: kubeconfig }
    }
}
