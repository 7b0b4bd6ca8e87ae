//! A cluster for the tool: PersistentVolumes, claims and plugins' pods in the fake API server, each plugin with an answer.

use std::sync::Arc;

use per_node::proto::report::{
    API_VERSION, Copy, Holder, KEY_HEADER, NODE_COPIES, NodeReport, Refusal, Sweep,
};
use serde_json::json;

use crate::objects_api::{Backend, ObjectsApi};

/// The time of every node.
pub const NOW: &str = "2026-11-30T03:00:00Z";

/// A PersistentVolume with a claim of its name in the namespace `ci`.
pub fn volume(api: &ObjectsApi, name: &str, handle: &str, phase: &str, claim_phase: Option<&str>) {
    let claim = json!({ "namespace": "ci", "name": name });
    let object = json!({
        "metadata": { "name": name },
        "spec": { "csi": { "driver": "per-node.liken.sh", "volumeHandle": handle }, "claimRef": claim },
        "status": { "phase": phase },
    });
    api.put(&format!("/api/v1/persistentvolumes/{name}"), object);
    if let Some(phase) = claim_phase {
        let object = json!({ "metadata": claim, "status": { "phase": phase } });
        api.put(&format!("/api/v1/namespaces/ci/persistentvolumeclaims/{name}"), object);
    }
}

/// The pod of a node's plugin, and what is behind its port.
pub fn plugin(api: &ObjectsApi, node: &str, phase: &str, backend: Backend) {
    let name = format!("per-node-{node}");
    let object = json!({
        "metadata": { "namespace": "per-node", "name": name, "uid": uid(node),
                      "labels": { "app.kubernetes.io/name": "per-node" } },
        "spec": { "nodeName": node, "containers": [{ "ports": [{ "name": "http", "containerPort": 9808 }] }] },
        "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    api.put(&format!("/api/v1/namespaces/per-node/pods/{name}"), object);
    api.serve_pod("per-node", &name, backend);
}

/// The UID of a node's plugin's pod.
pub fn uid(node: &str) -> String {
    format!("uid-of-{node}")
}

/// A plugin that tells `report` to those alone who send its pod's UID, and with it no credentials.
pub fn tells(report: NodeReport) -> Backend {
    let key = uid(&report.node);
    let answer = serde_json::to_string(&report).expect("JSON");
    Backend::Answer(Arc::new(move |path, headers| {
        assert!(path.starts_with("/copies"), "{path}");
        assert!(!headers.contains_key("authorization"), "the proxy takes credentials off");
        match headers.get(KEY_HEADER).is_some_and(|told| told == key.as_str()) {
            true => (200, answer.clone()),
            false => {
                (403, r#"{"apiVersion":"per-node.liken.sh/v1","kind":"Refusal","message":"no key"}"#.into())
            }
        }
    }))
}

/// A node that has these copies.
pub fn report(node: &str, copies: Vec<Copy>) -> NodeReport {
    NodeReport {
        api_version: API_VERSION.to_owned(),
        kind: NODE_COPIES.to_owned(),
        driver: "per-node.liken.sh".to_owned(),
        node: node.to_owned(),
        version: "0.1.0".to_owned(),
        at: NOW.to_owned(),
        copies_total: copies.len() as u64,
        copies,
        sweep: Some(Sweep { synced: true, live: true, ..Sweep::default() }),
        ..NodeReport::default()
    }
}

/// A copy that was counted half an hour ago.
pub fn copy(handle: &str, bytes: u64, inodes: u64) -> Copy {
    Copy {
        handle: handle.to_owned(),
        bytes: Some(bytes),
        inodes: Some(inodes),
        measured_at: Some("2026-11-30T02:30:00Z".to_owned()),
        ..Copy::default()
    }
}

/// A pod of the namespace `ci`.
pub fn holder(pod: &str, since: Option<&str>) -> Holder {
    Holder {
        namespace: Some("ci".to_owned()),
        pod: Some(pod.to_owned()),
        uid: Some(format!("{pod}-uid")),
        target: format!("/var/lib/kubelet/pods/{pod}-uid/volumes/kubernetes.io~csi/pv/mount"),
        since: since.map(str::to_owned),
        readonly: Some(false),
    }
}

/// A pod of the namespace `ci` that was refused.
pub fn refusal(handle: &str, pod: &str, count: u64, last: &str) -> Refusal {
    Refusal {
        handle: Some(handle.to_owned()),
        namespace: Some("ci".to_owned()),
        pod: Some(pod.to_owned()),
        uid: Some(format!("{pod}-uid")),
        reason: "PerNodeVolumeHeld".to_owned(),
        message: format!("volume {handle} is held on this node by pod ci/runner-0"),
        count,
        first: "2026-11-30T02:10:00Z".to_owned(),
        last: last.to_owned(),
    }
}

/// Two nodes that answer, with a volume on both, one that was released, one that nobody names, and one without a copy.
pub async fn healthy() -> ObjectsApi {
    let api = ObjectsApi::start().await;
    volume(&api, "build-cache", "build-cache", "Bound", Some("Bound"));
    volume(&api, "models", "llm.v2", "Released", None);
    volume(&api, "unused", "unused", "Bound", Some("Bound"));
    let mut other = api.object("/api/v1/persistentvolumes/unused").expect("put");
    other["metadata"]["name"] = "foreign".into();
    other["spec"]["csi"]["driver"] = "other.example".into();
    api.put("/api/v1/persistentvolumes/foreign", other);
    let held = Copy {
        holders: vec![holder("runner-0", Some("2026-11-29T23:48:00Z"))],
        ..copy("build-cache", 1_288_490_189, 20_412)
    };
    let mut first = report("node-1", vec![held, copy("forgotten", 512, 2)]);
    first.refusals = vec![refusal("build-cache", "runner-1", 42, "2026-11-30T02:58:30Z")];
    plugin(&api, "node-1", "Running", tells(first));
    let unmeasured = Copy { bytes: None, inodes: None, measured_at: None, ..copy("llm.v2", 0, 0) };
    let without_record = Copy { holders: vec![holder("runner-2", None)], ..copy("build-cache", 0, 1) };
    plugin(&api, "node-2", "Running", tells(report("node-2", vec![without_record, unmeasured])));
    api
}
