//! The removal walk of C24: deletes a tree entry by entry, in whatever state it is.
//!
//! It follows no symlink, crosses no mount, and never gives up for one entry: what cannot be deleted is counted and
//! left, the rest goes. Directories that refuse us (mode 000, without the capability to overrule it) are opened up
//! first: nobody will need their mode again. What lies very deep is moved up first, so that no depth costs more memory;
//! and a walk ends after very many entries, so that nobody who goes on writing keeps it from what else there is to do.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use super::descent::{self, Descent, Entry, NAME_ANY};
use super::failure::{Failure, Outcome, Step};
use super::places::joined;
use super::store::open_below;
use super::syscalls;

/// A directory into which somebody goes on writing is read again this often, then left.
const PASSES_MAX: u32 = 16;

/// Entries that one walk takes. Where there are more, or somebody makes them as fast, the next try goes on.
pub const ENTRIES_MAX: u64 = 4_000_000;
/// What lies deeper is moved to the top of the tree before it is entered.
const HOIST_DEPTH: usize = 4096;
/// Names tried for what is moved up; a pod may have taken some.
const HOIST_NAMES_MAX: u32 = 64;
/// Bytes of a path that are told: its beginning and its end, where it is longer.
const PATH_TOLD_MAX: usize = 1024;

/// What a removal left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leftovers {
    pub entries: u64,
    /// The first that was left: its path below the directory that the tree is in, and why.
    pub first: Option<(PathBuf, Failure)>,
}

/// What the walk keeps for a directory.
#[derive(Debug, Default)]
struct Note {
    /// Something in it stays, and so does it.
    keeps: bool,
    passes: u32,
}

struct Removal<'a> {
    descent: Descent<Note>,
    top: &'a CStr,
    stop: &'a dyn Fn() -> bool,
    /// The tree's own directory, for what is moved up.
    root: OwnedFd,
    /// How many were moved up so far.
    hoisted: u64,
    /// How many that were when the tree's own directory was last read from its beginning.
    hoisted_before: u64,
    /// How many entries may still be taken.
    entries_left: u64,
    leftovers: Leftovers,
}

/// Deletes `name` in `parent` with all below it. Fine where it is not there. `stop` is asked before each entry;
/// when it says so, the walk ends with ECANCELED and what is left stays for another.
pub fn remove(parent: BorrowedFd<'_>, name: &CStr, stop: &dyn Fn() -> bool) -> Outcome<Leftovers> {
    remove_at_most(ENTRIES_MAX, parent, name, stop)
}

/// The same, for no more entries than `entries_max`: what is beyond is left.
pub fn remove_at_most(
    entries_max: u64,
    parent: BorrowedFd<'_>,
    name: &CStr,
    stop: &dyn Fn() -> bool,
) -> Outcome<Leftovers> {
    match rmdir_or_unlink(parent, name, FileType::Unknown) {
        Ok(Gone::Yes) => return Ok(Leftovers::default()),
        Ok(Gone::HasEntries) => {}
        Err(failure) => return Ok(Leftovers::of(name.to_bytes(), failure)),
    }
    let root = match open_forced(parent, name) {
        Ok(root) => root,
        Err(failure) => return Ok(Leftovers::of(name.to_bytes(), failure)),
    };
    let own = descent::open_root(root.as_fd(), c".", true)?;
    let mut removal = Removal {
        descent: Descent::new(root, Note::default())?,
        top: name,
        stop,
        root: own,
        hoisted: 0,
        hoisted_before: 0,
        entries_left: entries_max,
        leftovers: Leftovers::default(),
    };
    removal.descent.current().map_or(Ok(()), unlock_subvolume)?;
    while removal.descent.current().is_some() {
        removal.empty_current()?;
        if removal.entries_left == 0 {
            removal.keep(c"", Failure { step: "come to the end of", errno: Errno::AGAIN });
            break;
        }
        removal.leave(parent)?;
    }
    Ok(removal.leftovers)
}

/// Whether an entry is gone.
#[derive(Debug, PartialEq, Eq)]
enum Gone {
    Yes,
    /// It is a directory that is not empty.
    HasEntries,
}

