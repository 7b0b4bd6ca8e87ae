//! One cluster's API server: PersistentVolumes with revisions and a history, watch views that follow it or
//! lag, an etcd that can be put back to a backup, and events. It validates nothing that the driver relies on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use super::clock::SteppedClock;
use super::cluster::{ClusterGate, ClusterView, ViewState};
use super::events::{EventGate, EventStore};
use super::locked;
use crate::domain::handle::Handle;
use crate::domain::proof::{ClusterUid, Revision};

/// How long an event is kept after it was last written, unless told otherwise.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// One cluster. Clones are the same cluster.
#[derive(Clone)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
    clock: SteppedClock,
    cluster_gate: ClusterGate,
    event_gate: EventGate,
}

pub(super) struct State {
    pub cluster_uid: ClusterUid,
    etcd: Etcd,
    last_uid: u64,
    /// Watch streams reach back to the revision after this one.
    pub compacted: Revision,
    /// Lists answer this revision instead of the newest, as an API server that is behind would.
    pub lists_at: Option<Revision>,
    /// Volumes of other drivers that are only a number here.
    other_volumes: usize,
    views: Vec<Weak<ClusterView>>,
    pub events: EventStore,
}

/// What a backup of etcd keeps. Events are left out.
#[derive(Debug, Clone)]
struct Etcd {
    revision: Revision,
    history: Vec<Change>,
}

/// An etcd backup.
#[derive(Debug, Clone)]
pub struct Backup(Etcd);

/// One change of a PersistentVolume.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub revision: Revision,
    pub name: String,
    /// `None` where the volume was deleted.
    pub volume: Option<Volume>,
    pub uid: String,
}

/// A PersistentVolume, as far as the driver reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Volume {
    pub driver: String,
    pub handle: Handle,
    pub is_terminating: bool,
}

impl ApiServer {
    /// A new cluster whose events age by this clock.
    pub fn new(clock: &SteppedClock) -> ApiServer {
        let state = State {
            cluster_uid: ClusterUid("cluster-1".to_owned()),
            etcd: Etcd { revision: Revision(100), history: Vec::new() },
            last_uid: 0,
            compacted: Revision(0),
            lists_at: None,
            other_volumes: 0,
            views: Vec::new(),
            events: EventStore::new(EVENT_TTL),
        };
        ApiServer {
            state: Arc::new(Mutex::new(state)),
            clock: clock.clone(),
            cluster_gate: ClusterGate::default(),
            event_gate: EventGate::default(),
        }
    }

    /// Where faults of lists and of the cluster's identity are told.
    pub fn cluster_gate(&self) -> &ClusterGate {
        &self.cluster_gate
    }

