//! The port `Copies` on a node in memory: a store that can be full, and copies with real contents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use super::kernel_fault::{KernelFault, copies_error, errno, failure, of_fault};
use super::node::{Node, NodeCall};
use super::world::{BLOCK_BYTES, Directory, StoreEntry, World};
use crate::domain::handle::Handle;
use crate::domain::mount_table::{FileIdentity, Place};
use crate::domain::trash::{CopyMark, TrashId};
use crate::domain::volume_request::Gid;
use crate::ports::copies::{
    Capacity, Copies, CopiesError, Counted, Deletion, Ensured, Examined, Listing, Measured, Usage,
};

/// Group rwx and the setgid bit, which C7 adds to a copy's root.
const GROUP_BITS: u32 = 0o2070;

/// The copies of one process; all state is the node's.
pub struct MemoryCopies {
    node: Node,
    store: PathBuf,
}

impl MemoryCopies {
    pub fn new(node: &Node) -> MemoryCopies {
        let store = node.world().store.clone();
        MemoryCopies { node: node.clone(), store }
    }

    fn copy_path(&self, handle: &Handle) -> PathBuf {
        self.store.join("copies").join(handle.as_path())
    }

    fn trash_path(&self, id: TrashId) -> PathBuf {
        self.store.join("trash").join(id.to_string())
    }

    async fn call<T: Send>(
        &self,
        call: NodeCall,
        operation: &'static str,
        path: &Path,
        act: impl FnOnce(&mut World) -> Result<T, i32> + Send,
    ) -> Result<T, CopiesError> {
        let act = || act(&mut self.node.world()).map_err(|no| copies_error(failure(operation, path, no)));
        let error = |fault: KernelFault| of_fault(fault, operation, path, copies_error, CopiesError::Unknown);
        self.node.gate().pass(call, act, error).await
    }
}

