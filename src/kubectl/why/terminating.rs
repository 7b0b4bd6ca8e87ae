//! A pod that was deleted and is still there. Whatever its phase and its containers' exit codes say, something keeps it: a
//! finalizer, its node, or an unmount of its volume, for which the kubelet needs the plugin.

use super::facts::{Facts, Place, age, full_name};
use super::finding::Finding;
use crate::workload::is_ready;

pub fn pod_terminating(facts: &Facts) -> Vec<Finding> {
    let Some(since) = &facts.pod.metadata.deletion_timestamp else { return Vec::new() };
    let finding = Finding::certain("The pod is being deleted.")
        .because(format!("its deletionTimestamp passed {} ago", age(since.0, facts.now)));
    let finalizers = facts.pod.metadata.finalizers.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    let finding = if finalizers.is_empty() {
        finding
    } else {
        finding.because(format!("its finalizers, which whoever set them takes off: {finalizers}"))
    };
    let Some(place) = facts.driver_place() else {
        return vec![
            finding.then("Wait; if it stays, look at its finalizers and at the kubelet of its node."),
        ];
    };
    if let Some(why) = unmounts_fail(place) {
        return vec![finding.because(format!("{why}: the kubelet cannot have its volume unmounted")).then(format!(
            "Mend the plugin on the node {}, which another finding is about; the kubelet tries again by itself.",
            place.name
        ))];
    }
    let plugin = place.plugin.is().map(|plugin| full_name(&plugin.metadata)).unwrap_or_default();
    let (namespace, pod) = plugin.split_once('/').unwrap_or((&facts.plugin_namespace, "POD"));
    let finding = finding.because_all(still_holds(facts, place));
    vec![finding.then(format!(
        "Wait; if it stays, look at its finalizers, at the kubelet of {} and at the plugin's log: kubectl logs {pod} -n \
         {namespace} | grep NodeUnpublishVolume. What fails there: docs/runbooks/PerNodeUnmountFailed.md; if the plugin answers \
         OK, or is not asked, restart the kubelet.",
        place.name
    ))]
}

/// Why nobody can unmount anything on that node, where that is so.
fn unmounts_fail(place: &Place) -> Option<String> {
    let node = &place.name;
    if place.plugin.is_absent() {
        return Some(format!("no plugin's pod was found for the node {node}"));
    }
    let not_ready = place.plugin.is().is_some_and(|plugin| !is_ready(plugin))
        || place.answer.is().is_some_and(|answer| !answer.not_ready.is_empty());
    if not_ready {
        return Some(format!("the plugin on the node {node} is not ready"));
    }
    place.silence.as_ref().map(|why| format!("the plugin on the node {node} does not answer ({why})"))
}

/// The mounts of this pod that the plugin still knows of.
fn still_holds(facts: &Facts, place: &Place) -> Vec<String> {
    let uid = facts.pod.metadata.uid.as_deref();
    let holders = place.answer.is().into_iter().flat_map(|answer| &answer.holders);
    let own = holders.filter(|holder| uid.is_some() && holder.uid.as_deref() == uid);
    own.map(|holder| format!("the plugin still has it as the holder of {}: not unmounted yet", holder.handle))
        .collect()
}
