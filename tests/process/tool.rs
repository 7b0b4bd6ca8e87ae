//! The operator's tool and the running binary, with a fake API server's proxy of pods between them.

use std::fs;
use std::process::Output;

use serde_json::json;
use tokio::process::Command;

use super::host::{Host, free_port};
use crate::objects_api::{Backend, ObjectsApi};

const NAMESPACE: &str = "/api/v1/namespaces/per-node/pods";

/// The tool as a person with a kubeconfig runs it.
async fn status(host: &Host, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-per_node"));
    command.arg("status").args(arguments).env_clear().env("KUBECONFIG", host.path("kubeconfig"));
    command.kill_on_drop(true).output().await.expect("it runs")
}

fn pod(uid: &str, port: u16) -> serde_json::Value {
    json!({
        "metadata": { "namespace": "per-node", "name": "per-node-x", "uid": uid,
                      "labels": { "app.kubernetes.io/name": "per-node" } },
        "spec": { "nodeName": "node-1", "containers": [{ "ports": [{ "name": "http", "containerPort": port }] }] },
        "status": { "phase": "Running" },
    })
}

#[tokio::test]
async fn c45_the_pods_uid_passes_the_api_servers_proxy_and_opens_what_the_node_has() {
    let host = Host::start().await;
    let address = free_port();
    let mut command = host.serve();
    command
        .env("PER_NODE_HTTP", address.to_string())
        .env("PER_NODE_HTTP_COPIES", "true")
        .env("POD_UID", "11111111-2222-4333-8444-555555555555");
    let _driver = host.spawn(command, "driver.log");
    host.is_served().await;
    host.publish("build-cache", "u1").await.expect("published");
    host.publish("build-cache", "u2").await.expect_err("held");
    let api = ObjectsApi::start().await;
    fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
    let volume = json!({
        "metadata": { "name": "build-cache" }, "status": { "phase": "Available" },
        "spec": { "csi": { "driver": "per-node.liken.sh", "volumeHandle": "build-cache" } },
    });
    api.put("/api/v1/persistentvolumes/build-cache", volume);
    api.put(&format!("{NAMESPACE}/per-node-x"), pod("11111111-2222-4333-8444-555555555555", address.port()));
    api.serve_pod("per-node", "per-node-x", Backend::Address(address));
    let output = status(&host, &["-o", "json"]).await;
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &told["missing"]), (Some(0), &json!([])), "{told}");
    let copy = &told["volumes"][0]["copies"][0];
    assert_eq!((&copy["node"], &copy["holders"][0]["pod"]), (&json!("node-1"), &json!("name-u1")), "{told}");
    assert_eq!(told["volumes"][0]["refusals"][0]["pod"], "name-u2", "{told}");
    // Whoever knows another UID, of a pod that is no more, is told nothing.
    api.put(&format!("{NAMESPACE}/per-node-x"), pod("11111111-2222-4333-8444-555555555556", address.port()));
    let output = status(&host, &[]).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("node-1: its plugin does not tell: send the UID"), "{told}");
    assert_eq!(output.status.code(), Some(3));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("build-cache") && !table.contains("node-1"), "{table}");
}
