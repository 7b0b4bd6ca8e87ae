//! What can be found wrong at the start (C44): each failure is one line that names the flag or the manifest's field.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use thiserror::Error;

use super::failure::{Failure, Outcome, Step};
use super::other_store::{self, Strange};
use super::store::StoreDirs;
use super::target;
use super::view::{self, MountEntry, View};
use crate::domain::target::KubeletDir;

/// The inode number of every btrfs subvolume's root: such a mount's root is not `/`.
const BTRFS_SUBVOLUME_INODE: u64 = 256;
/// `statfs` type of btrfs.
const BTRFS_MAGIC: u32 = 0x9123_683e;

/// What is wrong.
#[derive(Debug, Error)]
pub enum SelfCheckError {
    #[error("the kernel lacks {what}: per-node needs Linux 5.8 or newer")]
    Kernel { what: &'static str },
    #[error("--kubelet-dir {path}: {why}")]
    KubeletDir { path: PathBuf, why: String },
    #[error(
        "--kubelet-dir {path} has no shared mount propagation: give its volumeMount mountPropagation: Bidirectional \
         (outside of a container: mount --make-shared)"
    )]
    NotShared { path: PathBuf },
    #[error(
        "--kubelet-dir {path}: {path}/pods is a symlink, below which nothing is ever mounted or unmounted: bind-mount the \
         other directory there instead"
    )]
    PodsIsSymlink { path: PathBuf },
    #[error("--store / is the root directory: give the store a directory of its own")]
    StoreIsRoot,
    #[error("--store {path}: {why}")]
    Store { path: PathBuf, why: String },
    #[error("--store {path} is not a directory")]
    StoreNotADirectory { path: PathBuf },
    #[error("--store {path} is not writable: {why}")]
    StoreNotWritable { path: PathBuf, why: String },
    #[error(
        "--store {path} is no file system's root, as --store-mount-required demands: is the data disk mounted there?"
    )]
    StoreNotMounted { path: PathBuf },
    #[error(
        "--store {path}: copies/ and trash/ are not on one mount, so nothing could be moved between them"
    )]
    OtherMount { path: PathBuf },
    #[error(
        "--store {path} is another store than the one that a pod on this node uses: its volume at {target} shows {shown} of \
         some other place. Give the old store its place again (--store, or the data disk's mount); or end that pod, and where \
         it cannot end unmount its volume on the node: umount {target}"
    )]
    OtherStore { path: PathBuf, target: PathBuf, shown: PathBuf },
}

/// Checks the kernel and the kubelet's directory, and resolves the latter. `NotShared` is for the caller to judge:
/// the directory comes with it.
pub fn check_kubelet_dir(path: &Path) -> Result<(KubeletDir, Option<SelfCheckError>), SelfCheckError> {
    check_kernel()?;
    let wrong = |why: String| SelfCheckError::KubeletDir { path: path.to_owned(), why };
    let resolved = target::resolve_kubelet_dir(path).map_err(|failure| wrong(text(failure)))?;
    let shared = is_shared(resolved.path()).map_err(|failure| wrong(text(failure)))?;
    // Whatever else is wrong with it, or where it is not there yet, publishes say.
    let pods = rustix::fs::lstat(resolved.path().join("pods"));
    if pods.is_ok_and(|pods| FileType::from_raw_mode(pods.st_mode) == FileType::Symlink) {
        return Err(SelfCheckError::PodsIsSymlink { path: path.to_owned() });
    }
    let warning = (!shared).then(|| SelfCheckError::NotShared { path: path.to_owned() });
    Ok((resolved, warning))
}

/// Checks the store's directory before anything is made in it.
pub fn check_store(path: &Path, mount_required: bool) -> Result<(), SelfCheckError> {
    let wrong = |failure| SelfCheckError::Store { path: path.to_owned(), why: text(failure) };
    let resolved = std::fs::canonicalize(path).step("resolve").map_err(wrong)?;
    if resolved == Path::new("/") {
        return Err(SelfCheckError::StoreIsRoot);
    }
    let found = rustix::fs::stat(&resolved).step("stat").map_err(wrong)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Err(SelfCheckError::StoreNotADirectory { path: path.to_owned() });
    }
    // By the effective user, who may be root and still meet a read-only file system.
    let access = rustix::fs::accessat(CWD, &resolved, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
    if let Err(errno) = access {
        let why = std::io::Error::from(errno).to_string();
        return Err(SelfCheckError::StoreNotWritable { path: path.to_owned(), why });
    }
    if mount_required && !is_file_system_root(&resolved).map_err(wrong)? {
        return Err(SelfCheckError::StoreNotMounted { path: path.to_owned() });
    }
    Ok(())
}

