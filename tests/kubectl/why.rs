//! `why`: that the facts are gathered from where they are, and what is said; each cause has its case beside the code.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::objects_api::{Backend, ObjectsApi};
use crate::rights;
use crate::tool::run;

const POD: &str = "/api/v1/namespaces/ci/pods/build-1";

fn pod(name: &str, uid: &str, claims: &[&str]) -> Value {
    let volumes: Vec<Value> = claims
        .iter()
        .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    json!({
        "metadata": {
            "namespace": "ci", "name": name, "uid": uid,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "build-5d4f", "uid": "rs",
                                 "controller": true}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}], "volumes": volumes},
        "status": {"phase": "Pending"},
    })
}

/// A cluster in which the pod `ci/build-1` waits for nothing that can be seen.
async fn cluster() -> ObjectsApi {
    let api = ObjectsApi::start().await;
    api.put(POD, pod("build-1", "pod-uid", &["cache"]));
    api.put(
        "/api/v1/namespaces/ci/persistentvolumeclaims/cache",
        json!({
            "metadata": {"namespace": "ci", "name": "cache", "uid": "claim-uid"},
            "spec": {"accessModes": ["ReadWriteMany"], "volumeName": "cache", "storageClassName": "per-node"},
            "status": {"phase": "Bound"},
        }),
    );
    api.put(
        "/api/v1/persistentvolumes/cache",
        json!({
            "metadata": {"name": "cache", "uid": "pv"},
            "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "per-node",
                "claimRef": {"namespace": "ci", "name": "cache", "uid": "claim-uid"},
                "csi": {"driver": "per-node.liken.sh", "volumeHandle": "cache"},
            },
            "status": {"phase": "Bound"},
        }),
    );
    api.put(
        "/apis/apps/v1/namespaces/ci/deployments/build",
        json!({"metadata": {"namespace": "ci", "name": "build"}, "spec": {"selector": {}, "template": {}}}),
    );
    let manifest = include_str!("../../deploy/base/csi-driver.yaml");
    let csi_driver: Value = serde_saphyr::from_str(manifest).expect("the manifest");
    api.put("/apis/storage.k8s.io/v1/csidrivers/per-node.liken.sh", csi_driver);
    api.put("/api/v1/nodes/n1", json!({"metadata": {"name": "n1"}}));
    api.put(
        "/apis/storage.k8s.io/v1/csinodes/n1",
        json!({"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "per-node.liken.sh", "nodeID": "n1"}]}}),
    );
    api.put(
        "/api/v1/namespaces/per-node/pods/per-node-x",
        json!({
            "metadata": {"namespace": "per-node", "name": "per-node-x", "uid": "plugin",
                         "labels": {"app.kubernetes.io/name": "per-node"}},
            "spec": {"nodeName": "n1", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    answers(&api, json!([]));
    api
}

/// The plugin's answer about its copies; only whoever knows its pod's UID gets one.
fn answers(api: &ObjectsApi, copies: Value) {
    let report = json!({
        "apiVersion": "per-node.liken.sh/v1", "kind": "NodeCopies", "driver": "per-node.liken.sh", "node": "n1",
        "version": "0.1.0", "at": "2026-11-30T06:00:00Z", "copies": copies,
    });
    let answer = move |path: &str, headers: &axum::http::HeaderMap| {
        assert_eq!(path, "/copies?handle=cache");
        let key = headers.get("x-per-node-pod-uid").and_then(|key| key.to_str().ok());
        if key == Some("plugin") { (200, report.to_string()) } else { (403, String::new()) }
    };
    api.serve_pod("per-node", "per-node-x", Backend::Answer(Arc::new(answer)));
}

fn event(uid: &str, message: &str) -> Value {
    json!({
        "metadata": {"namespace": "ci", "name": uid}, "involvedObject": {"uid": uid}, "type": "Warning",
        "reason": "PerNodeMountFailed", "message": message, "count": 1, "lastTimestamp": "2020-01-01T00:00:00Z",
        "source": {"component": "per-node.liken.sh"},
    })
}

#[tokio::test]
async fn nothing_wrong_that_i_can_see_is_said_as_that() {
    let answer = run(&cluster().await, &["why", "build-1", "-n", "ci"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(
        answer.out,
        "pod ci/build-1: Pending, on the node n1: it does not run.\nNothing wrong that I can see.\n"
    );
}

#[tokio::test]
async fn c12_the_holder_is_named_with_its_evidence_and_the_one_thing_to_do() {
    let api = cluster().await;
    api.put("/api/v1/namespaces/ci/pods/other", pod("other", "other-uid", &[]));
    answers(
        &api,
        json!([{"handle": "cache", "holders": [{"namespace": "ci", "pod": "other", "uid": "other-uid", "target": "/t"}]}]),
    );
    api.put("/api/v1/namespaces/ci/events/a", event("other-uid", "somebody else's"));
    let answer = run(&api, &["why", "pod/build-1", "--namespace=ci"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (4, ""));
    assert!(
        answer.out.contains("1. ")
            && answer.out.contains("ci/other holds the volume cache on the node n1. (certain)"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("\n   do: ") && !answer.out.contains("somebody else's"), "{}", answer.out);
}

#[tokio::test]
async fn a_program_gets_the_causes_by_their_words() {
    let api = cluster().await;
    api.put("/api/v1/namespaces/ci/events/a", event("pod-uid", "no space\u{1b}[2J left"));
    api.remove("/apis/storage.k8s.io/v1/csidrivers/per-node.liken.sh");
    for format in ["json", "yaml"] {
        let answer = run(&api, &["why", "build-1", "-n", "ci", "-o", format]).await;
        assert_eq!((answer.code, answer.err.as_str()), (4, ""));
        // JSON is YAML.
        let report: Value = serde_saphyr::from_str(&answer.out).expect("an object");
        assert_eq!((&report["apiVersion"], &report["kind"]), (&"per-node.liken.sh/v1".into(), &"Why".into()));
        assert_eq!(report["pod"]["volumes"], json!(["cache"]));
        let causes: Vec<_> =
            report["findings"].as_array().expect("findings").iter().map(|one| one["cause"].clone()).collect();
        assert_eq!(causes, ["CsiDriverMissing", "MountFailed"]);
        assert_eq!(report["findings"][0]["certainty"], "certain");
    }
    // A person's terminal is moved by nothing that stands in the cluster.
    let text = run(&api, &["why", "build-1", "-n", "ci"]).await.out;
    assert!(text.contains("no space\u{fffd}[2J left"), "{text}");
}

#[tokio::test]
async fn c20_a_claim_that_waits_for_a_volume_of_an_earlier_claim_is_sent_to_release() {
    let api = cluster().await;
    let claim = "/api/v1/namespaces/ci/persistentvolumeclaims/cache";
    let mut object = api.object(claim).expect("the claim");
    object["status"]["phase"] = json!("Pending");
    object["spec"]["volumeName"] = Value::Null;
    object["metadata"]["uid"] = json!("another");
    api.put(claim, object);
    let answer = run(&api, &["why", "build-1", "-n", "ci"]).await;
    assert_eq!(answer.code, 4);
    assert!(answer.out.contains("do: kubectl per-node release cache\n"), "{}", answer.out);
}

#[tokio::test]
async fn c49_what_is_wrong_with_the_copy_of_a_pod_that_runs_is_told() {
    let api = cluster().await;
    let mut running = pod("build-1", "pod-uid", &["cache"]);
    let conditions = json!([{"status": "DataLoss", "reason": "CopyGone", "message": "it was removed"}]);
    running["status"] = json!({
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "volumeHealth": [{"name": "cache", "healthConditions": conditions}],
    });
    api.put(POD, running.clone());
    let answer = run(&api, &["why", "build-1", "-n", "ci"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (4, ""));
    let told = "pod ci/build-1: Running, on the node n1: it runs.\n\n1. The volume cache is not well: CopyGone. (certain)\n";
    assert!(answer.out.starts_with(told), "{}", answer.out);
    assert!(answer.out.contains("DataLoss: CopyGone: it was removed\n"), "{}", answer.out);
    running["status"]["volumeHealth"] = Value::Null;
    api.put(POD, running);
    assert_eq!(run(&api, &["why", "build-1", "-n", "ci"]).await.code, 0);
}

#[tokio::test]
async fn a_pod_that_was_deleted_is_never_well() {
    let api = cluster().await;
    let mut deleted = pod("build-1", "pod-uid", &["cache"]);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-30T06:00:00Z");
    deleted["status"]["phase"] = json!("Succeeded");
    api.put(POD, deleted);
    let answer = run(&api, &["why", "build-1", "-n", "ci"]).await;
    assert_eq!(answer.code, 4);
    assert!(
        answer.out.starts_with("pod ci/build-1: Succeeded, on the node n1: it is being deleted.\n\n1. "),
        "{}",
        answer.out
    );
}

#[tokio::test]
async fn a_pod_that_is_not_there_is_said() {
    let answer = run(&cluster().await, &["why", "nobody", "-n", "ci"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (1, "kubectl per-node: pod ci/nobody not found\n"));
}

#[tokio::test]
async fn a_plugin_that_does_not_answer_is_said_and_the_rest_goes_on() {
    let api = cluster().await;
    api.serve_pod("per-node", "per-node-x", Backend::Hangs);
    let answer = run(&api, &["why", "build-1", "-n", "ci", "--node-deadline=50ms"]).await;
    assert_eq!(answer.code, 4);
    assert!(answer.out.contains("1. The plugin on the node n1 does not answer. (likely)"), "{}", answer.out);
    assert!(
        answer.err.contains("not seen: the node n1 says nothing: no answer within 50ms"),
        "{}",
        answer.err
    );
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    let api = cluster().await;
    // A second claim, which waits: only for such a one the volumes are listed.
    api.put(POD, pod("build-1", "pod-uid", &["cache", "waits"]));
    api.put(
        "/api/v1/namespaces/ci/persistentvolumeclaims/waits",
        json!({
            "metadata": {"namespace": "ci", "name": "waits", "uid": "waits"},
            "spec": {"storageClassName": "other"}, "status": {"phase": "Pending"},
        }),
    );
    rights::check(&api, "why", &["why", "build-1", "-n", "ci"]).await;
}