impl Removal<'_> {
    /// Deletes what can be deleted from the current directory, entering the first directory that has entries: then
    /// that is the current one, until it is empty too.
    fn empty_current(&mut self) -> Outcome<()> {
        loop {
            if (self.stop)() {
                return Err(Failure { step: "finish the removal of", errno: Errno::CANCELED });
            }
            if self.entries_left == 0 {
                return Ok(());
            }
            let entry = match self.descent.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(()),
                // A directory that cannot be read is left; those beside it go.
                Err(failure) => {
                    self.keep(c"", failure);
                    return Ok(());
                }
            };
            self.entries_left -= 1;
            self.take(&entry);
        }
    }

    fn take(&mut self, entry: &Entry) {
        let Some(current) = self.descent.current() else { return };
        match delete_entry(current, entry) {
            Ok(Gone::Yes) => {}
            Ok(Gone::HasEntries) => {
                if let Err(failure) = self.enter(&entry.name) {
                    self.keep(&entry.name, failure);
                }
            }
            Err(failure) => self.keep(&entry.name, failure),
        }
    }

    fn enter(&mut self, name: &CStr) -> Outcome<()> {
        if self.descent.depth() > HOIST_DEPTH && self.hoist(name) {
            return Ok(());
        }
        let entered = self.descent.enter(name, Note::default());
        if entered.is_err_and(|failure| failure.errno == Errno::ACCESS) {
            let current = self.descent.current().ok_or(Failure { step: "open", errno: Errno::STALE })?;
            open_up(current, name)?;
            self.descent.enter(name, Note::default())?;
        } else {
            entered?;
        }
        self.descent.current().map_or(Ok(()), unlock_subvolume)
    }

    /// Moves a directory of the current one to the top of the tree, where it is met again. False where that cannot be
    /// (the disk may be full): then it is entered where it is, as far as that goes.
    fn hoist(&mut self, name: &CStr) -> bool {
        let Some(current) = self.descent.current() else { return false };
        for number in 0..HOIST_NAMES_MAX {
            let free = format!("deep-{}-{number}", self.hoisted);
            match rustix::fs::renameat_with(current, name, &self.root, free, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    self.hoisted += 1;
                    return true;
                }
                Err(Errno::EXIST) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Leaves the current directory, read to its end, and removes it.
    fn leave(&mut self, parent: BorrowedFd<'_>) -> Outcome<()> {
        let Some((name, note)) = self.descent.leave()? else { return Ok(()) };
        if note.keeps {
            self.descent.note().into_iter().for_each(|above| above.keeps = true);
            return Ok(());
        }
        let (directory, name) = match self.descent.current() {
            Some(directory) => (directory, name.as_c_str()),
            None => (parent, self.top),
        };
        match rmdir_or_unlink(directory, name, FileType::Directory) {
            Ok(Gone::Yes) => Ok(()),
            // Files came meanwhile, or the file system skipped some while others went: once more.
            Ok(Gone::HasEntries) if note.passes < PASSES_MAX => {
                // What this walk itself has put there is no reason to give up.
                let is_hoisted = self.descent.current().is_none() && self.hoisted > self.hoisted_before;
                let passes = if is_hoisted { note.passes } else { note.passes + 1 };
                self.again(parent, name.to_owned(), passes)
            }
            Ok(Gone::HasEntries) => {
                self.keep(name, Failure { step: "rmdir", errno: Errno::NOTEMPTY });
                Ok(())
            }
            Err(failure) => {
                self.keep(name, failure);
                Ok(())
            }
        }
    }

    fn again(&mut self, parent: BorrowedFd<'_>, name: std::ffi::CString, passes: u32) -> Outcome<()> {
        let note = Note { keeps: false, passes };
        if self.descent.current().is_some() {
            match self.descent.enter(&name, note) {
                Ok(()) => {}
                Err(failure) => self.keep(&name, failure),
            }
            return Ok(());
        }
        let root = open_forced(parent, &name)?;
        self.root = descent::open_root(root.as_fd(), c".", true)?;
        self.hoisted_before = self.hoisted;
        self.descent = Descent::new(root, note)?;
        Ok(())
    }

    fn keep(&mut self, name: &CStr, failure: Failure) {
        if let Some(note) = self.descent.note() {
            note.keeps = true;
        }
        self.leftovers.entries += 1;
        if self.leftovers.first.is_none() {
            let below =
                if self.descent.current().is_some() { self.descent.path_to(name) } else { Vec::new() };
            let path = shortened(joined(self.top.to_bytes(), &below));
            self.leftovers.first = Some((OsStr::from_bytes(&path).into(), failure));
        }
    }
}

impl Leftovers {
    fn of(path: &[u8], failure: Failure) -> Leftovers {
        Leftovers { entries: 1, first: Some((OsStr::from_bytes(path).into(), failure)) }
    }
}

/// A path as it is told: a pod may make it as long as it likes.
fn shortened(path: Vec<u8>) -> Vec<u8> {
    if path.len() <= PATH_TOLD_MAX {
        return path;
    }
    let (head, tail) = (&path[..PATH_TOLD_MAX / 2], &path[path.len() - PATH_TOLD_MAX / 2..]);
    [head, "/\u{2026}/".as_bytes(), tail].concat()
}

/// Deletes one entry, opening up its directory where that is what forbids it.
fn delete_entry(directory: BorrowedFd<'_>, entry: &Entry) -> Outcome<Gone> {
    match rmdir_or_unlink(directory, &entry.name, entry.kind) {
        Err(Failure { errno: Errno::ACCESS, .. }) => {
            rustix::fs::fchmod(directory, Mode::RWXU).step("fchmod")?;
            rmdir_or_unlink(directory, &entry.name, entry.kind)
        }
        outcome => outcome,
    }
}

/// A vanished entry is gone, too.
fn rmdir_or_unlink(directory: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Outcome<Gone> {
    if matches!(kind, FileType::Directory | FileType::Unknown) {
        match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(Gone::Yes),
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Gone::HasEntries),
            // It became something else since its directory was read, or its kind was never told.
            Err(Errno::NOTDIR) => {}
            Err(errno) => return Err(errno).step("rmdir"),
        }
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(Gone::Yes),
        Err(Errno::ISDIR) => Ok(Gone::HasEntries),
        Err(errno) => Err(errno).step("unlink"),
    }
}

