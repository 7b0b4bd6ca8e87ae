//! The state of one machine as its kernel has it: directories, mounts, and the store's inodes. Every change
//! is one step under the node's lock. It decides nothing and checks no handle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::kernel_fault::errno;
use super::records::Disk;
use crate::domain::mount_options::{AccessTime, MountFlags, MountOptions};
use crate::domain::mount_table::{FileIdentity, Layer, MountStack, Place, Shown, StoreMount, TargetView};
use crate::domain::trash::TrashId;

/// What a file or an empty directory takes up in this world, in bytes.
pub(super) const BLOCK_BYTES: u64 = 4096;
const FOREIGN_DEVICE: u64 = 2;

/// What is at a path outside of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostEntry {
    Directory,
    File,
    Symlink,
}

/// What a name directly under `copies/` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreEntry {
    Directory(u64),
    File,
    Symlink,
}

/// A directory of the store by its inode. It stays while a name or a mount leads to it.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    /// Where it is, or was last before it was removed.
    pub place: Place,
    pub deleted: bool,
    /// Somebody moved it out of the store: a mount shows it still, as no place of the store.
    pub moved_away: bool,
    /// Contents by path below the directory.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files that no walk can delete.
    pub undeletable: BTreeSet<String>,
    pub immutable: bool,
    pub mode: u32,
    pub group: u32,
}

/// What a mount shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A directory of the store, or something below it.
    Store { inode: u64, at_root: bool },
    /// Anything else.
    Foreign { inode: u64 },
}

/// A mount; of several at one path the later is on top.
#[derive(Debug, Clone)]
pub(super) struct Mount {
    pub at: PathBuf,
    pub source: Source,
    pub flags: MountFlags,
}

/// Everything there is.
#[derive(Debug)]
pub(super) struct World {
    pub store: PathBuf,
    pub host: BTreeMap<PathBuf, HostEntry>,
    pub mounts: Vec<Mount>,
    /// Mount points that someone uses.
    pub busy: BTreeSet<PathBuf>,
    pub directories: BTreeMap<u64, Directory>,
    pub copies: BTreeMap<String, StoreEntry>,
    pub trash: BTreeMap<TrashId, u64>,
    pub total_bytes: u64,
    pub walks_unfinished: bool,
    pub read_only: bool,
    pub copy_mode: u32,
    pub disk: Disk,
    last_inode: u64,
}

/// The flags of the store's own mount, which a bind of it has where nothing else is asked.
const STORE_FLAGS: MountFlags = MountFlags {
    read_only: false,
    no_exec: false,
    no_suid: false,
    no_dev: false,
    no_dir_access_time: false,
    access_time: AccessTime::Relative,
};

impl World {
    pub const STORE_DEVICE: u64 = 1;

    pub fn new(store: PathBuf) -> World {
        World {
            store,
            host: BTreeMap::new(),
            mounts: Vec::new(),
            busy: BTreeSet::new(),
            directories: BTreeMap::new(),
            copies: BTreeMap::new(),
            trash: BTreeMap::new(),
            total_bytes: 1 << 30,
            walks_unfinished: false,
            read_only: false,
            copy_mode: 0o777,
            disk: Disk::default(),
            last_inode: 1,
        }
    }

    fn new_inode(&mut self) -> u64 {
        self.last_inode += 1;
        self.last_inode
    }

    /// An empty directory of the store, with the configured mode.
    pub fn new_directory(&mut self, place: Place) -> u64 {
        let inode = self.new_inode();
        let directory = Directory {
            place,
            deleted: false,
            moved_away: false,
            files: BTreeMap::new(),
            undeletable: BTreeSet::new(),
            immutable: false,
            mode: self.copy_mode,
            group: 0,
        };
        self.directories.insert(inode, directory);
        inode
    }

    pub fn identity(inode: u64) -> FileIdentity {
        FileIdentity { device: World::STORE_DEVICE, inode }
    }

    /// The copy's inode; `Err` with an errno where another thing has the name.
    pub fn copy_inode(&self, name: &str) -> Result<Option<u64>, i32> {
        match self.copies.get(name) {
            None => Ok(None),
            Some(StoreEntry::Directory(inode)) => Ok(Some(*inode)),
            Some(StoreEntry::File) => Err(errno::ENOTDIR),
            Some(StoreEntry::Symlink) => Err(errno::ELOOP),
        }
    }

    pub fn used_bytes(&self) -> u64 {
        let named = self.directories.values().filter(|directory| !directory.deleted);
        named.map(Directory::used_bytes).sum()
    }