    /// Where faults of events are told.
    pub fn event_gate(&self) -> &EventGate {
        &self.event_gate
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(super) fn clock(&self) -> &SteppedClock {
        &self.clock
    }

    /// A watch that shows every change at once, in a process that looks for volumes of `driver`.
    pub fn follow(&self, driver: &str) -> Arc<ClusterView> {
        let view = self.watch(driver);
        view.follow();
        view
    }

    /// A watch that has not begun: it shows what it is told to deliver.
    pub fn watch(&self, driver: &str) -> Arc<ClusterView> {
        let view = Arc::new(ClusterView::new(self.clone(), driver.to_owned(), ViewState::default()));
        let mut state = self.state();
        state.views.retain(|view| view.strong_count() > 0);
        state.views.push(Arc::downgrade(&view));
        drop(state);
        view
    }

    /// Creates a PersistentVolume, in place of one of the same name; answers its UID.
    pub fn create_volume(&self, name: &str, driver: &str, handle: &Handle) -> String {
        let mut state = self.state();
        state.last_uid += 1;
        let uid = format!("volume-{}", state.last_uid);
        if state.newest(name).is_some() {
            state.remove(name);
        }
        let volume = Volume { driver: driver.to_owned(), handle: handle.clone(), is_terminating: false };
        state.change(name, uid.clone(), Some(volume));
        drop(state);
        self.tell_views();
        uid
    }

    /// Marks a volume as being deleted; a finalizer still keeps it. False where there is none.
    pub fn terminate_volume(&self, name: &str) -> bool {
        let mut state = self.state();
        let Some((uid, volume)) = state.newest(name) else { return false };
        state.change(name, uid, Some(Volume { is_terminating: true, ..volume }));
        drop(state);
        self.tell_views();
        true
    }

    /// Removes a volume for good. False where there is none.
    pub fn delete_volume(&self, name: &str) -> bool {
        let removed = self.state().remove(name);
        self.tell_views();
        removed
    }

    /// Any other write to etcd.
    pub fn touch(&self) {
        self.state().etcd.revision.0 += 1;
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        self.state().etcd.revision
    }

    /// The handles that volumes of `driver` name now: the truth, not what any view shows.
    pub fn handles(&self, driver: &str) -> BTreeSet<Handle> {
        let state = self.state();
        let at = state.etcd.revision;
        state.volumes_at(driver, at).into_values().collect()
    }

    /// The names of all volumes.
    pub fn volume_names(&self) -> Vec<String> {
        let state = self.state();
        state.all_at(state.etcd.revision).into_iter().map(|(name, _, _)| name).collect()
    }

    pub fn backup(&self) -> Backup {
        Backup(self.state().etcd.clone())
    }

    /// Puts etcd back. Open watches notice nothing; revisions are given anew.
    pub fn restore(&self, backup: &Backup) {
        self.state().etcd = backup.0.clone();
    }

    /// Forgets the history, so that a watch that has to resume cannot (410).
    pub fn compact(&self) {
        let mut state = self.state();
        state.compacted = state.etcd.revision;
    }

    /// Lists answer the state of this revision; `None` for the newest.
    pub fn answer_lists_at(&self, revision: Option<Revision>) {
        self.state().lists_at = revision;
    }

    /// So many volumes of other drivers are there as well, from the next list on.
    pub fn set_other_volumes(&self, count: usize) {
        self.state().other_volumes = count;
    }

    /// The UID of `kube-system` now.
    pub fn cluster_uid(&self) -> ClusterUid {
        self.state().cluster_uid.clone()
    }

    /// Another cluster answers from now on.
    pub fn set_cluster_uid(&self, uid: &str) {
        self.state().cluster_uid = ClusterUid(uid.to_owned());
    }

    fn tell_views(&self) {
        let views: Vec<Arc<ClusterView>> = self.state().views.iter().filter_map(Weak::upgrade).collect();
        views.iter().for_each(|view| view.changed());
    }
}

impl State {
    pub fn head(&self) -> Revision {
        self.etcd.revision
    }

    fn change(&mut self, name: &str, uid: String, volume: Option<Volume>) {
        self.etcd.revision.0 += 1;
        let change = Change { revision: self.etcd.revision, name: name.to_owned(), volume, uid };
        self.etcd.history.push(change);
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some((uid, _)) = self.newest(name) else { return false };
        self.change(name, uid, None);
        true
    }

    fn newest(&self, name: &str) -> Option<(String, Volume)> {
        let change = self.etcd.history.iter().rev().find(|change| change.name == name)?;
        change.volume.clone().map(|volume| (change.uid.clone(), volume))
    }

    /// Changes after a revision, as a watch that resumes there gets them.
    pub fn changes_after(&self, revision: Revision, at_most: usize) -> Vec<Change> {
        let after = self.etcd.history.iter().filter(|change| change.revision > revision);
        after.take(at_most).cloned().collect()
    }

    /// How many volumes of any driver there were at a revision.
    pub fn volume_count(&self, at: Revision) -> usize {
        self.all_at(at).len() + self.other_volumes
    }

    /// Volumes of one driver at a revision, by UID.
    pub fn volumes_at(&self, driver: &str, at: Revision) -> BTreeMap<String, Handle> {
        let all = self.all_at(at).into_iter().filter(|(_, _, volume)| volume.driver == driver);
        all.map(|(_, uid, volume)| (uid, volume.handle)).collect()
    }

    fn all_at(&self, at: Revision) -> Vec<(String, String, Volume)> {
        let mut all = BTreeMap::new();
        for change in self.etcd.history.iter().take_while(|change| change.revision <= at) {
            match &change.volume {
                Some(volume) => all.insert(change.name.clone(), (change.uid.clone(), volume.clone())),
                None => all.remove(&change.name),
            };
        }
        all.into_iter().map(|(name, (uid, volume))| (name, uid, volume)).collect()
    }
}
