//! What `status` answers: one entry for each handle, with its PersistentVolumes, its copies by node, and what was refused.
//! This is the JSON of docs/kubectl.md, and what the tables are made of. Everything in it has one order.

use std::collections::{BTreeMap, BTreeSet};

use per_node::proto::report::{API_VERSION, Holder, NodeReport, Refusal, Store, TrashEntry};
use serde::Serialize;

use super::volumes::{Claim, Volume};
use crate::plugins::Plugin;

/// The kind of the answer.
const KIND: &str = "ClusterStatus";

/// The cluster at one look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// By the PersistentVolumes' names, then by handle.
    pub volumes: Vec<VolumeStatus>,
    /// By name.
    pub nodes: Vec<NodeStatus>,
    /// Removed copies that are not gone yet, by node; of each node the first ones.
    pub trash: Vec<TrashStatus>,
    /// What this answer lacks, one sentence each. Empty where it is complete.
    pub missing: Vec<String>,
}

/// One handle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStatus {
    pub handle: String,
    /// By name; mostly one.
    pub persistent_volumes: Vec<VolumeObject>,
    /// No PersistentVolume names the handle; missing where they could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan: Option<bool>,
    /// By node.
    pub copies: Vec<CopyStatus>,
    /// By node, then the latest first.
    pub refusals: Vec<RefusalStatus>,
}

/// One PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeObject {
    pub name: String,
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimStatus>,
}

/// The claim that `claimRef` names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    pub namespace: String,
    pub name: String,
    /// `status.phase`; `Missing` where there is no such claim; absent where the claims could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyStatus {
    pub node: String,
    /// The node's time when it told this: ages are counted from it.
    #[serde(skip)]
    pub told_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    pub holders: Vec<Holder>,
    pub leftover_mounts: u64,
}

/// A refusal on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalStatus {
    pub node: String,
    #[serde(skip)]
    pub told_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    pub reason: String,
    pub message: String,
    pub count: u64,
    pub first: String,
    pub last: String,
}

/// A removed copy that is not gone yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrashStatus {
    pub node: String,
    #[serde(flatten)]
    pub entry: TrashEntry,
}

/// One node that has a plugin's pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    pub node: String,
    pub pod: String,
    pub ready: bool,
    /// Why it is missing from this answer, or not all of it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The node's time when it told this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What its plugin says of itself, `/readyz`'s notes and reasons.
    pub notes: Vec<String>,
    pub copies: u64,
    pub trash: u64,
    /// Removals that failed at the latest pass.
    pub stuck: u64,
    /// Why removals wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

/// An answer in the making.
#[derive(Debug, Default)]
pub struct Gathering {
    handles: BTreeMap<String, VolumeStatus>,
    nodes: Vec<NodeStatus>,
    trash: Vec<TrashStatus>,
    missing: Vec<String>,
    volumes_known: bool,
    /// Only these are kept of what a node tells.
    only: Option<BTreeSet<String>>,
}

impl Gathering {
    /// Takes in the PersistentVolumes, and the claims where they could be read.
    pub fn volumes(&mut self, volumes: Vec<Volume>, claims: Option<&BTreeMap<Claim, String>>) {
        self.volumes_known = true;
        for Volume { name, handle, phase, claim } in volumes {
            let claim = claim.map(|claim| {
                let found = |claims: &BTreeMap<Claim, String>| {
                    claims.get(&claim).cloned().unwrap_or_else(|| "Missing".to_owned())
                };
                let phase = claims.map(found);
                ClaimStatus { namespace: claim.namespace.clone(), name: claim.name.clone(), phase }
            });
            self.of(&handle).persistent_volumes.push(VolumeObject { name, phase, claim });
        }
    }

    /// From now on nothing is kept but of these handles.
    pub fn keep_only(&mut self, only: Option<BTreeSet<String>>) {
        self.only = only;
    }

    /// Something that the answer lacks.
    pub fn lacks(&mut self, what: String) {
        self.missing.push(what);
    }