    pub fn available_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.used_bytes())
    }

    /// An errno where the store takes no writes.
    pub fn check_writable(&self) -> Result<(), i32> {
        if self.read_only { Err(errno::EROFS) } else { Ok(()) }
    }

    /// Marks a directory as removed, and its contents as gone; it stays as long as a mount shows it.
    pub fn remove_directory(&mut self, inode: u64) {
        if let Some(directory) = self.directories.get_mut(&inode) {
            directory.deleted = true;
            directory.files.clear();
        }
        self.collect_garbage();
    }

    /// Forgets removed directories that no mount shows.
    fn collect_garbage(&mut self) {
        let shown: BTreeSet<u64> =
            self.mounts.iter().filter_map(|mount| mount.source.store_inode()).collect();
        self.directories.retain(|inode, directory| !directory.deleted || shown.contains(inode));
    }

    /// Binds a directory of the store at `at`, on top of whatever is there.
    pub fn bind(&mut self, inode: u64, at_root: bool, at: &Path, options: &MountOptions) {
        let source = Source::Store { inode, at_root };
        self.mounts.push(Mount { at: at.to_owned(), source, flags: flags_of(options) });
    }

    pub fn mount_foreign(&mut self, at: &Path) {
        let inode = self.new_inode();
        let source = Source::Foreign { inode };
        self.mounts.push(Mount { at: at.to_owned(), source, flags: STORE_FLAGS });
    }

    /// The uppermost mount at `at`.
    pub fn top_mount(&self, at: &Path) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.at == at)
    }

    /// Unmounts the uppermost mount at `at`; an errno where that cannot be.
    pub fn unmount(&mut self, at: &Path) -> Result<(), i32> {
        let Some(index) = self.mounts.iter().rposition(|mount| mount.at == at) else {
            return Err(errno::EINVAL);
        };
        if self.busy.contains(at) || self.has_mount_below(at) {
            return Err(errno::EBUSY);
        }
        self.mounts.remove(index);
        self.collect_garbage();
        Ok(())
    }

    /// Mount points strictly below `at`, the deepest first.
    pub fn mount_points_below(&self, at: &Path) -> Vec<PathBuf> {
        let below = self.mounts.iter().filter(|mount| mount.at != at && mount.at.starts_with(at));
        let mut points: Vec<PathBuf> = below.map(|mount| mount.at.clone()).collect();
        points.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
        points
    }

    fn has_mount_below(&self, at: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.at != at && mount.at.starts_with(at))
    }

    /// Whether anything is mounted on a path or below it.
    pub fn is_mounted_at_or_below(&self, path: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.at.starts_with(path))
    }

    /// What stat(2) and the mounts say of a path whose last component is not followed.
    pub fn view(&self, path: &Path) -> TargetView {
        let layers: Vec<&Mount> = self.mounts.iter().filter(|mount| mount.at == path).collect();
        if let Some(visible) = layers.last() {
            let visible = visible.source.identity();
            let layers = layers.into_iter();
            let layers = layers.map(|mount| Layer { shown: self.shown(mount), flags: mount.flags }).collect();
            return TargetView::Mounted(MountStack { layers, visible });
        }
        match self.host.get(path) {
            None => TargetView::Absent,
            Some(HostEntry::Directory) => TargetView::Directory { empty: self.is_empty(path) },
            Some(HostEntry::File | HostEntry::Symlink) => TargetView::NotADirectory,
        }
    }

    pub fn is_empty(&self, path: &Path) -> bool {
        !self.host.keys().any(|entry| entry.parent() == Some(path))
    }

    /// What a mount shows of the store.
    pub fn shown(&self, mount: &Mount) -> Option<Shown> {
        let Source::Store { inode, at_root } = mount.source else { return None };
        let directory = self.directories.get(&inode).filter(|directory| !directory.moved_away)?;
        Some(Shown { place: directory.place.clone(), at_root, deleted: directory.deleted })
    }

    /// Every mount that shows a place of the store.
    pub fn store_mounts(&self) -> Vec<StoreMount> {
        let shown = self.mounts.iter().filter_map(|mount| Some((mount.at.clone(), self.shown(mount)?)));
        shown.map(|(mount_point, shown)| StoreMount { mount_point, shown }).collect()
    }

    /// What a reboot leaves: no mount, and no directory without a name.
    pub fn reboot(&mut self) {
        self.mounts.clear();
        self.busy.clear();
        self.collect_garbage();
    }
}

impl Directory {
    pub fn used_bytes(&self) -> u64 {
        let blocks = |bytes: &Vec<u8>| (bytes.len() as u64).div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        BLOCK_BYTES + self.files.values().map(blocks).sum::<u64>()
    }
}

impl Source {
    fn store_inode(self) -> Option<u64> {
        match self {
            Source::Store { inode, .. } => Some(inode),
            Source::Foreign { .. } => None,
        }
    }

    fn identity(self) -> FileIdentity {
        match self {
            // What is below a directory has an inode of its own; this world keeps none for it.
            Source::Store { inode, at_root: true } => World::identity(inode),
            Source::Store { inode, at_root: false } => World::identity(inode | 1 << 63),
            Source::Foreign { inode } => FileIdentity { device: FOREIGN_DEVICE, inode },
        }
    }
}

fn flags_of(options: &MountOptions) -> MountFlags {
    MountFlags {
        read_only: options.read_only.unwrap_or(STORE_FLAGS.read_only),
        no_exec: options.no_exec.unwrap_or(STORE_FLAGS.no_exec),
        no_suid: options.no_suid.unwrap_or(STORE_FLAGS.no_suid),
        no_dev: options.no_dev.unwrap_or(STORE_FLAGS.no_dev),
        no_dir_access_time: options.no_dir_access_time.unwrap_or(STORE_FLAGS.no_dir_access_time),
        access_time: options.access_time.unwrap_or(STORE_FLAGS.access_time),
    }
}
