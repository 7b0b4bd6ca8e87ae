//! The plugin is away while things change, and comes back (C21, C22, C40).

use super::on_a_node;
use crate::manifest;
use crate::plugin;
use crate::wait::{TWO_TICKS_S, stays_true, wait_until};
use crate::writer::Writer;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c21_a_volume_deleted_while_the_plugin_was_away_goes_after_its_start() {
    on_a_node("c21-away", |case, node| {
        let writer = Writer::start(case, node);
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &handle, "echo x > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        case.delete("pod", "pod");

        plugin::take_away(node);
        case.delete_volume(&handle);
        assert!(node.read(&handle, "file").is_some());
        plugin::bring_back(node);
        wait_until("the copy to go", || !node.copy(&handle).exists());
        writer.noticed_nothing();
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_a_volume_made_again_before_the_sweep_keeps_its_copy() {
    on_a_node("c22-made-again", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        case.delete("pod", "pod");

        plugin::take_away(node);
        case.delete_volume(&handle);
        // Another object, another claim, the same handle.
        case.apply(&manifest::volume(
            &format!("{handle}-again"),
            &handle,
            "ReadWriteMany",
            &case.name,
            "again",
        ));
        case.apply(&manifest::claim("again", "ReadWriteMany"));
        case.wait_bound("again");
        plugin::bring_back(node);
        stays_true("the copy stays", TWO_TICKS_S, || node.read(&handle, "file").as_deref() == Some("kept\n"));
        case.running_pod("next", node, "again", "cat /data/file");
        wait_until("the next pod's log", || case.kubectl(&["logs", "next"]) == "kept\n");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c17_a_pod_deleted_while_the_plugin_was_away_ends_after_its_start() {
    on_a_node("c17-away", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("gentle", node, &handle, "true");
        let other = case.bound_volume("w", "ReadWriteMany");
        case.running_pod("forced", node, &other, "true");

        plugin::take_away(node);
        case.delete_at_once("pod", "gentle");
        case.kubectl(&["delete", "pod", "forced", "--force", "--grace-period=0"]);
        plugin::bring_back(node);
        for handle in [&handle, &other] {
            wait_until("its mount to go", || node.mounts_of(handle).is_empty());
        }
        wait_until("the pod to end", || case.pod("gentle").is_none());
    });
}
