//! The port `Mounts` on a node in memory: stacked mounts, mounts below a target, busy unmounts.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;

use super::kernel_fault::{KernelFault, errno, failure, mounts_error, of_fault};
use super::node::{Node, NodeCall};
use super::world::{HostEntry, World};
use crate::domain::handle::Handle;
use crate::domain::mount_options::MountOptions;
use crate::domain::mount_table::{FileIdentity, MountTable, StoreMount, TargetView};
use crate::domain::target::TargetPath;
use crate::domain::trash::TrashId;
use crate::ports::mounts::{Mounts, MountsError};

/// How often one unmount may find another mount on the same path.
const STACK_MAX: usize = 1000;

/// Mounts of one process; all state is the node's.
pub struct MemoryMounts {
    node: Node,
}

impl MemoryMounts {
    pub fn new(node: &Node) -> MemoryMounts {
        MemoryMounts { node: node.clone() }
    }

    async fn call<T: Send>(
        &self,
        call: NodeCall,
        operation: &'static str,
        path: &Path,
        act: impl FnOnce(&mut World) -> Result<T, i32> + Send,
    ) -> Result<T, MountsError> {
        let act = || act(&mut self.node.world()).map_err(|no| mounts_error(failure(operation, path, no)));
        let error = |fault: KernelFault| of_fault(fault, operation, path, mounts_error, MountsError::Unknown);
        self.node.gate().pass(call, act, error).await
    }
}

#[async_trait]
impl Mounts for MemoryMounts {
    async fn look(&self, target: &TargetPath) -> Result<TargetView, MountsError> {
        let path = target.as_path();
        self.call(NodeCall::Look, "statx", path, |world| Ok(world.view(path))).await
    }

    async fn showing(
        &self,
        handle: &Handle,
        trashed: &BTreeSet<TrashId>,
    ) -> Result<Vec<StoreMount>, MountsError> {
        self.call(NodeCall::Showing, "statmount", Path::new("/"), |world| {
            let all = world.store_mounts().into_iter();
            Ok(all.filter(|mount| mount.shown.belongs_to(handle, trashed)).collect())
        })
        .await
    }

    async fn table(&self) -> Result<MountTable, MountsError> {
        let path = Path::new("/proc/self/mountinfo");
        self.call(NodeCall::Table, "read", path, |world| Ok(MountTable { mounts: world.store_mounts() }))
            .await
    }

    async fn make_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        let path = target.as_path();
        self.call(NodeCall::MakeTarget, "mkdir", path, |world| {
            let parent = path.parent().and_then(|parent| world.host.get(parent));
            match parent {
                Some(HostEntry::Directory) => {}
                Some(HostEntry::File | HostEntry::Symlink) => return Err(errno::ENOTDIR),
                None => return Err(errno::ENOENT),
            }
            if world.host.contains_key(path) {
                return Err(errno::EEXIST);
            }
            world.host.insert(path.to_owned(), HostEntry::Directory);
            Ok(())
        })
        .await
    }

    async fn attach(
        &self,
        handle: &Handle,
        copy: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Result<(), MountsError> {
        let path = target.as_path();
        self.call(NodeCall::Attach, "move_mount", path, |world| {
            let inode = world.copy_inode(handle.as_str())?.ok_or(errno::ENOENT)?;
            if World::identity(inode) != copy {
                return Err(errno::ESTALE);
            }
            match world.host.get(path) {
                Some(HostEntry::Directory) => {}
                Some(HostEntry::File) => return Err(errno::ENOTDIR),
                Some(HostEntry::Symlink) => return Err(errno::ELOOP),
                None => return Err(errno::ENOENT),
            }
            world.bind(inode, true, path, options);
            Ok(())
        })
        .await
    }

    async fn detach(&self, target: &TargetPath) -> Result<(), MountsError> {
        let path = target.as_path();
        self.call(NodeCall::Detach, "umount2", path, |world| {
            for below in world.mount_points_below(path) {
                world.unmount(&below)?;
            }
            for _ in 0..STACK_MAX {
                if world.top_mount(path).is_none() {
                    return Ok(());
                }
                world.unmount(path)?;
            }
            Err(errno::EBUSY)
        })
        .await
    }

    async fn remove_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        let path = target.as_path();
        self.call(NodeCall::RemoveTarget, "rmdir", path, |world| {
            match world.host.get(path) {
                None => return Ok(()),
                Some(HostEntry::File | HostEntry::Symlink) => return Err(errno::ENOTDIR),
                Some(HostEntry::Directory) => {}
            }
            if world.is_mounted_at_or_below(path) {
                return Err(errno::EBUSY);
            }
            if !world.is_empty(path) {
                return Err(errno::ENOTEMPTY);
            }
            world.host.remove(path);
            Ok(())
        })
        .await
    }

    async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, MountsError> {
        let path = target.as_path();
        self.call(NodeCall::IsForgotten, "stat", path, |world| {
            let Some(parent) = path.parent() else { return Ok(false) };
            let is_directory = world.host.get(parent) == Some(&HostEntry::Directory);
            Ok(is_directory && !world.host.contains_key(&parent.join("vol_data.json")))
        })
        .await
    }
}
