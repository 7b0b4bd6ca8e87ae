//! What Kubernetes says of a node: its registration of the driver, its kubelet, its kernel, its clock.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;

use super::facts::{Facts, NodeFacts};
use super::line::Line;
use crate::seen::Seen;
use crate::workload::{is_ready, to_read};

/// The minor versions of Kubernetes 1 that the driver's cases ran on (docs/versions.md).
pub const KUBERNETES_TRIED: std::ops::RangeInclusive<u64> = 34..=37;
/// The oldest kernel that the plugin starts on (C44).
pub const KERNEL_MIN: (u64, u64) = (5, 8);
/// Where the kubelet writes the node's names for each driver it has registered.
const ANNOTATION: &str = "csi.volume.kubernetes.io/nodeid";
/// Clocks that are further apart make ages and certificates wrong.
pub const SKEW_WARNING_S: i64 = 10;
/// And further than this, tokens are refused.
pub const SKEW_FAULT_S: i64 = 300;

pub fn csi_node(facts: &Facts, name: &str, of_node: &NodeFacts) -> Vec<Line> {
    let has_word = of_node.heard.report().is_some();
    let is_down = of_node.plugin.is().is_some_and(|plugin| !is_ready(plugin)) && !has_word;
    if of_node.plugin.is_absent() || is_down {
        // What the line Plugin says: nobody registers where no plugin runs.
        return Vec::new();
    }
    let repair = match of_node.plugin.is().filter(|_| !has_word) {
        Some(plugin) => format!("its log says how far its registration came: {}", to_read(plugin)),
        None => format!("the plugin's own word stands in the line Readiness: kubectl per-node doctor {name}"),
    };
    let drivers = match &of_node.csi_node {
        Seen::Is(object) => &object.spec.drivers,
        Seen::Absent => {
            return vec![Line::fault("there is no CSINode: the kubelet has registered no driver", repair)];
        }
        Seen::Unread | Seen::Unasked => return Vec::new(),
    };
    let Some(driver) = drivers.iter().find(|driver| driver.name == facts.driver_name) else {
        let says =
            format!("the CSINode does not list {}: the kubelet does not know the driver", facts.driver_name);
        return vec![Line::fault(says, repair)];
    };
    if driver.node_id != name {
        let says = format!("the CSINode lists the driver with the node id {:?}", driver.node_id);
        return vec![Line::warning(says, "set the plugin's NODE_NAME to spec.nodeName, as deploy/ does")];
    }
    vec![Line::ok("the CSINode lists the driver")]
}

pub fn annotation(facts: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let annotations = of_node.node.metadata.annotations.as_ref();
    let written = annotations.and_then(|annotations| annotations.get(ANNOTATION));
    let ids: BTreeMap<String, String> =
        written.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let listed = of_node.csi_node.is().map(|object| {
        let mut drivers = object.spec.drivers.iter();
        drivers.find(|driver| driver.name == facts.driver_name).map(|driver| driver.node_id.clone())
    });
    match (ids.get(&facts.driver_name), listed) {
        (Some(id), Some(Some(other))) if *id != other => {
            let says = format!("the annotation has the node id {id:?}, the CSINode {other:?}");
            vec![Line::warning(
                says,
                "delete the plugin's pod on the node: the driver is then registered anew",
            )]
        }
        (Some(_), _) => vec![Line::ok("the node's annotation names the driver")],
        // What the line CsiNode says already.
        (None, Some(None)) => Vec::new(),
        (None, Some(Some(_)) | None) => vec![Line::warning(
            "the node's annotation does not name the driver",
            "delete the plugin's pod on the node: the driver is then registered anew",
        )],
    }
}

pub fn kubelet(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(version) = info(&of_node.node, |info| info.kubelet_version) else { return Vec::new() };
    let (first, last) = (KUBERNETES_TRIED.start(), KUBERNETES_TRIED.end());
    match numbers(&version) {
        Some((1, minor)) if KUBERNETES_TRIED.contains(&minor) => vec![Line::ok(version)],
        Some((1, minor)) if minor > *last => {
            let says = format!("{version} is newer than 1.{last}, the last that the driver was tried on");
            vec![Line::warning(says, "look for a newer per-node")]
        }
        Some(_) | None => {
            let says = format!("{version} was not tried: 1.{first} to 1.{last} were");
            vec![Line::warning(says, "upgrade the node's kubelet")]
        }
    }
}

pub fn kernel(_: &Facts, _: &str, of_node: &NodeFacts) -> Vec<Line> {
    let Some(version) = info(&of_node.node, |info| info.kernel_version) else { return Vec::new() };
    let (major, minor) = KERNEL_MIN;
    match numbers(&version) {
        Some(found) if found >= KERNEL_MIN => vec![Line::ok(format!("Linux {version}"))],
        Some(_) => {
            let says = format!("Linux {version}: the plugin needs {major}.{minor} or newer");
            vec![Line::fault(says, "upgrade the node's kernel")]
        }
        None => vec![Line::warning(
            format!("the kernel's version {version:?} cannot be read"),
            format!("see that it is Linux {major}.{minor} or newer"),
        )],
    }
}

pub fn clock(facts: &Facts, name: &str, _: &NodeFacts) -> Vec<Line> {
    let (Some(median), Some(offset)) = (median(facts), facts.offsets().get(name).copied()) else {
        return Vec::new();
    };
    let skew = (offset - median).abs();
    let repair = "set the node's clock, and see that its time service runs";
    let says = format!("its clock is {skew} s off that of the other nodes");
    match skew {
        0..=SKEW_WARNING_S => vec![Line::ok(format!("within {SKEW_WARNING_S} s of the others"))],
        skew if skew <= SKEW_FAULT_S => vec![Line::warning(says, repair)],
        _ => vec![Line::fault(format!("{says}: tokens and certificates are refused"), repair)],
    }
}

/// How far the nodes' clocks are before this machine's, by the node in the middle: one wrong clock moves it little.
pub fn median(facts: &Facts) -> Option<i64> {
    let mut offsets: Vec<i64> = facts.offsets().into_values().collect();
    offsets.sort_unstable();
    // The lower middle of an even number.
    offsets.get(offsets.len().checked_sub(1)? / 2).copied()
}

fn info(node: &Node, of: impl Fn(k8s_openapi::api::core::v1::NodeSystemInfo) -> String) -> Option<String> {
    node.status.as_ref().and_then(|status| status.node_info.clone()).map(of)
}

/// The first two numbers of a version: `v1.37.2`, `6.18.0-cloud`.
fn numbers(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
