//! The volume and its claim, as deploy/examples has them: a PersistentVolume and a PersistentVolumeClaim are all that a person
//! writes (C2).

use super::yaml::{Document, scalar, size};
use super::{Mode, Request};

/// The class that volume and claim name. No object of that name is needed.
pub const STORAGE_CLASS: &str = "per-node";

pub(super) fn volume(request: &Request) -> String {
    let (name, namespace) = (scalar(&request.name), scalar(&request.namespace));
    Document::default()
        .bare(0, "apiVersion: v1")
        .field(
            0,
            "kind: PersistentVolume",
            "The volume: one object for the cluster, one directory on each node it visits.",
        )
        .bare(0, "metadata:")
        .field(
            1,
            &format!("name: {name}"),
            "Deleting this object deletes the copy on every node; nothing else does.",
        )
        .bare(0, "spec:")
        .field(
            1,
            &format!("storageClassName: {STORAGE_CLASS}"),
            "The claim names the same class. No StorageClass is needed, for nothing is provisioned.",
        )
        .field(1, &format!("accessModes: [{}]", request.mode.access_mode()), mode_comment(request.mode))
        .field(1, "capacity:", "A hint: the driver limits nothing. The claim may ask for no more than this.")
        .field(2, &format!("storage: {}", size(&request.size)), "What quotas and people see.")
        .field(
            1,
            "persistentVolumeReclaimPolicy: Retain",
            "Deleting the claim deletes no data; `kubectl per-node release` makes the volume bindable again.",
        )
        .field(1, "claimRef:", "This claim and no other may bind the volume.")
        .field(2, &format!("namespace: {namespace}"), "Where the pods that mount it live.")
        .field(2, &format!("name: {name}"), "The claim below.")
        .bare(1, "csi:")
        .field(2, &format!("driver: {}", scalar(&request.driver_name)), "The plugin that mounts it.")
        .field(
            2,
            &format!("volumeHandle: {name}"),
            "The directory's name on every node: keep it equal to the volume's name.",
        )
        .text()
}

pub(super) fn claim(request: &Request) -> String {
    Document::default()
        .bare(0, "apiVersion: v1")
        .field(0, "kind: PersistentVolumeClaim", "The claim: what pods name to get the volume.")
        .bare(0, "metadata:")
        .field(1, &format!("name: {}", scalar(&request.name)), "The name in the volume's claimRef.")
        .field(
            1,
            &format!("namespace: {}", scalar(&request.namespace)),
            "The namespace in the volume's claimRef.",
        )
        .bare(0, "spec:")
        .field(1, &format!("storageClassName: {STORAGE_CLASS}"), "The volume's class.")
        .field(
            1,
            &format!("accessModes: [{}]", request.mode.access_mode()),
            "The volume's mode: a claim that asks for another stays Pending.",
        )
        .bare(1, "resources:")
        .field(2, "requests:", "No more than the volume's capacity, else the claim stays Pending.")
        .field(3, &format!("storage: {}", size(&request.size)), "The volume's capacity.")
        .text()
}

fn mode_comment(mode: Mode) -> &'static str {
    match mode {
        Mode::Rwx => {
            "Pods on many nodes mount it, one on each. (ReadWriteOnce would promise that one node has the data.)"
        }
        Mode::Rwop => "One pod in the whole cluster mounts it; on another node it finds that node's copy.",
    }
}
