//! The copies: directories under `copies/`, and what is on its way out under `trash/`.
//!
//! Inside the store nothing follows a symlink.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::failure::Failure;
use crate::domain::handle::Handle;
use crate::domain::mount_table::FileIdentity;
use crate::domain::trash::{CopyMark, TrashId};
use crate::domain::volume_request::Gid;

/// Why a call on the store failed, by errno class.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CopiesError {
    /// ENOSPC, EDQUOT: the file system is full.
    #[error("{0}")]
    NoSpace(Failure),
    /// ENOENT: it is not there.
    #[error("{0}")]
    Missing(Failure),
    /// ENOTDIR, EEXIST, ELOOP: something that is no copy has its name.
    #[error("{0}")]
    NotADirectory(Failure),
    /// EBUSY: its root is a mount point, or something is mounted on or below it.
    #[error("{0}")]
    MountPoint(Failure),
    /// EPERM, EACCES, EROFS: the file system forbids it (immutable, append-only, read-only).
    #[error("{0}")]
    Denied(Failure),
    /// EXDEV: `copies/` and `trash/` are not on one mount for this entry.
    #[error("{0}")]
    OtherMount(Failure),
    /// EIO and every other errno, a vanished store included.
    #[error("{0}")]
    Io(Failure),
    /// The call was lost on the way: whether it acted is unknown.
    #[error("outcome unknown: {0}")]
    Unknown(Failure),
}

/// A copy that is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ensured {
    pub identity: FileIdentity,
    /// This call made it.
    pub made: bool,
}

/// What is directly under `copies/`, in name order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Directories whose name is a valid handle.
    pub handles: Vec<Handle>,
    /// Everything else, by name as text for people (C25).
    pub strangers: Vec<String>,
}

/// How far a deletion came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing is left.
    Done,
    /// Something could not be deleted; the next tick tries again.
    Left { entries: u64, first: Failure },
}

/// What a copy takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Blocks times 512, each inode once.
    pub used_bytes: u64,
    /// Inodes, the root included.
    pub used_inodes: u64,
    /// False while the first walk has not ended: the numbers are what has been counted so far.
    pub complete: bool,
}

/// What the store's file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    pub total_bytes: u64,
    pub available_bytes: u64,
    pub total_inodes: u64,
    pub available_inodes: u64,
}

/// What a copy and the file system below it are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Examined {
    /// The directory under the copy's name; `None` where there is none, or something else has the name.
    pub copy: Option<FileIdentity>,
    /// The device of the directory that holds the copies.
    pub store_device: u64,
    /// The copy's file system takes no writes: it is mounted so, or gave up after an error.
    pub read_only: bool,
    /// What that file system has.
    pub capacity: Capacity,
}

/// Making, finding, removing, measuring and examining copies.
#[async_trait]
pub trait Copies: Send + Sync {
    /// The copy's identity, `None` where there is none. [`CopiesError::NotADirectory`] where something else
    /// has its name.
    async fn find(&self, handle: &Handle) -> Result<Option<FileIdentity>, CopiesError>;

    /// Finds the copy or makes it, empty and with the configured mode from the first instant it has its name
    /// (C6). On an error nothing new has its name.
    async fn ensure(&self, handle: &Handle) -> Result<Ensured, CopiesError>;

    /// Removes the copy if it still has this identity and is empty; else leaves it and is fine.
    async fn unmake(&self, handle: &Handle, identity: FileIdentity) -> Result<(), CopiesError>;

    /// Gives the copy's root, and nothing below it, this group, group rwx, and the setgid bit (C7).
    async fn set_group(&self, handle: &Handle, group: Gid) -> Result<(), CopiesError>;

    /// What is under `copies/`.
    async fn list(&self) -> Result<Listing, CopiesError>;

    /// Moves the copy into the trash in one atomic step. On an error it is where it was.
    /// [`CopiesError::MountPoint`] where anything is mounted on it or below it in this namespace: a rename
    /// alone would not tell of mounts below.
    async fn discard(&self, handle: &Handle, id: TrashId) -> Result<(), CopiesError>;

    /// What is in the trash, in order. Directories that never became a copy are removed by the adapter
    /// itself at the start and are not listed.
    async fn trash(&self) -> Result<Vec<TrashId>, CopiesError>;

    /// Moves a trash entry back to its name in one atomic step. [`CopiesError::NotADirectory`] where anything has that
    /// name, [`CopiesError::Missing`] where the entry is not there; on any error it is where it was.
    async fn restore(&self, id: TrashId, handle: &Handle) -> Result<(), CopiesError>;

    /// Deletes a trash entry by the walk of C24. Fine where it is not there.
    async fn delete(&self, id: TrashId) -> Result<Deletion, CopiesError>;

    /// Deletes a copy where it is, by the same walk; for a file system too full to rename (C23).
    /// [`CopiesError::MountPoint`] as for `discard`.
    async fn delete_in_place(&self, handle: &Handle) -> Result<Deletion, CopiesError>;

    /// Which directory has the copy's name, in a way that tells it from every later one; `None` where there is none.
    /// [`CopiesError::NotADirectory`] as for `find`.
    async fn mark(&self, handle: &Handle) -> Result<Option<CopyMark>, CopiesError>;

    /// Makes names that were given and taken away in `copies/` and `trash/` outlive a power failure.
    async fn settle(&self) -> Result<(), CopiesError>;

    /// What the copy takes up, from a cached, throttled walk; answers within about a second (C46).
    async fn usage(&self, handle: &Handle) -> Result<Usage, CopiesError>;

    /// What the store's file system has, now.
    async fn capacity(&self) -> Result<Capacity, CopiesError>;

    /// What the copy and the file system below it are like now, by a look that changes nothing (C49). Answers within
    /// about a second: a store that does not is [`CopiesError::Io`]. [`CopiesError::Unknown`] where the node's own
    /// limits kept the store from being asked, which says nothing about it.
    async fn examine(&self, handle: &Handle) -> Result<Examined, CopiesError>;

    /// The bytes that the latest walks counted over all copies, and how many copies are counted in it.
    fn counted(&self) -> Counted;

    /// What the latest walk over the copy that ended has counted, so that it is in the sum of `counted`. From memory: it
    /// asks nobody and begins nothing.
    fn measured(&self, handle: &Handle) -> Option<Measured>;
}

/// What a walk counted, and how long ago it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub usage: Usage,
    pub ago: Duration,
}

/// The sum over the copies that were walked so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub copies: u64,
    pub bytes: u64,
    /// Walks that have not ended yet.
    pub unfinished: u64,
}
