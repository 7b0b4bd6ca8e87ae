//! What a copy and its file system are like (C49): a look that changes nothing, on a thread of its own, for a dead
//! disk or server answers none of its calls.
//!
//! Nobody waits for one longer than [`ANSWER_WITHIN`]. A look that hangs stays where it is, and no second one of the
//! same copy is begun beside it.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, StatVfsMountFlags, StatxFlags};
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::failure::{Failure, Outcome, Step};
use super::mountinfo;
use super::store::{READ_DIRECTORY, StoreDirs, open_below};
use super::usage::ANSWER_WITHIN;
use crate::domain::handle::Handle;
use crate::domain::mount_table::FileIdentity;
use crate::ports::copies::{Capacity, CopiesError, Examined};
use crate::ports::failure::Failure as PortFailure;

/// Looks that may go on at a time, those that hang included.
const EXAMINATIONS_MAX: usize = 32;
/// Enough for the first entries of a directory.
const ENTRIES_BYTES: usize = 2048;
/// A file system's own words, in mountinfo, for taking no more writes after an error. It need not be read-only then
/// (ext4 since Linux 6.15).
const GAVE_UP: [&[u8]; 2] = [b"emergency_ro", b"shutdown"];

/// The looks at the copies of one store.
#[derive(Clone)]
pub struct Examinations {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<StoreDirs>,
    /// Copies that are looked at now.
    going: Mutex<BTreeSet<Handle>>,
    ended: Notify,
}

/// A look that goes on; it is over when this is dropped, in whatever way its job ends.
struct Going {
    shared: Arc<Shared>,
    handle: Handle,
}

impl Examinations {
    pub fn new(store: Arc<StoreDirs>) -> Examinations {
        Examinations { shared: Arc::new(Shared { store, going: Mutex::default(), ended: Notify::new() }) }
    }

    /// Looks at the copy, which people know by `path`.
    pub async fn examine(&self, handle: &Handle, path: &Path) -> Result<Examined, CopiesError> {
        let silent =
            || PortFailure { operation: "wait in vain for an answer from", path: path.to_owned(), errno: 0 };
        let deadline = Instant::now() + ANSWER_WITHIN;
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            // From here on no end of a look is missed.
            ended.as_mut().enable();
            if let Some(look) = self.begin(handle) {
                return match tokio::time::timeout_at(deadline, look).await {
                    Ok(Ok(outcome)) => outcome.map_err(|failure| of_look(failure, path)),
                    Ok(Err(_)) => {
                        let lost = Failure { step: "run a blocking call for", errno: Errno::CANCELED };
                        Err(CopiesError::Unknown(lost.at(path)))
                    }
                    Err(_) => Err(CopiesError::Io(silent())),
                };
            }
            if tokio::time::timeout_at(deadline, ended).await.is_err() {
                return Err(CopiesError::Io(silent()));
            }
        }
    }

    /// `None` while another look at this copy goes on, or too many of others.
    fn begin(&self, handle: &Handle) -> Option<JoinHandle<Outcome<Examined>>> {
        let mut going = self.shared.going();
        if going.len() >= EXAMINATIONS_MAX || !going.insert(handle.clone()) {
            return None;
        }
        let this = Going { shared: Arc::clone(&self.shared), handle: handle.clone() };
        Some(tokio::task::spawn_blocking(move || look(&this.shared.store, &this.handle)))
    }
}

impl Shared {
    fn going(&self) -> MutexGuard<'_, BTreeSet<Handle>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.shared.going().remove(&self.handle);
        self.shared.ended.notify_waiters();
    }
}

/// A limit of this process says nothing of the store.
fn of_look(failure: Failure, path: &Path) -> CopiesError {
    match failure.errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => CopiesError::Unknown(failure.at(path)),
        _ => failure.of_copy(path),
    }
}

fn look(store: &StoreDirs, handle: &Handle) -> Outcome<Examined> {
    let store_device = rustix::fs::fstat(store.copies()).step("stat the directory of")?.st_dev;
    let copy = open(store.copies(), handle)?;
    let identity = match &copy {
        Some(copy) => {
            let stat = rustix::fs::fstat(copy).step("fstat")?;
            read_some(copy.as_fd())?;
            Some(FileIdentity { device: stat.st_dev, inode: stat.st_ino })
        }
        None => None,
    };
    let at = copy.as_ref().map_or(store.copies(), AsFd::as_fd);
    let stat = rustix::fs::fstatvfs(at).step("statvfs")?;
    let read_only = stat.f_flag.contains(StatVfsMountFlags::RDONLY) || gave_up(at)?;
    Ok(Examined { copy: identity, store_device, read_only, capacity: capacity(&stat) })
}

