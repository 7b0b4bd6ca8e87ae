//! Deleting a tree, from descriptors: it follows no symlink, leaves no file system, and goes on where something
//! cannot be deleted (C24).

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::failure::failure;
use crate::ports::copies::Deletion;
use crate::ports::failure::Failure;

/// How many directories are open at once; what lies deeper is first moved up to the root of the tree.
const LEVELS_MAX: usize = 32;
/// How many names are tried for one directory that is moved up.
const HOIST_NAMES_MAX: u64 = 64;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is being emptied, and what is still in it.
struct Level {
    name: CString,
    directory: OwnedFd,
    entries: Vec<CString>,
}

/// A deletion on its way.
struct Walk {
    root: PathBuf,
    device: Option<u64>,
    levels: Vec<Level>,
    hoisted: u64,
    left: u64,
    first: Option<Failure>,
}

/// Deletes the directory and all in it. Fine where it is not there.
pub fn delete_tree(root: &Path) -> Deletion {
    let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else { return Deletion::Done };
    let mut walk =
        Walk { root: root.to_owned(), device: None, levels: Vec::new(), hoisted: 0, left: 0, first: None };
    let name = CString::new(name.as_bytes()).unwrap_or_default();
    match rustix::fs::openat(CWD, parent, DIRECTORY, Mode::empty()) {
        Ok(parent) => {
            walk.delete(&parent, name.clone());
            while let Some(level) = walk.levels.last_mut() {
                match level.entries.pop() {
                    Some(entry) => walk.delete_entry(entry),
                    None => walk.leave(&parent),
                }
            }
        }
        Err(errno) => walk.keep("open", &name, errno),
    }
    match walk.first {
        Some(first) => Deletion::Left { entries: walk.left, first },
        None => Deletion::Done,
    }
}

impl Walk {
    fn delete_entry(&mut self, name: CString) {
        let Some(level) = self.levels.last() else { return };
        let Ok(directory) = rustix::io::dup(&level.directory) else {
            return self.keep("dup", &name, Errno::MFILE);
        };
        self.delete(&directory, name);
    }

    /// Unlinks what is no directory, and enters what is one.
    fn delete(&mut self, parent: &OwnedFd, name: CString) {
        let unlinked = rustix::fs::unlinkat(parent, &name, AtFlags::empty());
        match unlinked {
            Ok(()) | Err(Errno::NOENT) => {}
            // Linux says EISDIR, other systems EPERM; what is no directory after all fails to open as one.
            Err(errno @ (Errno::ISDIR | Errno::PERM)) if self.levels.len() < LEVELS_MAX => {
                match self.enter(parent, &name) {
                    Ok(level) => self.levels.push(level),
                    Err(Errno::NOTDIR | Errno::LOOP) => self.keep("unlink", &name, errno),
                    Err(errno) => self.keep("open", &name, errno),
                }
            }
            Err(Errno::ISDIR | Errno::PERM) => self.hoist(parent, name),
            Err(errno) => self.keep("unlink", &name, errno),
        }
    }

    /// Opens a directory for emptying. One that its owner may not read or write is opened up: the owner deletes it.
    fn enter(&mut self, parent: &OwnedFd, name: &CStr) -> Result<Level, Errno> {
        let open = || rustix::fs::openat(parent, name, DIRECTORY, Mode::empty());
        let directory = match open() {
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
                open()?
            }
            opened => opened?,
        };
        let found = rustix::fs::fstat(&directory)?;
        #[allow(clippy::unnecessary_cast, reason = "it has another type on other systems")]
        let device = found.st_dev as u64;
        if *self.device.get_or_insert(device) != device {
            return Err(Errno::XDEV);
        }
        if !Mode::from_raw_mode(found.st_mode).contains(Mode::RWXU) {
            rustix::fs::fchmod(&directory, Mode::RWXU)?;
        }
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                entries.push(entry.file_name().to_owned());
            }
        }
        Ok(Level { name: name.to_owned(), directory, entries })
    }

    /// Moves a directory that is too deep up to the root of the tree, to be emptied there.
    fn hoist(&mut self, parent: &OwnedFd, name: CString) {
        let Some(root) = self.levels.first_mut() else { return };
        let mut outcome = Errno::EXIST;
        for _ in 0..HOIST_NAMES_MAX {
            self.hoisted += 1;
            let fresh = CString::new(format!("hoisted-{}", self.hoisted)).unwrap_or_default();
            match rustix::fs::renameat(parent, &name, &root.directory, &fresh) {
                Ok(()) => return root.entries.push(fresh),
                Err(errno @ (Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)) => outcome = errno,
                Err(errno) => return self.keep("rename", &name, errno),
            }
        }
        self.keep("rename", &name, outcome);
    }

    /// Removes the directory that was just emptied.
    fn leave(&mut self, outermost: &OwnedFd) {
        let Some(level) = self.levels.pop() else { return };
        let parent = self.levels.last().map_or(outermost, |parent| &parent.directory);
        match rustix::fs::unlinkat(parent, &level.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            // What is left in it was counted already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.left > 0 => {}
            Err(errno) => self.keep("rmdir", &level.name, errno),
        }
    }

    fn keep(&mut self, operation: &'static str, name: &CStr, errno: Errno) {
        self.left += 1;
        if self.first.is_none() {
            let names = self.levels.iter().skip(1).map(|level| level.name.as_c_str());
            let below = names.chain((!self.levels.is_empty()).then_some(name));
            let path =
                below.fold(self.root.clone(), |path, name| path.join(OsStr::from_bytes(name.to_bytes())));
            self.first = Some(failure(operation, &path, &errno.into()));
        }
    }
}
