//! `kubectl per-node status` and `per-node ls`: what an operator sees of a volume, and who is told (C45).

use serde_json::{Value, json};

use crate::api::api;
use crate::case::{Case, run};
use crate::manifest;
use crate::tool::{tool, tool_json};
use crate::wait::wait_for;

/// The only volume of an answer.
fn volume(answer: &Value) -> Option<&Value> {
    answer["volumes"].as_array().filter(|volumes| volumes.len() == 1).map(|volumes| &volumes[0])
}

/// What the first node's plugin says of a handle, once it says what is waited for.
fn told(handle: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, || {
        let answer = tool_json(&["status", handle]);
        volume(&answer).cloned().filter(&is_so)
    })
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c45_status_names_the_holder_since_when_and_the_pod_that_was_refused() {
    run("c45-status", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let uid = case.running_pod("holder", node, &handle, "echo some > /data/file");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
        case.wait_event("waiter", "PerNodeVolumeHeld");
        let shown = told(&handle, "the refusal to be told", |volume| {
            volume["refusals"].as_array().is_some_and(|refusals| !refusals.is_empty())
        });
        let object = &shown["persistentVolumes"][0];
        assert_eq!(
            (&object["phase"], &object["claim"]["phase"]),
            (&json!("Bound"), &json!("Bound")),
            "{shown}"
        );
        let copy = &shown["copies"][0];
        assert_eq!(copy["node"], node.name, "{shown}");
        let holder = &copy["holders"][0];
        assert_eq!((&holder["pod"], &holder["uid"]), (&json!("holder"), &json!(uid)), "{shown}");
        assert!(holder["since"].is_string(), "{shown}");
        let refusal = &shown["refusals"][0];
        assert_eq!(
            (&refusal["pod"], &refusal["namespace"]),
            (&json!("waiter"), &json!(case.name)),
            "{shown}"
        );
        // As people see it: the volume's name is that of the handle here.
        let output = tool(&["status", &handle]);
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let row = table.lines().find(|line| line.contains(node.name)).expect("a row");
        assert!(row.contains(&format!("{}/holder", case.name)) && row.contains("waiter x"), "{table}");
        listed_on_the_node(case, &handle, &uid);
    });
}

/// The same without the API server's objects, by the binary in the plugin's pod.
fn listed_on_the_node(case: &Case, handle: &str, uid: &str) {
    let node = &case.cluster.first;
    let daemon_set = format!("daemonset/{}", node.daemon_set);
    let command =
        ["--namespace=per-node", "exec", &daemon_set, "--", "/per-node", "ls", handle, "-o", "json"];
    let listed: Value = serde_json::from_str(&case.cluster.kubectl(&command)).expect("JSON");
    assert_eq!(
        (&listed["node"], &listed["driver"]),
        (&json!(node.name), &json!(manifest::DRIVER)),
        "{listed}"
    );
    let holder = &listed["copies"][0]["holders"][0];
    assert_eq!((&holder["pod"], &holder["uid"]), (&json!("holder"), &json!(uid)), "{listed}");
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c45_who_does_not_know_the_pods_uid_is_told_nothing() {
    run("c45-key", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "true");
        told(&handle, "the copy to be told", |volume| volume["copies"][0]["holders"][0]["pod"] == "holder");
        // The API server's proxy brings even the administrator no further without the key.
        let plugin = node.plugin().expect("the plugin");
        let name = plugin["metadata"]["name"].as_str().expect("a name");
        let port = plugin["spec"]["containers"][0]["ports"][0]["containerPort"].as_u64().expect("a port");
        let raw = format!("/api/v1/namespaces/per-node/pods/{name}:{port}/proxy/copies");
        let output = case.cluster.kubectl_with(&["get", "--raw", &raw], "");
        let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !told.contains(&handle), "{told}");
        assert!(api().text(&raw).is_none(), "a page without a key");
    });
}
