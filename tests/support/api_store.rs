//! The state of the fake API server: PersistentVolumes with their history, namespaces and events.
//!
//! Pure: no I/O, no waiting. It keeps resource versions as etcd does (one counter for everything), a history that can be
//! compacted, and snapshots that continued lists are read from.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

/// Changes that a watch can still be begun from.
const HISTORY_MAX: usize = 50_000;
/// Lists that can still be continued.
const SNAPSHOTS_MAX: usize = 16;

type Volumes = Arc<BTreeMap<String, Arc<Volume>>>;

/// A PersistentVolume, kept small so that a hundred thousand of them fit; it is rendered when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub name: String,
    pub uid: String,
    pub driver: String,
    pub handle: String,
    pub revision: u64,
    pub terminating: bool,
}

/// One entry of the history.
#[derive(Debug, Clone)]
pub struct Change {
    pub kind: &'static str,
    pub revision: u64,
    pub volume: Arc<Volume>,
}

/// How a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Active,
    Terminating,
}

/// One page of a list.
pub struct Page {
    pub revision: u64,
    pub volumes: Vec<Arc<Volume>>,
    pub token: Option<String>,
}

/// The whole state. Cloning it is a backup, as of an etcd.
#[derive(Clone)]
pub struct Store {
    revision: u64,
    next_uid: u64,
    volumes: Volumes,
    history: VecDeque<Change>,
    /// A watch can be begun from this revision and later ones.
    history_from: u64,
    snapshots: VecDeque<(u64, Volumes)>,
    namespaces: BTreeMap<String, (String, Phase)>,
    events: BTreeMap<(String, String), Value>,
}

impl Default for Store {
    fn default() -> Self {
        let mut store = Self {
            revision: 1,
            next_uid: 0,
            volumes: Volumes::default(),
            history: VecDeque::new(),
            history_from: 1,
            snapshots: VecDeque::new(),
            namespaces: BTreeMap::new(),
            events: BTreeMap::new(),
        };
        for name in ["kube-system", "default"] {
            store.set_namespace(name, Some(Phase::Active));
        }
        store
    }
}

impl Store {
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Other resources change too: the revision goes on without a change of a volume.
    pub fn advance(&mut self, by: u64) {
        self.revision += by;
    }

    /// Makes a volume; `None` where one of that name exists.
    pub fn create_volume(&mut self, name: &str, driver: &str, handle: &str) -> Option<Arc<Volume>> {
        if self.volumes.contains_key(name) {
            return None;
        }
        self.revision += 1;
        let volume = Volume {
            name: name.to_owned(),
            uid: self.fresh_uid(),
            driver: driver.to_owned(),
            handle: handle.to_owned(),
            revision: self.revision,
            terminating: false,
        };
        Some(self.record("ADDED", volume))
    }

    /// What pv-protection does while a claim is bound: the volume stays, with a deletion timestamp.
    pub fn begin_deletion(&mut self, name: &str) -> Option<Arc<Volume>> {
        let mut volume = Volume::clone(self.volumes.get(name)?);
        self.revision += 1;
        volume.terminating = true;
        volume.revision = self.revision;
        Some(self.record("MODIFIED", volume))
    }

    /// Deletes a volume for good.
    pub fn delete_volume(&mut self, name: &str) -> Option<Arc<Volume>> {
        let mut volume = Volume::clone(self.volumes.get(name)?);
        self.revision += 1;
        volume.revision = self.revision;
        Arc::make_mut(&mut self.volumes).remove(name);
        Some(self.push(Change { kind: "DELETED", revision: volume.revision, volume: Arc::new(volume) }))
    }

