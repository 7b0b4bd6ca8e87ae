//! Causes in other pods: who holds the copy on this node (C12), and who has a claim that one pod in the cluster may have.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use per_node::domain::refusal::Reason;

use super::facts::{ClaimFacts, Facts, HolderFact, Seen, age, full_name, last_seen, name, told};
use super::finding::Finding;
use super::volumes::handle;
use crate::workload::is_zero;

/// An event that is older does not tell how things are now. The driver counts a refusal in one event for as long.
pub const RECENT: SignedDuration = SignedDuration::from_mins(10);

pub fn held(facts: &Facts) -> Vec<Finding> {
    let Some(place) = &facts.place else { return Vec::new() };
    let own_uid = facts.pod.metadata.uid.as_deref();
    let Some(answer) = place.answer.is() else { return held_by_event(facts) };
    let mut findings = Vec::new();
    for (_, volume) in facts.volumes() {
        let of_volume = answer.holders.iter().filter(|holder| holder.handle == handle(volume));
        for holder in of_volume.filter(|holder| own_uid.is_none() || holder.uid.as_deref() != own_uid) {
            let since =
                holder.since.map(|since| format!(", for {}", age(since, facts.now))).unwrap_or_default();
            let finding = Finding::certain(format!(
                "{} holds the volume {} on the node {}{since}.",
                holder.name, holder.handle, place.name
            ))
            .because(format!("the plugin's answer on {}", place.name));
            findings.push(
                with_holder(finding, facts, holder).because_all(event_lines(facts, Reason::VolumeHeld)),
            );
        }
    }
    findings
}

/// What the plugin does not answer, its newest event may have told.
fn held_by_event(facts: &Facts) -> Vec<Finding> {
    let events = facts.events.is().into_iter().flatten();
    let mut of_reason: Vec<_> =
        events.filter(|event| event.reason.as_deref() == Some(Reason::VolumeHeld.as_str())).collect();
    of_reason.sort_by_key(|event| last_seen(event));
    let Some(newest) = of_reason.pop() else { return Vec::new() };
    let recent = last_seen(newest).is_some_and(|last| facts.now.duration_since(last) <= RECENT);
    if !recent {
        return Vec::new();
    }
    let message = newest.message.as_deref().unwrap_or_default();
    vec![
        Finding::likely(format!("Another pod held the copy when the driver last looked: {message}."))
            .because(told(newest, facts.now))
            .then("Wait until the holder is gone, or delete it; this pod goes on by itself."),
    ]
}

/// What becomes of the holder, and what to do about it.
fn with_holder(finding: Finding, facts: &Facts, holder: &HolderFact) -> Finding {
    let same_namespace =
        holder.name.strip_prefix(facts.namespace()).is_some_and(|rest| rest.starts_with('/'));
    let pod = facts.neighbours.is().and_then(|pods| {
        pods.iter()
            .find(|pod| pod.metadata.uid.is_some() && pod.metadata.uid.as_deref() == holder.uid.as_deref())
    });
    let deleted = pod.and_then(|pod| pod.metadata.deletion_timestamp.as_ref());
    match (pod, deleted, &facts.neighbours) {
        (Some(_), Some(since), _) => finding
            .because(format!("that pod is being deleted, for {}", age(since.0, facts.now)))
            .then(
                "Wait for it; if it stays, its unmount is what is missing: look at findmnt on the node for its UID, and at \
                 docs/runbooks/PerNodeUnmountFailed.md; if no unpublish fails, restart the kubelet on that node.",
            ),
        (Some(_), None, _) => finding.then(format!(
            "Wait, or delete it: kubectl delete pod {} -n {}; this pod goes on by itself.",
            holder.name.rsplit('/').next().unwrap_or_default(),
            facts.namespace()
        )),
        // The kubelet has forgotten a volume that is still mounted; docs/guides/troubleshooting.md tells how.
        (None, _, Seen::Is(_)) if same_namespace => finding
            .because("there is no pod of that name and UID any more")
            .then("Restart the kubelet on that node: it finds the forgotten mount and unmounts it."),
        (None, _, _) => {
            finding.then(format!("Wait, or delete {}; this pod goes on by itself.", holder.name))
        }
    }
}

pub fn once_pod_in_use(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for claim in facts.claims.iter().filter(|claim| is_once_pod(claim)) {
        for other in users(facts, claim) {
            let placed = other.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            let Some(node) = placed else { continue };
            let finding = Finding::certain(format!(
                "The pod {} has the claim {}, which one pod in the cluster may have.",
                full_name(&other.metadata),
                claim.name
            ))
            .because(format!("the claim's access mode is ReadWriteOncePod; that pod is on the node {node}"))
            .then(format!(
                "Wait, or delete it: kubectl delete pod {} -n {}; for pods on many nodes use ReadWriteMany.",
                name(&other.metadata),
                facts.namespace()
            ));
            findings.push(finding);
        }
    }
    findings
}

