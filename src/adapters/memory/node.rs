//! One machine, and what people, pods, the kubelet and a reboot do on it beside the driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::gate::Gate;
use super::kernel_fault::KernelFault;
use super::locked;
use super::world::{Directory, HostEntry, StoreEntry, World};
use crate::domain::handle::Handle;
use crate::domain::mount_options::{MountFlags, MountOptions};
use crate::domain::mount_table::{FileIdentity, Place, StoreMount, TargetView};
use crate::domain::target::TargetPath;
use crate::domain::trash::TrashId;

/// The calls of the ports `Mounts`, `Copies` and `Records`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeCall {
    Look,
    Showing,
    Table,
    MakeTarget,
    Attach,
    Detach,
    RemoveTarget,
    IsForgotten,
    Find,
    Ensure,
    Unmake,
    SetGroup,
    ListCopies,
    Discard,
    Restore,
    ListTrash,
    Delete,
    DeleteInPlace,
    Mark,
    Settle,
    Usage,
    Capacity,
    Examine,
    PutTarget,
    DropTarget,
    ReserveTrash,
    ForgetTrash,
    ReleaseTrash,
    PutKeeping,
    Condemn,
    Acquit,
    PutSeries,
    DropSeries,
    PutHistory,
    PutMarker,
}

/// The gate of a node's calls.
pub type NodeGate = Gate<NodeCall, KernelFault>;

/// Why a pod could not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// Nothing of the store is mounted there.
    NotMounted,
    ReadOnly,
    /// The directory was removed under the mount.
    Deleted,
}

/// One machine. Clones are the same machine.
#[derive(Clone)]
pub struct Node {
    world: Arc<Mutex<World>>,
    gate: NodeGate,
}

impl Default for Node {
    fn default() -> Node {
        Node::new("/store")
    }
}

impl Node {
    /// A machine with an empty store at this path.
    pub fn new(store: impl Into<PathBuf>) -> Node {
        Node { world: Arc::new(Mutex::new(World::new(store.into()))), gate: NodeGate::default() }
    }

    /// Where faults, pauses and hanging calls are told.
    pub fn gate(&self) -> &NodeGate {
        &self.gate
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        locked(&self.world)
    }

    /// Makes a directory and its parents, outside of the store.
    pub fn make_directory(&self, path: impl AsRef<Path>) {
        let mut world = self.world();
        for ancestor in path.as_ref().ancestors() {
            world.host.entry(ancestor.to_owned()).or_insert(HostEntry::Directory);
        }
    }

    /// Puts a file there, in a directory that is made if need be.
    pub fn make_file(&self, path: impl AsRef<Path>) {
        self.put(path.as_ref(), HostEntry::File);
    }

    /// Puts a symlink there.
    pub fn make_symlink(&self, path: impl AsRef<Path>) {
        self.put(path.as_ref(), HostEntry::Symlink);
    }

    fn put(&self, path: &Path, entry: HostEntry) {
        if let Some(parent) = path.parent() {
            self.make_directory(parent);
        }
        self.world().host.insert(path.to_owned(), entry);
    }

    /// Removes a file, a symlink or an empty directory that carries no mount, as unlink(2) and rmdir(2) would.
    pub fn remove(&self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        let mut world = self.world();
        let is_free = world.is_empty(path) && !world.is_mounted_at_or_below(path);
        is_free && world.host.remove(path).is_some()
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.world().host.contains_key(path.as_ref())
    }

    /// Mounts something that is not the driver's, on top of what is there.
    pub fn mount_foreign(&self, at: impl AsRef<Path>) {
        self.world().mount_foreign(at.as_ref());
    }

    /// Binds a copy, or with `below` something in it, as an operator or the kubelet's subPath does. False
    /// where there is no such copy.
    pub fn bind_copy(&self, handle: &Handle, below: bool, at: impl AsRef<Path>) -> bool {
        let mut world = self.world();
        let Ok(Some(inode)) = world.copy_inode(handle.as_str()) else { return false };
        world.bind(inode, !below, at.as_ref(), &MountOptions::default());
        true
    }

