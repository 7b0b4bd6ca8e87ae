//! A command of the plugin's own binary, run in its pod: the only way in which this tool has a plugin do something. Nothing on
//! the plugin's HTTP port changes anything.
//!
//! What comes back is bounded in size and time. No credential is in what it says of a failure (C47).

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use k8s_openapi::api::core::v1::Pod;
use kube::Api as Objects;
use kube::api::{AttachParams, AttachedProcess};
use kube::client::UpgradeConnectionError;
use per_node::adapters::kube::api_error::ApiError;
use per_node::adapters::kube::client::without_credentials;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::api::{Api, Resource, Selector};
use crate::failure::Failure;
use crate::installation::{CONTAINER, POD_LABELS};
use crate::workload::flag;

/// Bytes of each stream that are read; the plugin's longest answer is shorter.
const STREAM_BYTES_MAX: u64 = 1024 * 1024;
/// Pods in which a command runs at the same time.
const NODES_AT_ONCE: usize = 16;
/// Where the image has the binary.
const BINARY: &str = "/per-node";

/// A plugin in whose pod something can be run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub node: String,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    phase: String,
    binary: String,
    /// The value of its `--store`, where it was given one.
    store: Option<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub out: String,
    pub err: String,
    /// It exited with 0.
    pub success: bool,
}

/// Why a command did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    #[error(
        "you may not create pods/exec, or not get pods/exec, in the namespace {namespace}: ask for both rights"
    )]
    Forbidden { namespace: String },
    #[error("its pod is {phase}")]
    NotRunning { phase: String },
    #[error("nothing came back within {}", humantime::format_duration(*after))]
    Late { after: Duration },
    #[error("its plugin refuses: {said}")]
    Refused { said: String },
    #[error("its pod is not reached: {why}")]
    Failed { why: String },
}

/// The plugins of all nodes, or of one.
///
/// # Errors
/// Where the pods cannot be listed, and where there is none.
pub async fn targets(api: &Api, namespace: &str, node: Option<&str>) -> Result<Vec<Target>, Failure> {
    let fields = node.map(|node| format!("spec.nodeName={node}")).unwrap_or_default();
    let selector = Selector { labels: POD_LABELS.to_owned(), fields };
    let pods: Vec<Pod> = api.list(Resource::PODS, Some(namespace), &selector).await?;
    let mut targets: Vec<Target> = pods.iter().filter_map(Target::of).collect();
    targets.sort();
    if targets.is_empty() {
        let on = node.map(|node| format!(" on the node {node}")).unwrap_or_default();
        let why = format!("no plugin's pod{on} in the namespace {namespace}: -n names another");
        return Err(Failure::Missing { why });
    }
    Ok(targets)
}

/// Runs the plugin's subcommand `words` in each pod, some at a time, and answers in the order of the targets.
pub async fn each(
    api: &Api,
    targets: &[Target],
    words: &[&str],
    deadline: Duration,
) -> Vec<Result<Ended, ExecError>> {
    let runs: Vec<_> = targets.iter().map(|target| (target, words.to_vec())).collect();
    all(api, &runs, deadline).await
}

/// Runs a subcommand of its own in the pod of each, some at a time, and answers in their order.
pub async fn all(
    api: &Api,
    runs: &[(&Target, Vec<&str>)],
    deadline: Duration,
) -> Vec<Result<Ended, ExecError>> {
    let runs: Vec<_> = runs.iter().map(|(target, words)| target.run(api, words, deadline)).collect();
    stream::iter(runs).buffered(NODES_AT_ONCE).collect().await
}

