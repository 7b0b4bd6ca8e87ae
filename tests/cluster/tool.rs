//! The operator's tool as people have it: on the PATH, where kubectl finds it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::cluster::cluster;
use super::wait::wait_for;

/// `kubectl per-node` with these arguments, as an administrator.
pub fn tool(arguments: &[&str]) -> Output {
    tool_as(&cluster().kubeconfig(), arguments)
}

/// The same as whoever the kubeconfig is of.
pub fn tool_as(kubeconfig: &Path, arguments: &[&str]) -> Output {
    command(kubeconfig, arguments).output().expect("kubectl is on the PATH that run sets")
}

/// What kubectl tells a shell that is to complete the last of these words.
pub fn completed(words: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let second = directory.path().join("kubectl_complete-per_node");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-per_node"), second).expect("a second name");
    let mut path = directory.path().as_os_str().to_owned();
    path.push(":");
    path.push(search_path());
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["__complete", "per-node"]).args(words).env("PATH", path).stdin(Stdio::null());
    let output = kubectl.output().expect("kubectl is on the PATH that run sets");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The command itself. kubectl becomes the tool: there is one process.
fn command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.arg("per-node").args(arguments).env("KUBECONFIG", kubeconfig).env("PATH", search_path());
    command.stdin(Stdio::null());
    command
}

/// Where kubectl finds the tool, and everything else.
fn search_path() -> OsString {
    let directory = Path::new(env!("CARGO_BIN_EXE_kubectl-per_node")).parent().expect("a directory");
    let mut path = directory.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// A running `kubectl per-node ui`. It ends when it is dropped.
pub struct Ui {
    process: Child,
    /// What it has printed: the page's address.
    pub address: String,
}

impl Ui {
    pub fn start(kubeconfig: &Path) -> Self {
        let mut command = command(kubeconfig, &["ui", "--every", "2s"]);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kubectl is on the PATH");
        let mut address = String::new();
        let told = BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut address);
        told.expect("it says where it listens");
        Self { process, address: address.trim_end().to_owned() }
    }

    /// What the page is told first, as the server writes it.
    pub fn state(&self) -> String {
        let (host, path) =
            self.address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "GET /{path}state HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same with `-o json`, decoded. Panics with what it said where it has no answer.
pub fn tool_json(arguments: &[&str]) -> Value {
    let output = tool(&[arguments, &["-o", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "kubectl per-node {}: {error}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Waits until `why` names a cause for a pod. Gives back that finding.
pub fn wait_cause(namespace: &str, pod: &str, cause: &str) -> Value {
    let mut last = Value::Null;
    let mut look = || {
        last = tool_json(&["why", pod, "-n", namespace]);
        let findings = last["findings"].as_array()?;
        findings.iter().find(|finding| finding["cause"] == cause).cloned()
    };
    let finding = wait_for(&format!("why {namespace}/{pod} to be {cause}"), &mut look);
    println!("{cause}: {} do: {}", finding["sentence"], finding["remedy"]);
    finding
}
