//! Counting what one copy takes up: its blocks and its inodes, each inode once (C46).

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::descent::{self, Descent};
use super::failure::{Failure, Outcome, Step};
use crate::domain::handle::Handle;
use crate::ports::copies::Usage;

/// A walk pauses as long as it has worked, after this many entries.
const ENTRIES_BETWEEN_PAUSES: u64 = 4096;
/// Inodes with several names that are remembered in one walk: some 2 MB. Of each name beyond them its share is counted.
const SHARED_INODES_MAX: usize = 100_000;
/// What an inode is divided into, for the shares.
const SHARES: u64 = 1 << 20;
/// Entries that one walk counts; a pod that makes them as fast would keep the thread from the other copies.
const ENTRIES_MAX: u64 = 20_000_000;
/// Bytes of a block as stat(2) counts them, whatever the file system's are.
const BLOCK_BYTES: u64 = 512;

/// How far a count has come, for whoever does not wait for its end.
#[derive(Default)]
pub struct Progress {
    pub bytes: AtomicU64,
    pub inodes: AtomicU64,
}

impl Progress {
    /// What was counted so far.
    pub fn usage(&self, complete: bool) -> Usage {
        Usage {
            used_bytes: self.bytes.load(Ordering::Relaxed),
            used_inodes: self.inodes.load(Ordering::Relaxed),
            complete,
        }
    }
}

/// Counts one copy. What vanishes or cannot be read meanwhile is left out.
pub fn count(
    copies: BorrowedFd<'_>,
    handle: &Handle,
    progress: &Progress,
    stop: &dyn Fn() -> bool,
) -> Outcome<Usage> {
    let name = CString::new(handle.as_str()).map_err(|_| Failure { step: "walk", errno: Errno::INVAL })?;
    let root = descent::open_root(copies, &name, true)?;
    let mut count = Count { progress, shared: HashSet::new(), shares: 0, seen: 0, resumed: Instant::now() };
    count.take(&rustix::fs::fstat(&root).step("fstat")?);
    let mut descent = Descent::nameless(root, ())?;
    while descent.current().is_some() && count.seen < ENTRIES_MAX {
        if stop() {
            return Err(Failure { step: "finish the walk of", errno: Errno::CANCELED });
        }
        match descent.next_entry() {
            Ok(Some(entry)) => count_entry(&mut descent, &entry.name, &mut count),
            // A directory that cannot be read counts itself alone.
            Ok(None) | Err(_) => drop(descent.leave()?),
        }
    }
    Ok(progress.usage(true))
}

fn count_entry(descent: &mut Descent<()>, name: &CStr, count: &mut Count<'_>) {
    let Some(current) = descent.current() else { return };
    let Ok(stat) = rustix::fs::statat(current, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        // What is mounted here is not the copy's: neither the mount's root nor what is below it.
        && let Err(Failure { errno: Errno::XDEV | Errno::NOENT, .. }) = descent.enter(name, ())
    {
        return;
    }
    count.take(&stat);
}

struct Count<'a> {
    progress: &'a Progress,
    shared: HashSet<(u64, u64)>,
    /// The shares that do not make an inode yet.
    shares: u64,
    seen: u64,
    resumed: Instant,
}

impl Count<'_> {
    fn take(&mut self, stat: &Stat) {
        self.seen += 1;
        if self.seen.is_multiple_of(ENTRIES_BETWEEN_PAUSES) {
            std::thread::sleep(self.resumed.elapsed());
            self.resumed = Instant::now();
        }
        let has_names = stat.st_nlink > 1 && FileType::from_raw_mode(stat.st_mode) != FileType::Directory;
        let bytes = u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        if !has_names {
            return self.add(bytes, 1);
        }
        let identity = (stat.st_dev, stat.st_ino);
        if self.shared.contains(&identity) {
            return;
        }
        if self.shared.len() < SHARED_INODES_MAX {
            self.shared.insert(identity);
            return self.add(bytes, 1);
        }
        // Nobody remembers it: all its names together count as much as it.
        #[allow(clippy::useless_conversion)] // u32 on some processors
        let names = u64::from(stat.st_nlink);
        self.shares += SHARES / names;
        self.add(bytes / names, self.shares / SHARES);
        self.shares %= SHARES;
    }

    fn add(&self, bytes: u64, inodes: u64) {
        self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.progress.inodes.fetch_add(inodes, Ordering::Relaxed);
    }
}
