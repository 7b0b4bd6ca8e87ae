//! What happens to the plugin's own pod: killed, taken away, brought back. Always from outside, as a node or an operator does it.

use serde_json::{Value, json};

use super::cluster::{cluster, repository};
use super::node::Node;
use super::wait::wait_until;

/// The first argument of the plugin's container after `serve`.
const FIRST_FLAG: &str = "/spec/template/spec/containers/0/args/1";

/// The container the plugin runs in now, as far as the API server has been told.
pub fn container_id(node: &Node) -> Option<String> {
    let plugin = node.plugin()?;
    let status = &plugin["status"]["containerStatuses"][0];
    let running = !status["state"]["running"].is_null();
    running.then(|| {
        status["containerID"].as_str().unwrap_or_default().trim_start_matches("containerd://").to_owned()
    })
}

/// SIGKILL to the plugin's process. The kubelet starts it again by itself; this does not wait for that. Says whether there was
/// one to kill.
pub fn kill(node: &Node) -> bool {
    let Some(id) = container_id(node) else { return false };
    let run = repository().join("tests/cluster/run");
    let kill =
        ["call", "in_node", node.number(), "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", &id];
    std::process::Command::new(run).args(kill).output().expect("run").status.success()
}

/// Kills the plugin and waits until another container of it runs and is registered, ready or not.
pub fn restart(node: &Node) {
    let before = container_id(node);
    wait_until("the plugin to be killed", || kill(node));
    wait_another(node, before.as_deref());
    wait_ready_or_running(node);
}

/// Waits until the API server has been told of another running container of the plugin than `before`.
pub fn wait_another(node: &Node, before: Option<&str>) {
    wait_until("another container of the plugin", || {
        let now = container_id(node);
        now.is_some() && now.as_deref() != before
    });
}

/// Waits until the plugin on a node is ready and known to the kubelet.
pub fn wait_ready(node: &Node) {
    wait_until(&format!("the plugin on {}", node.name), || {
        node.plugin().is_some_and(|pod| pod["status"]["containerStatuses"][0]["ready"] == true)
            && node.driver_is_registered()
    });
}

/// Waits until the plugin on a node runs and is known to the kubelet, whether or not it calls itself ready (it does not while a
/// removal waits for a person).
pub fn wait_ready_or_running(node: &Node) {
    wait_until(&format!("the plugin on {}", node.name), || {
        container_id(node).is_some() && node.driver_is_registered()
    });
}

/// Removes the plugin from a node, by a selector that fits no node, and waits until it has gone.
pub fn take_away(node: &Node) {
    unselect(node);
    wait_until("the plugin to go", || node.plugin().is_none());
}

/// The first half of that: from now on the node is not to have the plugin, which is still there.
pub fn unselect(node: &Node) {
    select(node, "\"away\"");
}

/// Puts it back and waits until it serves.
pub fn bring_back(node: &Node) {
    select(node, "null");
    wait_ready(node);
}

/// Gives the plugin more flags, the first ones after `serve`. Its DaemonSet replaces its pod.
pub fn add_flags(node: &Node, flags: &[&str]) {
    let add = |flag: &&str| json!({"op": "add", "path": FIRST_FLAG, "value": flag});
    patch(node, flags.iter().map(add).collect());
}

/// Takes the first flags away, as many as were added.
pub fn remove_flags(node: &Node, flags: usize) {
    patch(node, vec![json!({"op": "remove", "path": FIRST_FLAG}); flags]);
}

fn patch(node: &Node, operations: Vec<Value>) {
    let operations = Value::from(operations).to_string();
    let daemon_set = format!("daemonset/{}", node.daemon_set);
    cluster().kubectl(&["--namespace=per-node", "patch", &daemon_set, "--type=json", "--patch", &operations]);
}

/// Sets or removes one more label in the DaemonSet's selector for nodes.
fn select(node: &Node, value: &str) {
    let patch = format!(r#"{{"spec":{{"template":{{"spec":{{"nodeSelector":{{"plugin":{value}}}}}}}}}}}"#);
    let daemon_set = format!("daemonset/{}", node.daemon_set);
    cluster().kubectl(&["--namespace=per-node", "patch", &daemon_set, "--type=merge", "--patch", &patch]);
}
