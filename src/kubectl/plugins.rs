//! The plugins' pods, and what each says of its node at `/copies` through the API server's proxy of pods.
//!
//! The proxy passes no credentials on; what opens `/copies` is the UID of the plugin's own pod, which whoever may read the
//! plugins' pods knows. An answer is bounded in size and time, and one that this tool cannot read says so for its node.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use per_node::adapters::kube::api_error::ApiError;
use per_node::adapters::kube::transport::query_escaped;
use per_node::proto::report::{
    API_VERSION, Envelope, KEY_HEADER, NODE_COPIES, NodeReport, REFUSAL, RefusalToTell,
};
use serde::Deserialize;

use crate::api::{Api, Resource, Selector};
use crate::failure::Failure;
use crate::installation::POD_LABELS;

/// The name of their HTTP port there, and its number where a pod has no port of that name.
const PORT_NAME: &str = "http";
const PORT: u16 = 9808;
/// Nodes on which a plugin could run.
const LINUX: &str = "kubernetes.io/os=linux";
/// Nodes that one sentence names.
const NODES_NAMED_MAX: usize = 10;
/// Bytes of one page of a node's answer.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Pages of one node's answer: 500 copies are on one.
const PAGES_MAX: usize = 1000;

/// The pod of one node's plugin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plugin {
    pub node: String,
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    /// `status.phase`.
    pub phase: String,
    pub ready: bool,
    pub port: u16,
}

/// Why a node is missing from an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    #[error("its pod is {phase}")]
    NotRunning { phase: String },
    #[error("you may not get pods/proxy in the namespace {namespace}")]
    Forbidden { namespace: String },
    #[error("no answer within {}", humantime::format_duration(*after))]
    Late { after: Duration },
    #[error("the API server does not reach its plugin ({code})")]
    NotReached { code: u16 },
    #[error("its plugin does not answer: {why}")]
    Unreachable { why: ApiError },
    #[error("its plugin serves no /copies: it runs without --http-copies, or is older than that")]
    NotServed,
    #[error("its plugin does not tell: {why}")]
    NotTold { why: String },
    #[error("its plugin speaks {version}, which this tool cannot read: use a newer one")]
    OtherVersion { version: String },
    #[error(
        "its plugin serves {driver}, not the driver that was asked about: --driver-name and -n go together"
    )]
    OtherDriver { driver: String },
    #[error("its plugin's answer cannot be read")]
    Undecodable,
}

impl Unheard {
    /// Whether the plugin was asked and nothing came back from it. What it or the API server did answer is no silence.
    pub fn is_silence(&self) -> bool {
        match self {
            Unheard::Late { .. } | Unheard::NotReached { .. } | Unheard::Unreachable { .. } => true,
            Unheard::NotRunning { .. }
            | Unheard::Forbidden { .. }
            | Unheard::NotServed
            | Unheard::NotTold { .. }
            | Unheard::OtherVersion { .. }
            | Unheard::OtherDriver { .. }
            | Unheard::Undecodable => false,
        }
    }
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    #[serde(rename = "deletionTimestamp")]
    deleted: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    ports: Vec<Port>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    name: String,
    container_port: u16,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// The plugins' pods that have a node, by node.
pub async fn list(api: &Api, namespace: &str) -> Result<Vec<Plugin>, Failure> {
    let selector = Selector { labels: POD_LABELS.to_owned(), ..Selector::default() };
    let mut plugins = Vec::new();
    let keep = |pod: Pod| plugins.extend(Plugin::of(pod));
    api.for_each(Resource::PODS, Some(namespace), &selector, keep).await?;
    plugins.sort();
    Ok(plugins)
}

/// The Linux nodes without a plugin, as one sentence; `None` where each has one. What lies on their disks nobody tells, and a node
/// that was taken from the plugin may have copies.
///
/// # Errors
/// Where the nodes cannot be listed.
pub async fn nodes_without(
    api: &Api,
    with: impl IntoIterator<Item = &str>,
) -> Result<Option<String>, Failure> {
    let with: BTreeSet<&str> = with.into_iter().collect();
    let linux = Selector { labels: LINUX.to_owned(), ..Selector::default() };
    let mut without = BTreeSet::new();
    let keep = |node: String| {
        if !with.contains(node.as_str()) {
            without.insert(node);
        }
    };
    api.for_each_name(Resource::NODES, None, &linux, keep).await?;
    if without.is_empty() {
        return Ok(None);
    }
    let named: Vec<&str> = without.iter().map(String::as_str).take(NODES_NAMED_MAX).collect();
    let more = match without.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Ok(Some(format!("no plugin runs on {}{more}: copies that are there are not seen", named.join(", "))))
}

impl Plugin {
    /// A pod that ends has nothing to say beside the one that follows it.
    fn of(pod: Pod) -> Option<Self> {
        let Pod { metadata, spec, status } = pod;
        if spec.node_name.is_empty() || metadata.deleted.is_some() {
            return None;
        }
        let mut ports = spec.containers.into_iter().flat_map(|container| container.ports);
        let port = ports.find(|port| port.name == PORT_NAME).map_or(PORT, |port| port.container_port);
        let ready = status.conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
        Some(Self {
            node: spec.node_name,
            namespace: metadata.namespace,
            pod: metadata.name,
            uid: metadata.uid,
            phase: status.phase,
            ready,
            port,
        })
    }

