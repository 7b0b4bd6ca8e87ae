//! A walk down a tree with a bounded number of open directories, and little memory for each level.
//!
//! It follows no symlink and crosses no mount, a bind of the same file system included. A directory that is left open
//! no longer is found again by `..` and must then be the one it was: a tree that somebody moves meanwhile ends the
//! walk rather than leading it elsewhere.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::store::{BELOW, READ_DIRECTORY};

/// Directories open at a time; those above are closed and found again.
const OPEN_DIRECTORIES_MAX: usize = 32;
/// No tree is walked deeper than this: some 6 MB of levels, and the names where they are kept.
pub const DEPTH_MAX: usize = 100_000;
/// Bytes of directory entries read at a time: some hundreds of entries.
const BATCH_BYTES: usize = 16 * 1024;

/// One entry of a directory, `.` and `..` left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: CString,
    /// [`FileType::Unknown`] where the file system does not say.
    pub kind: FileType,
    /// Where the directory is to be read on after this entry.
    next: u64,
}

/// The way down to the current directory. `T` is what the walker keeps for each directory on it.
pub struct Descent<T> {
    levels: Vec<Level<T>>,
    /// The names of the directories on the way, one after the other; empty where the walker needs none.
    names: Vec<u8>,
    keeps_names: bool,
    batch: Box<[MaybeUninit<u8>]>,
}

/// Small: a pod decides how many there are.
struct Level<T> {
    /// Where its name begins among the names.
    name_at: usize,
    identity: (u64, u64),
    /// Position after the last entry taken.
    position: u64,
    /// `None` while too far above the current directory.
    near: Option<Box<Near>>,
    at_end: bool,
    note: T,
}

/// What is held of a directory that is not far above.
struct Near {
    open: OwnedFd,
    /// Read, not yet taken.
    pending: VecDeque<Entry>,
}

/// How a directory is opened for a walk; its last component may be a mount only where `cross` says so.
pub fn open_root(parent: BorrowedFd<'_>, name: &CStr, cross: bool) -> Outcome<OwnedFd> {
    let no_mount = if cross { ResolveFlags::empty() } else { ResolveFlags::NO_XDEV };
    let resolve = BELOW | no_mount;
    rustix::fs::openat2(parent, name, READ_DIRECTORY, Mode::empty(), resolve).step("open")
}

impl<T> Descent<T> {
    /// Begins at an open directory.
    pub fn new(root: OwnedFd, note: T) -> Outcome<Descent<T>> {
        Descent::begin(root, note, true)
    }

    /// The same for a walker that does not ask for names.
    pub fn nameless(root: OwnedFd, note: T) -> Outcome<Descent<T>> {
        Descent::begin(root, note, false)
    }

    fn begin(root: OwnedFd, note: T, keeps_names: bool) -> Outcome<Descent<T>> {
        let batch = vec![MaybeUninit::uninit(); BATCH_BYTES].into_boxed_slice();
        let mut descent = Descent { levels: Vec::new(), names: Vec::new(), keeps_names, batch };
        descent.push(c"", root, note)?;
        Ok(descent)
    }