    pub fn volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes.values()
    }

    /// The history before this moment is gone: older watches and continued lists meet 410.
    pub fn compact(&mut self) {
        self.history.clear();
        self.history_from = self.revision;
        self.snapshots.clear();
    }

    /// The changes after `revision`, or `None` where the history no longer reaches back to it.
    pub fn changes_after(&self, revision: u64) -> Option<Vec<Change>> {
        if revision < self.history_from {
            return None;
        }
        Some(self.history.iter().filter(|change| change.revision > revision).cloned().collect())
    }

    /// The first page of a list of now.
    pub fn list(&mut self, limit: Option<usize>) -> Page {
        let volumes = self.volumes.clone();
        let page = page_of(&volumes, self.revision, None, limit);
        if page.token.is_some() {
            self.snapshots.push_back((self.revision, volumes));
            if self.snapshots.len() > SNAPSHOTS_MAX {
                self.snapshots.pop_front();
            }
        }
        page
    }

    /// A later page of a list, or `None` where it is too old.
    pub fn continue_list(&self, token: &str, limit: Option<usize>) -> Option<Page> {
        let (revision, after) = token.split_once(':')?;
        let revision = revision.parse().ok()?;
        let (_, volumes) = self.snapshots.iter().find(|(of, _)| *of == revision)?;
        Some(page_of(volumes, revision, Some(after), limit))
    }

    /// Makes, changes or removes a namespace.
    pub fn set_namespace(&mut self, name: &str, phase: Option<Phase>) {
        self.revision += 1;
        match phase {
            None => {
                self.namespaces.remove(name);
                self.events.retain(|(namespace, _), _| namespace != name);
            }
            Some(phase) => {
                let uid = self.fresh_uid();
                self.namespaces.entry(name.to_owned()).or_insert((uid, phase)).1 = phase;
            }
        }
    }

    pub fn namespace(&self, name: &str) -> Option<(&str, Phase)> {
        self.namespaces.get(name).map(|(uid, phase)| (uid.as_str(), *phase))
    }

    /// Keeps an event; `false` where one of that name exists.
    pub fn create_event(&mut self, namespace: &str, name: &str, mut event: Value) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        if self.events.contains_key(&key) {
            return false;
        }
        self.revision += 1;
        event["metadata"]["uid"] = json!(self.fresh_uid());
        event["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.events.insert(key, event);
        true
    }

    /// Merges a patch into an event (RFC 7396, one level deep is all that events need). Answers the result.
    pub fn patch_event(&mut self, namespace: &str, name: &str, patch: &Value) -> Option<Value> {
        let event = self.events.get_mut(&(namespace.to_owned(), name.to_owned()))?;
        for (field, value) in patch.as_object()? {
            event[field] = value.clone();
        }
        self.revision += 1;
        event["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Some(event.clone())
    }

    pub fn events(&self) -> Vec<Value> {
        self.events.values().cloned().collect()
    }

    /// The events' time to live has passed.
    pub fn expire_events(&mut self) {
        self.events.clear();
    }

    fn record(&mut self, kind: &'static str, volume: Volume) -> Arc<Volume> {
        let volume = Arc::new(volume);
        Arc::make_mut(&mut self.volumes).insert(volume.name.clone(), volume.clone());
        self.push(Change { kind, revision: volume.revision, volume })
    }

    fn push(&mut self, change: Change) -> Arc<Volume> {
        let volume = change.volume.clone();
        self.history.push_back(change);
        if self.history.len() > HISTORY_MAX
            && let Some(lost) = self.history.pop_front()
        {
            self.history_from = lost.revision;
        }
        volume
    }

    fn fresh_uid(&mut self) -> String {
        self.next_uid += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.next_uid)
    }
}

fn page_of(volumes: &Volumes, revision: u64, after: Option<&str>, limit: Option<usize>) -> Page {
    let from = match after {
        None => std::ops::Bound::Unbounded,
        Some(after) => std::ops::Bound::Excluded(after),
    };
    let mut rest =
        volumes.range::<str, _>((from, std::ops::Bound::Unbounded)).map(|(_, volume)| volume.clone());
    let page: Vec<Arc<Volume>> = rest.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let is_last = rest.next().is_none();
    let token = page.last().filter(|_| !is_last).map(|last| format!("{revision}:{}", last.name));
    Page { revision, volumes: page, token }
}

impl Volume {
    /// The object as an API server sends it, with the bulk that real ones have (2.2 KB).
    pub fn render(&self) -> Value {
        let fields = "f:accessModes f:capacity f:claimRef f:csi f:persistentVolumeReclaimPolicy ".repeat(12);
        let mut object = json!({
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {
                "name": self.name, "uid": self.uid, "resourceVersion": self.revision.to_string(),
                "creationTimestamp": "2026-11-29T16:00:00Z",
                "annotations": { "pv.kubernetes.io/provisioned-by": self.driver },
                "finalizers": ["kubernetes.io/pv-protection"],
                "managedFields": [{ "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                                    "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { fields: {} } } }],
            },
            "spec": {
                "capacity": { "storage": "1Gi" },
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
                "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "default", "name": self.name },
                "csi": { "driver": self.driver, "volumeHandle": self.handle,
                         "volumeAttributes": { "storage.kubernetes.io/csiProvisionerIdentity": "x".repeat(300) } },
            },
            "status": { "phase": "Bound", "lastPhaseTransitionTime": "2026-11-29T16:00:00Z" },
        });
        if self.terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-29T16:00:01Z");
        }
        object
    }
}
