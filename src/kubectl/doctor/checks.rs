//! The table of checks, and how it is gone through: each looks at the facts alone.

use super::facts::{Facts, NodeFacts};
use super::line::Line;
use super::{cluster, node, plugin};

/// What is looked at once.
pub struct ClusterCheck {
    pub id: &'static str,
    look: fn(&Facts) -> Vec<Line>,
}

/// What is looked at on each node.
pub struct NodeCheck {
    pub id: &'static str,
    look: fn(&Facts, &str, &NodeFacts) -> Vec<Line>,
}

pub const CLUSTER: &[ClusterCheck] = &[
    ClusterCheck { id: "CsiDriver", look: cluster::csi_driver },
    ClusterCheck { id: "DaemonSet", look: cluster::daemon_set },
    ClusterCheck { id: "Propagation", look: cluster::propagation },
    ClusterCheck { id: "KubeletDirectory", look: cluster::kubelet_directory },
    ClusterCheck { id: "Privileges", look: cluster::privileges },
    ClusterCheck { id: "Rights", look: cluster::rights },
    ClusterCheck { id: "Events", look: cluster::events },
    ClusterCheck { id: "PluginVersions", look: cluster::plugin_versions },
    ClusterCheck { id: "OwnClock", look: cluster::own_clock },
];

pub const NODE: &[NodeCheck] = &[
    NodeCheck { id: "Plugin", look: plugin::pod },
    NodeCheck { id: "Answer", look: plugin::answer },
    NodeCheck { id: "Readiness", look: plugin::readiness },
    NodeCheck { id: "Removals", look: plugin::removals },
    NodeCheck { id: "Store", look: plugin::store },
    NodeCheck { id: "CsiNode", look: node::csi_node },
    NodeCheck { id: "NodeAnnotation", look: node::annotation },
    NodeCheck { id: "Kubelet", look: node::kubelet },
    NodeCheck { id: "Kernel", look: node::kernel },
    NodeCheck { id: "Clock", look: node::clock },
];

/// Every line, the cluster's first, then node by node.
pub fn examine(facts: &Facts) -> Vec<Line> {
    let mut lines = Vec::new();
    for check in CLUSTER {
        lines.extend((check.look)(facts).into_iter().map(|line| Line { check: check.id, ..line }));
    }
    for (name, of_node) in &facts.nodes {
        for check in NODE {
            let found = (check.look)(facts, name, of_node).into_iter();
            lines.extend(found.map(|line| Line { check: check.id, node: Some(name.clone()), ..line }));
        }
    }
    lines
}
