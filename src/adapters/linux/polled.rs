//! The whole mount table, read again only when it may have changed: for kernels that do not say which mounts did.
//!
//! `poll` on mountinfo tells of every change of the namespace, but not of a rename, which changes what a mount shows.
//! Renames that matter here change the times of `copies/`, of `trash/`, or of the store that these lie in; times too fresh to
//! tell two changes apart are not trusted. What happens below a copy changes none of them: whoever sees that a mount shows something there forgets the
//! table.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::failure::{Outcome, Step};
use super::mountinfo::MOUNTINFO;
use super::store::StoreDirs;
use super::view::{self, View};

/// File times move in ticks of the kernel's clock, 10 ms at most; a younger time may hide a later change.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// A table, and what it was read under.
#[derive(Debug, Default)]
pub struct PolledTable {
    mountinfo: Option<File>,
    cached: Option<(Times, Arc<View>)>,
}

/// What tells renames in the store, and of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Times {
    store_path: Vec<u8>,
    changed: [Duration; 3],
}

impl PolledTable {
    /// The table as of now.
    pub fn current(&mut self, store: &StoreDirs) -> Outcome<Arc<View>> {
        // Both before the table is read: a change that comes meanwhile is seen by the next call.
        let changed = self.has_changed()?;
        let times = Times::of(store)?;
        if let Some((then, table)) = &self.cached
            && !changed
            && *then == times
        {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(View::table()?);
        self.cached = times.are_settled().then(|| (times, Arc::clone(&table)));
        Ok(table)
    }

    /// Has the next question read the table again.
    pub fn forget(&mut self) {
        self.cached = None;
    }

    /// Whether mounts changed since the last question; the first answer is yes.
    fn has_changed(&mut self) -> Outcome<bool> {
        let Some(mountinfo) = &self.mountinfo else {
            self.mountinfo = Some(File::open(MOUNTINFO).step("open mountinfo for")?);
            return Ok(true);
        };
        // Never POLLIN: the file is always readable.
        let mut wanted = [PollFd::new(mountinfo, PollFlags::PRI)];
        match poll(&mut wanted, Some(&Timespec::default())) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno).step("poll mountinfo for"),
        }
    }
}

impl Times {
    fn of(store: &StoreDirs) -> Outcome<Times> {
        let changed = [store.root(), store.copies(), store.trash()].map(changed_at);
        let [root, copies, trash] = changed;
        Ok(Times { store_path: view::path_of(store.root())?, changed: [root?, copies?, trash?] })
    }

    fn are_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.changed.iter().all(|&changed| changed + SETTLED_AFTER < now)
    }
}

/// When entries were last made, renamed or removed, since the epoch.
fn changed_at(directory: BorrowedFd<'_>) -> Outcome<Duration> {
    let stat = rustix::fs::fstat(directory.as_fd()).step("fstat")?;
    Ok(Duration::new(
        u64::try_from(stat.st_mtime).unwrap_or(0),
        u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(changed: Duration) -> Times {
        Times { store_path: Vec::new(), changed: [Duration::ZERO, changed, Duration::ZERO] }
    }

    #[test]
    fn c15_times_that_may_hide_a_rename_are_not_trusted() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(!times(now).are_settled());
        assert!(!times(now + Duration::from_secs(3600)).are_settled(), "a clock that went back");
        assert!(times(now - Duration::from_secs(1)).are_settled());
    }
}
