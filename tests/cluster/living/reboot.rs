//! A node loses its power: every process and mount is gone, directories stay, `/run` is empty (C11, C12, C15).

use serde_json::Value;

use super::on_a_node;
use crate::manifest;
use crate::node::Node;
use crate::plugin;
use crate::wait::{wait_for, wait_until};

/// Off and on again, until the plugin serves. What the API server says of the node in between is old.
pub fn reboot(node: &Node) {
    let before = plugin::container_id(node);
    node.cut_power();
    node.boot();
    plugin::wait_another(node, before.as_deref());
    plugin::wait_ready(node);
}

/// Two pods want one copy when the node comes up: the one that held it, whose target directory is still there, and one that
/// waited. Whichever is first, the other waits, and both can end.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_after_a_reboot_one_of_two_pods_holds_and_both_can_end() {
    on_a_node("c12-reboot", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut holder = manifest::pod("holder", Some(node.name), &handle, "echo line >> /data/lines");
        holder["spec"]["restartPolicy"] = "Always".into();
        case.apply(&holder);
        case.wait_running("holder");
        let mut waiter = holder.clone();
        waiter["metadata"]["name"] = "waiter".into();
        case.apply(&waiter);
        case.wait_event("waiter", "PerNodeVolumeHeld");
        reboot(node);

        let is_running = |pod: Option<Value>| {
            pod.is_some_and(|pod| pod["status"]["containerStatuses"][0]["ready"] == true)
        };
        let winner = wait_for("one of the two to run", || {
            ["holder", "waiter"].into_iter().find(|name| is_running(case.pod(name)))
        });
        let loser = if winner == "holder" { "waiter" } else { "holder" };
        println!("{winner} came first");
        assert_eq!(node.mounts_of(&handle).len(), 1);
        assert!(!is_running(case.pod(loser)), "two pods on one copy");
        case.wait_event(loser, "PerNodeVolumeHeld");
        case.delete("pod", winner);
        wait_until("the other to run", || is_running(case.pod(loser)));
        case.delete("pod", loser);
    });
}

/// The pod that held is deleted while its node is off, and another is there first when it comes up.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c15_a_hold_whose_mounts_a_reboot_took_is_stale() {
    on_a_node("c15-reboot", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("before", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        node.cut_power();
        case.kubectl(&["delete", "pod", "before", "--force", "--grace-period=0"]);
        case.apply(&manifest::pod("after", Some(node.name), &handle, "cat /data/file"));
        node.boot();
        case.wait_running("after");
        wait_until("its log", || case.kubectl(&["logs", "after"]) == "kept\n");
        plugin::wait_ready(node);
    });
}
