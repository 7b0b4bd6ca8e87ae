//! Read-only mounts and mount options (C4, C5), as the kernel of the node has them.

use crate::case::{Case, run};
use crate::manifest;
use crate::node::Node;
use crate::wait::wait_until;

/// The options of the one mount that shows a handle on a node, as a sorted list.
fn options(node: &Node, handle: &str) -> Vec<String> {
    let mounts = node.mounts_of(handle);
    assert_eq!(mounts.len(), 1, "{mounts:?}");
    let mut options: Vec<String> = mounts[0].options.split(',').map(str::to_owned).collect();
    options.sort();
    options
}

/// A volume and claim with mount options.
fn volume_with_options(case: &Case, suffix: &str, options: &[&str]) -> String {
    let handle = case.handle(suffix);
    let mut volume = manifest::volume(&handle, &handle, "ReadWriteMany", &case.name, &handle);
    volume["spec"]["mountOptions"] = serde_json::json!(options);
    case.apply(&volume);
    case.apply(&manifest::claim(&handle, "ReadWriteMany"));
    case.wait_bound(&handle);
    handle
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c04_a_read_only_claim_refuses_writes() {
    run("c04-read-only", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("writer", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        case.delete("pod", "writer");

        let mut pod = manifest::pod(
            "reader",
            Some(node.name),
            &handle,
            "cat /data/file; touch /data/new || echo refused",
        );
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = true.into();
        case.apply(&pod);
        case.wait_running("reader");
        wait_until("its log", || {
            let log = case.kubectl(&["logs", "reader"]);
            // The two streams of a container reach its log in any order.
            ["kept\n", "Read-only file system\n", "refused\n"].iter().all(|line| log.contains(line))
        });
        assert!(options(node, &handle).contains(&"ro".into()), "the node's own mount is writable");
        assert!(!node.copy(&handle).join("new").exists());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c04_a_read_only_mount_of_one_container_refuses_its_writes_alone() {
    run("c04-ro-container", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut pod = manifest::pod("both", Some(node.name), &handle, "echo one > /data/file");
        let mut reader = pod["spec"]["containers"][0].clone();
        reader["name"] = "reader".into();
        reader["volumeMounts"][0]["readOnly"] = true.into();
        reader["command"][2] = "touch /data/new || echo refused; exec sleep 2147483647".into();
        pod["spec"]["containers"].as_array_mut().expect("a list").push(reader);
        case.apply(&pod);
        case.wait_running("both");
        wait_until("the file", || node.read(&handle, "file").is_some());
        wait_until("the refusal", || {
            // Beside what touch said, which came by another stream.
            case.kubectl(&["logs", "both", "--container=reader"]).lines().any(|line| line == "refused")
        });
        assert!(options(node, &handle).contains(&"rw".into()));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c05_mount_options_are_in_force_on_the_node() {
    run("c05-options", |case| {
        let node = &case.cluster.second;
        let handle = volume_with_options(case, "v", &["noexec", "nosuid", "nodev", "noatime"]);
        case.running_pod(
            "pod",
            node,
            &handle,
            "cp /bin/busybox /data/sh; chmod 755 /data/sh; /data/sh true || echo refused > /data/said",
        );
        wait_until("the refusal", || node.read(&handle, "said").is_some());
        let options = options(node, &handle);
        for option in ["noexec", "nosuid", "nodev", "noatime", "rw"] {
            assert!(options.contains(&option.into()), "{option} is not in {options:?}");
        }
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c05_an_option_the_driver_does_not_know_is_refused() {
    run("c05-unsupported", |case| {
        let node = &case.cluster.first;
        let handle = volume_with_options(case, "v", &["usrquota"]);
        case.apply(&manifest::pod("pod", Some(node.name), &handle, "true"));
        let message = case.wait_event("pod", "PerNodeVolumeRefused");
        // It says where to look and not which option it was: mount options may carry secrets (C47).
        assert!(message.contains("spec.mountOptions") && !message.contains("usrquota"), "{message}");
        assert!(
            node.mounts_of(&handle).is_empty() && !node.copy(&handle).exists(),
            "C16: something was left"
        );
    });
}
