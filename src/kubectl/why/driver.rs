//! Causes in the driver's installation: its CSIDriver object, its plugin on the pod's node, and that node itself. A pod that
//! has no volume of the driver does not wait for any of them.

use super::facts::{Facts, Place, full_name};
use super::finding::Finding;
use crate::csi_driver;
use crate::workload::{is_ready, last_words, to_read};

pub fn csi_driver_missing(facts: &Facts) -> Vec<Finding> {
    if !facts.csi_driver.is_absent() || !facts.concerns_driver() {
        return Vec::new();
    }
    vec![
        Finding::certain(format!("The CSIDriver object {} does not exist.", facts.driver_name))
            .because("without it Kubernetes waits for an attachment that no controller makes")
            .then(csi_driver::MAKE),
    ]
}

pub fn csi_driver_wrong(facts: &Facts) -> Vec<Finding> {
    let Some(object) = facts.csi_driver.is().filter(|_| facts.concerns_driver()) else { return Vec::new() };
    let differences = csi_driver::differences(object);
    differences
        .iter()
        .map(|one| {
            let sentence = format!("The CSIDriver object has a wrong {}: {}.", one.field, one.consequence);
            let finding = if one.blocks { Finding::certain(sentence) } else { Finding::note(sentence) };
            finding
                .because(format!(
                    "spec.{} is {}, and deploy/base/csi-driver.yaml has {}",
                    one.field, one.is, one.should_be
                ))
                .then(csi_driver::remedy(one, &facts.driver_name))
        })
        .collect()
}

pub fn node_not_ready(facts: &Facts) -> Vec<Finding> {
    let Some(place) = &facts.place else { return Vec::new() };
    if place.node.is_absent() {
        return vec![
            Finding::certain(format!("The node {} does not exist any more.", place.name))
                .because("spec.nodeName of the pod")
                .then("Delete the pod: it is made anew on a node that is there."),
        ];
    }
    let conditions = place.node.is().and_then(|node| node.status.as_ref()?.conditions.as_ref());
    let ready = conditions.and_then(|all| all.iter().find(|one| one.type_ == "Ready"));
    let Some(condition) = ready.filter(|one| one.status != "True") else { return Vec::new() };
    let told =
        [&condition.reason, &condition.message].map(|text| text.clone().unwrap_or_default()).join(": ");
    vec![
        Finding::certain(format!("The node {} is not ready.", place.name))
            .because(format!("its condition Ready is {}: {told}", condition.status))
            .then("Mend the node; its pods go on when its kubelet does."),
    ]
}

pub fn no_plugin_on_node(facts: &Facts) -> Vec<Finding> {
    let Some(place) = facts.driver_place().filter(|place| place.plugin.is_absent()) else {
        return Vec::new();
    };
    let namespace = &facts.plugin_namespace;
    let none = format!("no plugin's pod in the namespace {namespace} has spec.nodeName {}", place.name);
    // A kubelet that knows the driver has, or had just now, a plugin beside it: of another namespace, it may be.
    if is_registered(facts, place) != Some(false) {
        return vec![
            Finding::likely(format!(
                "No plugin's pod for the node {} is in the namespace {namespace}.",
                place.name
            ))
            .because(none)
            .because_all(place.csi_node.is().map(|_| {
                format!("and yet the CSINode {} lists {}", place.name, facts.driver_name)
            }))
            .then(format!(
                "Is the plugin in another namespace? --plugin-namespace names it; else: kubectl per-node doctor {}",
                place.name
            )),
        ];
    }
    vec![
        Finding::certain(format!("No plugin runs on the node {}.", place.name))
            .because(none)
            .then("Look at the DaemonSet's nodeSelector, tolerations and events: kubectl per-node doctor"),
    ]
}

/// Whether the kubelet of the node has registered the driver; `None` where that is not known.
fn is_registered(facts: &Facts, place: &Place) -> Option<bool> {
    if place.csi_node.is_absent() {
        return Some(false);
    }
    let drivers = &place.csi_node.is()?.spec.drivers;
    Some(drivers.iter().any(|driver| driver.name == facts.driver_name))
}

pub fn plugin_not_ready(facts: &Facts) -> Vec<Finding> {
    let Some(place) = facts.driver_place() else { return Vec::new() };
    let Some(plugin) = place.plugin.is() else { return Vec::new() };
    let said = place.answer.is().map(|answer| answer.not_ready.clone()).unwrap_or_default();
    let silence = place.silence.as_ref().map(|why| format!("asked through the API server: {why}"));
    let name = full_name(&plugin.metadata);
    if is_ready(plugin) && said.is_empty() {
        // A network policy, or a network that the API server does not reach, looks the same from here.
        let silent = silence.map(|why| {
            Finding::likely(format!("The plugin on the node {} does not answer.", place.name))
                .because(why)
                .because(format!("the pod {name} is Ready all the same"))
                .then(format!(
                    "If it hangs, delete its pod, which disturbs no other: kubectl delete pod {} -n {}",
                    super::facts::name(&plugin.metadata),
                    facts.plugin_namespace
                ))
        });
        return silent.into_iter().collect();
    }
    vec![
        Finding::certain(format!("The plugin on the node {} is not ready.", place.name))
            .because(format!("the pod {name} is not Ready"))
            .because_all(said.into_iter().map(|reason| format!("the plugin says: {reason}")))
            .because_all(last_words(plugin))
            .because_all(silence)
            .then(format!("See what it says: {}", to_read(plugin))),
    ]
}

pub fn driver_not_registered(facts: &Facts) -> Vec<Finding> {
    let Some(place) = facts.driver_place() else { return Vec::new() };
    // Without a plugin, or beside one that is not up, this is what follows from it.
    let up = place.plugin.is().is_none_or(is_ready) && !place.plugin.is_absent();
    if !up || is_registered(facts, place) != Some(false) {
        return Vec::new();
    }
    vec![
        Finding::certain(format!("The kubelet of the node {} does not know the driver.", place.name))
            .because(format!("the CSINode {} does not list {}", place.name, facts.driver_name))
            .then(format!(
                "The plugin's /readyz says how far its registration came: kubectl per-node doctor {}",
                place.name
            )),
    ]
}

pub fn waits_for_confirmation(facts: &Facts) -> Vec<Finding> {
    let Some(place) = facts.driver_place() else { return Vec::new() };
    let Some(waiting) = place.answer.is().and_then(|answer| answer.waiting.clone()) else {
        return Vec::new();
    };
    vec![
        Finding::note(format!("On the node {} removals wait for a person; pods do not.", place.name))
            .because(waiting)
            .then(format!(
                "Nothing for this pod. Before anybody confirms, see which copies would go: kubectl per-node confirm --node {} --show",
                place.name
            )),
    ]
}