pub fn rolling_update_once_pod(facts: &Facts) -> Vec<Finding> {
    let Some(deployment) = facts.deployment.is().filter(|_| surges(facts)) else { return Vec::new() };
    let once = facts.claims.iter().filter(|claim| is_once_pod(claim));
    once.map(|claim| {
        let sentence = format!(
            "The Deployment {} starts a new pod before the old one ends, and its claim {} is for one pod.",
            name(&deployment.metadata),
            claim.name
        );
        let in_its_way = users(facts, claim).any(|other| same_deployment(facts, other));
        let finding = if in_its_way { Finding::certain(sentence) } else { Finding::note(sentence) };
        finding
            .because("spec.strategy is a RollingUpdate with maxSurge above 0; the claim is ReadWriteOncePod")
            .then(format!(
                "kubectl patch deployment {} -n {} -p '{{\"spec\":{{\"strategy\":{{\"type\":\"Recreate\",\"rollingUpdate\":null}}}}}}'",
                name(&deployment.metadata),
                facts.namespace()
            ))
    })
    .collect()
}

/// The same with a volume for many nodes: the new pod came to the node where the old one still holds the copy.
pub fn rolling_update_surge(facts: &Facts) -> Vec<Finding> {
    let Some(deployment) = facts.deployment.is().filter(|_| surges(facts)) else { return Vec::new() };
    let holders = facts.place.iter().filter_map(|place| place.answer.is()).flat_map(|answer| &answer.holders);
    let handles: Vec<&str> = facts.volumes().map(|(_, volume)| handle(volume)).collect();
    let mut of_deployment =
        holders.filter(|holder| handles.contains(&holder.handle.as_str())).filter(|holder| {
            let pods = facts.neighbours.is().into_iter().flatten();
            pods.filter(|pod| pod.metadata.uid.as_deref() == holder.uid.as_deref())
                .any(|pod| same_deployment(facts, pod))
        });
    let Some(holder) = of_deployment.next() else { return Vec::new() };
    vec![
        Finding::certain(format!(
            "The Deployment {} starts a new pod before the old one ends, and both came to one node.",
            name(&deployment.metadata)
        ))
        .because(format!("{} is its pod too and holds the volume {}", holder.name, holder.handle))
        .because("spec.strategy is a RollingUpdate with maxSurge above 0")
        .then(format!(
            "kubectl patch deployment {} -n {} -p '{{\"spec\":{{\"strategy\":{{\"rollingUpdate\":{{\"maxSurge\":0,\"maxUnavailable\":1}}}}}}}}'",
            name(&deployment.metadata),
            facts.namespace()
        )),
    ]
}

/// Whether the pod's Deployment lets a new pod begin beside an old one, which is the default.
fn surges(facts: &Facts) -> bool {
    let Some(deployment) = facts.deployment.is() else { return false };
    let Some(strategy) = &deployment.spec.strategy else { return true };
    let surge = strategy.rolling_update.as_ref().and_then(|rolling| rolling.max_surge.as_ref());
    strategy.type_.as_deref() != Some("Recreate") && !surge.is_some_and(is_zero)
}

/// Whether another pod is of the same Deployment: of a ReplicaSet whose name is the Deployment's and a hash.
fn same_deployment(facts: &Facts, pod: &Pod) -> bool {
    let Some(deployment) = facts.deployment.is() else { return false };
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut sets = owners.filter(|owner| owner.kind == "ReplicaSet");
    sets.any(|set| set.name.rsplit_once('-').is_some_and(|(of, _)| of == name(&deployment.metadata)))
}

/// The other pods that use the claim and have not ended.
fn users<'f>(facts: &'f Facts, claim: &'f ClaimFacts) -> impl Iterator<Item = &'f Pod> {
    let own_uid = facts.pod.metadata.uid.as_deref();
    let others =
        facts.neighbours.is().into_iter().flatten().filter(move |pod| pod.metadata.uid.as_deref() != own_uid);
    others.filter(|pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mut names = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        !matches!(phase, Some("Succeeded" | "Failed")) && names.any(|source| source.claim_name == claim.name)
    })
}

fn is_once_pod(claim: &ClaimFacts) -> bool {
    let modes = claim.claim.is().and_then(|claim| claim.spec.as_ref()?.access_modes.as_ref());
    modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
}

/// The driver's events of one reason on this pod, as evidence.
fn event_lines(facts: &Facts, reason: Reason) -> Vec<String> {
    let events = facts.events.is().into_iter().flatten();
    events
        .filter(|event| event.reason.as_deref() == Some(reason.as_str()))
        .map(|event| told(event, facts.now))
        .collect()
}
