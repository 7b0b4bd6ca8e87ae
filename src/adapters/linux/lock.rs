//! The lock of the store: one process works on it at a time (C40).
//!
//! The kernel gives it back when the process ends, however it ends. The file is never removed: a lock on a removed
//! file would lock nothing.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::store::open_below;

/// The lock, held until dropped.
#[derive(Debug)]
pub struct StoreLock {
    _file: OwnedFd,
}

impl StoreLock {
    /// Takes the lock of the store that is open as `store`; `None` while another process has it.
    pub fn try_take(store: BorrowedFd<'_>) -> Outcome<Option<StoreLock>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open_below(store, c"lock", flags, Mode::RUSR | Mode::WUSR).step("open the lock in")?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(StoreLock { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Failure { step: "lock", errno }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn c40_the_store_has_one_lock() {
        let store = tempfile::tempdir().unwrap();
        let open = std::fs::File::open(store.path()).unwrap();
        let first = StoreLock::try_take(open.as_fd()).unwrap();
        assert!(first.is_some());
        assert!(StoreLock::try_take(open.as_fd()).unwrap().is_none());
        drop(first);
        assert!(StoreLock::try_take(open.as_fd()).unwrap().is_some());
    }

    #[test]
    fn a_symlink_is_no_lock() {
        let store = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", store.path().join("lock")).unwrap();
        let open = std::fs::File::open(store.path()).unwrap();
        assert_eq!(StoreLock::try_take(open.as_fd()).unwrap_err().errno, Errno::LOOP);
        assert!(!store.path().join("elsewhere").exists());
    }
}
