//! What others have said of the pod already: the scheduler, the driver's events, the kubelet's events, the containers. It is
//! passed on in their words, once, where no other cause has said it.

use k8s_openapi::api::core::v1::{ContainerStatus, Event};
use per_node::domain::handle::Handle;
use per_node::domain::mount_options::MountOptions;
use per_node::domain::refusal::Reason;

use super::facts::{Facts, last_seen, name, told};
use super::finding::Finding;
use super::holding::RECENT;
use super::volumes::{handle, made_anew};

/// States of a container that belong to a pod that is being started.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Kubelet events that tell why a pod does not start, as opposed to what it has done.
const TELLING: [&str; 7] = [
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "FailedBinding",
    "NetworkNotReady",
    "FailedPostStartHook",
];

pub fn unscheduled(facts: &Facts) -> Vec<Finding> {
    if facts.place.is_some() {
        return Vec::new();
    }
    match facts.condition("PodScheduled") {
        Some(("False", reason, message)) => {
            let sentence = "The scheduler does not place the pod.";
            // What it says of a claim, the causes about claims say better.
            let is_about_claims = message.to_ascii_lowercase().contains("persistentvolumeclaim");
            let finding =
                if is_about_claims { Finding::likely(sentence) } else { Finding::certain(sentence) };
            vec![
                finding
                    .because(format!("condition PodScheduled: {reason}: {message}"))
                    .then("Mend what the scheduler names; it looks again by itself."),
            ]
        }
        Some(_) | None if facts.phase() == "Pending" => vec![
            Finding::likely("The scheduler has not looked at the pod yet.")
                .because("it has no node and no condition PodScheduled that says why")
                .then(
                    "Wait a moment; if it stays, see whether the scheduler of its spec.schedulerName runs.",
                ),
        ],
        Some(_) | None => Vec::new(),
    }
}

/// A rule that the driver names in its event, where no field that can be read shows it.
pub fn refused(facts: &Facts) -> Vec<Finding> {
    let known: Vec<String> = facts
        .volumes()
        .flat_map(|(_, volume)| {
            let options =
                volume.spec.as_ref().and_then(|spec| spec.mount_options.clone()).unwrap_or_default();
            let rule = Handle::parse(handle(volume)).err().map(|rule| rule.to_string());
            [rule, MountOptions::parse(&options, false).err().map(|rule| rule.to_string())]
        })
        .flatten()
        .collect();
    let Some(event) = newest(facts, Reason::VolumeRefused) else { return Vec::new() };
    let message = event.message.as_deref().unwrap_or_default();
    if known.iter().any(|rule| message.contains(rule)) {
        return Vec::new();
    }
    vec![by_age(
        facts,
        event,
        format!("The driver refuses the volume: {message}."),
        &format!("Mend what it names, and then {}", made_anew(facts)),
    )]
}

pub fn mount_failed(facts: &Facts) -> Vec<Finding> {
    let Some(event) = newest(facts, Reason::MountFailed) else { return Vec::new() };
    let message = event.message.as_deref().unwrap_or_default();
    let remedy = "Mend on the node what it names; the kubelet tries again by itself.";
    vec![by_age(facts, event, format!("The driver could not mount the volume: {message}."), remedy)]
}

pub fn containers(facts: &Facts) -> Vec<Finding> {
    // The containers of a pod that was deleted have ended because of that.
    let Some(status) = facts.pod.status.as_ref().filter(|_| !facts.is_terminating()) else {
        return Vec::new();
    };
    let all =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    all.filter_map(|container| container_finding(facts, container)).collect()
}

fn container_finding(facts: &Facts, container: &ContainerStatus) -> Option<Finding> {
    let state = container.state.as_ref()?;
    let name = &container.name;
    let log = format!("kubectl logs {} -n {} -c {name}", facts.pod_name(), facts.namespace());
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        if STARTING.contains(&reason) || reason.is_empty() {
            return None;
        }
        let ended = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let ended = ended.map(|ended| format!("it ended with {} before", ended.exit_code));
        let text = waiting.message.as_deref().unwrap_or_default();
        return Some(
            Finding::certain(format!("The container {name} waits: {reason}; the volumes are mounted."))
                .because(format!("its state: {reason}: {text}"))
                .because_all(ended)
                .then(format!("Mend the container; its log: {log}")),
        );
    }
    if let Some(ended) = state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
        return Some(
            Finding::certain(format!("The container {name} has failed; its volumes were mounted."))
                .because(format!(
                    "it ended with {}: {}",
                    ended.exit_code,
                    ended.reason.as_deref().unwrap_or_default()
                ))
                .then(format!("Mend the container; its log: {log}")),
        );
    }
    let runs = state.running.is_some() && !container.ready && facts.phase() == "Running";
    runs.then(|| {
        Finding::likely(format!("The container {name} runs and is not ready."))
            .because("its status has ready: false; the volumes are mounted")
            .then(format!("Look at its readiness probe and its log: {log}"))
    })
}

/// The kubelet's own events, the newest of each reason, where the driver has said nothing that they repeat.
pub fn kubelet_events(facts: &Facts) -> Vec<Finding> {
    let events: Vec<&Event> = facts.events.is().into_iter().flatten().collect();
    let of_driver = |text: &str| {
        let reasons = Reason::REFUSALS.map(Reason::as_str);
        let ours =
            events.iter().filter(|event| reasons.contains(&event.reason.as_deref().unwrap_or_default()));
        ours.filter_map(|event| event.message.as_deref()).any(|message| text.contains(message))
    };
    let mut findings = Vec::new();
    for reason in TELLING {
        let of_reason = events.iter().filter(|event| event.reason.as_deref() == Some(reason));
        let Some(event) = of_reason.max_by_key(|event| last_seen(event)) else { continue };
        let text = event.message.as_deref().unwrap_or_default();
        if of_driver(text) || !is_recent(facts, event) || is_mended(facts, event) {
            continue;
        }
        findings.push(
            Finding::likely(format!("The kubelet says: {reason}."))
                .because(told(event, facts.now))
                .then("Mend what it names; the kubelet tries again by itself."),
        );
    }
    findings
}

/// Whether an event tells of an attachment of a volume of the driver that Kubernetes waits for no more: its CSIDriver is right now.
fn is_mended(facts: &Facts, event: &Event) -> bool {
    let waits_for_none =
        facts.csi_driver.is().is_some_and(|object| object.spec.attach_required == Some(false));
    let text = event.message.as_deref().unwrap_or_default();
    let of_ours =
        facts.volumes().any(|(_, volume)| text.contains(&format!("\"{}\"", name(&volume.metadata))));
    event.reason.as_deref() == Some("FailedAttachVolume") && waits_for_none && of_ours
}

/// Sure while the driver goes on saying so; likely when it has not for a while.
fn by_age(facts: &Facts, event: &Event, sentence: String, remedy: &str) -> Finding {
    let finding =
        if is_recent(facts, event) { Finding::certain(sentence) } else { Finding::likely(sentence) };
    finding.because(told(event, facts.now)).then(remedy)
}

fn is_recent(facts: &Facts, event: &Event) -> bool {
    last_seen(event).is_some_and(|last| facts.now.duration_since(last) <= RECENT)
}

fn newest(facts: &Facts, reason: Reason) -> Option<&Event> {
    let events = facts.events.is().into_iter().flatten();
    events
        .filter(|event| event.reason.as_deref() == Some(reason.as_str()))
        .max_by_key(|event| last_seen(event))
}
