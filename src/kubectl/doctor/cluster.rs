//! What the cluster has once: the driver's objects, as far as they can be judged without any node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::facts::Facts;
use super::line::Line;
use super::node::{SKEW_WARNING_S, median};
use crate::csi_driver::{differences, remedy};
use crate::installation::CONTAINER;
use crate::seen::Seen;
use crate::workload::{flag, is_zero};

/// What it was installed by, again: an overlay of one's own, or Helm.
const APPLY: &str = "install it again as it was installed (kubectl apply -k OVERLAY, or helm upgrade per-node deploy/chart \
                     -n per-node --reset-then-reuse-values --force-conflicts)";
/// The same where nothing of it is there. Helm keeps its releases in the namespace, and upgrades none that went with it.
const INSTALL: &str = "name its namespace with -n; or, where the namespace was deleted, create and label it as docs/install.md \
                       says, then kubectl apply -k OVERLAY, or helm install; else";

pub fn csi_driver(facts: &Facts) -> Vec<Line> {
    let object = match &facts.csi_driver {
        Seen::Is(object) => object,
        Seen::Absent => {
            let says = format!(
                "{} does not exist: pods wait for an attachment that nobody makes",
                facts.driver_name
            );
            return vec![Line::fault(says, crate::csi_driver::MAKE)];
        }
        Seen::Unread | Seen::Unasked => return Vec::new(),
    };
    let found = differences(object);
    if found.is_empty() {
        return vec![Line::ok(format!("{} has every field as deploy/ has it", facts.driver_name))];
    }
    let lines = found.iter().map(|one| {
        let says =
            format!("{} is {} and should be {}: {}", one.field, one.is, one.should_be, one.consequence);
        let repair = remedy(one, &facts.driver_name);
        if one.blocks { Line::fault(says, repair) } else { Line::warning(says, repair) }
    });
    lines.collect()
}

pub fn daemon_set(facts: &Facts) -> Vec<Line> {
    let Some(daemon_sets) = facts.daemon_sets.is() else { return Vec::new() };
    if daemon_sets.is_empty() {
        let says = format!("no DaemonSet of the plugin is in the namespace {}", facts.plugin_namespace);
        return vec![Line::fault(says, format!("{INSTALL} {APPLY}"))];
    }
    daemon_sets.iter().map(judged).collect()
}

fn judged(daemon_set: &DaemonSet) -> Line {
    let name = named(daemon_set);
    let strategy = daemon_set.spec.update_strategy.as_ref();
    let surge = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.max_surge.as_ref());
    if surge.is_some_and(|surge| !is_zero(surge)) {
        let says = format!("{name} has maxSurge above 0: two plugins on one node wait for one store's lock");
        return Line::warning(says, APPLY);
    }
    let status = daemon_set.status.as_ref();
    let (wanted, ready) =
        status.map_or((0, 0), |status| (status.desired_number_scheduled, status.number_ready));
    if ready < wanted {
        // Which nodes, and why, is said node by node.
        let repair = "see the lines of the nodes below".to_owned();
        return Line::warning(format!("{name}: {ready} of {wanted} pods are ready"), repair);
    }
    Line::ok(format!("{name}: {ready} of {wanted} pods are ready"))
}

pub fn propagation(facts: &Facts) -> Vec<Line> {
    each_container(facts, |name, container, _| {
        let kubelet_dir = flag(container, "--kubelet-dir").unwrap_or("/var/lib/kubelet");
        let mounts = container.volume_mounts.iter().flatten();
        let mut of_kubelet = mounts.filter(|mount| mount.mount_path == kubelet_dir);
        let found = of_kubelet.next().map(|mount| mount.mount_propagation.as_deref().unwrap_or("None"));
        match found {
            Some("Bidirectional") => {
                Line::ok(format!("{name}: what is mounted below {kubelet_dir} reaches the host"))
            }
            Some(other) => Line::fault(
                format!(
                    "{name}: the volumeMount of {kubelet_dir} has the propagation {other}: no pod sees its volume"
                ),
                "set its mountPropagation to Bidirectional",
            ),
            None => Line::fault(
                format!("{name}: no volumeMount has the path {kubelet_dir}, which --kubelet-dir names"),
                "mount the kubelet's directory there, with mountPropagation: Bidirectional",
            ),
        }
    })
}

