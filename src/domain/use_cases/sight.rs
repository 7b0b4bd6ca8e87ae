//! What was last seen of the store and of the mounts, kept for the report alone: nothing is decided by it, and whatever it
//! misses the next tick puts right. It holds one handle for each copy.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::handle::Handle;
use crate::domain::holds::is_target;
use crate::domain::mount_table::StoreMount;
use crate::domain::target::{KubeletDir, TargetPath};
use crate::domain::time::Wall;
use crate::ports::copies::Capacity;

/// A look back.
#[derive(Debug, Default)]
pub struct Sight(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    copies: BTreeSet<Handle>,
    listed: Option<Wall>,
    mounts: Vec<SeenMount>,
    capacity: Option<(Capacity, Wall)>,
}

/// A mount of a copy, as of the latest look at all mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenMount {
    pub handle: Handle,
    pub target: TargetPath,
    /// A pod's target; else something that only keeps the copy from being removed (C15).
    pub is_target: bool,
}

impl Sight {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn listed(&self, handles: &[Handle], now: Wall) {
        let mut seen = self.seen();
        seen.copies = handles.iter().cloned().collect();
        seen.listed = Some(now);
    }

    /// A publish has made or found the copy since.
    pub(super) fn found(&self, handle: &Handle) {
        let mut seen = self.seen();
        if !seen.copies.contains(handle) {
            seen.copies.insert(handle.clone());
        }
    }

    pub(super) fn gone(&self, handle: &Handle) {
        self.seen().copies.remove(handle);
    }

    /// All mounts of the store, each with its handle.
    pub(super) fn mounted<'a>(
        &self,
        mounts: impl Iterator<Item = (&'a StoreMount, Handle)>,
        kubelet_dir: &KubeletDir,
    ) {
        let seen = mounts.map(|(mount, handle)| {
            let is_target = is_target(mount, kubelet_dir);
            SeenMount { handle, target: TargetPath::from_mount_point(mount.mount_point.clone()), is_target }
        });
        self.seen().mounts = seen.collect();
    }

    pub(super) fn unmounted(&self, target: &TargetPath) {
        self.seen().mounts.retain(|mount| &mount.target != target);
    }

    pub(super) fn measured(&self, capacity: Capacity, now: Wall) {
        self.seen().capacity = Some((capacity, now));
    }

    pub(super) fn capacity(&self) -> Option<(Capacity, Wall)> {
        self.seen().capacity
    }

    pub(super) fn listed_at(&self) -> Option<Wall> {
        self.seen().listed
    }

    pub(super) fn mounts(&self) -> Vec<SeenMount> {
        self.seen().mounts.clone()
    }

    pub(super) fn copies(&self) -> BTreeSet<Handle> {
        self.seen().copies.clone()
    }
}
