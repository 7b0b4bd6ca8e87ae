//! What proves that nobody names a handle any more (C22): revisions, the store's marker, epochs, and the
//! view of the PersistentVolumes that a watch keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::handle::Handle;

/// A resource version of PersistentVolumes. Within one history of etcd a later state has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// What the store keeps of the API server's history (C22 (c)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The highest revision ever seen.
    pub highest: Revision,
    /// An answer was below it: etcd was put back. It stays so, however far the new history comes, until a person confirms.
    pub went_back: bool,
}

impl History {
    /// A history in which nothing has gone back.
    pub fn up_to(highest: Revision) -> History {
        History { highest, went_back: false }
    }
}

/// The UID of the namespace `kube-system`, which stands for the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterUid(pub String);

/// Whose store this is. Copies are removed only on the word of that cluster, for that driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    pub driver_name: String,
    pub cluster_uid: ClusterUid,
}

/// When each handle was last admitted or unpublished: a proof that was begun before is none (C22 (a)).
/// Numbers come from one counter and are never used twice, so that forgetting a handle is safe.
#[derive(Debug, Default)]
pub struct Epochs(Mutex<EpochTable>);

#[derive(Debug, Default)]
struct EpochTable {
    last: u64,
    of_handle: BTreeMap<Handle, u64>,
}

/// The epoch of a handle; handles never seen have the zeroth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Epoch(u64);

impl Epochs {
    /// Begins a new epoch of the handle.
    pub fn advance(&self, handle: &Handle) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last += 1;
        let epoch = table.last;
        table.of_handle.insert(handle.clone(), epoch);
    }

    /// The handle's epoch now.
    pub fn of(&self, handle: &Handle) -> Epoch {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Epoch(table.of_handle.get(handle).copied().unwrap_or_default())
    }

    /// Forgets all handles but these, so that the table is no larger than the store.
    pub fn retain(&self, handles: &BTreeSet<Handle>) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.of_handle.retain(|handle, _| handles.contains(handle));
    }
}

/// How many handles are kept whose deletion the watch saw. One that is dropped goes at its second tick all the
/// same (C22 (d)).
pub const DELETIONS_SEEN_MAX: usize = 16_384;

/// The PersistentVolumes of this driver as a watch shows them, and the handles whose end it saw itself.
///
/// A volume is known by its UID, so that one deleted and made anew under its name is two.
#[derive(Debug, Clone, Default)]
pub struct NamingView {
    volumes: BTreeMap<String, Handle>,
    /// How many volumes name each handle; never zero.
    named: BTreeMap<Handle, u32>,
    deletions_seen: BTreeSet<Handle>,
}

impl NamingView {
    /// Takes a complete list in place of what was known. A handle that is in the old view and not in the
    /// list vanished unseen.
    pub fn relist(&mut self, volumes: impl IntoIterator<Item = (String, Handle)>) {
        self.volumes.clear();
        self.named.clear();
        for (uid, handle) in volumes {
            self.apply(uid, handle);
        }
    }

    /// A volume of this driver was added or changed.
    pub fn apply(&mut self, uid: String, handle: Handle) {
        self.deletions_seen.remove(&handle);
        *self.named.entry(handle.clone()).or_default() += 1;
        if let Some(before) = self.volumes.insert(uid, handle) {
            self.unname(&before);
        }
    }

    /// The watch saw the volume deleted. Answers whether its handle is now named by nobody.
    pub fn delete(&mut self, uid: &str) -> bool {
        let Some(handle) = self.volumes.remove(uid) else { return false };
        self.unname(&handle);
        if self.names(&handle) {
            return false;
        }
        if self.deletions_seen.len() >= DELETIONS_SEEN_MAX {
            self.deletions_seen.pop_first();
        }
        self.deletions_seen.insert(handle);
        true
    }

    /// One volume fewer names the handle.
    fn unname(&mut self, handle: &Handle) {
        if let Some(count) = self.named.get_mut(handle) {
            *count -= 1;
            if *count == 0 {
                self.named.remove(handle);
            }
        }
    }

    pub fn names(&self, handle: &Handle) -> bool {
        self.named.contains_key(handle)
    }

    /// Whether the watch saw the last volume go that named the handle.
    pub fn deletion_was_seen(&self, handle: &Handle) -> bool {
        self.deletions_seen.contains(handle)
    }

    /// How many volumes of this driver are known.
    pub fn len(&self) -> usize {
        self.volumes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h(raw: &str) -> Handle {
        Handle::parse(raw).unwrap()
    }

    #[test]
    fn c21_a_handle_stays_named_while_any_volume_names_it() {
        let mut view = NamingView::default();
        view.apply("u1".into(), h("a"));
        view.apply("u2".into(), h("a"));
        assert!(!view.delete("u1"));
        assert!(view.names(&h("a")) && !view.deletion_was_seen(&h("a")));
        assert!(view.delete("u2"));
        assert!(!view.names(&h("a")) && view.deletion_was_seen(&h("a")));
        assert!(!view.delete("u2"));
    }

    #[test]
    fn c45_a_view_is_as_large_as_the_volumes_it_knows() {
        let mut view = NamingView::default();
        assert!(view.is_empty());
        view.apply("u1".into(), h("a"));
        view.apply("u2".into(), h("a"));
        assert!(!view.is_empty() && view.len() == 2);
        view.delete("u1");
        assert_eq!(view.len(), 1);
    }

    #[test]
    fn c22_a_handle_that_a_list_lost_was_not_seen_deleted() {
        let mut view = NamingView::default();
        view.apply("u1".into(), h("a"));
        view.relist([("u2".to_owned(), h("b"))]);
        assert!(!view.names(&h("a")) && !view.deletion_was_seen(&h("a")));
        assert!(view.names(&h("b")));
    }

    #[test]
    fn c22_a_handle_named_again_was_not_deleted() {
        let mut view = NamingView::default();
        view.apply("u1".into(), h("a"));
        view.delete("u1");
        view.apply("u2".into(), h("a"));
        assert!(!view.deletion_was_seen(&h("a")));
        view.delete("u2");
        view.relist([("u3".to_owned(), h("a"))]);
        assert!(!view.deletion_was_seen(&h("a")));
    }

    #[test]
    fn c22_deletions_that_were_seen_are_kept_up_to_a_bound() {
        let mut view = NamingView::default();
        for number in 0..DELETIONS_SEEN_MAX + 10 {
            view.apply("u".into(), h(&format!("h{number}")));
            assert!(view.delete("u"));
        }
        assert_eq!(view.deletions_seen.len(), DELETIONS_SEEN_MAX);
        assert!(view.deletion_was_seen(&h(&format!("h{}", DELETIONS_SEEN_MAX + 9))));
    }

    #[test]
    fn c22_epochs_are_never_used_twice() {
        let epochs = Epochs::default();
        assert_eq!(epochs.of(&h("a")), Epoch::default());
        epochs.advance(&h("a"));
        let first = epochs.of(&h("a"));
        epochs.retain(&BTreeSet::new());
        assert_eq!(epochs.of(&h("a")), Epoch::default());
        epochs.advance(&h("a"));
        assert!(epochs.of(&h("a")) > first);
    }
}
