//! The examples in deploy/examples, applied as they are. (That of one volume for many nodes is what the quick start applies:
//! `guides.rs`.)

use serde_json::Value;

use crate::api::api;
use crate::cluster::{cluster, repository};
use crate::room::Room;
use crate::wait::{KUBECTL_PATIENCE, wait_until};

/// Applies an example, runs `body`, deletes it again and waits until its copies are gone from both nodes.
fn with_example(file: &str, handle: &str, body: impl FnOnce()) {
    let _room = Room::of(file);
    let path = repository().join("deploy/examples").join(file);
    let path = path.to_str().expect("a path of text");
    cluster().kubectl(&["apply", "-f", path]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    if outcome.is_err() {
        println!("{}", cluster().kubectl(&["get", "pods,pv,pvc,events", "--all-namespaces"]));
    }
    cluster().kubectl(&["delete", "-f", path, KUBECTL_PATIENCE]);
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    for node in cluster().nodes() {
        wait_until("the example's copy to go", || !node.copy(handle).exists());
    }
}

/// The running pods of a namespace, by node.
fn running(namespace: &str) -> Vec<Value> {
    let mut pods = api().items(&format!("/api/v1/namespaces/{namespace}/pods"));
    pods.retain(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null());
    pods.sort_by_key(|pod| pod["spec"]["nodeName"].to_string());
    pods
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c01_a_daemon_set_has_one_pod_and_one_copy_on_each_node() {
    with_example("daemon-set.yaml", "weather-readings", || {
        let log = |node: usize| cluster().nodes()[node].read("weather-readings", "log").unwrap_or_default();
        wait_until("a pod on each node", || running("weather").len() == 2);
        wait_until("both logs", || log(0) == "read on node-1\n" && log(1) == "read on node-2\n");

        // A roll replaces pod by pod: each finds what the one before it left on its node.
        cluster().kubectl(&["--namespace=weather", "rollout", "restart", "daemonset/sensor"]);
        cluster().kubectl(&[
            "--namespace=weather",
            "rollout",
            "status",
            "daemonset/sensor",
            KUBECTL_PATIENCE,
        ]);
        wait_until("both logs to grow", || {
            log(0) == "read on node-1\nread on node-1\n" && log(1) == "read on node-2\nread on node-2\n"
        });
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c04_a_deployment_that_recreates_rolls_over_a_volume_for_one_pod() {
    with_example("single-writer.yaml", "bank-ledger", || {
        let uid = || running("bank").first().map(|pod| pod["metadata"]["uid"].to_string());
        wait_until("the pod to run", || uid().is_some());
        let before = uid();
        cluster().kubectl(&["--namespace=bank", "rollout", "restart", "deployment/teller"]);
        cluster().kubectl(&["--namespace=bank", "rollout", "status", "deployment/teller", KUBECTL_PATIENCE]);
        wait_until("another pod", || running("bank").len() == 1 && uid() != before);
        // Each of the two pods left its line on the node it ran on.
        wait_until("both lines", || {
            let lines = cluster()
                .nodes()
                .map(|node| node.read("bank-ledger", "log").unwrap_or_default().lines().count());
            lines.iter().sum::<usize>() == 2
        });
    });
}
