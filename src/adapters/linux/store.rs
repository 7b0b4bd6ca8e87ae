//! The store's directories, opened once and held: everything in the store is reached from these descriptors, and
//! nothing in it follows a symlink.
//!
//! ```text
//! copies/HANDLE/   the data
//! trash/ID/        a copy on its way out, or one that has no name yet
//! holds/           records in space set aside
//! lock             held by the one process that works on the store (C40)
//! ```

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::failure::{Outcome, Step};
use super::traffic::Traffic;

/// The store, open.
#[derive(Debug)]
pub struct StoreDirs {
    path: PathBuf,
    root: OwnedFd,
    copies: OwnedFd,
    trash: OwnedFd,
    holds: OwnedFd,
    traffic: Traffic,
}

/// For directories whose entries are read.
pub const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// For directories that are only named, mounted or looked at: asks no file system.
pub const NAME_DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How anything below an open directory is reached: not above it, through no symlink of any kind.
pub const BELOW: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Opens `path` below `directory` by [`BELOW`]. The mode is for what is made.
pub fn open_below(
    directory: BorrowedFd<'_>,
    path: impl rustix::path::Arg,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(directory, path, flags, mode, BELOW)
}

/// Access-control lists change the mode that a directory is made with, and who may enter one.
const ACL_ATTRIBUTES: [&CStr; 2] = [c"system.posix_acl_access", c"system.posix_acl_default"];

impl StoreDirs {
    /// Opens the store and makes what is missing in it. `path` may lead there through symlinks, which are resolved
    /// here and never again (C18).
    pub fn open(path: &Path) -> Outcome<StoreDirs> {
        StoreDirs::of(path, own_directory)
    }

    /// Opens a store as it is: nothing is made in it and nothing changed.
    pub fn look(path: &Path) -> Outcome<StoreDirs> {
        StoreDirs::of(path, |root, name| {
            open_below(root, name, READ_DIRECTORY, Mode::empty()).step("find a store's directories in")
        })
    }

    fn of(path: &Path, directory: impl Fn(BorrowedFd<'_>, &CStr) -> Outcome<OwnedFd>) -> Outcome<StoreDirs> {
        let path = std::fs::canonicalize(path).step("resolve")?;
        let root = rustix::fs::open(&path, READ_DIRECTORY, Mode::empty()).step("open")?;
        let [copies, trash, holds] =
            [c"copies", c"trash", c"holds"].map(|name| directory(root.as_fd(), name));
        let traffic = Traffic::default();
        Ok(StoreDirs { path, copies: copies?, trash: trash?, holds: holds?, root, traffic })
    }

    /// Where it really is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub fn copies(&self) -> BorrowedFd<'_> {
        self.copies.as_fd()
    }

    pub fn trash(&self) -> BorrowedFd<'_> {
        self.trash.as_fd()
    }

    pub fn holds(&self) -> BorrowedFd<'_> {
        self.holds.as_fd()
    }

    /// The calls for pods in this store.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// Opens one of the driver's own directories, made if it is missing: 0700 and ours whatever it was (C6), so that no
/// pod enters and nothing is inherited from it.
fn own_directory(store: BorrowedFd<'_>, name: &CStr) -> Outcome<OwnedFd> {
    match rustix::fs::mkdirat(store, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).step("make a directory in"),
    }
    let directory = open_below(store, name, READ_DIRECTORY, Mode::empty()).step("open a directory in")?;
    set_exact_mode(directory.as_fd(), Mode::RWXU)?;
    Ok(directory)
}

/// Gives an open directory exactly this mode and no access-control list, whatever umask, a setgid parent or a default
/// list made of it.
pub fn set_exact_mode(directory: BorrowedFd<'_>, mode: Mode) -> Outcome<()> {
    for attribute in ACL_ATTRIBUTES {
        match rustix::fs::fremovexattr(directory, attribute) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno).step("fremovexattr of"),
        }
    }
    // After the lists: removing one may rewrite the group's bits.
    rustix::fs::fchmod(directory, mode).step("fchmod of")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn c18_what_is_opened_in_the_store_never_leads_out_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(scratch.path().join("store/inner")).unwrap();
        std::fs::create_dir(scratch.path().join("outside")).unwrap();
        let links = [
            ("up", "../outside"),
            ("absolute", "/"),
            ("beside", "inner"),
            ("inner/magic", "/proc/self/root"),
            ("inner/own", "/proc/self/cwd"),
        ];
        for (name, to) in links {
            symlink(to, scratch.path().join("store").join(name)).unwrap();
        }
        let store = rustix::fs::open(scratch.path().join("store"), NAME_DIRECTORY, Mode::empty()).unwrap();
        let opened = |path: &str, flags: OFlags| open_below(store.as_fd(), path, flags, Mode::empty());
        let follows = OFlags::RDONLY | OFlags::CLOEXEC;
        assert!(opened("inner", follows).is_ok());
        for path in ["up", "absolute", "beside", "beside/.", "inner/magic", "inner/magic/proc", "inner/own"] {
            assert_eq!(opened(path, follows).unwrap_err(), Errno::LOOP, "{path}");
        }
        for path in ["..", "inner/../..", "/", "/proc/self/fd"] {
            assert_eq!(opened(path, follows).unwrap_err(), Errno::XDEV, "{path}");
        }
        // A name that is taken hold of without being followed is the link itself.
        assert_eq!(opened("up", NAME_DIRECTORY).unwrap_err(), Errno::NOTDIR);
    }
}
