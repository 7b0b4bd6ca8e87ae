//! What `kubectl describe pod` says of a refusal (C30, C31): one line that counts.

use crate::case::{Case, run};
use crate::manifest;
use crate::wait::{wait_for, wait_until};

/// The lines of `kubectl describe pod` that carry a reason.
fn lines(case: &Case, pod: &str, reason: &str) -> Vec<String> {
    let described = case.kubectl(&["describe", "pod", pod]);
    described.lines().filter(|line| line.contains(reason)).map(str::to_owned).collect()
}

/// The counts of the driver's events of a reason on a pod, oldest event first.
fn counts(case: &Case, pod: &str, reason: &str) -> Vec<u64> {
    case.events(pod, reason).iter().map(|event| event["count"].as_u64().unwrap_or(1)).collect()
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c31_a_waiting_pod_carries_one_line_that_counts_until_a_pause_ends_it() {
    run("c31-one-line", |case| {
        let node = &case.cluster.second;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "true");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));

        // The kubelet tries again after 0.5, 1, 2, 4, 8 and 16 s: all within the overlay's window of 20 s.
        wait_until("five refusals", || counts(case, "waiter", "PerNodeVolumeHeld") >= vec![5]);
        let shown = lines(case, "waiter", "PerNodeVolumeHeld");
        assert_eq!(shown.len(), 1, "{shown:#?}");
        assert!(shown[0].contains("(x") && shown[0].contains(" over "), "{shown:#?}");
        assert!(shown[0].trim_start().starts_with("Warning"), "{shown:#?}");

        // Its next pause but one is 32 s, longer than the window: a new line, and the old one keeps its count.
        let both = wait_for("a new event", || {
            let counts = counts(case, "waiter", "PerNodeVolumeHeld");
            (counts.len() == 2).then_some(counts)
        });
        assert!(both[0] >= 5, "{both:?}");
        assert_eq!(lines(case, "waiter", "PerNodeVolumeHeld").len(), 2);
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c30_an_event_is_the_pods_own() {
    run("c30-the-pods", |case| {
        let node = &case.cluster.first;
        let handle = case.handle("BAD");
        case.apply(&manifest::volume(
            &format!("{}-bad", case.name),
            &handle,
            "ReadWriteMany",
            &case.name,
            "claim",
        ));
        case.apply(&manifest::claim("claim", "ReadWriteMany"));
        case.apply(&manifest::pod("pod", Some(node.name), "claim", "true"));
        case.wait_event("pod", "PerNodeVolumeRefused");

        let pod = case.pod("pod").expect("the pod");
        let event = case.events("pod", "PerNodeVolumeRefused").remove(0);
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["involvedObject"]["kind"], "Pod");
        assert_eq!(event["involvedObject"]["uid"], pod["metadata"]["uid"]);
        assert_eq!(event["involvedObject"]["namespace"], case.name.as_str());
        // The next pod of that name is another pod, and describes itself without the old one's line.
        case.delete("pod", "pod");
        let held = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("pod", node, &held, "true");
        assert!(lines(case, "pod", "PerNodeVolumeRefused").is_empty());
    });
}