    /// The current directory; `None` when the walk is over.
    pub fn current(&self) -> Option<BorrowedFd<'_>> {
        self.levels.last().and_then(|level| level.near.as_ref()).map(|near| near.open.as_fd())
    }

    /// How many directories lie on the way, the current one included.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// What the walker keeps for the current directory.
    pub fn note(&mut self) -> Option<&mut T> {
        self.levels.last_mut().map(|level| &mut level.note)
    }

    /// The path of the current directory from the root of the walk, `name` at its end.
    pub fn path_to(&self, name: &CStr) -> Vec<u8> {
        let ends = self.levels.iter().skip(1).map(|level| level.name_at).chain([self.names.len()]);
        let above = self.levels.iter().zip(ends).skip(1);
        let above = above.map(|(level, end)| &self.names[level.name_at..end]);
        above.chain([name.to_bytes()]).collect::<Vec<_>>().join(&b'/')
    }

    /// The next entry of the current directory, `None` at its end.
    pub fn next_entry(&mut self) -> Outcome<Option<Entry>> {
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let Some(near) = &mut level.near else { return Err(lost()) };
        if near.pending.is_empty() && !level.at_end {
            level.at_end = read_batch(near, &mut level.position, &mut self.batch)?;
        }
        let entry = near.pending.pop_front();
        if let Some(entry) = &entry {
            level.position = entry.next;
        }
        Ok(entry)
    }

    /// Makes the entry `name` of the current directory the current one. EXDEV where a mount is on it.
    pub fn enter(&mut self, name: &CStr, note: T) -> Outcome<()> {
        let Some(current) = self.current() else { return Err(lost()) };
        if self.levels.len() >= DEPTH_MAX {
            return Err(Failure { step: "descend to", errno: Errno::NAMETOOLONG });
        }
        let directory = open_root(current, name, false)?;
        self.push(name, directory, note)
    }

    /// Goes back to the directory above; what was kept for the one left, and its name. `None` above the root.
    pub fn leave(&mut self) -> Outcome<Option<(CString, T)>> {
        let Some(left) = self.levels.pop() else { return Ok(None) };
        let name = CString::new(self.names.split_off(left.name_at)).map_err(|_| lost())?;
        if let (Some(above), Some(from)) = (self.levels.last_mut(), &left.near)
            && above.near.is_none()
        {
            let open = reopen(from.open.as_fd(), above.identity)?;
            above.near = Some(Box::new(Near { open, pending: VecDeque::new() }));
        }
        Ok(Some((name, left.note)))
    }

    fn push(&mut self, name: &CStr, open: OwnedFd, note: T) -> Outcome<()> {
        let identity = identity_of(open.as_fd())?;
        let near = Some(Box::new(Near { open, pending: VecDeque::new() }));
        let name_at = self.names.len();
        if self.keeps_names {
            self.names.extend_from_slice(name.to_bytes());
        }
        self.levels.push(Level { name_at, identity, position: 0, near, at_end: false, note });
        if let Some(far) = self.levels.len().checked_sub(OPEN_DIRECTORIES_MAX + 1) {
            let far = &mut self.levels[far];
            // A directory that was read to its end need not be read again; what was read ahead is.
            far.at_end &= far.near.take().is_none_or(|near| near.pending.is_empty());
        }
        Ok(())
    }
}

/// Reads on from a position, which moves past what is no entry; true at the directory's end.
fn read_batch(near: &mut Near, position: &mut u64, batch: &mut [MaybeUninit<u8>]) -> Outcome<bool> {
    rustix::fs::seek(&near.open, SeekFrom::Start(*position)).step("seek in")?;
    let mut entries = RawDir::new(&near.open, batch);
    loop {
        let Some(entry) = entries.next() else { return Ok(true) };
        let entry = entry.step("read")?;
        let (name, next) = (entry.file_name(), entry.next_entry_cookie());
        if name == c"." || name == c".." {
            *position = next;
        } else {
            near.pending.push_back(Entry { name: name.to_owned(), kind: entry.file_type(), next });
        }
        if entries.is_buffer_empty() && !near.pending.is_empty() {
            return Ok(false);
        }
    }
}

fn reopen(below: BorrowedFd<'_>, identity: (u64, u64)) -> Outcome<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let above =
        rustix::fs::openat2(below, c"..", READ_DIRECTORY, Mode::empty(), resolve).step("go back above")?;
    if identity_of(above.as_fd())? == identity { Ok(above) } else { Err(lost()) }
}

