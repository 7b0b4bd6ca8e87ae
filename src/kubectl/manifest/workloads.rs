//! A workload over the claim. Whatever the kind, the old pod goes before the new one starts, for a node has one pod of a volume
//! at a time (C12), and ReadWriteOncePod allows one in the cluster.

use super::yaml::{Document, scalar};
use super::{Mode, Request, Workload};

pub(super) fn workload(request: &Request, workload: Workload) -> String {
    let name = scalar(&request.name);
    let document = Document::default()
        .bare(0, "apiVersion: apps/v1")
        .field(0, &format!("kind: {}", workload.kind()), kind_comment(workload, request.mode))
        .bare(0, "metadata:")
        .field(1, &format!("name: {name}"), "Yours to choose; here the volume's.")
        .field(
            1,
            &format!("namespace: {}", scalar(&request.namespace)),
            "The claim's: a pod mounts claims of its own namespace.",
        )
        .bare(0, "spec:");
    let document = strategy(document, request, workload)
        .field(1, "selector:", "The pods that are its own: the labels of the template.")
        .bare(2, "matchLabels:")
        .bare(3, &format!("app: {name}"))
        .bare(1, "template:")
        .bare(2, "metadata:")
        .field(3, "labels:", "What the selector looks for.")
        .bare(4, &format!("app: {name}"))
        .bare(2, "spec:");
    pod(apart(document, request, workload), &name).text()
}

fn kind_comment(workload: Workload, mode: Mode) -> &'static str {
    match (workload, mode) {
        (Workload::DaemonSet, Mode::Rwx | Mode::Rwop) => "One pod on each node, each with its node's copy.",
        (Workload::Deployment, Mode::Rwx) => {
            "Pods on as many nodes as there are replicas, each with its node's copy."
        }
        (Workload::StatefulSet, Mode::Rwx) => {
            "Pods with names that stay, on as many nodes as there are replicas, each with its node's copy."
        }
        (Workload::Deployment, Mode::Rwop) => "One pod in the cluster.",
        (Workload::StatefulSet, Mode::Rwop) => "One pod in the cluster, with a name that stays.",
    }
}

/// How many pods, and how one follows another.
fn strategy(document: Document, request: &Request, workload: Workload) -> Document {
    let replicas = |document: Document| match request.mode {
        Mode::Rwx => {
            document.field(1, "replicas: 1", "At most one pod on a node: no more replicas than nodes.")
        }
        Mode::Rwop => document.field(1, "replicas: 1", "ReadWriteOncePod: a second pod would stay Pending."),
    };
    match (workload, request.mode) {
        (Workload::StatefulSet, Mode::Rwx | Mode::Rwop) => replicas(document)
            .field(
                1,
                &format!("serviceName: {}", scalar(&request.name)),
                "A headless Service of this name would give the pods DNS names; the volume needs none.",
            )
            .field(1, "updateStrategy:", "A StatefulSet ends a pod before it starts the one that follows.")
            .bare(2, "type: RollingUpdate"),
        (Workload::DaemonSet, Mode::Rwx | Mode::Rwop) => rolling(document, "updateStrategy:"),
        (Workload::Deployment, Mode::Rwx) => rolling(replicas(document), "strategy:"),
        (Workload::Deployment, Mode::Rwop) => replicas(document)
            .field(1, "strategy:", "A rolling update would wait for ever: the new pod cannot start while the old one has the claim.")
            .bare(2, "type: Recreate"),
    }
}

fn rolling(document: Document, field: &str) -> Document {
    document
        .field(
            1,
            field,
            "A node has one pod of the volume at a time, so the old one goes before the new one starts.",
        )
        .bare(2, "type: RollingUpdate")
        .bare(2, "rollingUpdate:")
        .field(3, "maxSurge: 0", "No second pod beside the one that is replaced: it would wait for the copy.")
        .field(3, "maxUnavailable: 1", "One after the other.")
}

/// Replicas of a volume for many nodes keep apart; a DaemonSet's do so by themselves, and a single pod has nobody to avoid.
fn apart(document: Document, request: &Request, workload: Workload) -> Document {
    match (workload, request.mode) {
        (Workload::DaemonSet, Mode::Rwx | Mode::Rwop)
        | (Workload::Deployment | Workload::StatefulSet, Mode::Rwop) => document,
        (Workload::Deployment | Workload::StatefulSet, Mode::Rwx) => document
            .field(3, "affinity:", "No two of them on one node: the second would wait for the copy.")
            .bare(4, "podAntiAffinity:")
            .bare(5, "requiredDuringSchedulingIgnoredDuringExecution:")
            .bare(6, "- topologyKey: kubernetes.io/hostname")
            .bare(7, "labelSelector:")
            .bare(8, "matchLabels:")
            .bare(9, &format!("app: {}", scalar(&request.name))),
    }
}

fn pod(document: Document, name: &str) -> Document {
    document
        .bare(3, "containers:")
        .bare(4, "- name: main")
        .field(5, "image: busybox", "Yours.")
        .field(5, "command: [/bin/sh, -c, \"exec sleep 2147483647\"]", "Yours.")
        .bare(5, "volumeMounts:")
        .bare(6, "- name: data")
        .field(7, "mountPath: /data", "Where the container finds the copy.")
        .bare(3, "volumes:")
        .bare(4, "- name: data")
        .bare(5, "persistentVolumeClaim:")
        .field(6, &format!("claimName: {name}"), "The claim above: every pod names the same one.")
}
