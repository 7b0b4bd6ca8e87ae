//! What `doctor` looks at: the driver's objects, and of each node its objects, its plugin's pod and that plugin's word.
//! Nothing is asked here and nothing judged.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode};
use per_node::proto::report::NodeReport;

use crate::seen::Seen;

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Timestamp,
    pub driver_name: String,
    pub plugin_namespace: String,
    pub csi_driver: Seen<CSIDriver>,
    /// The DaemonSets that deploy/ labels; a cluster may have one for each kind of node.
    pub daemon_sets: Seen<Vec<DaemonSet>>,
    /// What the plugin's service account may do, by right.
    pub rights: Seen<Vec<Right>>,
    /// Why pods of a DaemonSet in that namespace could not be made, as its controller says.
    pub failed_creates: Seen<Vec<Event>>,
    /// Whether the caller can read events, from which `why` and `kubectl describe` tell.
    pub events: Seen<()>,
    pub nodes: BTreeMap<String, NodeFacts>,
    /// What could not be read, each with why, as sentences.
    pub unread: Vec<String>,
}

/// A right of the plugin's, and whether it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    pub verb: String,
    pub resource: String,
    pub granted: bool,
}

/// One node.
#[derive(Debug, Clone)]
pub struct NodeFacts {
    pub node: Node,
    pub csi_node: Seen<CSINode>,
    pub plugin: Seen<Pod>,
    pub heard: Heard,
}

/// The plugin's word.
#[derive(Debug, Clone, Default)]
pub enum Heard {
    /// Its report, and when that came, by this machine's clock.
    Report(Box<NodeReport>, Timestamp),
    /// Why there is none.
    Silent {
        why: String,
        /// It was connected to and said nothing in its time.
        is_late: bool,
    },
    /// There is nobody to ask.
    #[default]
    Unasked,
}

impl Heard {
    pub fn report(&self) -> Option<&NodeReport> {
        match self {
            Heard::Report(report, _) => Some(report),
            Heard::Silent { .. } | Heard::Unasked => None,
        }
    }
}

impl Facts {
    /// How far each node's clock is before this machine's, in seconds.
    pub fn offsets(&self) -> BTreeMap<&str, i64> {
        let offset = |facts: &NodeFacts| match &facts.heard {
            Heard::Report(report, came) => {
                let at: Timestamp = report.at.parse().ok()?;
                Some(at.duration_since(*came).as_secs())
            }
            Heard::Silent { .. } | Heard::Unasked => None,
        };
        self.nodes.iter().filter_map(|(name, facts)| Some((name.as_str(), offset(facts)?))).collect()
    }
}
