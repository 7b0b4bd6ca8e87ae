//! `kubectl per-node why` and `doctor` where the driver's installation or a node is broken. Each is mended again, whatever came
//! of the case.

use serde_json::{Value, json};

use crate::case::{Case, broken, run};
use crate::cluster::{cluster, repository};
use crate::manifest;
use crate::node::Node;
use crate::plugin;
use crate::tool::{tool_json, wait_cause};
use crate::wait::wait_until;

/// A pod on a node over a volume of its own; nobody waits for it to run.
fn pod(case: &Case, node: &Node, name: &str) {
    let handle = case.bound_volume(name, "ReadWriteMany");
    case.apply(&manifest::pod(name, Some(node.name), &handle, "true"));
}

/// Waits until a line of `doctor` for that node is a fault.
fn wait_fault(node: &Node, check: &str) {
    wait_until(&format!("doctor to find {check}"), || {
        let lines = tool_json(&["doctor", node.name])["lines"].take();
        let is_it = |line: &Value| line["check"] == check && line["verdict"] == "fault";
        lines.as_array().is_some_and(|lines| lines.iter().any(is_it))
    });
}

fn apply_csi_driver() {
    let file = repository().join("deploy/base/csi-driver.yaml");
    cluster().kubectl(&["apply", "-f", file.to_str().expect("a path of text")]);
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_and_doctor_tell_of_a_csi_driver_object_that_is_missing_or_wrong() {
    run("why-csi-driver", |case| {
        let node = &case.cluster.first;
        broken(
            || {
                cluster().kubectl(&["delete", "csidriver", manifest::DRIVER]);
                pod(case, node, "missing");
            },
            || {
                wait_cause(&case.name, "missing", "CsiDriverMissing");
                wait_fault(node, "CsiDriver");
                let spec = json!({"attachRequired": true, "podInfoOnMount": true, "fsGroupPolicy": "None"});
                let metadata = json!({"name": manifest::DRIVER});
                case.apply(&json!({
                    "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": metadata, "spec": spec,
                }));
                let finding = wait_cause(&case.name, "missing", "CsiDriverWrong");
                assert!(finding["sentence"].to_string().contains("attachRequired"), "{finding}");
            },
            || {
                let _ = cluster().kubectl_with(&["delete", "csidriver", manifest::DRIVER], "");
                apply_csi_driver();
            },
        );
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_and_doctor_tell_of_a_node_without_a_plugin() {
    run("why-no-plugin", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("ending", "ReadWriteMany");
        case.running_pod("ending", node, &handle, "true");
        broken(
            || plugin::take_away(node),
            || {
                pod(case, node, "pod");
                wait_cause(&case.name, "pod", "NoPluginOnNode");
                // Its container has ended well, and nobody is there to unmount its volume.
                case.delete_at_once("pod", "ending");
                wait_until("the missing plugin to keep a pod Terminating", || {
                    let finding = wait_cause(&case.name, "ending", "PodTerminating");
                    finding["evidence"].to_string().contains("no plugin's pod was found")
                });
                wait_until("doctor to say so", || {
                    let lines = tool_json(&["doctor", node.name])["lines"].take();
                    let is_it = |line: &Value| line["check"] == "Plugin" && line["verdict"] != "ok";
                    lines.as_array().is_some_and(|lines| lines.iter().any(is_it))
                });
            },
            || plugin::bring_back(node),
        );
        case.wait_running("pod");
    });
}

/// A plugin that refuses to start: its last line is what a person is told (C44).
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c44_why_and_doctor_quote_a_plugin_that_does_not_start() {
    run("why-not-ready", |case| {
        let node = &case.cluster.first;
        let flags = ["--store-mount-required"];
        broken(
            || plugin::add_flags(node, &flags),
            || {
                pod(case, node, "pod");
                let finding = wait_cause(&case.name, "pod", "PluginNotReady");
                println!("{finding}");
                wait_until("its last line to be quoted", || {
                    let finding = wait_cause(&case.name, "pod", "PluginNotReady");
                    finding["evidence"].to_string().contains("--store-mount-required demands")
                });
                wait_fault(node, "Plugin");
            },
            || {
                plugin::remove_flags(node, flags.len());
                plugin::wait_ready(node);
            },
        );
        case.wait_running("pod");
    });
}

/// A plugin that was told to leave its registration to a sidecar, of which there is none, serves and is known to nobody.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c43_why_and_doctor_tell_of_a_driver_that_the_kubelet_does_not_know() {
    run("why-unregistered", |case| {
        let node = &case.cluster.first;
        let flags = ["--registration-dir="];
        broken(
            || plugin::add_flags(node, &flags),
            || {
                pod(case, node, "pod");
                let finding = wait_cause(&case.name, "pod", "DriverNotRegistered");
                assert_eq!(finding["certainty"], "certain");
                wait_fault(node, "CsiNode");
            },
            || {
                plugin::remove_flags(node, flags.len());
                plugin::wait_ready(node);
            },
        );
        case.wait_running("pod");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_tells_of_a_node_whose_kubelet_is_away() {
    run("why-not-ready-node", |case| {
        let node = &case.cluster.first;
        broken(
            || {
                node.stop("kubelet", "TERM");
                // The scheduler would not put it on a node that is known to be away, so it is put there.
                let handle = case.bound_volume("v", "ReadWriteMany");
                let mut pod = manifest::pod("pod", None, &handle, "true");
                pod["spec"]["nodeName"] = json!(node.name);
                case.apply(&pod);
            },
            || {
                wait_cause(&case.name, "pod", "NodeNotReady");
            },
            || {
                node.start("kubelet");
                plugin::wait_ready(node);
            },
        );
        case.wait_running("pod");
    });
}

/// A right that is taken from the plugin is a line of `doctor`.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c32_doctor_tells_of_a_right_that_the_plugin_lacks() {
    run("doctor-rights", |case| {
        let node = &case.cluster.first;
        let rbac = repository().join("deploy/base/rbac.yaml");
        broken(
            || {
                let patch = r#"[{"op": "replace", "path": "/rules/2/verbs", "value": ["create"]}]"#;
                cluster().kubectl(&["patch", "clusterrole", "per-node", "--type=json", "--patch", patch]);
            },
            || wait_fault(node, "Rights"),
            || {
                cluster().kubectl(&["apply", "-f", rbac.to_str().expect("a path of text")]);
            },
        );
    });
}
