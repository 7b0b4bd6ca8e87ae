//! What the plugin on a node is, and what only it can say: how far it is ready, what its removals wait for, its store.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use per_node::domain::health::LEFT_PERCENT_MIN;
use per_node::proto::report::Sweep;

use super::facts::{Facts, Heard, NodeFacts};
use super::line::Line;
use crate::event::{last_seen, told};
use crate::seen::Seen;
use crate::workload::{is_ready, last_words, to_read};

/// How the API server begins to say that the namespace admits no privileged pod, and the label that admits them.
const POD_SECURITY: &str = "violates PodSecurity";
const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce=privileged";

pub fn pod(facts: &Facts, name: &str, of_node: &NodeFacts) -> Vec<Line> {
    match &of_node.plugin {
        Seen::Absent if is_left_out(facts, of_node) => {
            let says =
                "the DaemonSet's nodeSelector leaves it out: a pod with a volume of the driver waits here";
            let repair = "keep such pods away with the component deploy/components/require-plugin, or take the selector out";
            vec![Line::warning(says, repair)]
        }
        Seen::Absent => {
            let says = "no plugin's pod: a pod that is placed here gets no volume";
            vec![match failed_create(facts) {
                Some(event) => Line::fault(
                    format!("{says}; {}", told(event, facts.now)),
                    mended(event, &facts.plugin_namespace),
                ),
                None => Line::fault(
                    says,
                    format!(
                        "see the DaemonSet's nodeSelector and tolerations: kubectl -n {} describe daemonset",
                        facts.plugin_namespace
                    ),
                ),
            }]
        }
        Seen::Is(pod) if is_ready(pod) => vec![Line::ok(format!("pod/{} is ready", name_of(pod)))],
        Seen::Is(pod) => {
            let words = last_words(pod);
            let why = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
            let repair = match &of_node.heard {
                Heard::Silent { is_late: true, .. } => delete(facts, pod),
                Heard::Silent { is_late: false, .. } | Heard::Report(..) | Heard::Unasked => to_read(pod),
            };
            vec![Line::fault(format!("pod/{} on {name} is not ready{why}", name_of(pod)), repair)]
        }
        Seen::Unread | Seen::Unasked => Vec::new(),
    }
}

pub fn answer(facts: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let plugin = of_node.plugin.is();
    match (&of_node.heard, plugin) {
        (Heard::Report(..), _) => vec![Line::ok("the plugin answers")],
        // It follows from what the line Plugin says.
        (Heard::Silent { .. }, Some(pod)) if !is_ready(pod) => Vec::new(),
        (Heard::Silent { why, is_late: true }, Some(pod)) => {
            let repair = format!("see that the API server reaches its pod; else {}", delete(facts, pod));
            vec![Line::warning(why.clone(), repair)]
        }
        (Heard::Silent { why, .. }, _) => {
            let repair = "run the plugin with --http-copies, as deploy/ does, and see that the API server reaches its pod";
            vec![Line::warning(why.clone(), repair)]
        }
        (Heard::Unasked, _) => Vec::new(),
    }
}

/// What to do about a plugin that takes a connection and says nothing.
fn delete(facts: &Facts, pod: &Pod) -> String {
    let namespace = &facts.plugin_namespace;
    format!(
        "it hangs: delete the pod, which disturbs no other: kubectl -n {namespace} delete pod {}",
        name_of(pod)
    )
}

/// The latest word of a DaemonSet's controller that it could not make a pod.
fn failed_create(facts: &Facts) -> Option<&Event> {
    let daemon_sets = facts.daemon_sets.is()?;
    let events = facts.failed_creates.is().into_iter().flatten();
    let of_ours = events.filter(|event| {
        daemon_sets
            .iter()
            .any(|one| one.metadata.name.is_some() && one.metadata.name == event.involved_object.name)
    });
    of_ours.max_by_key(|event| last_seen(event))
}

/// What to do about that event.
fn mended(event: &Event, namespace: &str) -> String {
    if event.message.as_deref().is_some_and(|text| text.contains(POD_SECURITY)) {
        return format!("kubectl label namespace {namespace} {POD_SECURITY_LABEL} --overwrite");
    }
    "mend what the event names; the DaemonSet tries again by itself".to_owned()
}

