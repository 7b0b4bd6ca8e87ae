//! The control plane goes away, forgets, and is another one (C22, C41).

use serde_json::{Value, json};

use crate::api::api;
use crate::case::{Case, run};
use crate::cluster::cluster;
use crate::node::Node;
use crate::plugin;
use crate::tool::{tool, tool_json, wait_cause};
use crate::wait::{TWO_TICKS_S, stays_true, wait_for, wait_until};
use crate::writer::Writer;

/// Enough writes after the backup that those of a starting control plane do not make up for them.
const REVISIONS_LOST: usize = 1_000;

/// An object that only takes a revision.
fn filler(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("filler-{number}")}})
}

/// A volume with a copy on each node that no pod holds. Gives back its handle.
fn unheld_copies(case: &Case, suffix: &str) -> String {
    let handle = case.bound_volume(suffix, "ReadWriteMany");
    for node in case.cluster.nodes() {
        let pod = format!("{suffix}-{}", node.number());
        case.running_pod(&pod, node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        case.delete("pod", &pod);
        assert!(node.mounts_of(&handle).is_empty(), "a deleted pod still holds");
    }
    handle
}

/// Whether every node still has the copy, whole.
fn are_kept(case: &Case, handle: &str) -> bool {
    case.cluster.nodes().iter().all(|node| node.read(handle, "file").as_deref() == Some("kept\n"))
}

/// A person says on a node that what is missing is meant to be missing. Gives back what the plugin answered, which may still
/// be that there is nothing to confirm; nothing at all while its container starts.
fn confirm(node: &Node) -> Option<String> {
    let output = tool(&["confirm", "--node", node.name, "--yes"]);
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c41_without_an_api_server_the_plugin_serves_and_removes_nothing() {
    run("c41-no-api", |case| {
        let node = &case.cluster.first;
        let writer = Writer::start(case, node);
        let kept = unheld_copies(case, "kept");
        let before = plugin::container_id(node);
        assert!(plugin::kill(node));
        cluster().call(&["stop_process", "kube-apiserver", "KILL"]);
        // The kubelet starts the killed plugin again without an API server.
        stays_true("nothing is removed", TWO_TICKS_S, || are_kept(case, &kept));
        cluster().call(&["start_apiserver"]);
        cluster().call(&["wait_for", "the API server", "api_ready"]);

        plugin::wait_another(node, before.as_deref());
        plugin::wait_ready(node);
        writer.noticed_nothing();
        case.running_pod("next", node, &kept, "cat /data/file");
        case.delete("pod", "next");
        case.delete_volume(&kept);
        wait_until("the copy to go now", || !node.copy(&kept).exists());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_after_an_older_etcd_is_restored_nothing_goes_until_a_person_confirms() {
    run("c22-restored", |case| {
        let writer = Writer::start(case, &case.cluster.first);
        cluster().call(&["save_etcd"]);
        let revisions: Vec<_> = (0..REVISIONS_LOST).map(filler).collect();
        api().create_all(&format!("/api/v1/namespaces/{}/configmaps", case.name), &revisions);
        // Made after the backup, so the restored cluster has never heard of it. Made last: the plugin learns how far the
        // revisions have come from what its watch shows it.
        let forgotten = unheld_copies(case, "forgotten");
        cluster().call(&["restore_etcd"]);
        // A watch that an API server resumes from a revision it no longer has shows nothing new; a plugin that starts again
        // lists, and sees that the revisions have gone back.
        for node in case.cluster.nodes() {
            plugin::restart(node);
        }
        let volumes = cluster().kubectl(&["get", "pv"]);
        assert!(volumes.contains("blocks-1"), "the older state is not there: {volumes}");
        assert!(!volumes.contains(&forgotten), "the newer state is still there: {volumes}");
        stays_true("nothing is removed", TWO_TICKS_S, || are_kept(case, &forgotten));
        writer.noticed_nothing();
        // Pods do not wait; who asks why one does is told all the same.
        let finding = wait_cause(&case.name, &writer.pod, "WaitsForConfirmation");
        assert_eq!(finding["certainty"], "note");

        for node in case.cluster.nodes() {
            wait_until("the plugin to say that something waits", || {
                tool(&["confirm", "--node", node.name, "--show"]).status.code() == Some(4)
            });
            wait_until("doctor to say so too", || {
                let lines = tool_json(&["doctor", node.name])["lines"].take();
                lines.as_array().is_some_and(|lines| {
                    lines.iter().any(|line| line["check"] == "Removals" && line["verdict"] == "warning")
                })
            });
            let said = wait_for("the plugin to have something to confirm", || {
                confirm(node).filter(|said| !said.contains("nothing waits"))
            });
            println!("{}: {said}", node.name);
            wait_until("the copy to go once confirmed", || !node.copy(&forgotten).exists());
        }
        writer.noticed_nothing();
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_another_cluster_removes_nothing_of_this_ones() {
    run("c22-another", |case| {
        let kept = unheld_copies(case, "kept");
        cluster().call(&["save_etcd"]);
        cluster().call(&["empty_etcd"]);
        for node in case.cluster.nodes() {
            plugin::wait_ready_or_running(node);
        }
        assert!(!cluster().kubectl(&["get", "pv"]).contains(&kept), "it is not another cluster");
        stays_true("nothing is removed", TWO_TICKS_S, || are_kept(case, &kept));
        cluster().call(&["restore_etcd"]);
        for node in case.cluster.nodes() {
            plugin::wait_ready_or_running(node);
        }
        assert!(are_kept(case, &kept));

        // Back in its own cluster the copy goes as ever, once a person has said so where the revisions went back.
        case.delete_volume(&kept);
        for node in case.cluster.nodes() {
            wait_until("the copy to go", || {
                let _ = confirm(node);
                !node.copy(&kept).exists()
            });
        }
    });
}
