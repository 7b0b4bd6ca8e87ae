//! What the kubelet has written into the pod's status about its volumes' health (C49): told also of a pod that runs, for
//! nothing else shows that its copy is lost.

use super::facts::{Facts, name};
use super::finding::Finding;

/// The cause's word. It is no reason why a pod does not start, so a pod that runs keeps it.
pub const CAUSE: &str = "VolumeHealth";
/// What Kubernetes calls a volume that works and may soon not.
const DEGRADED: &str = "Degraded";
/// And one whose data the pod will not find again.
const DATA_LOSS: &str = "DataLoss";

pub fn volume_health(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &facts.health {
        let mut volumes = facts.volumes().filter(|(claim, _)| claim.name == one.claim);
        let Some((_, volume)) = volumes.next() else { continue };
        let sentence = format!("The volume {} is not well: {}.", name(&volume.metadata), one.reason);
        let finding =
            if one.status == DEGRADED { Finding::note(sentence) } else { Finding::certain(sentence) };
        findings.push(
            finding
                .because(format!(
                    "status.volumeHealth of the pod: {}: {}: {}",
                    one.status, one.reason, one.message
                ))
                .then(remedy(facts, &one.status)),
        );
    }
    findings
}

fn remedy(facts: &Facts, status: &str) -> String {
    match status {
        DATA_LOSS => format!(
            "Save from the pod what it still sees (kubectl cp), then delete it, and it begins anew: kubectl delete pod {} -n {}",
            facts.pod_name(),
            facts.namespace()
        ),
        DEGRADED => "Delete files, or PersistentVolumes; or give the node's store a larger disk.".to_owned(),
        _ => "Look at the disk of the node's store: docs/guides/volume-health.md".to_owned(),
    }
}
