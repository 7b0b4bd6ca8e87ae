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

/// The store, open.
#[derive(Debug)]
pub struct StoreDirs {
    path: PathBuf,
    root: OwnedFd,
    copies: OwnedFd,
    trash: OwnedFd,
    holds: OwnedFd,
}

/// For directories whose entries are read.
pub const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// For directories that are only named, mounted or looked at: asks no file system.
pub const NAME_DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Access-control lists change the mode that a directory is made with, and who may enter one.
const ACL_ATTRIBUTES: [&CStr; 2] = [c"system.posix_acl_access", c"system.posix_acl_default"];

impl StoreDirs {
    /// Opens the store and makes what is missing in it. `path` may lead there through symlinks, which are resolved
    /// here and never again (C18).
    pub fn open(path: &Path) -> Outcome<StoreDirs> {
        let path = std::fs::canonicalize(path).step("resolve")?;
        let root = rustix::fs::open(&path, READ_DIRECTORY, Mode::empty()).step("open")?;
        let [copies, trash, holds] =
            [c"copies", c"trash", c"holds"].map(|name| own_directory(root.as_fd(), name));
        Ok(StoreDirs { path, copies: copies?, trash: trash?, holds: holds?, root })
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
}

/// Opens one of the driver's own directories, made if it is missing: 0700 and ours whatever it was (C6), so that no
/// pod enters and nothing is inherited from it.
fn own_directory(store: BorrowedFd<'_>, name: &CStr) -> Outcome<OwnedFd> {
    match rustix::fs::mkdirat(store, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).step("make a directory in"),
    }
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let directory = rustix::fs::openat2(store, name, READ_DIRECTORY, Mode::empty(), resolve)
        .step("open a directory in")?;
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
