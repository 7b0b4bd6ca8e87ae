//! The ground that worlds are built on: each file system is made once a run, and every world gets a directory of its own
//! in it. All of it lies on one tmpfs that nobody outside of this process sees, and is gone with it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::file_system::FileSystem;
use crate::image;

/// Tells a process where the run that started it has made the file systems.
pub const ROOM_VARIABLE: &str = "PER_NODE_TEST_ROOM";
/// Sparse; more than any case writes.
const SIZE: &str = "1G";

static ROOM: OnceLock<PathBuf> = OnceLock::new();

/// A run. Dropped last.
pub struct Run(Option<tempfile::TempDir>);

/// Begins a run; what is made from here on is made once.
pub fn begin() -> Run {
    if let Some(path) = std::env::var_os(ROOM_VARIABLE) {
        let _ = ROOM.set(path.into());
        return Run(None);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(directory.path()).unwrap();
    mount("room", &path, "tmpfs", MountFlags::empty(), c"mode=0755").unwrap();
    let _ = ROOM.set(path);
    Run(Some(directory))
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(directory) = &self.0 {
            let _ = unmount(directory.path(), UnmountFlags::DETACH);
        }
    }
}

/// The run's directory.
pub fn room() -> &'static Path {
    ROOM.get().expect("the run has begun")
}

/// Whether another process of this run has made the file systems.
pub fn is_given() -> bool {
    std::env::var_os(ROOM_VARIABLE).is_some()
}

/// A directory that no other world of any process of this run has.
pub fn new_directory(above: &Path) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = above.join(format!("w{}-{number}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Where a world is built.
pub fn new_root() -> PathBuf {
    new_directory(room())
}

/// Makes the file system, if nobody has, and mounts it; the answer is where.
pub fn make(file_system: FileSystem) -> PathBuf {
    let at = room().join(file_system.name());
    if !at.exists() {
        let beside = room().join(format!("{}.room", file_system.name()));
        std::fs::create_dir(&at).unwrap();
        std::fs::create_dir(&beside).unwrap();
        image::run(&mut file_system.mount_new(&beside, &at, SIZE));
    }
    at
}

/// Mounts an empty directory of the file system at `at`; the answer is where else it lies, if anywhere.
pub fn mount_empty(file_system: FileSystem, at: &Path) -> Option<PathBuf> {
    match file_system {
        FileSystem::Tmpfs => {
            mount("scratch", at, "tmpfs", MountFlags::empty(), c"mode=0755").unwrap();
            None
        }
        FileSystem::Ext4 | FileSystem::Xfs | FileSystem::Btrfs | FileSystem::Overlay => {
            let directory = new_directory(&make(file_system));
            mount_bind(&directory, at).unwrap();
            Some(directory)
        }
    }
}
