//! What deleting removes (C20, C21, C22).

use crate::case::run;
use crate::manifest;
use crate::wait::{TWO_TICKS_S, stays_true, wait_until};

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c20_a_deleted_claim_leaves_the_volume_released_and_every_copy_in_place() {
    run("c20-claim", |case| {
        let handle = case.bound_volume("v", "ReadWriteMany");
        for node in case.cluster.nodes() {
            let name = format!("on-{}", node.name);
            case.running_pod(&name, node, &handle, "echo kept > /data/file");
            wait_until("the file", || node.read(&handle, "file").is_some());
            case.delete("pod", &name);
        }
        case.delete("pvc", &handle);
        wait_until("the volume to be Released", || {
            case.kubectl(&["get", "pv", &handle]).contains("Released")
        });
        stays_true("every copy is in place", TWO_TICKS_S, || {
            case.cluster.nodes().iter().all(|node| node.read(&handle, "file").is_some())
        });

        case.delete("pv", &handle);
        for node in case.cluster.nodes() {
            wait_until("the copy to go", || !node.copy(&handle).exists());
        }
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c21_a_volume_deleted_while_held_goes_elsewhere_at_once_and_here_with_its_pod() {
    run("c21-held", |case| {
        let (here, elsewhere) = (&case.cluster.first, &case.cluster.second);
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("other", elsewhere, &handle, "echo other > /data/file");
        wait_until("the other file", || elsewhere.read(&handle, "file").is_some());
        case.delete("pod", "other");
        case.running_pod("holder", here, &handle, "echo held > /data/file");
        wait_until("the file", || here.read(&handle, "file").is_some());

        // A bound volume lingers, terminating, and still names its handle.
        case.delete_at_once("pvc", &handle);
        case.delete_at_once("pv", &handle);
        stays_true("a terminating volume names its handle", TWO_TICKS_S, || {
            elsewhere.read(&handle, "file").is_some()
        });

        case.without_finalizers("pv", &handle);
        wait_until("the copy to go where nobody holds it", || !elsewhere.copy(&handle).exists());
        stays_true("the held copy stays", TWO_TICKS_S, || {
            here.read(&handle, "file").as_deref() == Some("held\n")
        });
        let held = case.pod("holder").expect("the holder");
        assert_eq!(held["status"]["phase"], "Running");

        case.delete("pod", "holder");
        wait_until("the copy to go with its last pod", || !here.copy(&handle).exists());
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c23_a_new_volume_of_the_same_handle_starts_empty_once_the_copy_is_gone() {
    run("c23-again", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod(
            "first",
            node,
            &handle,
            "for n in $(seq 500); do mkdir -p /data/$n/x; echo $n > /data/$n/x/y; done",
        );
        wait_until("the files", || node.read(&handle, "500/x/y").is_some());
        case.delete("pod", "first");
        case.delete_volume(&handle);
        wait_until("the copy to go", || !node.copy(&handle).exists());

        case.apply(&manifest::volume(&handle, &handle, "ReadWriteMany", &case.name, &handle));
        case.apply(&manifest::claim(&handle, "ReadWriteMany"));
        case.wait_bound(&handle);
        case.running_pod("second", node, &handle, "ls -A /data | wc -l");
        wait_until("its log", || case.kubectl(&["logs", "second"]) == "0\n");
    });
}
