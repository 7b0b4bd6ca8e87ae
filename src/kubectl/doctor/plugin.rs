//! What the plugin on a node is, and what only it can say: how far it is ready, what its removals wait for, its store.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use per_node::domain::health::LEFT_PERCENT_MIN;
use per_node::proto::report::Sweep;

use super::facts::{Facts, Heard, NodeFacts};
use super::line::Line;
use crate::seen::Seen;
use crate::workload::{is_ready, last_words};

pub fn pod(facts: &Facts, name: &str, of_node: &NodeFacts) -> Vec<Line> {
    match &of_node.plugin {
        Seen::Absent if is_left_out(facts, of_node) => {
            let says =
                "the DaemonSet's nodeSelector leaves it out: a pod with a volume of the driver waits here";
            let repair = "keep such pods away with the component deploy/components/require-plugin, or take the selector out";
            vec![Line::warning(says, repair)]
        }
        Seen::Absent => {
            let says = "no plugin's pod: a pod that is placed here gets no volume".to_owned();
            let repair = format!(
                "see the DaemonSet's nodeSelector and tolerations: kubectl -n {} describe daemonset",
                facts.plugin_namespace
            );
            vec![Line::fault(says, repair)]
        }
        Seen::Is(pod) if is_ready(pod) => vec![Line::ok(format!("pod/{} is ready", name_of(pod)))],
        Seen::Is(pod) => {
            let words = last_words(pod);
            let why = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
            let repair = format!("kubectl -n {} logs {}", facts.plugin_namespace, name_of(pod));
            vec![Line::fault(format!("pod/{} on {name} is not ready{why}", name_of(pod)), repair)]
        }
        Seen::Unread | Seen::Unasked => Vec::new(),
    }
}

pub fn answer(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    match &of_node.heard {
        Heard::Report(..) => vec![Line::ok("the plugin answers")],
        Heard::Silent(why) => {
            let repair = "run the plugin with --http-copies, as deploy/ does, and see that the API server reaches its pod";
            vec![Line::warning(why.clone(), repair)]
        }
        Heard::Unasked => Vec::new(),
    }
}

pub fn readiness(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(sweep) = sweep(of_node) else { return Vec::new() };
    if sweep.not_ready.is_empty() {
        return vec![Line::ok("the socket is served and the kubelet has registered the driver")];
    }
    let repair = "see the kubelet's log for the driver's name, and that --kubelet-dir is its --root-dir";
    sweep.not_ready.iter().map(|reason| Line::fault(reason.clone(), repair)).collect()
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
        lines.push(Line::ok("nothing keeps copies from being removed"));
    }
    lines
}

pub fn store(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(store) = of_node.heard.report().and_then(|report| report.store.as_ref()) else {
        return Vec::new();
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
