//! What is known of a pod that does not run: objects as the API server gave them, and what the node's plugin answered.
//!
//! Nothing is asked here and nothing judged. What could not be read is a fact too, so that a cause which needs it stays
//! silent and the person is told what was not seen.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Event, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use crate::event::{age, last_seen, told};
pub use crate::seen::Seen;

/// Everything that the causes look at.
#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Timestamp,
    pub driver_name: String,
    /// Where the plugins' pods are looked for.
    pub plugin_namespace: String,
    pub pod: Pod,
    /// The pod's volumes that are claims, in the pod's order.
    pub claims: Vec<ClaimFacts>,
    pub csi_driver: Seen<CSIDriver>,
    /// Where the scheduler has put the pod.
    pub place: Option<Place>,
    /// The Deployment above the pod, where there is one.
    pub deployment: Seen<Deployment>,
    /// The other pods of the pod's namespace.
    pub neighbours: Seen<Vec<Pod>>,
    /// What the pod's status says of its volumes' health; nothing where they are well, or nobody asks.
    pub health: Vec<HealthFact>,
    /// The events on this pod, by its UID.
    pub events: Seen<Vec<Event>>,
    /// What could not be read, each with why, as sentences.
    pub unread: Vec<String>,
}

/// One claim of the pod.
#[derive(Debug, Clone)]
pub struct ClaimFacts {
    pub name: String,
    pub claim: Seen<PersistentVolumeClaim>,
    /// The volume that the claim is bound to, or names.
    pub volume: Seen<PersistentVolume>,
    /// For a claim that is not bound: the driver's volumes that are reserved for a claim of its name, or for none.
    pub candidates: Seen<Vec<PersistentVolume>>,
}

/// The node that the pod is on.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub node: Seen<Node>,
    pub csi_node: Seen<CSINode>,
    /// The plugin's pod on this node.
    pub plugin: Seen<Pod>,
    /// What that plugin said.
    pub answer: Seen<Answer>,
    /// Why it said nothing, where it was asked and nothing came back; a missing right is no such reason.
    pub silence: Option<String>,
}

/// One condition of a volume's health, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthFact {
    /// The claim by which the pod has the volume.
    pub claim: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// The plugin's word about its node.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Why it is not ready; empty where it is.
    pub not_ready: Vec<String>,
    /// What removals wait for a person for.
    pub waiting: Option<String>,
    pub holders: Vec<HolderFact>,
}

/// One holder of one copy.
#[derive(Debug, Clone)]
pub struct HolderFact {
    pub handle: String,
    /// As messages name it: `namespace/name`, a UID, or a path.
    pub name: String,
    pub uid: Option<String>,
    pub since: Option<Timestamp>,
}

impl Facts {
    pub fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or("default")
    }

    pub fn pod_name(&self) -> &str {
        name(&self.pod.metadata)
    }

    /// The claims whose volume is this driver's, with that volume.
    pub fn volumes(&self) -> impl Iterator<Item = (&ClaimFacts, &PersistentVolume)> {
        self.claims
            .iter()
            .filter_map(|claim| Some((claim, claim.volume.is()?)))
            .filter(|(_, volume)| is_ours(volume, &self.driver_name))
    }

    /// Whether anything of the pod is the driver's: a volume that is bound or named, or one that is reserved for a claim of it.
    pub fn concerns_driver(&self) -> bool {
        let reserved = |one: &ClaimFacts| {
            let (Some(claim), Some(found)) = (one.claim.is(), one.candidates.is()) else { return false };
            let references = found.iter().filter_map(|volume| volume.spec.as_ref()?.claim_ref.as_ref());
            references.into_iter().any(|reference| reserves(reference, claim))
        };
        self.volumes().next().is_some() || self.claims.iter().any(reserved)
    }

    /// A condition of the pod: its status, reason and message.
    pub fn condition(&self, kind: &str) -> Option<(&str, &str, &str)> {
        let conditions = self.pod.status.as_ref()?.conditions.as_ref()?;
        let found = conditions.iter().find(|one| one.type_ == kind)?;
        Some((
            found.status.as_str(),
            found.reason.as_deref().unwrap_or_default(),
            found.message.as_deref().unwrap_or_default(),
        ))
    }

    /// Whether somebody has deleted the pod, which is still there.
    pub fn is_terminating(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    /// The pod's node, where the pod has a volume of the driver.
    pub fn driver_place(&self) -> Option<&Place> {
        self.place.as_ref().filter(|_| self.concerns_driver())
    }

    pub fn phase(&self) -> &str {
        self.pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
    }
}

pub fn is_ours(volume: &PersistentVolume, driver_name: &str) -> bool {
    volume.spec.as_ref().and_then(|spec| spec.csi.as_ref()).is_some_and(|csi| csi.driver == driver_name)
}

pub fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// Whether a volume's reference has the claim's name, whatever its UID.
pub fn reserves(reference: &ObjectReference, claim: &PersistentVolumeClaim) -> bool {
    reference.namespace == claim.metadata.namespace && reference.name == claim.metadata.name
}

/// `namespace/name`.
pub fn full_name(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), name(metadata))
}
