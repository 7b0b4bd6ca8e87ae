//! The removal walk of C24: deletes a tree entry by entry, in whatever state it is.
//!
//! It follows no symlink, crosses no mount, and never gives up for one entry: what cannot be deleted is counted and
//! left, the rest goes. Directories that refuse us (mode 000, without the capability to overrule it) are opened up
//! first: nobody will need their mode again.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::descent::{self, Descent, Entry, NAME_ANY};
use super::failure::{Failure, Outcome, Step};
use super::places::joined;
use super::store::open_below;
use super::syscalls;

/// A directory into which somebody goes on writing is read again this often, then left.
const PASSES_MAX: u32 = 16;

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
    leftovers: Leftovers,
}

/// Deletes `name` in `parent` with all below it. Fine where it is not there. `stop` is asked before each entry;
/// when it says so, the walk ends with ECANCELED and what is left stays for another.
pub fn remove(parent: BorrowedFd<'_>, name: &CStr, stop: &dyn Fn() -> bool) -> Outcome<Leftovers> {
    match rmdir_or_unlink(parent, name, FileType::Unknown) {
        Ok(Gone::Yes) => return Ok(Leftovers::default()),
        Ok(Gone::HasEntries) => {}
        Err(failure) => return Ok(Leftovers::of(name.to_bytes(), failure)),
    }
    let root = match open_forced(parent, name) {
        Ok(root) => root,
        Err(failure) => return Ok(Leftovers::of(name.to_bytes(), failure)),
    };
    let descent = Descent::new(root, Note::default())?;
    let mut removal = Removal { descent, top: name, stop, leftovers: Leftovers::default() };
    removal.descent.current().map_or(Ok(()), unlock_subvolume)?;
    while removal.descent.current().is_some() {
        removal.empty_current()?;
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
            let entry = match self.descent.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(()),
                // A directory that cannot be read is left; those beside it go.
                Err(failure) => {
                    self.keep(c"", failure);
                    return Ok(());
                }
            };
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
                self.again(parent, name.to_owned(), note.passes + 1)
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
        self.descent = Descent::new(open_forced(parent, &name)?, note)?;
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
            let path = joined(self.top.to_bytes(), &below);
            self.leftovers.first = Some((OsStr::from_bytes(&path).into(), failure));
        }
    }
}

impl Leftovers {
    fn of(path: &[u8], failure: Failure) -> Leftovers {
        Leftovers { entries: 1, first: Some((OsStr::from_bytes(path).into(), failure)) }
    }
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
mod tests {
    use super::*;
    use crate::adapters::linux::store::READ_DIRECTORY;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn removed(scratch: &tempfile::TempDir) -> Leftovers {
        let parent = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
        remove(parent.as_fd(), c"t", &|| false).unwrap()
    }

    #[test]
    fn c24_a_tree_of_every_kind_of_entry_goes_and_what_it_points_to_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("t");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::create_dir_all(scratch.path().join("outside")).unwrap();
        std::fs::write(scratch.path().join("outside/kept"), "x").unwrap();
        std::fs::write(root.join("a/file"), "x").unwrap();
        std::fs::write(root.join("a/b").join(OsStr::from_bytes(b"\xff\n \x01")), "x").unwrap();
        std::fs::hard_link(scratch.path().join("outside/kept"), root.join("a/b/hard")).unwrap();
        symlink("../../outside", root.join("a/b/dirlink")).unwrap();
        symlink("/nowhere", root.join("dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), Mode::RWXU).unwrap();
        assert_eq!(removed(&scratch), Leftovers::default());
        assert!(!root.exists());
        assert_eq!(std::fs::read(scratch.path().join("outside/kept")).unwrap(), b"x");
    }

    #[test]
    fn c24_what_is_not_there_is_removed() {
        assert_eq!(removed(&tempfile::tempdir().unwrap()), Leftovers::default());
    }

    #[test]
    fn c24_directories_that_refuse_everybody_go() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("t");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::write(root.join("a/b/c/file"), "x").unwrap();
        for closed in ["a/b/c", "a/b", "a", ""] {
            std::fs::set_permissions(root.join(closed), std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        // A thread without capabilities: there root, too, is refused.
        let left = std::thread::scope(|scope| {
            let walk = scope.spawn(|| {
                caps::clear(None, caps::CapSet::Effective).unwrap();
                assert!(std::fs::read_dir(&root).is_err(), "the case needs to be refused");
                removed(&scratch)
            });
            walk.join().unwrap()
        });
        assert_eq!(left, Leftovers::default());
        assert!(!root.exists());
    }

    #[test]
    fn c24_a_directory_with_very_many_entries_goes() {
        let scratch = tempfile::tempdir().unwrap();
        for number in 0..1500 {
            std::fs::create_dir_all(scratch.path().join("t").join(number.to_string()).join("x")).unwrap();
        }
        assert_eq!(removed(&scratch), Leftovers::default());
        assert!(!scratch.path().join("t").exists());
    }

    #[test]
    fn c42_a_walk_that_is_told_to_stop_stops() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(scratch.path().join("t/a/b")).unwrap();
        let parent = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
        let outcome = remove(parent.as_fd(), c"t", &|| true);
        assert_eq!(outcome.unwrap_err().errno, Errno::CANCELED);
    }

    #[test]
    fn c24_a_file_in_place_of_the_tree_goes() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("t"), "x").unwrap();
        assert_eq!(removed(&scratch), Leftovers::default());
        assert!(!scratch.path().join("t").exists());
    }
}