/// Checks the open store: a copy must be able to move into the trash by a rename.
pub fn check_open_store(store: &StoreDirs) -> Result<(), SelfCheckError> {
    let wrong = |failure| SelfCheckError::Store { path: store.path().to_owned(), why: text(failure) };
    let view = quick_view().map_err(wrong)?;
    let copies = view.mount_of(store.copies()).map_err(wrong)?;
    let trash = view.mount_of(store.trash()).map_err(wrong)?;
    if copies.id == trash.id {
        Ok(())
    } else {
        Err(SelfCheckError::OtherMount { path: store.path().to_owned() })
    }
}

/// Checks that no pod of this driver still uses a store that was here before.
pub fn check_pods(
    store: &StoreDirs,
    kubelet_dir: &KubeletDir,
    driver_name: &str,
) -> Result<(), SelfCheckError> {
    let path = store.path().to_owned();
    match other_store::find(store, kubelet_dir, driver_name) {
        Ok(None) => Ok(()),
        Ok(Some(Strange { target, shown })) => Err(SelfCheckError::OtherStore { path, target, shown }),
        Err(failure) => Err(SelfCheckError::Store { path, why: text(failure) }),
    }
}

fn check_kernel() -> Result<(), SelfCheckError> {
    let opened =
        rustix::fs::openat2(CWD, c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
    if let Err(Errno::NOSYS) = opened {
        return Err(SelfCheckError::Kernel { what: "openat2" });
    }
    match view::is_mount_root(CWD.as_fd(), c"/") {
        Err(Failure { errno: Errno::NOSYS, .. }) => {
            Err(SelfCheckError::Kernel { what: "STATX_ATTR_MOUNT_ROOT" })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn is_shared(directory: &Path) -> Outcome<bool> {
    Ok(mount_of(directory)?.shared)
}

/// In a container every hostPath is a mount point, whether or not a disk is mounted on the host. What tells an
/// unmounted disk's directory from the disk is the mount's root: a directory of some file system, or all of it.
fn is_file_system_root(directory: &Path) -> Outcome<bool> {
    let open = open_directory(directory)?;
    let view = quick_view()?;
    let is_mount_root = view.glance(open.as_fd(), c"")?.is_some_and(|glance| glance.mount_root);
    if !is_mount_root {
        return Ok(false);
    }
    if view.mount_of(open.as_fd())?.root == b"/" {
        return Ok(true);
    }
    let is_btrfs = rustix::fs::fstatfs(&open).step("statfs")?.f_type as u32 == BTRFS_MAGIC;
    Ok(is_btrfs && rustix::fs::fstat(&open).step("stat")?.st_ino == BTRFS_SUBVOLUME_INODE)
}

fn mount_of(directory: &Path) -> Outcome<MountEntry> {
    quick_view()?.mount_of(open_directory(directory)?.as_fd())
}

/// A start asks about single mounts, beside however many there are.
fn quick_view() -> Outcome<View> {
    View::quick(view::has_statmount())
}

fn open_directory(directory: &Path) -> Outcome<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty()).step("open")
}

/// The kernel's word for it: the flag and the path are named already.
fn text(failure: Failure) -> String {
    std::io::Error::from(failure.errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn store_line(path: &Path, mount_required: bool) -> String {
        check_store(path, mount_required).expect_err("refused").to_string()
    }

    #[test]
    fn c44_an_unusable_store_is_named_with_its_flag() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(check_store(scratch.path(), false).is_ok());
        assert!(store_line(Path::new("/"), false).starts_with("--store /"));
        assert!(store_line(&file, false).contains("not a directory"));
        let missing = store_line(&scratch.path().join("missing"), false);
        assert!(missing.starts_with("--store") && missing.contains("No such file"), "{missing}");
        // procfs takes no new entries, from root neither.
        assert!(store_line(Path::new("/proc/self"), false).starts_with("--store"));
        let unmounted = store_line(scratch.path(), true);
        assert!(unmounted.contains("--store-mount-required"), "{unmounted}");
    }

    #[test]
    fn c44_a_file_system_of_its_own_is_a_mounted_store() {
        assert!(is_file_system_root(Path::new("/proc")).unwrap());
        assert!(!is_file_system_root(Path::new("/proc/self/fd")).unwrap());
    }

    #[test]
    fn c44_a_missing_kubelet_directory_is_named_with_its_flag() {
        let line = check_kubelet_dir(Path::new("/nowhere/kubelet")).expect_err("refused").to_string();
        assert!(line.starts_with("--kubelet-dir /nowhere/kubelet"), "{line}");
    }
}
