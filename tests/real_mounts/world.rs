//! What a case runs in: a scratch of its own on the file system of its setting, with a kubelet's directory, shared as on a
//! node, and a store.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::mountinfo::{self, MountLine};
use per_node::adapters::linux::mounts::{Abilities, LinuxMounts};
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::target::resolve_kubelet_dir;
use per_node::domain::handle::Handle;
use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::{FileIdentity, StoreMount, TargetView};
use per_node::domain::target::{KubeletDir, TargetPath};
use per_node::ports::copies::{Copies, Usage};
use per_node::ports::mounts::{Mounts, MountsError};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};

use crate::contract::COPY_MODE;
use crate::file_system::FileSystem;
use crate::ground;
use crate::setting::{Layout, Setting};

/// The world of one case. Everything mounted in it goes with it.
pub struct World {
    root: PathBuf,
    /// Where its files lie, if they do not go with the mount.
    elsewhere: Option<PathBuf>,
    /// Where the driver was told to look for `kubelet` and `store`.
    told: PathBuf,
    runtime: tokio::runtime::Runtime,
    pub setting: Setting,
    pub abilities: Abilities,
    pub store: Arc<StoreDirs>,
    pub kubelet_dir: KubeletDir,
    pub mounts: LinuxMounts,
    pub copies: LinuxCopies,
}

impl World {
    pub fn new(setting: Setting) -> World {
        World::with(setting, |_| {})
    }

    /// A world whose store and kubelet directory `prepare` may change before they are opened; it gets the root.
    pub fn with(setting: Setting, prepare: impl FnOnce(&Path)) -> World {
        let root = ground::new_root();
        let elsewhere = lay_out(setting, &root);
        mount_bind(root.join("kubelet"), root.join("kubelet")).unwrap();
        mount_change(root.join("kubelet"), MountPropagationFlags::SHARED).unwrap();
        prepare(&root);
        let told = match setting.layout {
            Layout::Together | Layout::StoreMount => root.clone(),
            Layout::Symlinks => root.join("links"),
        };
        let abilities = Abilities::found();
        let store = Arc::new(StoreDirs::open(&told.join("store")).unwrap());
        let kubelet_dir = resolve_kubelet_dir(&told.join("kubelet")).unwrap();
        let mounts = LinuxMounts::new(Arc::clone(&store), kubelet_dir.clone(), abilities);
        let copies = LinuxCopies::new(Arc::clone(&store), COPY_MODE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        World { root, elsewhere, told, runtime, setting, abilities, store, kubelet_dir, mounts, copies }
    }

    /// A path below the root, without symlinks.
    pub fn path(&self, rest: &str) -> PathBuf {
        self.root.join(rest)
    }

    /// Runs a call of a port to its end.
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// A directory under `copies/`, made without the adapter.
    pub fn copy(&self, name: &str) -> FileIdentity {
        let path = self.path("store/copies").join(name);
        std::fs::create_dir_all(&path).unwrap();
        identity(&path)
    }

    /// A target in the kubelet's own spelling.
    pub fn target(&self, name: &str) -> TargetPath {
        let path = self.told.join("kubelet").join(name);
        TargetPath::parse(path.to_str().unwrap(), &self.kubelet_dir).unwrap()
    }

    pub fn make(&self, target: &TargetPath) -> Result<(), MountsError> {
        self.wait(self.mounts.make_target(target))
    }

    /// Makes the target and attaches the copy, which must succeed.
    pub fn publish(&self, copy: &str, target: &str, options: &MountOptions) -> TargetPath {
        let identity = self.copy(copy);
        let target = self.target(target);
        self.make(&target).unwrap();
        self.attach(copy, identity, &target, options).unwrap();
        target
    }

    pub fn attach(
        &self,
        copy: &str,
        identity: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Result<(), MountsError> {
        self.wait(self.mounts.attach(&handle(copy), identity, target, options))
    }

    pub fn look(&self, target: &TargetPath) -> TargetView {
        self.wait(self.mounts.look(target)).unwrap()
    }

    pub fn detach(&self, target: &TargetPath) -> Result<(), MountsError> {
        self.wait(self.mounts.detach(target))
    }

    pub async fn remove(&self, target: &TargetPath) -> Result<(), MountsError> {
        self.mounts.remove_target(target).await
    }

    /// What the copy takes up, asked until the walk has ended: no answer waits for a busy machine longer than a second.
    pub fn usage(&self, name: &str) -> Usage {
        loop {
            let usage = self.wait(self.copies.usage(&handle(name))).unwrap();
            if usage.complete {
                return usage;
            }
        }
    }

    /// Mount points strictly below a path of the scratch, relative to it, in order.
    pub fn mounts_below(&self, rest: &str) -> Vec<String> {
        let above = self.path(rest);
        let lines = mountinfo::read().unwrap().into_iter();
        let mut below: Vec<String> = lines
            .map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.mount_point)))
            .filter_map(|point| Some(point.strip_prefix(&above).ok()?.to_str()?.to_owned()))
            .filter(|rest| !rest.is_empty())
            .collect();
        below.sort();
        below
    }

    /// Who shows the copy, by the index; the fresh table must say the same.
    pub fn showing(&self, name: &str) -> Vec<StoreMount> {
        let none = BTreeSet::new();
        let indexed = self.wait(self.mounts.showing(&handle(name), &none)).unwrap();
        let mut table = self.wait(self.mounts.table()).unwrap().mounts;
        table.retain(|mount| mount.shown.belongs_to(&handle(name), &none));
        assert_eq!(indexed, table, "the index and the table differ");
        indexed
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Lazily: a case that failed may have left anything. What it left stays for whoever looks, as long as the run.
        let _ = unmount(&self.root, UnmountFlags::DETACH);
        if !std::thread::panicking()
            && let Some(elsewhere) = &self.elsewhere
        {
            let _ = std::fs::remove_dir_all(elsewhere);
        }
    }
}

