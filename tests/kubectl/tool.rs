//! One helper: the tool as a process with a kubeconfig of the fake API server, and what it answered.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::objects_api::ObjectsApi;

/// What no command takes longer than here, but one that hangs.
const HANGS_AFTER: Duration = Duration::from_secs(30);

/// What a run of the tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The tool, with nothing of this process's environment that it would read.
pub fn command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-per_node"));
    command.args(arguments).env_clear().env("KUBECONFIG", kubeconfig);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs the tool against `api` until it ends.
pub async fn run(api: &ObjectsApi, arguments: &[&str]) -> Answer {
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(kubeconfig.path(), api.kubeconfig()).expect("written");
    let output = command(kubeconfig.path(), arguments).output();
    let output = tokio::time::timeout(HANGS_AFTER, output).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let answer = Answer {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert!(!format!("{answer:?}").contains("SECRET"), "{answer:?}");
    answer
}
