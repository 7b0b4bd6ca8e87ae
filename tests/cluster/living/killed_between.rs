//! The plugin dies between the bind and the answer (C16): the mount is there, and neither the kubelet nor the pod has been told.
//!
//! The instant is not left to chance: strace holds up the thread that attaches, on its way out of move_mount(2), until the
//! plugin is dead. Nothing in the product knows of it.

use std::process::{Child, Command, Stdio};

use super::on_a_node;
use crate::case::Case;
use crate::manifest;
use crate::node::Node;
use crate::plugin;
use crate::wait::wait_until;
use crate::writer::Writer;

/// How long the thread would be held up if nobody killed it: longer than any wait here.
const HELD_UP_US: u64 = 600_000_000;

/// A tracer of the plugin's process. It ends with that process, or when this is dropped.
struct HeldUp(Child);

impl HeldUp {
    /// From now on the plugin's next attached mount is visible, and the call that made it does not return.
    fn after_the_bind(node: &Node) -> Self {
        let process = node.plugin_process().expect("the plugin's process");
        let inject = format!("--inject=move_mount:delay_exit={HELD_UP_US}");
        let strace = Command::new("strace")
            .args(["--follow-forks", "--trace=move_mount", &inject, "--output=/dev/null"])
            .arg(format!("--attach={process}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("strace, which tests/cluster/run installs");
        let held_up = Self(strace);
        wait_until("every thread to be traced", || {
            let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
            threads.filter_map(Result::ok).all(|thread| {
                let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            })
        });
        held_up
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pod whose volume has been mounted by a call that has not been answered.
fn bound_and_not_answered(case: &Case, node: &Node, handle: &str) -> HeldUp {
    let held_up = HeldUp::after_the_bind(node);
    case.apply(&manifest::pod("pod", Some(node.name), handle, "echo line >> /data/lines"));
    wait_until("the mount", || node.mounts_of(handle).len() == 1);
    let answered =
        node.plugin_log().lines().any(|line| line.contains("\"published\"") && line.contains(handle));
    assert!(!answered, "the call was answered: nothing held it up");
    held_up
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c16_killed_between_bind_and_answer_with_its_pod_gone_nothing_is_left() {
    on_a_node("c16-between", |case, node| {
        let writer = Writer::start(case, node);
        let handle = case.bound_volume("v", "ReadWriteMany");
        let held_up = bound_and_not_answered(case, node, &handle);
        let uid = case.pod("pod").expect("the pod")["metadata"]["uid"].as_str().expect("a uid").to_owned();

        // Unwanted first, killed then: the kubelet does not start it again.
        let process = node.plugin_process();
        plugin::unselect(node);
        wait_until("the plugin to be killed", || plugin::kill(node) || node.plugin_process() != process);
        wait_until("the plugin to be away", || node.plugin().is_none() && node.plugin_process().is_none());
        drop(held_up);
        case.kubectl(&["delete", "pod", "pod", "--force", "--grace-period=0"]);
        wait_until("the pod to be gone", || case.pod("pod").is_none());
        assert_eq!(node.mounts_of(&handle).len(), 1, "nobody was there to take it away");

        plugin::bring_back(node);
        wait_until("the mount to go", || node.mounts_of(&handle).is_empty());
        let directory = node.kubelet_dir().join("pods").join(uid);
        let target = directory.join("volumes/kubernetes.io~csi").join(&handle).join("mount");
        wait_until("the target to go", || !target.exists());
        assert!(!node.copy(&handle).exists(), "a new copy that nobody wrote into");
        writer.noticed_nothing();
        // What the kubelet itself wrote beside the target (vol_data.json) it forgets there, and finds when it starts again.
        node.stop("kubelet", "TERM");
        node.start("kubelet");
        wait_until("the pod's directory to go", || !directory.exists());
        plugin::wait_ready(node);
        // The next pod is refused by nothing that was left.
        case.running_pod("next", node, &handle, "echo line >> /data/lines");
        wait_until("its line", || node.read(&handle, "lines").as_deref() == Some("line\n"));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c16_killed_between_bind_and_answer_its_pod_runs_with_one_mount() {
    on_a_node("c16-again", |case, node| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        let held_up = bound_and_not_answered(case, node, &handle);
        assert!(plugin::kill(node));
        wait_until("the kill", || case.pod("pod").is_some_and(|pod| pod["status"]["phase"] == "Pending"));
        drop(held_up);
        case.wait_running("pod");
        plugin::wait_ready(node);
        wait_until("its line", || node.read(&handle, "lines").as_deref() == Some("line\n"));
        assert_eq!(node.mounts_of(&handle).len(), 1, "C11: one mount");
        case.delete("pod", "pod");
        wait_until("the mount to go", || node.mounts_of(&handle).is_empty());
    });
}
