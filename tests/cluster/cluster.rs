//! The cluster that `tests/cluster/run` started, as the cases find it: its directory, its tools, its two nodes.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::node::Node;
use super::wait::PATIENCE_S;

/// What kubectl says where the API server, which is there, is too busy for an answer.
const NO_ANSWER: [&str; 5] = [
    "Client.Timeout exceeded",
    "TLS handshake timeout",
    "etcdserver: request timed out",
    "http2: client connection lost",
    "unable to return a response in the time allotted",
];

/// What `run` left for the cases to find.
pub struct Cluster {
    state_dir: PathBuf,
    /// The node whose paths are the defaults.
    pub first: Node,
    /// The node whose kubelet and store are elsewhere.
    pub second: Node,
}

/// The running cluster. Panics with what to do where there is none: a case that cannot run has not passed.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let state_dir: PathBuf = std::env::var_os("PER_NODE_CLUSTER_DIR")
            .map_or_else(|| "/tmp/per-node-cluster".into(), PathBuf::from);
        let kubeconfig = state_dir.join("admin.kubeconfig");
        assert!(
            kubeconfig.exists(),
            "no cluster at {}: start one with tests/cluster/run up",
            state_dir.display()
        );
        Cluster {
            first: Node::new(&state_dir, "node-1", "kubelet", "per-node"),
            second: Node::new(&state_dir, "node-2", "kubelet1", "per-node-second"),
            state_dir,
        }
    })
}

/// The repository, as cargo names it to a test that runs: a test binary that was compiled elsewhere may still be fresh.
pub fn repository() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cases are run by cargo").into()
}

impl Cluster {
    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state_dir.join("admin.kubeconfig")
    }

    /// Both nodes.
    pub fn nodes(&self) -> [&Node; 2] {
        [&self.first, &self.second]
    }

    /// Runs kubectl as a user does, with `input` typed into it; again, as a user would, where the API server gave no answer.
    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> Output {
        let deadline = Instant::now() + Duration::from_secs(PATIENCE_S);
        loop {
            let output = self.kubectl_once(arguments, input);
            let said = String::from_utf8_lossy(&output.stderr);
            let answered = !NO_ANSWER.iter().any(|words| said.contains(words));
            if output.status.success() || answered || Instant::now() >= deadline {
                return output;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn kubectl_once(&self, arguments: &[&str], input: &str) -> Output {
        use std::io::Write as _;
        let mut child = Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("kubectl is on the PATH that run sets");
        // A kubectl that refuses its arguments does not read on; its message says more than a broken pipe.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        child.wait_with_output().expect("kubectl ran")
    }

    /// Runs kubectl and gives back what it printed. Panics with its message where it failed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.kubectl_with(arguments, "");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {}: {message}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// One step of the harness (a shell function of `tests/cluster/lib`), such as `stop_process kubelet-1`.
    pub fn call(&self, step: &[&str]) {
        let run = repository().join("tests/cluster/run");
        let output = Command::new(run).arg("call").args(step).output().expect("tests/cluster/run");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {message}", step.join(" "));
    }
}
