//! What has been seen so far, for invariants to judge by. It sees ports and answers, never the driver's insides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use per_node::adapters::memory::{ApiServer, ClusterView, Node};
use per_node::domain::handle::Handle;
use per_node::domain::proof::{ClusterUid, Revision};
use per_node::domain::refusal::Reason;
use per_node::ports::cluster::{Cluster, ClusterError, NamedHandles, WatchHealth};

use crate::brakes::BrakesLedger;

/// A complete list that a process got.
#[derive(Debug, Clone)]
pub struct SeenList {
    /// The process, by its number.
    pub process: u32,
    /// The step in which it was asked for.
    pub begun: u64,
    /// Uptime at its answer.
    pub at: Duration,
    pub revision: Revision,
    /// The highest revision that the watch had seen before.
    pub highest_before: Option<Revision>,
    pub cluster_uid: ClusterUid,
    pub handles: BTreeSet<Handle>,
}

/// A consistent read of the head that a process got.
#[derive(Debug, Clone)]
pub struct SeenHead {
    pub process: u32,
    /// The step in which it was asked for.
    pub begun: u64,
    /// Uptime at its answer.
    pub at: Duration,
    pub revision: Revision,
    /// The highest revision that the watch had seen or the store kept before.
    pub highest_before: Option<Revision>,
    pub cluster_uid: ClusterUid,
}

/// What makes refusals one kind of event: pod UID, reason, message.
pub type RefusalKey = (String, Reason, String);

/// Everything observed.
#[derive(Debug, Default)]
pub struct Ledger {
    pub step: u64,
    pub uptime: Duration,
    pub lists: Vec<SeenList>,
    pub heads: Vec<SeenHead>,
    /// The last step after which no volume of a cluster, by its UID, named the handle: the truth, whatever anybody was
    /// answered.
    pub unnamed: BTreeMap<(String, Handle), u64>,
    /// A person has confirmed, and the store has not changed its mind about the history since.
    pub confirm_asked: bool,
    /// The last step after which a mount showed the handle.
    pub shown: BTreeMap<Handle, u64>,
    /// The last step after which the watch said that it saw the handle's deletion.
    pub deletion_seen: BTreeMap<Handle, u64>,
    /// Handles of publishes that ended with an unknown outcome.
    pub uncertain: BTreeSet<Handle>,
    /// What the pods wrote last, for each handle that has a copy.
    pub contents: BTreeMap<Handle, Vec<u8>>,
    pub refusals: BTreeMap<RefusalKey, u32>,
    /// The highest count of each event that ever was on the disk.
    pub written: BTreeMap<String, (RefusalKey, u32)>,
    /// Of the refusals, how many neither the disk nor the API server had ever known when the latest process began.
    pub unwritten: BTreeMap<RefusalKey, u32>,
    /// The highest count seen of each event.
    pub event_counts: BTreeMap<String, (RefusalKey, u32)>,
    pub seen: Seen,
    pub brakes: BrakesLedger,
}

/// How often what happened: a simulation in which nothing happens proves nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub steps: u64,
    pub published: u32,
    pub republished: u32,
    pub held: u32,
    pub failed: u32,
    pub unknown: u32,
    pub unpublished: u32,
    pub removed: u32,
    pub removed_by_watch: u32,
    pub crashes: u32,
    pub reboots: u32,
    pub restores: u32,
    pub went_back: u32,
    pub confirmed: u32,
    pub forgotten: u32,
    pub events: u32,
    pub healths: u32,
    pub kept: u32,
    pub restored: u32,
    pub emptied_early: u32,
    pub let_through: u32,
}

pub type SharedLedger = Arc<Mutex<Ledger>>;

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        let pairs = [
            (&mut self.published, other.published),
            (&mut self.republished, other.republished),
            (&mut self.held, other.held),
            (&mut self.failed, other.failed),
            (&mut self.unknown, other.unknown),
            (&mut self.unpublished, other.unpublished),
            (&mut self.removed, other.removed),
            (&mut self.removed_by_watch, other.removed_by_watch),
            (&mut self.crashes, other.crashes),
            (&mut self.reboots, other.reboots),
            (&mut self.restores, other.restores),
            (&mut self.went_back, other.went_back),
            (&mut self.confirmed, other.confirmed),
            (&mut self.forgotten, other.forgotten),
            (&mut self.events, other.events),
            (&mut self.healths, other.healths),
            (&mut self.kept, other.kept),
            (&mut self.restored, other.restored),
            (&mut self.emptied_early, other.emptied_early),
            (&mut self.let_through, other.let_through),
        ];
        self.steps += other.steps;
        pairs.into_iter().for_each(|(sum, more)| *sum += more);
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("published", self.published),
            ("republished", self.republished),
            ("held", self.held),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("unpublished", self.unpublished),
            ("removed", self.removed),
            ("removed by a proof of the watch", self.removed_by_watch),
            ("crashes", self.crashes),
            ("reboots", self.reboots),
            ("restores", self.restores),
            ("histories that went back", self.went_back),
            ("confirmed", self.confirmed),
            ("forgotten", self.forgotten),
            ("events", self.events),
            ("healths", self.healths),
            ("copies that were kept", self.kept),
            ("restored", self.restored),
            ("kept copies that went for want of space", self.emptied_early),
            ("removals beyond a limit that a person let through", self.let_through),
        ];
        all.into_iter().filter(|(_, times)| *times == 0).map(|(what, _)| what).collect()
    }
}

/// The cluster as one process asks it; heads and complete lists go into the ledger.
pub struct WatchedCluster {
    pub view: Arc<ClusterView>,
    pub api: ApiServer,
    pub node: Node,
    pub ledger: SharedLedger,
    pub process: u32,
}

#[async_trait]
impl Cluster for WatchedCluster {
    fn watch_health(&self) -> WatchHealth {
        self.view.watch_health()
    }

    fn is_named(&self, handle: &Handle) -> bool {
        self.view.is_named(handle)
    }

    fn deletion_was_seen(&self, handle: &Handle) -> bool {
        self.view.deletion_was_seen(handle)
    }

    fn start_over(&self) {
        self.view.start_over();
    }

    async fn head(&self) -> Result<Revision, ClusterError> {
        let begun = self.ledger.lock().unwrap().step;
        let highest_before = self.view.watch_health().highest.max(self.node.revision_on_disk());
        let revision = self.view.head().await?;
        let mut ledger = self.ledger.lock().unwrap();
        let (process, at, cluster_uid) = (self.process, ledger.uptime, self.api.cluster_uid());
        ledger.heads.push(SeenHead { process, begun, at, revision, highest_before, cluster_uid });
        Ok(revision)
    }

    async fn list(&self) -> Result<NamedHandles, ClusterError> {
        let begun = self.ledger.lock().unwrap().step;
        let highest_before = self.view.watch_health().highest;
        let named = self.view.list().await?;
        let mut ledger = self.ledger.lock().unwrap();
        let (process, at) = (self.process, ledger.uptime);
        let (revision, handles) = (named.revision, named.handles.clone());
        let cluster_uid = self.api.cluster_uid();
        let list = SeenList { process, begun, at, revision, highest_before, cluster_uid, handles };
        ledger.lists.push(list);
        Ok(named)
    }

    async fn cluster_uid(&self) -> Result<ClusterUid, ClusterError> {
        self.view.cluster_uid().await
    }
}