    /// Somebody binds a trash entry. False where there is none.
    pub fn bind_trash(&self, id: TrashId, at: impl AsRef<Path>) -> bool {
        let mut world = self.world();
        let Some(&inode) = world.trash.get(&id) else { return false };
        world.bind(inode, true, at.as_ref(), &MountOptions::default());
        true
    }

    /// Unmounts the uppermost mount there. False where there is none, or it is in use.
    pub fn unmount(&self, at: impl AsRef<Path>) -> bool {
        self.world().unmount(at.as_ref()).is_ok()
    }

    /// Someone begins or ends to use a mount: while busy it cannot be unmounted.
    pub fn set_busy(&self, at: impl AsRef<Path>, is_busy: bool) {
        let mut world = self.world();
        if is_busy {
            world.busy.insert(at.as_ref().to_owned());
        } else {
            world.busy.remove(at.as_ref());
        }
    }

    /// Nobody uses any mount any more.
    pub fn clear_busy(&self) {
        self.world().busy.clear();
    }

    /// Every path outside of the store.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.world().host.keys().cloned().collect()
    }

    /// What is at a path, as the kernel sees it.
    pub fn view(&self, at: impl AsRef<Path>) -> TargetView {
        self.world().view(at.as_ref())
    }

    /// Every mount that shows a place of the store.
    pub fn store_mounts(&self) -> Vec<StoreMount> {
        self.world().store_mounts()
    }

    /// The flags of the uppermost mount there.
    pub fn flags(&self, at: impl AsRef<Path>) -> Option<MountFlags> {
        self.world().top_mount(at.as_ref()).map(|mount| mount.flags)
    }

    /// A pod writes a file through the mount at its target.
    pub fn write(&self, at: impl AsRef<Path>, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let mut world = self.world();
        let mount = world.top_mount(at.as_ref()).ok_or(WriteError::NotMounted)?;
        let super::world::Source::Store { inode, .. } = mount.source else {
            return Err(WriteError::NotMounted);
        };
        if mount.flags.read_only || world.read_only {
            return Err(WriteError::ReadOnly);
        }
        let directory = world.directories.get_mut(&inode).ok_or(WriteError::NotMounted)?;
        if directory.deleted {
            return Err(WriteError::Deleted);
        }
        directory.files.insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    /// A pod reads a file through the mount at its target.
    pub fn read(&self, at: impl AsRef<Path>, name: &str) -> Option<Vec<u8>> {
        let world = self.world();
        let mount = world.top_mount(at.as_ref())?;
        let super::world::Source::Store { inode, .. } = mount.source else { return None };
        world.directories.get(&inode)?.files.get(name).cloned()
    }

    /// The contents of a copy that is in its place.
    pub fn copy(&self, handle: &Handle) -> Option<BTreeMap<String, Vec<u8>>> {
        self.of_copy(handle, |directory| directory.files.clone())
    }

    /// Mode and group of a copy's root.
    pub fn copy_mode_and_group(&self, handle: &Handle) -> Option<(u32, u32)> {
        self.of_copy(handle, |directory| (directory.mode, directory.group))
    }

    /// The names of all copies.
    pub fn copy_names(&self) -> Vec<String> {
        self.world().copies.keys().cloned().collect()
    }

    /// Every copy by name, with its identity.
    pub fn copy_identities(&self) -> BTreeMap<String, FileIdentity> {
        let world = self.world();
        let named = world.copies.iter().filter_map(|(name, entry)| match entry {
            StoreEntry::Directory(inode) => Some((name.clone(), World::identity(*inode))),
            StoreEntry::File | StoreEntry::Symlink => None,
        });
        named.collect()
    }

    /// The identities of what is in the trash.
    pub fn trash_identities(&self) -> Vec<FileIdentity> {
        self.world().trash.values().map(|&inode| World::identity(inode)).collect()
    }

    /// The entries of the trash.
    pub fn trash_ids(&self) -> Vec<TrashId> {
        self.world().trash.keys().copied().collect()
    }

    /// An operator puts this file into the copy, which is made where it is missing.
    pub fn put_copy(&self, handle: &Handle, name: &str, bytes: &[u8]) {
        let mut world = self.world();
        if !matches!(world.copies.get(handle.as_str()), Some(StoreEntry::Directory(_))) {
            let inode = world.new_directory(Place::Copy(handle.clone()));
            world.copies.insert(handle.as_str().to_owned(), StoreEntry::Directory(inode));
        }
        drop(world);
        let file = (name.to_owned(), bytes.to_owned());
        self.of_copy(handle, |directory| directory.files.extend([file]));
    }

    /// Puts a file directly under `copies/`.
    pub fn put_stranger(&self, name: &str) {
        self.world().copies.insert(name.to_owned(), StoreEntry::File);
    }

    /// Puts a symlink directly under `copies/`.
    pub fn put_stranger_symlink(&self, name: &str) {
        self.world().copies.insert(name.to_owned(), StoreEntry::Symlink);
    }

    /// Makes the copy's root immutable (rename is then denied) or mutable again.
    pub fn set_immutable(&self, handle: &Handle, is_immutable: bool) {
        self.of_copy(handle, |directory| directory.immutable = is_immutable);
    }

    /// Makes a file of the copy undeletable, or, all of them, deletable again.
    pub fn set_undeletable(&self, handle: &Handle, name: Option<&str>) {
        let names = name.map(str::to_owned);
        self.of_copy(handle, |directory| directory.undeletable = names.into_iter().collect());
    }

    /// Makes everything in the trash deletable again.
    pub fn clear_undeletable(&self) {
        self.world().directories.values_mut().for_each(|directory| directory.undeletable.clear());
    }

    /// Leaves the store's file system this much space, in bytes.
    pub fn set_available_bytes(&self, bytes: u64) {
        let mut world = self.world();
        world.total_bytes = world.used_bytes() + bytes;
    }

    /// Makes the store's file system read-only, or writable again.
    pub fn set_read_only(&self, read_only: bool) {
        self.world().read_only = read_only;
    }

    /// An operator moves a copy out of the store. False where there is no such copy.
    pub fn move_copy_away(&self, handle: &Handle) -> bool {
        let is_moved = self.of_copy(handle, |directory| directory.moved_away = true).is_some();
        is_moved && self.world().copies.remove(handle.as_str()).is_some()
    }

    /// An operator gives a copy another handle's name. False where there is no such copy.
    pub fn rename_copy(&self, handle: &Handle, to: &Handle) -> bool {
        let place = Place::Copy(to.clone());
        if self.of_copy(handle, |directory| directory.place = place).is_none() {
            return false;
        }
        let mut world = self.world();
        let Some(entry) = world.copies.remove(handle.as_str()) else { return false };
        world.copies.insert(to.as_str().to_owned(), entry);
        true
    }

    /// An operator removes a copy, whoever sees it. False where there is no such copy.
    pub fn remove_copy(&self, handle: &Handle) -> bool {
        let mut world = self.world();
        let Ok(Some(inode)) = world.copy_inode(handle.as_str()) else { return false };
        world.copies.remove(handle.as_str());
        world.remove_directory(inode);
        true
    }

    /// Whether the walks that measure copies have not ended.
    pub fn set_walks_unfinished(&self, unfinished: bool) {
        self.world().walks_unfinished = unfinished;
    }

    /// The mode of new copies (`--copy-mode`).
    pub fn set_copy_mode(&self, mode: u32) {
        self.world().copy_mode = mode;
    }

    /// All mounts are gone, directories stay. Processes of before must be dropped.
    pub fn reboot(&self) {
        self.world().reboot();
    }

    /// A reboot that also loses what was not written durably.
    pub fn power_failure(&self) {
        let mut world = self.world();
        world.reboot();
        world.disk.lose_what_is_not_durable();
    }

    /// The record of a target is torn: the next process does not find it.
    pub fn tear_record(&self, target: &TargetPath) -> bool {
        self.world().disk.targets.remove(target).is_some()
    }

    /// Leaves room for this many target records in all.
    pub fn set_target_slots(&self, slots: usize) {
        self.world().disk.target_slots = slots;
    }

    fn of_copy<T>(&self, handle: &Handle, act: impl FnOnce(&mut Directory) -> T) -> Option<T> {
        let mut world = self.world();
        let inode = world.copy_inode(handle.as_str()).ok()??;
        world.directories.get_mut(&inode).map(act)
    }
}
