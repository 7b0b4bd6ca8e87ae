//! Which entries of `copies/` and `trash/` were renamed or removed, as inotify tells: that changes what a mount shows, and
//! is no mount event.
//!
//! It names entries, old names and new ones alike, and no more: whoever shows such a name is looked at again. What is moved
//! within a copy is not seen here.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::store::StoreDirs;

/// Bytes of one read; an event with the longest name has 272.
const READ_BYTES: usize = 8 * 1024;
/// More events than this in one drain are a storm: everything is listed afresh instead.
const EVENTS_MAX: u32 = 16 * 1024;

/// What happened since the last drain.
#[derive(Debug, PartialEq, Eq)]
pub enum Renamed {
    /// These names, of either directory, stand for something else than before, or for nothing.
    Names(BTreeSet<Vec<u8>>),
    /// Something came from elsewhere, or events were lost: only a fresh list tells.
    Unsure,
    /// As `Unsure`, and nothing more will be told: one of the directories has gone from its place.
    Over,
}

/// A watch on both directories of a store.
#[derive(Debug)]
pub struct StoreRenames {
    inotify: OwnedFd,
}

impl StoreRenames {
    /// Begins to watch.
    pub fn watch(store: &StoreDirs) -> Outcome<StoreRenames> {
        let inotify =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).step("inotify_init1 for")?;
        let wanted = WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        for directory in [store.copies(), store.trash()] {
            // By its descriptor: whatever its path leads to by now.
            let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
            inotify::add_watch(&inotify, path, wanted).step("inotify_add_watch for")?;
        }
        Ok(StoreRenames { inotify })
    }

    /// Takes everything that was reported until now; never waits.
    pub fn drain(&self) -> Outcome<Renamed> {
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
        let mut events = inotify::Reader::new(self.inotify.as_fd(), &mut buffer);
        let mut told = Told::default();
        for _ in 0..EVENTS_MAX {
            match events.next() {
                Ok(event) => told.take(&event),
                Err(Errno::AGAIN) => return Ok(told.sum()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Failure { step: "read renames for", errno }),
            }
        }
        Ok(Renamed::Unsure)
    }
}

/// The events of one drain.
#[derive(Debug, Default)]
struct Told {
    names: BTreeSet<Vec<u8>>,
    /// Renames whose old name was in the store, by what ties their two events together.
    left: BTreeSet<u32>,
    unsure: bool,
    over: bool,
}

impl Told {
    fn take(&mut self, event: &Event<'_>) {
        let is = |flags: ReadFlags| event.events().intersects(flags);
        if is(ReadFlags::QUEUE_OVERFLOW) {
            self.unsure = true;
        }
        if is(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED) {
            self.over = true;
        }
        if is(ReadFlags::MOVED_FROM) {
            self.left.insert(event.cookie());
        }
        // What came from elsewhere may be shown by mounts that were none of the store's until now.
        if is(ReadFlags::MOVED_TO) && !self.left.remove(&event.cookie()) {
            self.unsure = true;
        }
        self.names.extend(event.file_name().map(|name| name.to_bytes().to_vec()));
    }

    fn sum(self) -> Renamed {
        if self.over {
            Renamed::Over
        } else if self.unsure {
            Renamed::Unsure
        } else {
            Renamed::Names(self.names)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn watched() -> (tempfile::TempDir, StoreDirs, StoreRenames) {
        let directory = tempfile::tempdir().unwrap();
        let store = StoreDirs::open(directory.path()).unwrap();
        let renames = StoreRenames::watch(&store).unwrap();
        (directory, store, renames)
    }

    fn names(names: &[&str]) -> Renamed {
        Renamed::Names(names.iter().map(|name| name.as_bytes().to_vec()).collect())
    }

    #[test]
    fn c15_a_rename_within_the_store_tells_both_names() {
        let (_directory, store, renames) = watched();
        assert_eq!(renames.drain(), Ok(names(&[])));
        fs::create_dir(store.path().join("trash/n1")).unwrap();
        assert_eq!(renames.drain(), Ok(names(&[])), "what is new is shown by nobody");
        fs::rename(store.path().join("trash/n1"), store.path().join("copies/a")).unwrap();
        fs::create_dir(store.path().join("copies/a/b")).unwrap();
        fs::rename(store.path().join("copies/a/b"), store.path().join("copies/a/c")).unwrap();
        assert_eq!(renames.drain(), Ok(names(&["a", "n1"])));
        fs::rename(store.path().join("copies/a"), store.path().join("elsewhere")).unwrap();
        fs::create_dir(store.path().join("copies/d")).unwrap();
        fs::remove_dir(store.path().join("copies/d")).unwrap();
        assert_eq!(renames.drain(), Ok(names(&["a", "d"])));
    }

    #[test]
    fn c15_what_comes_from_elsewhere_may_be_shown_by_any_mount() {
        let (_directory, store, renames) = watched();
        fs::create_dir(store.path().join("elsewhere")).unwrap();
        fs::rename(store.path().join("elsewhere"), store.path().join("copies/a")).unwrap();
        assert_eq!(renames.drain(), Ok(Renamed::Unsure));
        assert_eq!(renames.drain(), Ok(names(&[])));
    }

    #[test]
    fn c15_a_directory_that_leaves_its_place_ends_the_watch() {
        let (_directory, store, renames) = watched();
        fs::rename(store.path().join("copies"), store.path().join("old")).unwrap();
        assert_eq!(renames.drain(), Ok(Renamed::Over));
        let (_directory, store, renames) = watched();
        fs::remove_dir(store.path().join("trash")).unwrap();
        drop(store);
        assert_eq!(renames.drain(), Ok(Renamed::Over));
    }

    #[test]
    fn c15_more_than_one_drain_takes_is_a_storm() {
        let (_directory, store, renames) = watched();
        let (a, b) = (store.path().join("copies/a"), store.path().join("copies/b"));
        fs::create_dir(&a).unwrap();
        for _ in 0..EVENTS_MAX / 4 + 1 {
            fs::rename(&a, &b).unwrap();
            fs::rename(&b, &a).unwrap();
        }
        assert_eq!(renames.drain(), Ok(Renamed::Unsure));
    }
}