    /// The plugin that an object of the API shows.
    pub fn of_object(pod: &k8s_openapi::api::core::v1::Pod) -> Option<Self> {
        Self::of(serde_json::from_value(serde_json::to_value(pod).ok()?).ok()?)
    }

    /// Everything this node says as a plugin of `driver_name`, or of one handle alone, each page handed to `keep`.
    ///
    /// # Errors
    /// Where the node has not said all. What was kept before is true all the same.
    pub async fn ask(
        &self,
        api: &Api,
        driver_name: &str,
        handle: Option<&str>,
        deadline: Duration,
        keep: impl FnMut(NodeReport),
    ) -> Result<(), Unheard> {
        if self.phase != "Running" {
            return Err(Unheard::NotRunning { phase: self.phase.clone() });
        }
        let asked = tokio::time::timeout(deadline, self.pages(api, driver_name, handle, keep)).await;
        asked.unwrap_or(Err(Unheard::Late { after: deadline }))
    }

    async fn pages(
        &self,
        api: &Api,
        driver_name: &str,
        handle: Option<&str>,
        mut keep: impl FnMut(NodeReport),
    ) -> Result<(), Unheard> {
        let base = format!(
            "{}/{}:{}/proxy/copies",
            Resource::PODS.path(Some(&self.namespace)),
            query_escaped(&self.pod),
            self.port
        );
        let first = handle.map(|handle| format!("handle={}", query_escaped(handle)));
        let page = |after: Option<String>| {
            let asked: Vec<String> = first.iter().cloned().chain(after).collect();
            if asked.is_empty() { base.clone() } else { format!("{base}?{}", asked.join("&")) }
        };
        let mut path = page(None);
        for _ in 0..PAGES_MAX {
            let report = self.page(api, &path).await?;
            if report.driver != driver_name {
                return Err(Unheard::OtherDriver { driver: report.driver });
            }
            let after = report.after.clone();
            keep(report);
            let Some(after) = after else { return Ok(()) };
            path = page(Some(format!("after={}", query_escaped(&after))));
        }
        Err(Unheard::Undecodable)
    }

    async fn page(&self, api: &Api, path: &str) -> Result<NodeReport, Unheard> {
        let key = HeaderValue::from_str(&self.uid).map_err(|_| Unheard::Undecodable)?;
        let asked =
            api.transport().ask(path, (HeaderName::from_static(KEY_HEADER), key), PAGE_BYTES_MAX).await;
        let (code, body) = asked.map_err(|why| Unheard::Unreachable { why })?;
        if code == 200 { read(&body) } else { Err(self.refused(code, &body)) }
    }

