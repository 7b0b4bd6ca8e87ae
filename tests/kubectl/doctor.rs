//! `doctor`: that the facts are gathered from where they are, and what is said; each check has its case beside the code.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::objects_api::{Backend, ObjectsApi};
use crate::rights;
use crate::tool::run;

/// A cluster of two nodes in which all is well.
async fn cluster() -> ObjectsApi {
    let api = ObjectsApi::start().await;
    let manifest = |text: &str| serde_saphyr::from_str::<Value>(text).expect("a manifest");
    api.put(
        "/apis/storage.k8s.io/v1/csidrivers/per-node.liken.sh",
        manifest(include_str!("../../deploy/base/csi-driver.yaml")),
    );
    let mut daemon_set = manifest(include_str!("../../deploy/base/daemon-set.yaml"));
    daemon_set["status"] = json!({"currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberMisscheduled": 0,
                                  "numberReady": 2});
    api.put("/apis/apps/v1/namespaces/per-node/daemonsets/per-node", daemon_set);
    for name in ["n1", "n2"] {
        add_node(&api, name);
    }
    // No plugin is expected on it.
    api.put("/api/v1/nodes/w", json!({"metadata": {"name": "w", "labels": {"kubernetes.io/os": "windows"}}}));
    api
}

fn add_node(api: &ObjectsApi, name: &str) {
    let annotation = json!({"per-node.liken.sh": name}).to_string();
    let labels = json!({"kubernetes.io/os": "linux"});
    api.put(
        &format!("/api/v1/nodes/{name}"),
        json!({
            "metadata": {"name": name, "labels": labels,
                         "annotations": {"csi.volume.kubernetes.io/nodeid": annotation}},
            "status": {"nodeInfo": {
                "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "6.18.0",
                "kubeProxyVersion": "", "kubeletVersion": "v1.37.2", "machineID": "", "operatingSystem": "linux",
                "osImage": "", "systemUUID": "",
            }},
        }),
    );
    api.put(
        &format!("/apis/storage.k8s.io/v1/csinodes/{name}"),
        json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": "per-node.liken.sh", "nodeID": name}]}}),
    );
    let pod = format!("per-node-{name}");
    api.put(
        &format!("/api/v1/namespaces/per-node/pods/{pod}"),
        json!({
            "metadata": {"namespace": "per-node", "name": pod, "uid": pod,
                         "labels": {"app.kubernetes.io/name": "per-node"}},
            "spec": {"nodeName": name, "serviceAccountName": "per-node", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    answers(api, name, |_| {});
}

/// What the plugin of a node says of it.
fn answers(api: &ObjectsApi, node: &str, change: impl FnOnce(&mut Value)) {
    let mut report = json!({
        "apiVersion": "per-node.liken.sh/v1", "kind": "NodeCopies", "driver": "per-node.liken.sh", "node": node,
        "version": "0.1.0", "at": "2026-11-30T06:00:00Z", "sweep": {"synced": true, "live": true},
        "store": {"totalBytes": 100, "availableBytes": 50, "totalInodes": 100, "availableInodes": 50,
                  "measuredAt": "2026-11-30T06:00:00Z"},
    });
    change(&mut report);
    let answer = move |path: &str, _: &axum::http::HeaderMap| {
        // The list of copies is not asked for.
        assert_eq!(path, "/copies?handle=per-node-doctor");
        (200, report.to_string())
    };
    api.serve_pod("per-node", &format!("per-node-{node}"), Backend::Answer(Arc::new(answer)));
}

/// The lines that are not ok, as `verdict check node`; this machine's clock is not the fake cluster's.
fn amiss(out: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(out).expect("JSON");
    assert_eq!((&report["apiVersion"], &report["kind"]), (&"per-node.liken.sh/v1".into(), &"Doctor".into()));
    let lines = report["lines"].as_array().expect("lines").iter();
    lines
        .filter(|line| line["verdict"] != "ok" && line["check"] != "OwnClock")
        .map(|line| ["verdict", "check", "node"].map(|field| line[field].as_str().unwrap_or("-")).join(" "))
        .collect()
}

#[tokio::test]
async fn a_cluster_in_which_all_is_well_has_nothing_amiss() {
    let api = cluster().await;
    let answer = run(&api, &["doctor", "-o", "json"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert_eq!(amiss(&answer.out), [""; 0]);
    let table = run(&api, &["doctor"]).await;
    assert_eq!(table.code, 0);
    assert!(table.out.contains("2 nodes   v1.37.2\n"), "{}", table.out);
    assert!(table.out.ends_with(" ok; 2 nodes\n"), "{}", table.out);
}

#[tokio::test]
async fn each_thing_that_is_broken_is_its_own_line_and_the_exit_code_says_so() {
    let api = cluster().await;
    api.remove("/api/v1/namespaces/per-node/pods/per-node-n2");
    api.ungrant("patch", "events");
    answers(&api, "n1", |report| report["sweep"]["waitingFor"] = json!("revision"));
    let answer = run(&api, &["doctor", "-o", "json"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (4, ""));
    assert_eq!(amiss(&answer.out), ["fault Rights -", "warning Removals n1", "fault Plugin n2"]);
    let table = run(&api, &["doctor"]).await.out;
    let confirm = "then kubectl per-node confirm --node n1\n";
    assert!(table.contains(confirm) && table.find("Plugin") < table.find("Removals"), "{table}");
}

#[tokio::test]
async fn why_there_is_no_pod_is_the_word_of_the_daemon_sets_controller() {
    let api = cluster().await;
    api.remove("/api/v1/namespaces/per-node/pods/per-node-n2");
    let event = |kind: &str, message: &str| {
        json!({
            "metadata": {"namespace": "per-node", "name": kind}, "involvedObject": {"kind": kind, "name": "per-node"},
            "reason": "FailedCreate", "message": message, "lastTimestamp": "2026-11-30T06:00:00Z",
        })
    };
    api.put("/api/v1/namespaces/per-node/events/a", event("DaemonSet", "violates PodSecurity"));
    api.put("/api/v1/namespaces/per-node/events/b", event("Job", "another's"));
    let table = run(&api, &["doctor", "n2"]).await.out;
    assert!(
        table.contains("from somebody: violates PodSecurity\n") && !table.contains("another's"),
        "{table}"
    );
    assert!(table.contains("repair: kubectl label namespace per-node pod-security"), "{table}");
}

#[tokio::test]
async fn one_node_is_looked_at_alone() {
    let api = cluster().await;
    api.remove("/api/v1/namespaces/per-node/pods/per-node-n2");
    let answer = run(&api, &["doctor", "n1", "-o", "json"]).await;
    assert_eq!(answer.code, 0);
    let report: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!(report["nodes"], json!(["n1"]));
    let nobody = run(&api, &["doctor", "n9"]).await;
    assert_eq!((nobody.code, nobody.err.as_str()), (1, "kubectl per-node: node n9 not found\n"));
}

#[tokio::test]
async fn a_plugin_that_hangs_delays_nobody_and_is_a_warning() {
    let api = cluster().await;
    api.serve_pod("per-node", "per-node-n2", Backend::Hangs);
    let answer = run(&api, &["doctor", "--node-deadline=2s", "-o", "json"]).await;
    assert_eq!(answer.code, 0);
    assert_eq!(amiss(&answer.out), ["warning Answer n2"]);
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    rights::check(&cluster().await, "doctor", &["doctor"]).await;
}

#[tokio::test]
async fn where_nothing_may_be_read_nothing_is_shown_and_the_exit_code_says_so() {
    let api = cluster().await;
    let rights = rights::documented("doctor");
    let all: Vec<(&str, &str)> = rights.iter().map(|(verb, on)| (verb.as_str(), on.as_str())).collect();
    api.deny(&all);
    let answer = run(&api, &["doctor"]).await;
    assert_eq!((answer.code, answer.out.as_str()), (1, ""), "{}", answer.err);
    assert!(answer.err.contains("not seen: "), "{}", answer.err);
}
