//! The table of causes, and how it is gone through. Each cause looks at the facts alone, so that each has its case in a test
//! and none depends on another's having been found.

use super::facts::Facts;
use super::finding::{Certainty, Finding};
use super::{claims, driver, health, holding, passed_on, terminating, volumes};

/// One thing that keeps a pod from running, or that somebody should know.
pub struct Cause {
    /// The word for programs; docs/kubectl.md lists them.
    pub id: &'static str,
    look: fn(&Facts) -> Vec<Finding>,
}

/// Every cause. Of two that are as certain, the one that stands first here is shown first: what comes earlier in a pod's way.
pub const CAUSES: &[Cause] = &[
    Cause { id: "PodTerminating", look: terminating::pod_terminating },
    Cause { id: "ClaimMissing", look: claims::claim_missing },
    Cause { id: "ClaimTerminating", look: claims::claim_terminating },
    Cause { id: "ClaimLost", look: claims::claim_lost },
    Cause { id: "ClaimRefUid", look: claims::claim_ref_uid },
    Cause { id: "VolumeMissing", look: claims::volume_missing },
    Cause { id: "VolumeOfAnotherClaim", look: claims::volume_of_another_claim },
    Cause { id: "ReservedVolumeTerminating", look: claims::reserved_volume_terminating },
    Cause { id: "ClassMismatch", look: claims::class_mismatch },
    Cause { id: "ModeMismatch", look: claims::mode_mismatch },
    Cause { id: "SizeMismatch", look: claims::size_mismatch },
    Cause { id: "VolumeModeMismatch", look: claims::volume_mode_mismatch },
    Cause { id: "NoVolumeForClaim", look: claims::no_volume_for_claim },
    Cause { id: "RollingUpdateOncePod", look: holding::rolling_update_once_pod },
    Cause { id: "OncePodInUse", look: holding::once_pod_in_use },
    Cause { id: "Unscheduled", look: passed_on::unscheduled },
    Cause { id: "NodeNotReady", look: driver::node_not_ready },
    Cause { id: "CsiDriverMissing", look: driver::csi_driver_missing },
    Cause { id: "CsiDriverWrong", look: driver::csi_driver_wrong },
    Cause { id: "NoPluginOnNode", look: driver::no_plugin_on_node },
    Cause { id: "PluginNotReady", look: driver::plugin_not_ready },
    Cause { id: "DriverNotRegistered", look: driver::driver_not_registered },
    Cause { id: "InlineVolume", look: volumes::inline_volume },
    Cause { id: "HandleRule", look: volumes::handle_rule },
    Cause { id: "BlockVolume", look: volumes::block_volume },
    Cause { id: "MountOptions", look: volumes::mount_options },
    Cause { id: "HandleTwice", look: volumes::handle_twice },
    Cause { id: "RollingUpdateSurge", look: holding::rolling_update_surge },
    Cause { id: "Held", look: holding::held },
    Cause { id: "Refused", look: passed_on::refused },
    Cause { id: "MountFailed", look: passed_on::mount_failed },
    Cause { id: "VolumeHealth", look: health::volume_health },
    Cause { id: "Container", look: passed_on::containers },
    Cause { id: "KubeletEvent", look: passed_on::kubelet_events },
    Cause { id: "ReadWriteOnce", look: volumes::read_write_once },
    Cause { id: "VolumeTerminating", look: volumes::volume_terminating },
    Cause { id: "WaitsForConfirmation", look: driver::waits_for_confirmation },
];

/// Everything that the facts show, the surest first.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for cause in CAUSES {
        let found = (cause.look)(facts).into_iter().map(|finding| Finding { cause: cause.id, ..finding });
        findings.extend(found);
    }
    if runs(facts) {
        // What would keep a pod from starting did not keep this one.
        findings.retain(|finding| finding.certainty == Certainty::Note || finding.cause == health::CAUSE);
    }
    findings.sort_by_key(|finding| finding.certainty);
    findings
}

/// Whether the pod does what it is for: it runs and is ready, or has ended well. One that was deleted is on its way out, however
/// it ended.
pub fn runs(facts: &Facts) -> bool {
    if facts.is_terminating() {
        return false;
    }
    let ready = facts.condition("Ready").is_some_and(|(status, _, _)| status == "True");
    match facts.phase() {
        "Succeeded" => true,
        "Running" => ready,
        _ => false,
    }
}
