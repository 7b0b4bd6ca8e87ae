//! Kubelet and containerd restarted, a node drained, pods that end while the kubelet is away (C11, C17, C40, C43).

use super::on_a_node;
use crate::cluster::cluster;
use crate::plugin;
use crate::wait::{KUBECTL_PATIENCE, wait_until};
use crate::writer::Writer;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c11_a_kubelet_restart_leaves_mounts_alone_also_with_edited_options() {
    on_a_node("c11-kubelet", |case, node| {
        let writer = Writer::start(case, node);
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &handle, "true");
        let before = node.mounts_of(&handle);
        case.kubectl(&[
            "patch",
            "pv",
            &handle,
            "--type=merge",
            "--patch",
            r#"{"spec":{"mountOptions":["noexec","usrquota"]}}"#,
        ]);

        node.stop("kubelet", "TERM");
        node.start("kubelet");
        wait_until("the kubelet", || cluster().kubectl(&["get", "nodes", node.name]).contains(" Ready"));
        plugin::wait_ready(node);
        // A pod that is new to the restarted kubelet shows that it has reconciled the old ones.
        let other = case.bound_volume("w", "ReadWriteMany");
        case.running_pod("new", node, &other, "true");
        writer.noticed_nothing();
        let after = node.mounts_of(&handle);
        assert_eq!(after.len(), 1, "{after:?}");
        assert_eq!(after[0].options, before[0].options, "the mount stays as it was made");
        // Had the kubelet been told a final error it would have forgotten the mount, and this pod would not end.
        case.delete("pod", "pod");
        wait_until("its mount to go", || node.mounts_of(&handle).is_empty());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c17_pods_that_end_while_the_kubelet_is_away_are_cleaned_up_at_its_return() {
    on_a_node("c17-kubelet", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        let uid = case.running_pod("orphan", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        node.stop("kubelet", "KILL");
        case.kubectl(&["delete", "pod", "orphan", "--force", "--grace-period=0"]);
        node.start("kubelet");

        let directory = node.kubelet_dir().join("pods").join(&uid);
        wait_until("the mount to go", || node.mounts_of(&handle).is_empty());
        wait_until("the orphaned directory to go", || !directory.exists());
        assert_eq!(node.read(&handle, "file").as_deref(), Some("kept\n"));
        plugin::wait_ready(node);
        case.running_pod("next", node, &handle, "true");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c40_a_containerd_restart_is_noticed_by_nobody() {
    on_a_node("c40-containerd", |case, node| {
        let writer = Writer::start(case, node);
        node.stop("containerd", "TERM");
        node.start("containerd");
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("new", node, &handle, "true");
        writer.noticed_nothing();
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c17_a_drained_node_holds_nothing() {
    on_a_node("c17-drained", |case, node| {
        let writer = Writer::start(case, node);
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());

        cluster().kubectl(&["drain", node.name, "--ignore-daemonsets", "--force", KUBECTL_PATIENCE]);
        wait_until("no mount of the pod", || node.mounts_of(&handle).is_empty());
        assert!(node.plugin().is_some(), "the plugin outlives a drain");
        writer.lost_nothing();
        cluster().kubectl(&["uncordon", node.name]);
        case.running_pod("back", node, &handle, "cat /data/file");
        wait_until("its log", || case.kubectl(&["logs", "back"]) == "kept\n");
    });
}
