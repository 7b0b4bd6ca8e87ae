//! Many at once: pods with volumes of their own on one node, and volumes made and deleted in a burst.

use serde_json::{Value, json};

use super::on_a_node;
use crate::api::api;
use crate::manifest;
use crate::wait::{KUBECTL_PATIENCE, TWO_TICKS_S, number_from_env, stays_true, wait_until};
use crate::writer::Writer;

/// Pods at once; more by hand: `PER_NODE_PODS=100`.
const PODS: usize = 12;

/// Volumes in a burst; more by hand: `PER_NODE_VOLUMES=1000`.
const VOLUMES: usize = 300;

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c19_many_pods_with_many_volumes_start_at_once_and_end_at_once() {
    on_a_node("c19-many", |case, node| {
        let count = number_from_env("PER_NODE_PODS", PODS);
        let handles: Vec<_> = (0..count).map(|n| case.handle(&format!("v{n}"))).collect();
        let mut objects = Vec::new();
        for handle in &handles {
            objects.push(manifest::volume(handle, handle, "ReadWriteMany", &case.name, handle));
            objects.push(manifest::claim(handle, "ReadWriteMany"));
            objects.push(manifest::pod(handle, Some(node.name), handle, "echo mine > /data/file"));
        }
        case.apply(&list(&objects));
        wait_until("every pod's file", || handles.iter().all(|handle| node.read(handle, "file").is_some()));
        for handle in &handles {
            assert_eq!(node.mounts_of(handle).len(), 1);
        }
        case.kubectl(&["delete", "pods", "--all", KUBECTL_PATIENCE]);
        wait_until("every mount to go", || handles.iter().all(|handle| node.mounts_of(handle).is_empty()));
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_a_burst_of_a_thousand_volumes_takes_no_copy_that_is_named() {
    on_a_node("c22-burst", |case, node| {
        let writer = Writer::start(case, node);
        let kept = case.bound_volume("kept", "ReadWriteMany");
        case.running_pod("kept", node, &kept, "echo kept > /data/file");
        wait_until("the file", || node.read(&kept, "file").is_some());
        case.delete("pod", "kept");

        let volumes: Vec<_> = (0..number_from_env("PER_NODE_VOLUMES", VOLUMES))
            .map(|n| {
                let name = format!("{}-b{n}", case.name);
                let mut volume = manifest::volume(&name, &name, "ReadWriteMany", &case.name, &name);
                volume["metadata"]["labels"]["burst"] = "yes".into();
                volume
            })
            .collect();
        api().create_all("/api/v1/persistentvolumes", &volumes);
        api().delete_all("/api/v1/persistentvolumes?labelSelector=burst%3Dyes");
        // It is the controller manager that takes a thousand finalizers away.
        wait_until("the burst to be over", || {
            let list = api().get("/api/v1/persistentvolumes?labelSelector=burst%3Dyes&limit=1");
            list.is_some_and(|list| list["items"].as_array().is_some_and(Vec::is_empty))
        });
        stays_true("the named copy", TWO_TICKS_S, || node.read(&kept, "file").is_some());
        writer.noticed_nothing();
        // The watch has not lost its way: the next deletion is seen.
        case.delete_volume(&kept);
        wait_until("the copy to go", || !node.copy(&kept).exists());
    });
}