fn open_forced(parent: BorrowedFd<'_>, name: &CStr) -> Outcome<std::os::fd::OwnedFd> {
    match descent::open_root(parent, name, false) {
        Err(Failure { errno: Errno::ACCESS, .. }) => {
            open_up(parent, name)?;
            descent::open_root(parent, name, false)
        }
        outcome => outcome,
    }
}

/// Gives us a directory's mode. The name is pinned first, so that a symlink put in its place changes nothing else.
fn open_up(parent: BorrowedFd<'_>, name: &CStr) -> Outcome<()> {
    let pinned = open_below(parent, name, NAME_ANY, Mode::empty()).step("open")?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&pinned).step("fstat")?.st_mode);
    if kind != FileType::Directory {
        return Err(Failure { step: "open", errno: Errno::NOTDIR });
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", pinned.as_fd().as_raw_fd()), Mode::RWXU).step("chmod")
}

/// Root inodes of btrfs subvolumes have this number.
const SUBVOLUME_INODE: u64 = 256;
const BTRFS_MAGIC: u64 = 0x9123_683e;

/// Makes a read-only btrfs snapshot writable; anything else is left as it is.
fn unlock_subvolume(directory: BorrowedFd<'_>) -> Outcome<()> {
    if rustix::fs::fstat(directory).step("fstat")?.st_ino != SUBVOLUME_INODE {
        return Ok(());
    }
    if rustix::fs::fstatfs(directory).step("fstatfs")?.f_type as u64 != BTRFS_MAGIC {
        return Ok(());
    }
    // Where that is refused, deleting will be, too, and is reported then.
    let _ = syscalls::clear_subvolume_read_only(directory);
    Ok(())
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