fn identity_of(directory: BorrowedFd<'_>) -> Outcome<(u64, u64)> {
    let stat = rustix::fs::fstat(directory).step("fstat")?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The tree changed under the walk.
fn lost() -> Failure {
    Failure { step: "keep the way through", errno: Errno::STALE }
}

/// For opening an entry that may be anything without asking its file system.
pub const NAME_ANY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn begin(root: &Path) -> Descent<()> {
        let root = rustix::fs::open(root, READ_DIRECTORY, Mode::empty()).unwrap();
        Descent::new(root, ()).unwrap()
    }

    /// Every path below `root`, as a walk that enters each directory finds it.
    fn walked(root: &Path) -> BTreeSet<Vec<u8>> {
        let mut descent = begin(root);
        let mut paths = BTreeSet::new();
        while descent.current().is_some() {
            match descent.next_entry().unwrap() {
                Some(entry) => {
                    assert!(paths.insert(descent.path_to(&entry.name)), "{:?} came twice", entry.name);
                    if entry.kind == FileType::Directory {
                        descent.enter(&entry.name, ()).unwrap();
                    }
                }
                None => drop(descent.leave().unwrap()),
            }
        }
        paths
    }

    #[test]
    fn c24_each_entry_comes_once_in_wide_and_in_deep_trees() {
        let scratch = tempfile::tempdir().unwrap();
        let mut expect = BTreeSet::new();
        let mut at = Vec::new();
        for depth in 0..3 * OPEN_DIRECTORIES_MAX {
            let wide = if depth % 40 == 0 { 1200 } else { 3 };
            for number in 0..wide {
                let path = [at.as_slice(), format!("f{number:>0180}").as_bytes()].concat();
                let whole = scratch.path().join(std::ffi::OsStr::from_bytes(&path));
                if number == wide / 2 { std::fs::create_dir(&whole) } else { std::fs::write(&whole, "") }
                    .unwrap();
                expect.insert(path);
            }
            if depth % 10 == 9 {
                at.extend(format!("f{:>0180}/", wide / 2).bytes());
            }
            if at.len() > 3000 {
                break;
            }
            if depth % 10 != 9 {
                // Names of one level are reused: the next round makes the level below.
                at.extend(format!("f{:>0180}/", wide / 2).bytes());
            }
        }
        assert_eq!(walked(scratch.path()), expect);
    }

    #[test]
    fn c24_hundreds_of_levels_need_few_descriptors() {
        let scratch = tempfile::tempdir().unwrap();
        let mut directory = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..300 {
            for name in [c"d", c"after"] {
                rustix::fs::mkdirat(&directory, name, Mode::RWXU).unwrap();
            }
            directory = open_root(directory.as_fd(), c"d", false).unwrap();
        }
        let mut descent = begin(scratch.path());
        let (mut seen, mut open_max) = (0, 0);
        while descent.current().is_some() {
            match descent.next_entry().unwrap() {
                Some(entry) => {
                    seen += 1;
                    descent.enter(&entry.name, ()).unwrap();
                    open_max =
                        open_max.max(descent.levels.iter().filter(|level| level.near.is_some()).count());
                }
                None => drop(descent.leave().unwrap()),
            }
        }
        assert_eq!((seen, open_max), (600, OPEN_DIRECTORIES_MAX));
        std::fs::rename(scratch.path().join("d"), scratch.path().join("e")).unwrap();
        super::super::removal::remove(directory_of(scratch.path()).as_fd(), c"e", &|| false).unwrap();
        assert!(!scratch.path().join("e").exists());
    }

    fn directory_of(path: &Path) -> OwnedFd {
        rustix::fs::open(path, READ_DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn c24_a_tree_that_is_moved_meanwhile_ends_the_walk() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = vec!["d"; 2 * OPEN_DIRECTORIES_MAX].join("/");
        std::fs::create_dir_all(scratch.path().join("root").join(&deep)).unwrap();
        std::fs::create_dir(scratch.path().join("elsewhere")).unwrap();
        let mut descent = begin(&scratch.path().join("root"));
        while let Some(entry) = descent.next_entry().unwrap() {
            descent.enter(&entry.name, ()).unwrap();
        }
        std::fs::rename(scratch.path().join("root/d/d/d"), scratch.path().join("elsewhere/d")).unwrap();
        let outcome = std::iter::repeat_with(|| descent.leave())
            .take(DEPTH_MAX)
            .find(|left| !matches!(left, Ok(Some(_))));
        assert_eq!(outcome.unwrap().unwrap_err().errno, Errno::STALE);
    }

    #[test]
    fn c24_no_symlink_is_entered() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(scratch.path().join("root")).unwrap();
        std::os::unix::fs::symlink("/", scratch.path().join("root/link")).unwrap();
        let mut descent = begin(&scratch.path().join("root"));
        assert_eq!(descent.enter(c"link", ()).unwrap_err().errno, Errno::NOTDIR);
        assert_eq!(descent.enter(c"..", ()).unwrap_err().errno, Errno::XDEV);
    }
}
