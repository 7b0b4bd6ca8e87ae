//! What an operator finds in the log: one line for each decision, the call's number in every line that belongs to it, and
//! nothing while nothing happens.

use std::fs;
use std::time::Duration;

use per_node::proto::csi::NodeGetVolumeStatsRequest;
use serde_json::Value;

use super::api_server::ApiServer;
use super::api_store::Phase;
use super::host::{Host, eventually};

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test]
async fn c45_each_decision_is_one_line_with_volume_pod_code_and_duration() {
    let host = Host::start().await;
    let mut command = host.serve();
    command.env("PER_NODE_LOG_FORMAT", "json");
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    let before = lines(&driver.log()).len();
    let mut node = host.node().await;
    node.node_publish_volume(host.request("example-store", "u1")).await.expect("published");
    node.node_publish_volume(host.request("example-store", "u2")).await.expect_err("held");
    let mut forged = host.request("example\nstore", "u3");
    forged.volume_context.insert("csi.storage.k8s.io/pod.name".to_owned(), "a\n{}".to_owned());
    node.node_publish_volume(forged).await.expect_err("no handle");
    let volume_path = host.request("example-store", "u1").target_path;
    let statistics = |volume_id: &str| NodeGetVolumeStatsRequest {
        volume_id: volume_id.to_owned(),
        volume_path: volume_path.clone(),
        ..Default::default()
    };
    node.node_get_volume_stats(statistics("example-store")).await.expect("statistics");
    node.node_get_volume_stats(statistics("other-store")).await.expect_err("another's");
    host.unpublish("example-store", "u1").await.expect("unpublished");

    let told = lines(&driver.log()).split_off(before);
    let field = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let decisions: Vec<_> = told
        .iter()
        .filter(|line| line.get("code").is_some())
        .map(|line| [field(line, "message"), field(line, "code"), field(line, "volume"), field(line, "pod")])
        .collect();
    assert_eq!(
        decisions,
        [
            ["published", "OK", "\"example-store\"", "\"example/name-u1\""],
            ["not done", "FAILED_PRECONDITION", "\"example-store\"", "\"example/name-u2\""],
            ["not done", "INVALID_ARGUMENT", "\"example\\nstore\"", "\"example/a\\n{}\""],
            ["not done", "NOT_FOUND", "\"other-store\"", ""],
            ["unpublished", "OK", "\"example-store\"", ""],
        ]
    );
    let of_calls: Vec<_> = told.iter().filter(|line| line.get("code").is_some()).collect();
    assert!(of_calls.iter().all(|line| line["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0)), "{told:?}");
    let numbers: Vec<_> =
        of_calls.iter().map(|line| line["span"]["id"].as_u64().expect("a number")).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test]
async fn c45_nothing_is_logged_while_nothing_happens() {
    let api = ApiServer::start().await;
    api.store(|store| {
        store.set_namespace("example", Some(Phase::Active));
        store.create_volume("pv", "per-node.liken.sh", "example-store");
    });
    let host = Host::start().await;
    fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
    let mut command = host.serve();
    command
        .env_remove("PER_NODE_STANDALONE")
        .env("PER_NODE_KUBECONFIG", host.path("kubeconfig"))
        // Ten minutes by default: an hour has six of these.
        .env("PER_NODE_SWEEP_EVERY", "1s");
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    eventually(|| driver.log().contains("this store is now that cluster's")).await;
    let mut node = host.node().await;
    node.node_publish_volume(host.request("example-store", "u1")).await.expect("published");
    let before = driver.log();
    let ticks = api.requests();
    // Another six ticks, each of which asks the API server.
    while api.requests() < ticks + 6 {
        // As an API server ends every watch after a while.
        api.end_watches(false);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(driver.log(), before);
}

#[tokio::test]
async fn c45_a_selection_that_is_none_is_said_and_the_default_holds() {
    let host = Host::start().await;
    for (asked, is_understood) in [("per_node=loudly", false), ("warn,per_node=info", true)] {
        let mut command = host.serve();
        command.env("RUST_LOG", asked);
        let driver = host.spawn(command, "driver.log");
        eventually(|| driver.log().contains(" INFO per_node::service: serving")).await;
        assert_eq!(driver.log().contains("RUST_LOG is not understood"), !is_understood, "{asked}");
    }
}
