//! What a killed process left half made in the trash: directories that never became a copy, and the mounts of the
//! staging route. Cleared at the start, under the store's lock, before anything is served.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};

use super::failure::Outcome;
use super::store::StoreDirs;
use super::view::View;
use super::{copies, places, removal, view};
use crate::domain::trash::TrashId;

/// Unmounts and removes whatever in the trash is no entry of it. What cannot be cleared is in nobody's way and is
/// tried again at the next start; how much that is, is the answer.
pub fn clear(store: &StoreDirs) -> Outcome<u64> {
    let mut names = copies::entries(store.trash())?;
    names.retain(|(name, _)| !is_in_an_entry(name.to_bytes()));
    if names.is_empty() {
        return Ok(0);
    }
    unmount_all(store)?;
    let mut left = 0;
    for (name, _) in names {
        left += removal::remove(store.trash(), &name, &|| false)?.entries;
    }
    Ok(left)
}

/// Takes away mounts on or below entries that are no copies. Only the staging route mounts anything in the trash.
fn unmount_all(store: &StoreDirs) -> Outcome<()> {
    let View::Table(entries) = View::table()? else { return Ok(()) };
    let trash = view::path_of(store.trash())?;
    let mut points: Vec<&[u8]> = entries
        .values()
        .filter_map(|entry| places::below(&trash, &entry.mount_point))
        .filter(|rest| !is_in_an_entry(rest))
        .collect();
    // A longer path lies deeper; what is stacked on one place is listed as often as it is mounted.
    points.sort_by_key(|rest| std::cmp::Reverse(rest.len()));
    for rest in points {
        let path = Path::new("/proc/self/fd")
            .join(store.trash().as_raw_fd().to_string())
            .join(OsStr::from_bytes(rest));
        let _ = unmount(path, UnmountFlags::NOFOLLOW);
    }
    Ok(())
}

fn is_in_an_entry(rest: &[u8]) -> bool {
    let name = rest.split(|&byte| byte == b'/').next().unwrap_or_default();
    std::str::from_utf8(name).is_ok_and(|name| TrashId::parse(name).is_some())
}
