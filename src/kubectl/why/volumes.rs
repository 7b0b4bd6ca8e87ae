//! Causes in the volume itself: what the driver would refuse, by the driver's own rules, and what misleads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolume;
use per_node::domain::handle::Handle;
use per_node::domain::mount_options::MountOptions;

use super::facts::{Facts, full_name, name};
use super::finding::Finding;

pub fn handle_rule(facts: &Facts) -> Vec<Finding> {
    let volumes = facts.volumes().map(|(_, volume)| volume);
    volumes
        .filter_map(|volume| {
            let rule = Handle::parse(handle(volume)).err()?;
            let name = name(&volume.metadata);
            Some(
                Finding::certain(format!("The driver refuses the volume {name}: {rule}."))
                    .because(format!("spec.csi.volumeHandle is {:?}", handle(volume)))
                    .then(format!(
                        "Delete the pod, its claim and the PersistentVolume {name}, in this order, and make them anew with a handle \
                         that is one: volumeHandle cannot be changed, and no node has a copy of this."
                    )),
            )
        })
        .collect()
}

pub fn block_volume(facts: &Facts) -> Vec<Finding> {
    let volumes = facts.volumes().map(|(_, volume)| volume);
    volumes
        .filter(|volume| {
            let spec = volume.spec.as_ref();
            spec.and_then(|spec| spec.volume_mode.as_deref()) == Some("Block")
        })
        .map(|volume| {
            let name = name(&volume.metadata);
            Finding::certain(format!("The volume {name} is a block volume, which the driver refuses."))
                .because("spec.volumeMode is Block; a copy is a directory")
                .then("Make volume and claim anew with volumeMode: Filesystem, or without the field.")
        })
        .collect()
}

pub fn mount_options(facts: &Facts) -> Vec<Finding> {
    let volumes = facts.volumes().map(|(_, volume)| volume);
    volumes
        .filter_map(|volume| {
            let options = volume.spec.as_ref()?.mount_options.as_ref()?;
            let rule = MountOptions::parse(options, false).err()?;
            let name = name(&volume.metadata);
            Some(
                Finding::certain(format!("The driver refuses the volume {name}: {rule}."))
                    // What stands there may be sensitive (CSI, mount_flags), so it is not repeated.
                    .because(format!("spec.mountOptions of the volume {name}"))
                    .then(format!(
                        "Take the option out (kubectl edit pv {name}), and then {}",
                        made_anew(facts)
                    )),
            )
        })
        .collect()
}

/// What a pod needs whose volume was mended: its kubelet goes on with the volume as it was when the pod came.
pub fn made_anew(facts: &Facts) -> String {
    format!(
        "delete the pod, for its kubelet keeps the volume as it was: kubectl delete pod {} -n {}",
        facts.pod_name(),
        facts.namespace()
    )
}

pub fn inline_volume(facts: &Facts) -> Vec<Finding> {
    let volumes = facts.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter(|volume| volume.csi.as_ref().is_some_and(|csi| csi.driver == facts.driver_name))
        .map(|volume| {
            Finding::certain(format!("The pod's volume {} is inline, which this driver does not serve.", volume.name))
                .because(format!("spec.volumes has csi.driver {}, without a PersistentVolume", facts.driver_name))
                .then("Make a PersistentVolume and a claim (kubectl per-node manifest), and name the claim in the pod.")
        })
        .collect()
}

pub fn handle_twice(facts: &Facts) -> Vec<Finding> {
    let mut by_handle: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (claim, volume) in facts.volumes() {
        by_handle.entry(handle(volume)).or_default().push(&claim.name);
    }
    let twice = by_handle.into_iter().filter(|(_, claims)| claims.len() > 1);
    twice
        .map(|(handle, claims)| {
            Finding::likely(format!(
                "The pod mounts the volume {handle} twice, and a kubelet mounts one of the two."
            ))
            .because(format!("the claims {} lead to the one handle {handle}", claims.join(" and ")))
            .then("Let the pod name one claim, and mount that volume in as many places as it needs.")
        })
        .collect()
}

pub fn read_write_once(facts: &Facts) -> Vec<Finding> {
    let volumes = facts.volumes().map(|(_, volume)| volume);
    volumes
        .filter(|volume| {
            let modes = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
            modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOnce"))
        })
        .map(|volume| {
            Finding::note(format!(
                "The volume {} is ReadWriteOnce, which promises that one node has the data; here every node has its own.",
                name(&volume.metadata)
            ))
            .because("spec.accessModes")
            .then("Use ReadWriteMany for pods on many nodes, ReadWriteOncePod for one pod in the cluster.")
        })
        .collect()
}

pub fn volume_terminating(facts: &Facts) -> Vec<Finding> {
    let bound = facts.volumes().filter(|(claim, volume)| {
        let phase = claim.claim.is().and_then(|claim| claim.status.as_ref()?.phase.as_deref());
        phase == Some("Bound") && volume.metadata.deletion_timestamp.is_some()
    });
    bound
        .map(|(claim, volume)| {
            let claim = claim.claim.is().map(|claim| full_name(&claim.metadata)).unwrap_or_default();
            Finding::note(format!("The volume {} is being deleted.", name(&volume.metadata)))
                .because(format!(
                    "it has a deletionTimestamp, and stays while the claim {claim} is bound to it"
                ))
                .then(format!(
                    "Its copies go on every node once the claim is deleted. To keep them, first make another PersistentVolume with \
                     the volumeHandle {} under another name; then let this one go.",
                    handle(volume)
                ))
        })
        .collect()
}

/// The volume's handle, as written.
pub fn handle(volume: &PersistentVolume) -> &str {
    volume
        .spec
        .as_ref()
        .and_then(|spec| spec.csi.as_ref())
        .map(|csi| csi.volume_handle.as_str())
        .unwrap_or_default()
}
