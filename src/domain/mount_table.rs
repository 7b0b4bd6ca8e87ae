//! The kernel's mounts as far as they show a place in this store, and the questions that decide about them
//! (C15). A table is a snapshot; whoever acts on an answer asks again under the handle's lock.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::handle::Handle;
use super::mount_options::MountFlags;
use super::trash::TrashId;

/// A file or directory by device and inode number, as stat(2) gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// A directory of the store that a mount can show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Copy(Handle),
    Trash(TrashId),
}

/// What a mount of this store shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub place: Place,
    /// The place's root itself, not something below it (as a subPath bind does).
    pub at_root: bool,
    /// The directory was removed since; the mount still shows it.
    pub deleted: bool,
}

/// One mount of the plugin's namespace that shows a place in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreMount {
    pub mount_point: PathBuf,
    pub shown: Shown,
}

/// Every mount of the plugin's namespace that shows a place in the store, at whatever path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountTable {
    pub mounts: Vec<StoreMount>,
}

/// What is at a target path, seen without following a symlink at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetView {
    Absent,
    /// A directory on which nothing is mounted.
    Directory {
        empty: bool,
    },
    /// A file, a symlink or anything else that is no directory, and nothing is mounted on it.
    NotADirectory,
    Mounted(MountStack),
}

/// The mounts on one target, the lowest first; the last is the one that is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountStack {
    /// Never empty.
    pub layers: Vec<Layer>,
    /// The root of the visible mount.
    pub visible: FileIdentity,
}

/// One mount of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// `None` where it shows nothing of this store.
    pub shown: Option<Shown>,
    pub flags: MountFlags,
}

impl TargetView {
    /// Whether anything was there, directory or not (C12: then no code is final).
    pub fn is_there(&self) -> bool {
        !matches!(self, TargetView::Absent)
    }

    /// What the visible mount shows of the store, if it does.
    pub fn visible(&self) -> Option<&Shown> {
        match self {
            TargetView::Mounted(stack) => stack.layers.last().and_then(|layer| layer.shown.as_ref()),
            TargetView::Absent | TargetView::Directory { .. } | TargetView::NotADirectory => None,
        }
    }

    /// What any mount of the stack shows of the store, the uppermost first (C17).
    pub fn any_shown(&self) -> Option<&Shown> {
        match self {
            TargetView::Mounted(stack) => stack.layers.iter().rev().find_map(|layer| layer.shown.as_ref()),
            TargetView::Absent | TargetView::Directory { .. } | TargetView::NotADirectory => None,
        }
    }
}

impl Shown {
    /// Whether this is the handle's copy, in its place or in the trash.
    pub fn belongs_to(&self, handle: &Handle, trashed: &BTreeSet<TrashId>) -> bool {
        match &self.place {
            Place::Copy(shown) => shown == handle,
            Place::Trash(id) => trashed.contains(id),
        }
    }
}

impl MountTable {
    /// Whether any mount shows the handle's copy or something below it. `trashed` are the handle's entries
    /// in the trash.
    pub fn is_in_use(&self, handle: &Handle, trashed: &BTreeSet<TrashId>) -> bool {
        self.mounts.iter().any(|mount| mount.shown.belongs_to(handle, trashed))
    }

    /// Whether any mount shows this trash entry or something below it.
    pub fn shows_trash(&self, id: TrashId) -> bool {
        self.mounts.iter().any(|mount| mount.shown.place == Place::Trash(id))
    }
}