/// What a file system has, from its own answer.
pub fn capacity(stat: &rustix::fs::StatVfs) -> Capacity {
    Capacity {
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_inodes: stat.f_files,
        available_inodes: stat.f_favail,
    }
}

/// Opens the copy without a trace in its time of last access, where that is allowed.
fn open(copies: BorrowedFd<'_>, handle: &Handle) -> Outcome<Option<OwnedFd>> {
    let open = |flags: OFlags| open_below(copies, handle.as_path(), flags, Mode::empty());
    let opened = match open(READ_DIRECTORY | OFlags::NOATIME) {
        Err(Errno::PERM) => open(READ_DIRECTORY),
        other => other,
    };
    match opened {
        Ok(copy) => Ok(Some(copy)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(Failure { step: "open", errno }),
    }
}

fn read_some(directory: BorrowedFd<'_>) -> Outcome<()> {
    let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
    match RawDir::new(directory, &mut buffer).next() {
        Some(entry) => entry.step("read").map(drop),
        None => Ok(()),
    }
}

fn gave_up(directory: BorrowedFd<'_>) -> Outcome<bool> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let mount = rustix::fs::statx(directory, c"", flags, StatxFlags::MNT_ID).step("statx")?.stx_mnt_id;
    let lines = mountinfo::read().step("read mountinfo for")?;
    let own = lines.iter().find(|line| line.id == mount);
    Ok(own.is_some_and(|line| GAVE_UP.iter().any(|word| line.has_super_option(word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examinations() -> (tempfile::TempDir, Examinations) {
        let store = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir_all(store.path().join("copies").join(name)).unwrap();
        }
        let open = Arc::new(StoreDirs::open(store.path()).unwrap());
        (store, Examinations::new(open))
    }

    fn handle(name: &str) -> Handle {
        Handle::parse(name).unwrap()
    }

    /// As if a look at this copy hung.
    fn hang(examinations: &Examinations, name: &str) -> Going {
        examinations.shared.going().insert(handle(name));
        Going { shared: Arc::clone(&examinations.shared), handle: handle(name) }
    }

    #[tokio::test(start_paused = true)]
    async fn c49_a_store_that_does_not_answer_is_told_and_no_second_look_waits_beside_the_first() {
        let (_store, examinations) = examinations();
        let hanging = hang(&examinations, "a");
        let silent = examinations.examine(&handle("a"), Path::new("/s/copies/a")).await.unwrap_err();
        assert!(matches!(silent, CopiesError::Io(_)), "{silent:?}");
        assert_eq!(silent.to_string(), "wait in vain for an answer from /s/copies/a");
        examinations
            .examine(&handle("b"), Path::new("/s/copies/b"))
            .await
            .expect("another copy is looked at");
        drop(hanging);
        examinations.examine(&handle("a"), Path::new("/s/copies/a")).await.expect("it answers again");
    }

    #[tokio::test(start_paused = true)]
    async fn c49_looks_that_hang_are_bounded() {
        let (_store, examinations) = examinations();
        let mut hanging: Vec<Going> =
            (0..EXAMINATIONS_MAX).map(|number| hang(&examinations, &format!("h{number}"))).collect();
        let silent = examinations.examine(&handle("a"), Path::new("/a")).await.unwrap_err();
        assert!(matches!(silent, CopiesError::Io(_)), "{silent:?}");
        hanging.pop();
        examinations.examine(&handle("a"), Path::new("/a")).await.expect("there is room for it");
        assert_eq!(examinations.shared.going().len(), EXAMINATIONS_MAX - 1);
    }

    #[tokio::test]
    async fn c49_a_look_waits_for_another_of_the_same_copy() {
        let (_store, examinations) = examinations();
        let first = hang(&examinations, "a");
        let (name, path) = (handle("a"), Path::new("/a"));
        let second = examinations.examine(&name, path);
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        second.await.expect("its turn came");
    }

    #[test]
    fn c49_what_this_process_lacks_is_no_fault_of_the_store() {
        let of = |errno| of_look(Failure { step: "open", errno }, Path::new("/a"));
        assert!(matches!(of(Errno::MFILE), CopiesError::Unknown(_)));
        assert!(matches!(of(Errno::IO), CopiesError::Io(_)));
    }
}