impl Target {
    /// A pod that ends is not asked beside the one that follows it.
    fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        if pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let container =
            spec.containers.iter().find(|one| one.name == CONTAINER).or(spec.containers.first())?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let binary = container.command.as_ref().and_then(|command| command.first().cloned());
        Some(Self {
            node: spec.node_name.clone().filter(|node| !node.is_empty())?,
            namespace: pod.metadata.namespace.clone()?,
            pod: pod.metadata.name.clone()?,
            container: container.name.clone(),
            phase: phase.unwrap_or_else(|| "Unknown".to_owned()),
            binary: binary.unwrap_or_else(|| BINARY.to_owned()),
            store: flag(container, "--store").map(str::to_owned),
        })
    }

    /// The whole command: the subcommand, and the store that this plugin serves.
    fn command(&self, words: &[&str]) -> Vec<String> {
        let mut command = vec![self.binary.clone()];
        command.extend(words.iter().map(|word| (*word).to_owned()));
        command.extend(self.store.iter().map(|store| format!("--store={store}")));
        command
    }

    async fn run(&self, api: &Api, words: &[&str], deadline: Duration) -> Result<Ended, ExecError> {
        if self.phase != "Running" {
            return Err(ExecError::NotRunning { phase: self.phase.clone() });
        }
        let run = tokio::time::timeout(deadline, self.attached(api, self.command(words))).await;
        run.unwrap_or(Err(ExecError::Late { after: deadline }))
    }

    async fn attached(&self, api: &Api, command: Vec<String>) -> Result<Ended, ExecError> {
        let pods: Objects<Pod> = Objects::namespaced(api.client().clone(), &self.namespace);
        let params = AttachParams::default().container(&self.container).stdin(false).stderr(true);
        let mut process = match pods.exec(&self.pod, command, &params).await {
            Ok(process) => process,
            // An answer that is no web socket, with the Status of the API server or without.
            Err(kube::Error::Api(status)) => return Err(self.refused(status.code)),
            Err(kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(code))) => {
                return Err(self.refused(code.as_u16()));
            }
            Err(error) => return Err(ExecError::Failed { why: without_credentials(&error) }),
        };
        ended(&mut process).await
    }

    fn refused(&self, code: u16) -> ExecError {
        match ApiError::from_answer(code, None, b"") {
            ApiError::Forbidden => ExecError::Forbidden { namespace: self.namespace.clone() },
            why => ExecError::Failed { why: why.to_string() },
        }
    }
}

async fn ended(process: &mut AttachedProcess) -> Result<Ended, ExecError> {
    let status = process.take_status();
    let (out, err) = (process.stdout(), process.stderr());
    // Both at once: a stream that nobody reads holds up the other.
    let (out, err) = tokio::join!(text(out), text(err));
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    let Some(status) = status else {
        return Err(ExecError::Failed { why: "the connection ended before the command did".to_owned() });
    };
    let success = status.status.as_deref() == Some("Success");
    if !success && status.reason.as_deref() != Some("NonZeroExitCode") {
        // The runtime could not start it: its last words say why.
        let why = status.message.unwrap_or_else(|| "the command was not run".to_owned());
        let why = why.rsplit(": ").next().unwrap_or_default().trim().to_owned();
        return Err(ExecError::Failed { why: format!("the command was not started: {why}") });
    }
    Ok(Ended { out, err, success })
}

async fn text(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What came before it broke off is shown; the status tells whether the command has ended.
        let _ = stream.take(STREAM_BYTES_MAX).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

/// What the command said, where it did what it was asked.
pub fn said(ended: Result<Ended, ExecError>) -> Result<String, ExecError> {
    let ended = ended?;
    if ended.success {
        return Ok(ended.out);
    }
    let said = if ended.err.is_empty() { ended.out } else { ended.err };
    if said.trim().is_empty() {
        return Err(ExecError::Failed { why: "the command was ended before it said anything".to_owned() });
    }
    Err(ExecError::Refused { said: said.trim_start_matches("per-node: ").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn target(change: impl FnOnce(&mut Value)) -> Option<Target> {
        let mut pod = json!({
            "metadata": {"namespace": "per-node", "name": "per-node-x"},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "sidecar"}, {"name": "per-node", "args": ["serve", "--store=/data", "--http=0.0.0.0:1"]},
            ]},
            "status": {"phase": "Running"},
        });
        change(&mut pod);
        Target::of(&serde_json::from_value(pod).expect("a pod"))
    }

    #[test]
    fn the_command_is_the_plugins_own_binary_with_the_store_that_it_serves() {
        let command = |target: Option<Target>| target.expect("a target").command(&["confirm", "--show"]);
        assert_eq!(command(target(|_| {})), ["/per-node", "confirm", "--show", "--store=/data"]);
        let other = target(|pod| {
            pod["spec"]["containers"] = json!([{"name": "main", "command": ["/bin/plugin"]}]);
        });
        assert_eq!(other.as_ref().map(|other| other.container.as_str()), Some("main"));
        assert_eq!(command(other), ["/bin/plugin", "confirm", "--show"]);
    }

    #[test]
    fn a_pod_without_a_node_and_one_that_ends_are_passed_over() {
        assert_eq!(target(|pod| pod["spec"]["nodeName"] = Value::Null), None);
        assert_eq!(target(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T06:00:00Z")), None);
    }

    #[test]
    fn what_a_plugin_refuses_is_its_own_sentence() {
        let ended = |success, err: &str| Ok(Ended { out: "out".into(), err: err.into(), success });
        assert_eq!(said(ended(true, "")), Ok("out".to_owned()));
        let refused = said(ended(false, "per-node: not confirmed: no API server")).expect_err("refused");
        assert_eq!(refused.to_string(), "its plugin refuses: not confirmed: no API server");
    }
}
