//! Many at once: pods with volumes of their own on one node, and volumes made and deleted in a burst.

use serde_json::{Value, json};

use super::on_a_node;
use crate::api::api;
use crate::manifest;
use crate::wait::{PATIENCE_FOR_A_PROOF_S, TWO_TICKS_S, stays_true, wait_for, wait_until};
use crate::writer::Writer;

/// Pods at once; more by hand: `PER_NODE_PODS=100`.
const PODS: usize = 20;

/// Volumes in a burst.
const VOLUMES: usize = 1_000;

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c19_many_pods_with_many_volumes_start_at_once_and_end_at_once() {
    on_a_node("c19-many", |case, node| {
        let count = std::env::var("PER_NODE_PODS").ok().and_then(|value| value.parse().ok()).unwrap_or(PODS);
        let handles: Vec<_> = (0..count).map(|n| case.handle(&format!("v{n}"))).collect();
        let mut objects = Vec::new();
        for handle in &handles {
            objects.push(manifest::volume(handle, handle, "ReadWriteMany", &case.name, handle));
            objects.push(manifest::claim(handle, "ReadWriteMany"));
            objects.push(manifest::pod(handle, Some(node.name), handle, "echo mine > /data/file"));
        }
        case.apply(&list(&objects));
        wait_for("every pod's file", 300, || {
            handles.iter().all(|handle| node.read(handle, "file").is_some()).then_some(())
        });
        for handle in &handles {
            assert_eq!(node.mounts_of(handle).len(), 1);
        }
        case.kubectl(&["delete", "pods", "--all", "--timeout=180s"]);
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

        let volumes: Vec<_> = (0..VOLUMES)
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
        wait_for("the burst to be over", 300, || {
            let list = api().get("/api/v1/persistentvolumes?labelSelector=burst%3Dyes&limit=1")?;
            list["items"].as_array().is_some_and(Vec::is_empty).then_some(())
        });
        stays_true("the named copy", TWO_TICKS_S, || node.read(&kept, "file").is_some());
        writer.noticed_nothing();
        // The watch has not lost its way: the next deletion is seen.
        case.delete_volume(&kept);
        wait_for("the copy to go", PATIENCE_FOR_A_PROOF_S, || (!node.copy(&kept).exists()).then_some(()));
    });
}