    /// One node, once it has said all it does: what it told, and why that is not all.
    pub fn node(&mut self, plugin: &Plugin, pages: Vec<NodeReport>, problem: Option<String>) {
        let mut node = NodeStatus {
            node: plugin.node.clone(),
            pod: plugin.pod.clone(),
            ready: plugin.ready,
            ..NodeStatus::default()
        };
        if let Some(problem) = &problem {
            self.missing.push(format!("{}: {problem}", plugin.node));
        }
        node.problem = problem;
        for page in pages {
            self.page(&mut node, page);
        }
        self.nodes.push(node);
    }

    fn page(&mut self, node: &mut NodeStatus, page: NodeReport) {
        let NodeReport {
            at, version, sweep, store, copies, copies_total, trash, trash_total, refusals, ..
        } = page;
        let name = &node.node;
        let wanted = self.only.clone();
        let is_wanted = |handle: &str| wanted.as_ref().is_none_or(|wanted| wanted.contains(handle));
        for copy in copies.into_iter().filter(|copy| is_wanted(&copy.handle)) {
            self.of(&copy.handle).copies.push(CopyStatus {
                node: name.clone(),
                told_at: at.clone(),
                bytes: copy.bytes,
                inodes: copy.inodes,
                measured_at: copy.measured_at,
                holders: copy.holders,
                leftover_mounts: copy.leftover_mounts,
            });
        }
        let of = |refusal: &Refusal| refusal.handle.clone().unwrap_or_default();
        for refusal in refusals.into_iter().filter(|refusal| is_wanted(&of(refusal))) {
            self.of(refusal.handle.as_deref().unwrap_or_default()).refusals.push(RefusalStatus {
                node: name.clone(),
                told_at: at.clone(),
                namespace: refusal.namespace,
                pod: refusal.pod,
                uid: refusal.uid,
                reason: refusal.reason,
                message: refusal.message,
                count: refusal.count,
                first: refusal.first,
                last: refusal.last,
            });
        }
        for entry in trash.into_iter().filter(|entry| is_wanted(&entry.handle)) {
            self.trash.push(TrashStatus { node: name.clone(), entry });
        }
        if node.version.is_none() {
            let sweep = sweep.unwrap_or_default();
            (node.stuck, node.waiting_for, node.at) = (sweep.stuck, sweep.waiting_for, Some(at));
            node.notes = sweep.not_ready.into_iter().chain(sweep.notes).collect();
            (node.version, node.store) = (Some(version), store);
            (node.copies, node.trash) = (copies_total, trash_total);
        }
    }

    fn of(&mut self, handle: &str) -> &mut VolumeStatus {
        if !self.handles.contains_key(handle) {
            let fresh = VolumeStatus { handle: handle.to_owned(), ..VolumeStatus::default() };
            self.handles.insert(handle.to_owned(), fresh);
        }
        self.handles.get_mut(handle).expect("it was put there")
    }

    /// The answer, in its order.
    pub fn answer(self) -> ClusterStatus {
        let Self { handles, mut nodes, mut trash, mut missing, volumes_known, only: _ } = self;
        let mut volumes: Vec<VolumeStatus> = handles.into_values().collect();
        for volume in &mut volumes {
            volume.persistent_volumes.sort();
            volume.copies.sort_by(|a, b| a.node.cmp(&b.node));
            // Stable: a node tells its refusals the latest first.
            volume.refusals.sort_by(|a, b| a.node.cmp(&b.node));
            let is_handle = !volume.handle.is_empty();
            volume.orphan = (volumes_known && is_handle).then_some(volume.persistent_volumes.is_empty());
        }
        volumes.sort_by(|a, b| (a.name(), &a.handle).cmp(&(b.name(), &b.handle)));
        nodes.sort_by(|a, b| (&a.node, &a.pod).cmp(&(&b.node, &b.pod)));
        trash.sort_by(|a, b| (&a.node, &a.entry.id).cmp(&(&b.node, &b.entry.id)));
        missing.sort();
        ClusterStatus { api_version: API_VERSION, kind: KIND, volumes, nodes, trash, missing }
    }
}

impl VolumeStatus {
    /// What a person calls it: the PersistentVolume's name, of several all, and without one the handle.
    pub fn name(&self) -> String {
        if self.persistent_volumes.is_empty() {
            return self.handle.clone();
        }
        let names: Vec<&str> = self.persistent_volumes.iter().map(|object| object.name.as_str()).collect();
        names.join(",")
    }
}
