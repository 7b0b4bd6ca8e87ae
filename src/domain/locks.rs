//! One async lock per handle, shared by publish, unpublish and sweep (C10, C19).
//!
//! A lock is there only while someone has it or waits for it, so the map is as large as the number of calls
//! in flight. It is fair enough and reads no clock, so that a seeded scheduler can replay it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::lock::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks of all handles. Keys are texts: an unpublish may name what is no handle.
#[derive(Debug, Default)]
pub struct HandleLocks(Mutex<BTreeMap<String, Weak<AsyncMutex<()>>>>);

/// The lock of one handle, held until dropped, also by a cancel or a panic.
#[derive(Debug)]
pub struct HandleGuard {
    _guard: OwnedMutexGuard<()>,
}

impl HandleLocks {
    /// Waits for the lock of `key`.
    pub async fn lock(&self, key: &str) -> HandleGuard {
        let lock = self.entry(key);
        HandleGuard { _guard: lock.lock_owned().await }
    }

    fn entry(&self, key: &str) -> Arc<AsyncMutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        locks.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn c19_different_handles_never_wait_for_one_another() {
        let locks = HandleLocks::default();
        let a = locks.lock("a").now_or_never().expect("free");
        assert!(locks.lock("b").now_or_never().is_some());
        assert!(locks.lock("a").now_or_never().is_none());
        drop(a);
        assert!(locks.lock("a").now_or_never().is_some());
    }

    #[test]
    fn unused_locks_are_forgotten() {
        let locks = HandleLocks::default();
        for n in 0..100 {
            let _ = locks.lock(&n.to_string()).now_or_never();
        }
        assert!(locks.0.lock().unwrap().len() <= 2);
    }
}
