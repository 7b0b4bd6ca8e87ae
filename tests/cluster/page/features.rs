//! What pods do with volumes besides mounting them: subPath, fsGroup, init containers, read-only roots, projected tokens.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use crate::case::run;
use crate::manifest;
use crate::wait::wait_until;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c15_a_sub_path_shows_a_part_of_the_copy_and_goes_with_its_pod() {
    run("c15-sub-path", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut pod = manifest::pod("pod", Some(node.name), &handle, "echo below > /data/file");
        pod["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "part/of/it".into();
        case.apply(&pod);
        case.wait_running("pod");
        wait_until("the file", || node.read(&handle, "part/of/it/file").as_deref() == Some("below\n"));
        case.delete("pod", "pod");
        wait_until("both mounts to go", || node.mounts_of(&handle).is_empty());
        assert!(node.read(&handle, "part/of/it/file").is_some());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c07_fs_group_reaches_the_root_of_the_copy_and_nothing_below() {
    run("c07-fs-group", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("root", node, &handle, "echo old > /data/old; chmod 600 /data/old");
        wait_until("the old file", || node.read(&handle, "old").is_some());
        case.delete("pod", "root");
        let old = node.copy(&handle).join("old").metadata().expect("the old file");

        let mut pod =
            manifest::pod("group", Some(node.name), &handle, "id -G; umask 077; echo new > /data/new");
        pod["spec"]["securityContext"] = json!({"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2345});
        case.apply(&pod);
        case.wait_running("group");
        wait_until("the new file", || node.read(&handle, "new").is_some());

        let root = node.copy(&handle).metadata().expect("the copy");
        assert_eq!(root.gid(), 2345);
        assert_eq!(root.permissions().mode() & 0o2070, 0o2070, "group rwx and setgid");
        // The new file has the group through setgid; the old one was not touched.
        assert_eq!(node.copy(&handle).join("new").metadata().expect("the new file").gid(), 2345);
        let untouched = node.copy(&handle).join("old").metadata().expect("the old file");
        assert_eq!((untouched.gid(), untouched.mode()), (old.gid(), old.mode()));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c13_the_containers_of_one_pod_share_its_copy() {
    run("c13-one-pod", |case| {
        let node = &case.cluster.second;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut pod =
            manifest::pod("pod", Some(node.name), &handle, "cat /data/init; echo main >> /data/init");
        let mut init = pod["spec"]["containers"][0].clone();
        init["name"] = "init".into();
        init["command"][2] = "echo init > /data/init".into();
        let mut side = pod["spec"]["containers"][0].clone();
        side["name"] = "side".into();
        side["command"][2] =
            "until grep -q main /data/init; do sleep 0.2; done; cat /data/init; exec sleep 2147483647".into();
        pod["spec"]["initContainers"] = json!([init]);
        pod["spec"]["containers"].as_array_mut().expect("a list").push(side);
        // Nothing of the pod is writable but its volume, and a projected token is mounted beside it.
        for container in 0..2 {
            pod["spec"]["containers"][container]["securityContext"] = json!({"readOnlyRootFilesystem": true});
        }
        pod["spec"]["volumes"].as_array_mut().expect("a list").push(json!({
            "name": "token",
            "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "somebody"}}]},
        }));
        pod["spec"]["containers"][0]["volumeMounts"]
            .as_array_mut()
            .expect("a list")
            .push(json!({"name": "token", "mountPath": "/token"}));
        case.apply(&pod);
        case.wait_running("pod");
        wait_until("all three", || case.kubectl(&["logs", "pod", "--container=side"]) == "init\nmain\n");
        assert_eq!(node.mounts_of(&handle).len(), 1);
    });
}

/// The runtime of these nodes, containerd 1.6 with runc 1.1, has no user namespaces: it is the kubelet that says so, after the
/// volume was mounted, and the pod ends like any other.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c17_a_pod_with_users_of_its_own_is_refused_by_this_runtime_and_leaves_nothing() {
    run("c17-host-users", |case| {
        let node = &case.cluster.second;
        let handle = case.bound_volume("v", "ReadWriteMany");
        let mut pod = manifest::pod("pod", Some(node.name), &handle, "true");
        pod["spec"]["hostUsers"] = false.into();
        case.apply(&pod);
        let message = case.wait_event("pod", "FailedCreatePodSandBox");
        assert!(message.contains("user namespaces"), "{message}");
        assert_eq!(node.mounts_of(&handle).len(), 1, "the driver had no part in the refusal");
        case.delete("pod", "pod");
        wait_until("its mount to go", || node.mounts_of(&handle).is_empty());
    });
}
