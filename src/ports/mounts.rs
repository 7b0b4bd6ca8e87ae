//! The kernel's mounts and the target directories they are attached to.
//!
//! Every call that takes a target names its last component without following a symlink there. No call hangs
//! on a dead file system that is mounted at a target.

use std::collections::BTreeSet;

use async_trait::async_trait;
use thiserror::Error;

use super::failure::Failure;
use crate::domain::handle::Handle;
use crate::domain::mount_options::MountOptions;
use crate::domain::mount_table::{FileIdentity, MountTable, StoreMount, TargetView};
use crate::domain::target::TargetPath;
use crate::domain::trash::TrashId;

/// Why a mount call failed, by errno class.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MountsError {
    /// EBUSY: someone uses it; come again.
    #[error("{0}")]
    Busy(Failure),
    /// ENOENT, ENOTDIR: what the call needs is not there (a target's parent, the copy).
    #[error("{0}")]
    Missing(Failure),
    /// EEXIST, ENOTEMPTY, ELOOP: something else is in the way.
    #[error("{0}")]
    Occupied(Failure),
    /// ENOSPC, EDQUOT, ENOMEM, EMFILE, ENFILE: a limit of the node, the mount limit included.
    #[error("{0}")]
    Exhausted(Failure),
    /// EPERM, EACCES, EROFS: the kernel or the file system forbids it.
    #[error("{0}")]
    Denied(Failure),
    /// EINVAL, EOPNOTSUPP, ENOSYS: the kernel cannot do it.
    #[error("{0}")]
    Unsupported(Failure),
    /// EIO and every other errno.
    #[error("{0}")]
    Io(Failure),
    /// The call was lost on the way: whether it acted is unknown.
    #[error("outcome unknown: {0}")]
    Unknown(Failure),
}

/// Attaching, detaching, and asking what is attached.
#[async_trait]
pub trait Mounts: Send + Sync {
    /// What is at `target` now, by one look at the kernel. A parent that is missing, or is no directory, is
    /// [`TargetView::Absent`].
    async fn look(&self, target: &TargetPath) -> Result<TargetView, MountsError>;

    /// Every mount that shows the copy of `handle`, one of its entries in the trash, or something below
    /// them: as `table` would give them, at a cost that does not grow with the number of foreign mounts
    /// where the kernel can do that.
    async fn showing(
        &self,
        handle: &Handle,
        trashed: &BTreeSet<TrashId>,
    ) -> Result<Vec<StoreMount>, MountsError>;

    /// Every mount of the namespace that shows a place in the store, read afresh from the kernel.
    async fn table(&self) -> Result<MountTable, MountsError>;

    /// Makes the target directory in the parent that the caller made. [`MountsError::Occupied`] where
    /// anything is there, [`MountsError::Missing`] where the parent is not.
    async fn make_target(&self, target: &TargetPath) -> Result<(), MountsError>;

    /// Attaches the copy `handle`, which must have the identity `copy`, on top of the target directory. All
    /// flags are in force before anybody can see the mount. On an error nothing was attached, unless it is
    /// [`MountsError::Unknown`].
    async fn attach(
        &self,
        handle: &Handle,
        copy: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Result<(), MountsError>;

    /// Unmounts what is mounted below the target, deepest first, then the whole stack on it, and checks that
    /// the target is no mount root any more. Never lazily. [`MountsError::Busy`] leaves what could not be
    /// unmounted. A target that carries no mount is left as it is.
    async fn detach(&self, target: &TargetPath) -> Result<(), MountsError>;

    /// Removes the empty target directory with one rmdir(2). Fine where it is not there;
    /// [`MountsError::Occupied`] where it has entries.
    async fn remove_target(&self, target: &TargetPath) -> Result<(), MountsError>;

    /// Whether the kubelet has forgotten the volume of a target of the kubelet's shape: the directory that
    /// holds the target is there and has no `vol_data.json` (C16).
    async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, MountsError>;
}