pub fn kubelet_directory(facts: &Facts) -> Vec<Line> {
    each_container(facts, |name, container, pod| {
        let kubelet_dir = flag(container, "--kubelet-dir").unwrap_or("/var/lib/kubelet");
        let mounts = container.volume_mounts.iter().flatten();
        let mut of_kubelet = mounts.filter(|mount| mount.mount_path == kubelet_dir);
        let volume = of_kubelet.next().map(|mount| mount.name.as_str());
        let volumes = pod.volumes.iter().flatten();
        let mut behind = volumes.filter(|one| Some(one.name.as_str()) == volume);
        match behind.next().and_then(|volume| volume.host_path.as_ref()).map(|host| host.path.as_str()) {
            Some(path) if path == kubelet_dir => {
                Line::ok(format!("{name}: {kubelet_dir} here and on the host"))
            }
            Some(path) => Line::fault(
                format!(
                    "{name}: {kubelet_dir} here is {path} on the host, and target paths are used as they come"
                ),
                "give the hostPath, the mountPath and --kubelet-dir one path: the kubelet's --root-dir",
            ),
            None => Line::fault(
                format!("{name}: no hostPath is behind {kubelet_dir}"),
                "mount the kubelet's directory as a hostPath of the same path",
            ),
        }
    })
}

pub fn privileges(facts: &Facts) -> Vec<Line> {
    each_container(facts, |name, container, pod| {
        let context = container.security_context.as_ref();
        let privileged = context.and_then(|context| context.privileged).unwrap_or(false);
        let user = context.and_then(|context| context.run_as_user);
        let user =
            user.or(pod.security_context.as_ref().and_then(|context| context.run_as_user)).unwrap_or(0);
        if !privileged {
            let says =
                format!("{name}: the container is not privileged, without which no mount reaches the host");
            return Line::fault(says, APPLY);
        }
        if user != 0 {
            let says = format!("{name}: the container runs as the user {user}, who may mount nothing");
            return Line::fault(
                says,
                "set runAsUser to 0: the process gives up what it does not need by itself",
            );
        }
        Line::ok(format!(
            "{name}: privileged, as root; the process gives up all but five capabilities by itself"
        ))
    })
}

pub fn rights(facts: &Facts) -> Vec<Line> {
    let Some(rights) = facts.rights.is() else { return Vec::new() };
    let missing: Vec<_> = rights.iter().filter(|right| !right.granted).collect();
    if missing.is_empty() {
        return vec![Line::ok("the plugin's service account may do what it must")];
    }
    let lines = missing.iter().map(|right| {
        let consequence = match right.resource.as_str() {
            "events" => "pods carry only the kubelet's own events",
            _ => "nothing is removed",
        };
        let says =
            format!("the plugin's service account may not {} {}: {consequence}", right.verb, right.resource);
        Line::fault(says, format!("{APPLY} (the ClusterRole per-node and its binding)"))
    });
    lines.collect()
}

pub fn events(facts: &Facts) -> Vec<Line> {
    match facts.events {
        Seen::Is(()) => vec![Line::ok("you can read events, where refusals are told")],
        Seen::Absent | Seen::Unread | Seen::Unasked => Vec::new(),
    }
}

pub fn plugin_versions(facts: &Facts) -> Vec<Line> {
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    for report in facts.nodes.values().filter_map(|node| node.heard.report()) {
        *nodes.entry(&report.version).or_default() += 1;
    }
    let told: Vec<String> = nodes.iter().map(|(version, count)| format!("{version} on {count}")).collect();
    match nodes.len() {
        0 => Vec::new(),
        1 => vec![Line::ok(format!("one version: {}", told.join(", ")))],
        _ => {
            let repair = format!(
                "wait until the DaemonSet has rolled: kubectl -n {} rollout status daemonset",
                facts.plugin_namespace
            );
            vec![Line::warning(format!("more than one version: {}", told.join(", ")), repair)]
        }
    }
}

/// This machine's clock against that of the nodes, by which theirs are then compared.
pub fn own_clock(facts: &Facts) -> Vec<Line> {
    let Some(median) = median(facts) else { return Vec::new() };
    if median.abs() <= SKEW_WARNING_S {
        return vec![Line::ok(format!("within {SKEW_WARNING_S} s of the nodes'"))];
    }
    let says =
        format!("this machine's clock is {} s off the nodes': ages are shown that much wrong", median.abs());
    vec![Line::warning(says, "set this machine's clock")]
}

/// One line for each plugin container of each DaemonSet.
fn each_container(facts: &Facts, judge: impl Fn(&str, &Container, &PodSpec) -> Line) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for daemon_set in facts.daemon_sets.is().into_iter().flatten() {
        let name = named(daemon_set);
        let Some(pod) = &daemon_set.spec.template.spec else { continue };
        // Its own container by its name, else the first: an overlay may have renamed it.
        let own = pod.containers.iter().find(|one| one.name == CONTAINER).or(pod.containers.first());
        if let Some(container) = own.filter(|_| seen.insert(name.clone())) {
            lines.push(judge(&name, container, pod));
        }
    }
    lines
}

fn named(daemon_set: &DaemonSet) -> String {
    format!("daemonset/{}", daemon_set.metadata.name.as_deref().unwrap_or_default())
}
