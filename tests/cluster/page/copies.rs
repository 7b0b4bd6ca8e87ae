//! One volume, one directory on each node (C1, C2).

use crate::case::run;
use crate::manifest;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c02_two_objects_make_a_bound_volume() {
    run("c02-bound", |case| {
        let handle = case.bound_volume("v", "ReadWriteMany");

        let volumes = case.kubectl(&["get", "pv", &handle, "--no-headers"]);
        assert!(volumes.contains("Bound") && volumes.contains("Retain"), "{volumes}");
        assert!(volumes.contains(&format!("{}/{handle}", case.name)), "{volumes}");
        // Nothing is made on a node before a pod comes to it.
        assert!(case.cluster.nodes().iter().all(|node| !node.copy(&handle).exists()));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c01_a_pod_that_comes_back_finds_its_copy_and_the_other_node_has_its_own() {
    run("c01-comes-back", |case| {
        let (first, second) = (&case.cluster.first, &case.cluster.second);
        let handle = case.bound_volume("v", "ReadWriteMany");

        case.running_pod("writer", first, &handle, "echo written here > /data/file");
        crate::wait::wait_until("the file", || first.read(&handle, "file").is_some());
        case.delete("pod", "writer");
        assert_eq!(
            first.read(&handle, "file").as_deref(),
            Some("written here\n"),
            "C20: a pod's end removes nothing"
        );

        case.running_pod("again", first, &handle, "cat /data/file");
        crate::wait::wait_until("the log", || case.kubectl(&["logs", "again"]) == "written here\n");

        // A pod elsewhere runs at the same time and finds nothing but its own, empty, copy.
        case.running_pod(
            "elsewhere",
            second,
            &handle,
            "ls -A /data > /tmp/list; wc -c < /tmp/list; echo other > /data/file",
        );
        crate::wait::wait_until("the log", || case.kubectl(&["logs", "elsewhere"]) == "0\n");
        crate::wait::wait_until("the other file", || {
            second.read(&handle, "file").as_deref() == Some("other\n")
        });
        assert_eq!(first.read(&handle, "file").as_deref(), Some("written here\n"));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c06_a_new_copy_is_open_to_every_user() {
    use std::os::unix::fs::PermissionsExt as _;
    run("c06-any-user", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut pod = manifest::pod("user", Some(node.name), &handle, "echo mine > /data/file");
        pod["spec"]["securityContext"] = serde_json::json!({"runAsUser": 4711, "runAsNonRoot": true});
        case.apply(&pod);
        case.wait_running("user");
        crate::wait::wait_until("the file", || node.read(&handle, "file").is_some());

        let mode = node.copy(&handle).metadata().expect("the copy").permissions().mode();
        assert_eq!(mode & 0o7777, 0o777);
    });
}