pub fn readiness(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(sweep) = sweep(of_node) else { return Vec::new() };
    if sweep.not_ready.is_empty() {
        return vec![Line::ok("the socket is served and the kubelet has registered the driver")];
    }
    let lines = sweep.not_ready.iter().map(|reason| {
        // What is not between plugin and kubelet, the reason itself and the log say better.
        let is_about_kubelet = ["kubelet", "regist"].iter().any(|word| reason.contains(word));
        let repair = match of_node.plugin.is() {
            Some(pod) if !is_about_kubelet => {
                format!(
                    "mend what it names (docs/runbooks/PerNodePluginNotReady.md); its log: {}",
                    to_read(pod)
                )
            }
            Some(_) | None => {
                "see the kubelet's log for the driver's name, and that --kubelet-dir is its --root-dir"
                    .to_owned()
            }
        };
        Line::fault(reason.clone(), repair)
    });
    lines.collect()
}

pub fn removals(_: &Facts, name: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(sweep) = sweep(of_node) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(waiting) = &sweep.waiting_for {
        lines.push(Line::warning(
            format!("removals wait for a person: {waiting}"),
            format!(
                "do not confirm yet: `kubectl per-node confirm --node {name} --show` lists what would go; make the \
                 PersistentVolumes of what is wanted (docs/runbooks/PerNodeRemovalsWaiting.md), then kubectl per-node confirm \
                 --node {name}"
            ),
        ));
    }
    if sweep.stuck > 0 {
        let says = format!("{} removals failed at the latest pass", sweep.stuck);
        lines.push(Line::warning(says, "the plugin's log names them and what resists"));
    }
    if !sweep.synced {
        let repair = "the log says why: mostly a missing right, or an API server that is not reached";
        lines.push(Line::warning("the PersistentVolumes were not read: nothing is removed", repair));
    } else if !sweep.live {
        let repair = "nothing, if it passes; else the log says why";
        lines.push(Line::warning(
            "the watch of the PersistentVolumes is interrupted: nothing is removed",
            repair,
        ));
    }
    if lines.is_empty() {
        lines.push(Line::ok(
            "no removal waits, and none failed at the latest pass (the trash is not looked at)",
        ));
    }
    lines
}

pub fn store(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(report) = of_node.heard.report() else { return Vec::new() };
    let Some(store) = &report.store else {
        let repair = "look again in a minute; if it stays, the plugin's log says why";
        return vec![Line::warning("not measured yet: how much of the store is left is not known", repair)];
    };
    let left = |available: u64, total: u64| (total > 0).then(|| available.saturating_mul(100) / total);
    let space = [
        ("space", left(store.available_bytes, store.total_bytes)),
        ("inodes", left(store.available_inodes, store.total_inodes)),
    ];
    let repair = "delete files, or PersistentVolumes; or give the store a larger disk";
    let mut lines = Vec::new();
    let mut told = Vec::new();
    for (what, left) in space {
        match left {
            Some(0) => {
                let says = format!("less than 1 % of the {what} is left: new copies cannot be made");
                lines.push(Line::fault(says, repair));
            }
            Some(percent) if percent < LEFT_PERCENT_MIN => {
                lines.push(Line::warning(format!("{percent} % of the {what} is left"), repair));
            }
            Some(percent) => told.push(format!("{percent} % of the {what} left")),
            // A file system without a fixed number of inodes.
            None => {}
        }
    }
    if lines.is_empty() {
        lines.push(Line::ok(told.join(", ")));
    }
    lines
}

/// Whether no DaemonSet of the plugin selects the node.
fn is_left_out(facts: &Facts, of_node: &NodeFacts) -> bool {
    let Some(daemon_sets) = facts.daemon_sets.is().filter(|found| !found.is_empty()) else { return false };
    let labels = of_node.node.metadata.labels.clone().unwrap_or_default();
    let selects = |daemon_set: &DaemonSet| {
        let spec = daemon_set.spec.template.spec.as_ref();
        let mut wanted = spec.and_then(|spec| spec.node_selector.as_ref()).into_iter().flatten();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    };
    !daemon_sets.iter().any(selects)
}

fn sweep(of_node: &NodeFacts) -> Option<&Sweep> {
    of_node.heard.report().and_then(|report| report.sweep.as_ref())
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}
