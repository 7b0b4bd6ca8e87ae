//! The objects that users write, as values: volumes, claims and pods. Only shapes; nothing is sent from here.

use serde_json::{Value, json};

/// The driver's name.
pub const DRIVER: &str = "per-node.liken.sh";

/// A volume as the product's page shows it. Its class, size and reclaim policy are the page's.
pub fn volume(name: &str, handle: &str, mode: &str, namespace: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"case": namespace}},
        "spec": {
            "storageClassName": "per-node",
            "accessModes": [mode],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": claim},
            "csi": {"driver": DRIVER, "volumeHandle": handle},
        },
    })
}

/// The claim that goes with it.
pub fn claim(name: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "per-node",
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

/// A pod with a claim at `/data` that runs a shell script and then stays, on one node or on any.
pub fn pod(name: &str, node: Option<&str>, claim: &str, script: &str) -> Value {
    let selector = match node {
        Some(node) => json!({"kubernetes.io/hostname": node}),
        None => json!({}),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": selector,
            // With none at all the API server would forget a pod before the kubelet has unmounted its volume, and none could
            // ever be stuck in Terminating.
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Never",
            "containers": [{
                "name": "main",
                "image": "busybox",
                "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", format!("{script}\nexec sleep 2147483647")],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    })
}