#[async_trait]
impl Copies for MemoryCopies {
    async fn find(&self, handle: &Handle) -> Result<Option<FileIdentity>, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Find, "open", &path, |world| {
            Ok(world.copy_inode(handle.as_str())?.map(World::identity))
        })
        .await
    }

    async fn ensure(&self, handle: &Handle) -> Result<Ensured, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Ensure, "mkdir", &path, |world| {
            if let Some(inode) = world.copy_inode(handle.as_str())? {
                return Ok(Ensured { identity: World::identity(inode), made: false });
            }
            world.check_writable()?;
            if world.available_bytes() < BLOCK_BYTES {
                return Err(errno::ENOSPC);
            }
            let inode = world.new_directory(Place::Copy(handle.clone()));
            world.copies.insert(handle.as_str().to_owned(), StoreEntry::Directory(inode));
            Ok(Ensured { identity: World::identity(inode), made: true })
        })
        .await
    }

    async fn unmake(&self, handle: &Handle, identity: FileIdentity) -> Result<(), CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Unmake, "rmdir", &path, |world| {
            let Ok(Some(inode)) = world.copy_inode(handle.as_str()) else { return Ok(()) };
            let is_empty = world.directories.get(&inode).is_some_and(|copy| copy.files.is_empty());
            if World::identity(inode) != identity || !is_empty {
                return Ok(());
            }
            if world.is_mounted_at_or_below(&path) {
                return Err(errno::EBUSY);
            }
            world.check_writable()?;
            world.copies.remove(handle.as_str());
            world.remove_directory(inode);
            Ok(())
        })
        .await
    }

    async fn set_group(&self, handle: &Handle, group: Gid) -> Result<(), CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::SetGroup, "fchown", &path, |world| {
            let inode = world.copy_inode(handle.as_str())?.ok_or(errno::ENOENT)?;
            world.check_writable()?;
            let copy = world.directories.get_mut(&inode).ok_or(errno::ENOENT)?;
            if copy.immutable {
                return Err(errno::EPERM);
            }
            copy.group = group.0;
            copy.mode |= GROUP_BITS;
            Ok(())
        })
        .await
    }

    async fn list(&self) -> Result<Listing, CopiesError> {
        let path = self.store.join("copies");
        self.call(NodeCall::ListCopies, "getdents", &path, |world| {
            let mut listing = Listing::default();
            for (name, entry) in &world.copies {
                match (Handle::parse(name), entry) {
                    (Ok(handle), StoreEntry::Directory(_)) => listing.handles.push(handle),
                    (Ok(_), StoreEntry::File | StoreEntry::Symlink) | (Err(_), _) => {
                        listing.strangers.push(name.clone());
                    }
                }
            }
            Ok(listing)
        })
        .await
    }

    async fn discard(&self, handle: &Handle, id: TrashId) -> Result<(), CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Discard, "renameat2", &path, |world| {
            let inode = world.copy_inode(handle.as_str())?.ok_or(errno::ENOENT)?;
            check_removable(world, inode, &path)?;
            if world.available_bytes() < BLOCK_BYTES {
                return Err(errno::ENOSPC);
            }
            world.copies.remove(handle.as_str());
            world.trash.insert(id, inode);
            if let Some(copy) = world.directories.get_mut(&inode) {
                copy.place = Place::Trash(id);
            }
            Ok(())
        })
        .await
    }

    async fn trash(&self) -> Result<Vec<TrashId>, CopiesError> {
        let path = self.store.join("trash");
        self.call(NodeCall::ListTrash, "getdents", &path, |world| Ok(world.trash.keys().copied().collect()))
            .await
    }

    async fn restore(&self, id: TrashId, handle: &Handle) -> Result<(), CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Restore, "renameat2", &path, |world| {
            let inode = *world.trash.get(&id).ok_or(errno::ENOENT)?;
            if world.copies.contains_key(handle.as_str()) {
                return Err(errno::EEXIST);
            }
            world.check_writable()?;
            world.trash.remove(&id);
            world.copies.insert(handle.as_str().to_owned(), StoreEntry::Directory(inode));
            if let Some(copy) = world.directories.get_mut(&inode) {
                copy.place = Place::Copy(handle.clone());
            }
            Ok(())
        })
        .await
    }

    async fn delete(&self, id: TrashId) -> Result<Deletion, CopiesError> {
        let path = self.trash_path(id);
        self.call(NodeCall::Delete, "unlinkat", &path, |world| {
            let Some(&inode) = world.trash.get(&id) else { return Ok(Deletion::Done) };
            world.check_writable()?;
            let deletion = walk(world, inode, &path);
            if deletion == Deletion::Done {
                world.trash.remove(&id);
                world.remove_directory(inode);
            }
            Ok(deletion)
        })
        .await
    }

    async fn delete_in_place(&self, handle: &Handle) -> Result<Deletion, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::DeleteInPlace, "unlinkat", &path, |world| {
            let Some(inode) = world.copy_inode(handle.as_str())? else { return Ok(Deletion::Done) };
            check_removable(world, inode, &path)?;
            let deletion = walk(world, inode, &path);
            if deletion == Deletion::Done {
                world.copies.remove(handle.as_str());
                world.remove_directory(inode);
            }
            Ok(deletion)
        })
        .await
    }

    async fn mark(&self, handle: &Handle) -> Result<Option<CopyMark>, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Mark, "statx", &path, |world| {
            // Inodes of this world are never used again.
            Ok(world.copy_inode(handle.as_str())?.map(|inode| CopyMark { inode, made_ns: None }))
        })
        .await
    }

    async fn settle(&self) -> Result<(), CopiesError> {
        let path = self.store.clone();
        self.call(NodeCall::Settle, "fsync", &path, |world| world.check_writable()).await
    }

    async fn usage(&self, handle: &Handle) -> Result<Usage, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Usage, "getdents", &path, |world| {
            let inode = world.copy_inode(handle.as_str())?.ok_or(errno::ENOENT)?;
            let copy = world.directories.get(&inode).ok_or(errno::ENOENT)?;
            Ok(Usage { complete: !world.walks_unfinished, ..usage_of(copy) })
        })
        .await
    }

    async fn capacity(&self) -> Result<Capacity, CopiesError> {
        let path = self.store.clone();
        self.call(NodeCall::Capacity, "fstatvfs", &path, |world| Ok(capacity(world))).await
    }

    async fn examine(&self, handle: &Handle) -> Result<Examined, CopiesError> {
        let path = self.copy_path(handle);
        self.call(NodeCall::Examine, "open", &path, |world| {
            let copy = world.copy_inode(handle.as_str()).ok().flatten().map(World::identity);
            let (read_only, capacity) = (world.read_only, capacity(world));
            Ok(Examined { copy, store_device: World::STORE_DEVICE, read_only, capacity })
        })
        .await
    }

    fn counted(&self) -> Counted {
        let world = self.node.world();
        let named = world.copies.values().filter_map(|entry| match entry {
            StoreEntry::Directory(inode) => world.directories.get(inode),
            StoreEntry::File | StoreEntry::Symlink => None,
        });
        let bytes: Vec<u64> = named.map(|copy| copy.used_bytes()).collect();
        let copies = bytes.len() as u64;
        let unfinished = if world.walks_unfinished { copies } else { 0 };
        Counted { copies, bytes: bytes.iter().sum(), unfinished }
    }

    fn measured(&self, handle: &Handle) -> Option<Measured> {
        let world = self.node.world();
        let StoreEntry::Directory(inode) = world.copies.get(handle.as_str())? else { return None };
        let usage = usage_of(world.directories.get(inode)?);
        (!world.walks_unfinished).then_some(Measured { usage, ago: Duration::ZERO })
    }
}

fn usage_of(copy: &Directory) -> Usage {
    Usage { used_bytes: copy.used_bytes(), used_inodes: 1 + copy.files.len() as u64, complete: true }
}

fn capacity(world: &World) -> Capacity {
    let available_bytes = world.available_bytes();
    let inodes_per_block = |bytes: u64| bytes / BLOCK_BYTES;
    Capacity {
        total_bytes: world.total_bytes,
        available_bytes,
        total_inodes: inodes_per_block(world.total_bytes),
        available_inodes: inodes_per_block(available_bytes),
    }
}

/// What keeps a copy in its place whatever space there is.
fn check_removable(world: &World, inode: u64, path: &Path) -> Result<(), i32> {
    if world.is_mounted_at_or_below(path) {
        return Err(errno::EBUSY);
    }
    let is_immutable = world.directories.get(&inode).is_some_and(|copy| copy.immutable);
    if is_immutable { Err(errno::EPERM) } else { world.check_writable() }
}

/// Deletes what can be deleted below a directory (C24); what is mounted there stays.
fn walk(world: &mut World, inode: u64, path: &Path) -> Deletion {
    let mounted = world.mount_points_below(path).len() as u64;
    let Some(directory) = world.directories.get_mut(&inode) else { return Deletion::Done };
    let undeletable = &directory.undeletable;
    directory.files.retain(|name, _| undeletable.contains(name));
    let first_file =
        directory.files.keys().next().map(|name| failure("unlinkat", &path.join(name), errno::EPERM));
    let entries = directory.files.len() as u64 + mounted;
    match first_file {
        Some(first) => Deletion::Left { entries, first },
        None if mounted > 0 => Deletion::Left { entries, first: failure("openat2", path, errno::EXDEV) },
        None => Deletion::Done,
    }
}
