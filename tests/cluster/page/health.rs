//! What the kubelet shows of a volume's health (C49), in `status.volumeHealth`, which Kubernetes has since 1.37.

use std::path::PathBuf;

use serde_json::Value;

use crate::api::api;
use crate::case::{Case, run};
use crate::manifest;
use crate::node::Node;
use crate::tool::wait_cause;
use crate::wait::{stays_true, wait_until};

/// The first version whose kubelets ask for health.
const FIRST_MINOR: u32 = 37;
/// More than twice the kubelets' `volumeStatsAggPeriod` here.
const TWO_ROUNDS_S: u64 = 12;

/// The conditions that `kubectl get pod -o json` has for the volume `data`, as status and reason.
fn conditions(case: &Case, pod: &str) -> Vec<(String, String)> {
    let pod: Value = serde_json::from_str(&case.kubectl(&["get", "pod", pod, "-o", "json"])).expect("a pod");
    let volumes = pod["status"]["volumeHealth"].as_array().cloned().unwrap_or_default();
    let data = volumes.iter().filter(|volume| volume["name"] == "data");
    let listed = data.flat_map(|volume| volume["healthConditions"].as_array().cloned().unwrap_or_default());
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    listed.map(|condition| (text(&condition, "status"), text(&condition, "reason"))).collect()
}

fn is_asked_for() -> bool {
    let version = api().get("/version").expect("the version");
    let minor = version["minor"].as_str().unwrap_or_default();
    minor.trim_end_matches('+').parse::<u32>().expect("a number") >= FIRST_MINOR
}

/// A copy that an operator has moved out of the store. It is back in its place when this goes, whatever a case found: a
/// driver leaves alone what is none of its copies, so its pod could not end.
struct MovedAway {
    from: PathBuf,
    to: PathBuf,
}

impl MovedAway {
    fn new(node: &Node, handle: &str) -> MovedAway {
        let away = MovedAway { from: node.copy(handle), to: node.store().with_file_name(handle) };
        std::fs::rename(&away.from, &away.to).expect("moved away");
        away
    }
}

impl Drop for MovedAway {
    fn drop(&mut self) {
        // Empty, and in the way, if it is there.
        let _ = std::fs::remove_dir(&self.from);
        std::fs::rename(&self.to, &self.from).expect("moved back");
    }
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c49_a_pods_status_shows_what_is_wrong_with_its_copy_until_it_is_right_again() {
    run("c49-health", |case| {
        for node in case.cluster.nodes() {
            let pod = format!("on-{}", node.name);
            let handle = case.bound_volume(node.name, "ReadWriteMany");
            case.running_pod(&pod, node, &handle, "echo kept > /data/file");
            wait_until("the file", || node.read(&handle, "file").is_some());
            if !is_asked_for() {
                // An older kubelet runs the pod all the same, and has nowhere to show anything.
                let _away = MovedAway::new(node, &handle);
                stays_true("nothing is shown", TWO_ROUNDS_S, || conditions(case, &pod).is_empty());
                continue;
            }
            let shows = |status: &str, reason: &str| {
                conditions(case, &pod) == [(status.to_owned(), reason.to_owned())]
            };
            let away = MovedAway::new(node, &handle);
            wait_until("the loss to be shown", || shows("DataLoss", "CopyGone"));
            // The pod runs, and why says it all the same.
            let finding = wait_cause(&case.name, &pod, "VolumeHealth");
            assert!(finding["evidence"].to_string().contains("DataLoss: CopyGone: "), "{finding}");
            std::fs::create_dir(node.copy(&handle)).expect("another directory");
            wait_until("the other directory to be shown", || shows("DataLoss", "CopyReplaced"));
            drop(away);
            wait_until("nothing to be wrong any more", || conditions(case, &pod).is_empty());
            assert_eq!(node.read(&handle, "file").as_deref(), Some("kept\n"));
        }
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c49_a_pod_that_waits_for_a_held_copy_is_shown_nothing() {
    run("c49-waiting", |case| {
        let node = &case.cluster.second;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "true");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
        case.wait_event("waiter", "PerNodeVolumeHeld");
        let away = MovedAway::new(node, &handle);
        if is_asked_for() {
            wait_until("the holder's loss to be shown", || !conditions(case, "holder").is_empty());
        }
        stays_true("the waiter is shown nothing", TWO_ROUNDS_S, || conditions(case, "waiter").is_empty());
        drop(away);
    });
}
