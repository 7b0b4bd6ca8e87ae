//! The kubelet's statistics of a volume are those of its copy on that node (C46).

use serde_json::Value;

use crate::api::api;
use crate::case::run;
use crate::wait::{wait_for, wait_until};

/// What the kubelet's summary says of a pod's volume `data`.
fn summary(node: &str, namespace: &str, pod: &str) -> Option<Value> {
    let summary = api().get(&format!("/api/v1/nodes/{node}/proxy/stats/summary"))?;
    let pods = summary["pods"].as_array()?;
    let pod =
        pods.iter().find(|one| one["podRef"]["name"] == pod && one["podRef"]["namespace"] == namespace)?;
    pod["volume"].as_array()?.iter().find(|volume| volume["name"] == "data").cloned()
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c46_used_bytes_and_inodes_are_this_copys() {
    run("c46-statistics", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        // 3 MiB in three files and a second name for one of them, which is not a second file.
        let script = "for n in 1 2 3; do head -c 1048576 /dev/urandom > /data/$n; done; ln /data/3 /data/3b; touch /data/done";
        case.running_pod("pod", node, &handle, script);
        wait_until("the files", || node.read(&handle, "done").is_some());

        let used = |volume: &Value| volume["usedBytes"].as_u64().unwrap_or_default();
        // The root, three files and the mark; what the kubelet shows may be of before the mark was there.
        let volume = wait_for("the statistics", || {
            summary(node.name, &case.name, "pod").filter(|volume| volume["inodesUsed"] == 5)
        });
        assert!((3 << 20..4 << 20).contains(&used(&volume)), "not this copy's bytes: {volume}");
        assert!(volume["capacityBytes"].as_u64() > volume["usedBytes"].as_u64(), "{volume}");

        let wanted = format!("kubelet_volume_stats_used_bytes{{namespace=\"{}\"", case.name);
        wait_until("the kubelet's metric", || {
            let metrics =
                api().text(&format!("/api/v1/nodes/{}/proxy/metrics", node.name)).unwrap_or_default();
            metrics.lines().any(|line| line.starts_with(&wanted) && line.contains(&handle))
        });
    });
}