    /// Whose "no" it is: the plugin's has a kind of its own, the API server's is a Status.
    fn refused(&self, code: u16, body: &[u8]) -> Unheard {
        // A Status has the same fields.
        let refusal = serde_json::from_slice::<RefusalToTell>(body).ok();
        if let Some(refusal) = refusal.filter(|refusal| refusal.kind == REFUSAL) {
            return Unheard::NotTold { why: refusal.message };
        }
        match ApiError::from_answer(code, None, body) {
            ApiError::Forbidden => Unheard::Forbidden { namespace: self.namespace.clone() },
            // The plugin's own: the API server says with a Status that a pod is not there.
            ApiError::NotFound if serde_json::from_slice::<Envelope>(body).is_err() => Unheard::NotServed,
            ApiError::Server { code } => Unheard::NotReached { code },
            why => Unheard::Unreachable { why },
        }
    }
}

fn read(body: &[u8]) -> Result<NodeReport, Unheard> {
    let envelope: Envelope = serde_json::from_slice(body).map_err(|_| Unheard::Undecodable)?;
    if envelope.api_version != API_VERSION || envelope.kind != NODE_COPIES {
        return Err(Unheard::OtherVersion { version: format!("{} {}", envelope.api_version, envelope.kind) });
    }
    serde_json::from_slice(body).map_err(|_| Unheard::Undecodable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: serde_json::Value) -> Option<Plugin> {
        Plugin::of(serde_json::from_value(json).expect("a pod"))
    }

    fn plugin() -> Plugin {
        pod(serde_json::json!({
            "metadata": { "namespace": "per-node", "name": "per-node-x", "uid": "u-1" },
            "spec": { "nodeName": "n1", "containers": [{ "ports": [{ "name": "http", "containerPort": 9 }] }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .expect("a plugin")
    }

    #[test]
    fn the_port_is_the_one_named_http_and_ready_is_a_condition() {
        let plugin = plugin();
        assert_eq!((plugin.node.as_str(), plugin.port, plugin.ready), ("n1", 9, true));
        let bare = pod(serde_json::json!({
            "metadata": { "namespace": "per-node", "name": "x", "uid": "u" }, "spec": { "nodeName": "n" },
        }));
        assert_eq!(bare.map(|bare| (bare.port, bare.ready)), Some((PORT, false)));
    }

    #[test]
    fn a_pod_without_a_node_and_one_that_ends_are_passed_over() {
        let metadata = serde_json::json!({ "namespace": "per-node", "name": "x", "uid": "u" });
        assert_eq!(pod(serde_json::json!({ "metadata": metadata })), None);
        let mut ending = metadata;
        ending["deletionTimestamp"] = "2026-11-30T00:00:00Z".into();
        assert_eq!(pod(serde_json::json!({ "metadata": ending, "spec": { "nodeName": "n" } })), None);
    }

    #[test]
    fn whose_no_it_is_is_told() {
        let plugin = plugin();
        let forbidden =
            br#"{"kind":"Status","apiVersion":"v1","reason":"Forbidden","code":403,"message":"no"}"#;
        assert_eq!(plugin.refused(403, forbidden), Unheard::Forbidden { namespace: "per-node".into() });
        let refusal = br#"{"apiVersion":"per-node.liken.sh/v1","kind":"Refusal","message":"no key"}"#;
        assert_eq!(plugin.refused(403, refusal), Unheard::NotTold { why: "no key".into() });
        assert_eq!(plugin.refused(404, b""), Unheard::NotServed);
        let gone = br#"{"kind":"Status","apiVersion":"v1","details":{"kind":"pods"}}"#;
        assert_eq!(plugin.refused(404, gone), Unheard::Unreachable { why: ApiError::NotFound });
        let down = plugin.refused(503, b"dial tcp: connection refused");
        assert_eq!(down, Unheard::NotReached { code: 503 });
    }

    #[test]
    fn a_newer_schema_is_named_and_rubbish_is_not_read() {
        let newer = br#"{"apiVersion":"per-node.liken.sh/v2","kind":"NodeCopies"}"#;
        let told = read(newer).expect_err("newer").to_string();
        assert!(told.contains("per-node.liken.sh/v2"), "{told}");
        assert_eq!(read(b"<html>"), Err(Unheard::Undecodable));
        assert_eq!(
            read(br#"{"apiVersion":"per-node.liken.sh/v1","kind":"NodeCopies"}"#),
            Err(Unheard::Undecodable)
        );
    }
}