/// Mounts the setting's file system and makes its directories; the answer is what does not go with the mount.
fn lay_out(setting: Setting, root: &Path) -> Option<PathBuf> {
    let whole = match setting.layout {
        Layout::Together | Layout::Symlinks => setting.file_system,
        Layout::StoreMount => FileSystem::Tmpfs,
    };
    let elsewhere = ground::mount_empty(whole, root);
    for directory in ["kubelet", "store", "elsewhere", "links"] {
        std::fs::create_dir(root.join(directory)).unwrap();
    }
    match setting.layout {
        Layout::Together => elsewhere,
        Layout::Symlinks => {
            for name in ["kubelet", "store"] {
                symlink(Path::new("..").join(name), root.join("links").join(name)).unwrap();
            }
            elsewhere
        }
        Layout::StoreMount => {
            let elsewhere = ground::mount_empty(setting.file_system, &root.join("store"));
            mount_change(root.join("store"), MountPropagationFlags::SHARED).unwrap();
            elsewhere
        }
    }
}

pub fn handle(name: &str) -> Handle {
    Handle::parse(name).unwrap()
}

/// Device and inode of a path, symlinks not followed.
pub fn identity(path: &Path) -> FileIdentity {
    let stat = rustix::fs::lstat(path).unwrap();
    FileIdentity { device: stat.st_dev, inode: stat.st_ino }
}

/// The lines of a mount table at one mount point.
pub fn lines_at(table: &[u8], mount_point: &Path) -> Vec<MountLine> {
    use std::os::unix::ffi::OsStrExt;
    let mut lines = mountinfo::parse(table).unwrap();
    lines.retain(|line| line.mount_point == mount_point.as_os_str().as_bytes());
    lines
}

/// This process' lines at one mount point.
pub fn own_lines_at(mount_point: &Path) -> Vec<MountLine> {
    lines_at(&std::fs::read(mountinfo::MOUNTINFO).unwrap(), mount_point)
}
