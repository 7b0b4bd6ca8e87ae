//! Taking a target's mounts away: the stack from its top, and where something is mounted below, that first, deepest first.
//!
//! Never lazily (the holder would go on writing, unseen), never through a symlink, and never without a look
//! afterwards: the call is done when the target is no mount root any more. What is mounted below is asked for only
//! when the kernel says that the top is busy: the answer takes as long as the namespace has mounts.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::failure::{Failure, Outcome, Step};
use super::places;
use super::store::open_below;
use super::target::OpenTarget;
use super::view::{self, MountEntry, STACK_MOUNTS_MAX, View};

/// Unmounts everything at and below the target.
pub fn detach(target: &OpenTarget, statmount: bool) -> Outcome<()> {
    for _ in 0..STACK_MOUNTS_MAX {
        match unmount_top(target) {
            Err(Failure { errno: Errno::BUSY, .. }) => {
                clear_below(target, statmount)?;
                unmount_top(target)?;
            }
            taken => taken?,
        }
        if !view::is_mount_root(target.parent(), target.name())? {
            return Ok(());
        }
    }
    Err(Failure { step: "unmount the stack on", errno: Errno::BUSY })
}

/// Takes the uppermost mount off the target.
fn unmount_top(target: &OpenTarget) -> Outcome<()> {
    match unmount(target.call_path(), UnmountFlags::NOFOLLOW) {
        // EINVAL: it is no mount any more, somebody else was faster; the look that follows decides.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(Failure { step: "umount2", errno }),
    }
}

/// Unmounts everything below the uppermost mount on the target.
fn clear_below(target: &OpenTarget, statmount: bool) -> Outcome<()> {
    let view = View::quick(statmount)?;
    let Some(top) = view.glance(target.parent(), target.name())?.filter(|glance| glance.mount_root) else {
        return Ok(());
    };
    let path = target.path()?;
    for mount_point in below_deepest_first(&view.below(top.mount_id)?, top.mount_id) {
        // A mount whose point does not lie below the target's path is hidden or moved; the next round sees it again.
        if let Some(rest) = places::below(&path, &mount_point) {
            unmount_below(target, rest)?;
        }
    }
    Ok(())
}

/// Mount points of everything mounted below the mount `top`, children before their parents.
fn below_deepest_first(entries: &HashMap<u64, MountEntry>, top: u64) -> Vec<Vec<u8>> {
    let mut below: Vec<(usize, &MountEntry)> =
        entries.values().filter_map(|entry| Some((depth_below(entries, entry, top)?, entry))).collect();
    below.sort_by(|(a_depth, a), (b_depth, b)| b_depth.cmp(a_depth).then_with(|| b.id.cmp(&a.id)));
    below.into_iter().map(|(_, entry)| entry.mount_point.clone()).collect()
}

/// How many mounts lie between `entry` and `top` above it; `None` where `top` is not above.
fn depth_below(entries: &HashMap<u64, MountEntry>, entry: &MountEntry, top: u64) -> Option<usize> {
    let mut at = entry;
    for depth in 1..=entries.len() {
        if at.parent == at.id {
            return None;
        }
        if at.parent == top {
            return Some(depth);
        }
        at = entries.get(&at.parent)?;
    }
    None
}

/// Unmounts the mount at this path below the target, reached from the target's held parent without following a symlink: the way
/// there leads through files that a pod may have made.
fn unmount_below(target: &OpenTarget, rest: &[u8]) -> Outcome<()> {
    let whole = places::joined(target.name().to_bytes(), rest);
    let whole = Path::new(OsStr::from_bytes(&whole));
    let (Some(directory), Some(name)) = (whole.parent(), whole.file_name()) else { return Ok(()) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open_below(target.parent(), directory, flags, Mode::empty());
    let parent = match opened {
        Ok(parent) => parent,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(Failure { step: "reach a mount below", errno }),
    };
    let mut path = format!("/proc/self/fd/{}/", parent.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.as_bytes());
    match unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).step("umount2 of a mount below"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(mounts: &[(u64, u64, &str)]) -> HashMap<u64, MountEntry> {
        let entry = |&(id, parent, mount_point): &(u64, u64, &str)| {
            let mount_point = mount_point.into();
            let root = b"/".to_vec();
            (id, MountEntry { id, parent, device: (0, 1), root, mount_point, attributes: 0, shared: false })
        };
        mounts.iter().map(entry).collect()
    }

    fn order(mounts: &[(u64, u64, &str)], top: u64) -> Vec<String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        below_deepest_first(&table(mounts), top).into_iter().map(text).collect()
    }

    #[test]
    fn c17_what_is_mounted_below_goes_deepest_first() {
        let mounts =
            [(1, 1, "/"), (2, 1, "/t"), (3, 2, "/t/a"), (4, 3, "/t/a/b"), (5, 4, "/t/a/b"), (6, 1, "/ta")];
        assert_eq!(order(&mounts, 2), ["/t/a/b", "/t/a/b", "/t/a"]);
        assert_eq!(order(&mounts, 6), [""; 0]);
    }

    #[test]
    fn c17_what_only_has_a_similar_path_is_left_alone() {
        // 4 is mounted below the older mount at /t that 3 covers: it is reached when 3 is off.
        let mounts = [(1, 1, "/"), (2, 1, "/t"), (3, 2, "/t"), (4, 2, "/t/x")];
        assert_eq!(order(&mounts, 3), [""; 0]);
    }

    #[test]
    fn a_loop_in_the_table_ends() {
        assert_eq!(order(&[(2, 3, "/a"), (3, 2, "/b")], 9), [""; 0]);
    }
}
