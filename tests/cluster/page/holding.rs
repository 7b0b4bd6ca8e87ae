//! One pod per node per volume (C12), and one pod in the cluster for ReadWriteOncePod (C4).

use crate::case::{Case, run};
use crate::manifest;
use crate::wait::{TWO_TICKS_S, stays_true, wait_until};

/// A script that appends a line a second, so that a disturbed holder would show.
const TICKS: &str = "while true; do echo tick >> /data/ticks; sleep 1; done";

/// Whether a pod waits for its volume.
fn is_creating(case: &Case, pod: &str) -> bool {
    case.pod(pod).is_some_and(|pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    })
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_a_second_pod_waits_by_name_and_runs_by_itself_when_the_holder_goes() {
    run("c12-second-pod", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, TICKS);
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "echo got it > /data/second"));

        let message = case.wait_event("waiter", "PerNodeVolumeHeld");
        assert!(message.contains(&format!("{}/holder", case.name)), "the holder is not named: {message}");
        let described = case.kubectl(&["describe", "pod", "waiter"]);
        assert!(described.contains("PerNodeVolumeHeld"), "{described}");

        // The holder goes on writing meanwhile, and nothing of the waiter is mounted.
        let ticks = || node.read(&handle, "ticks").unwrap_or_default().len();
        let before = ticks();
        // The kubelet writes a pod's status in its own time, after the event.
        wait_until("the waiter to be shown waiting", || is_creating(case, "waiter"));
        stays_true("the waiter waits", 3, || {
            is_creating(case, "waiter") && node.mounts_of(&handle).len() == 1
        });
        wait_until("the holder to write on", || ticks() > before);
        let holder = case.pod("holder").expect("the holder");
        assert_eq!(holder["status"]["containerStatuses"][0]["restartCount"], 0);

        case.delete("pod", "holder");
        case.wait_running("waiter");
        wait_until("the second pod's file", || node.read(&handle, "second").is_some());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_of_many_pods_at_once_one_runs() {
    run("c12-race", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let pods: Vec<_> =
            (0..5).map(|n| manifest::pod(&format!("p{n}"), Some(node.name), &handle, "true")).collect();
        case.apply(&serde_json::json!({"apiVersion": "v1", "kind": "List", "items": pods}));
        let running = || {
            (0..5)
                .filter(|n| case.pod(&format!("p{n}")).is_some_and(|pod| pod["status"]["phase"] == "Running"))
                .count()
        };
        wait_until("one to run", || running() == 1);
        stays_true("one runs, one mount", 5, || running() == 1 && node.mounts_of(&handle).len() == 1);
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_two_volumes_of_one_handle_are_one_copy() {
    run("c12-one-handle", |case| {
        let node = &case.cluster.first;
        let handle = case.handle("shared");
        for name in ["a", "b"] {
            let volume = format!("{handle}-{name}");
            case.apply(&manifest::volume(&volume, &handle, "ReadWriteMany", &case.name, name));
            case.apply(&manifest::claim(name, "ReadWriteMany"));
            case.wait_bound(name);
        }
        case.running_pod("holder", node, "a", "echo a > /data/file");
        case.apply(&manifest::pod("waiter", Some(node.name), "b", "cat /data/file"));
        case.wait_event("waiter", "PerNodeVolumeHeld");

        case.delete("pod", "holder");
        case.wait_running("waiter");
        wait_until("the first pod's file", || case.kubectl(&["logs", "waiter"]) == "a\n");
        case.delete("pod", "waiter");

        // One of the two names is enough for the copy to stay (C21).
        case.delete("pvc", "a");
        case.delete("pv", &format!("{handle}-a"));
        stays_true("the copy is still named", TWO_TICKS_S, || node.read(&handle, "file").is_some());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c04_a_second_pod_of_read_write_once_pod_stays_pending() {
    run("c04-once-pod", |case| {
        let (first, second) = (&case.cluster.first, &case.cluster.second);
        let handle = case.bound_volume("v", "ReadWriteOncePod");
        case.running_pod("writer", first, &handle, "echo one > /data/file");
        // The kubelet asks for the single writer because the driver says that it knows the difference.
        let log = case.cluster.kubectl(&[
            "--namespace=per-node",
            "logs",
            &format!("daemonset/{}", first.daemon_set),
        ]);
        let published =
            log.lines().find(|line| line.contains("published") && line.contains(&handle)).expect("a line");
        assert!(published.contains("SingleNodeSingleWriter"), "{published}");
        case.apply(&manifest::pod("other", Some(second.name), &handle, "ls -A /data | wc -l"));
        wait_until("the scheduler to say why", || {
            case.kubectl(&["describe", "pod", "other"]).contains("ReadWriteOncePod")
        });
        let pod = case.pod("other").expect("the pod");
        assert_eq!(pod["status"]["phase"], "Pending");
        assert!(pod["spec"]["nodeName"].is_null(), "the scheduler placed it");

        case.delete("pod", "writer");
        case.wait_running("other");
        // That node's copy, not the one the last pod left elsewhere.
        wait_until("its log", || case.kubectl(&["logs", "other"]) == "0\n");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_a_forced_end_frees_the_copy() {
    run("c12-forced", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        for turn in 0..3 {
            let name = format!("pod-{turn}");
            case.running_pod(&name, node, &handle, "echo line >> /data/lines");
            wait_until("its line", || {
                node.read(&handle, "lines").unwrap_or_default().lines().count() == turn + 1
            });
            case.kubectl(&["delete", "pod", &name, "--force", "--grace-period=0"]);
        }
    });
}
