//! What is at a target now.
//!
//! One look at the kernel, which asks no file system that is mounted there: a FUSE mount that nobody serves answers
//! `statx` with DONT_SYNC and `statmount`, and hangs everything else.

use std::mem::MaybeUninit;

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::places::StoreRoots;
use super::store::open_below;
use super::target::OpenTarget;
use super::view::View;
use crate::domain::mount_table::{Layer, MountStack, TargetView};

/// A mount that goes away between two questions makes the look begin again, this often at most.
const LOOK_TRIES_MAX: u32 = 16;
/// Enough for the first entries of a directory.
const ENTRIES_BYTES: usize = 2048;

/// Looks at the target. `roots` say which places of the store its mounts show.
pub fn look(view: &View, target: &OpenTarget, roots: &StoreRoots) -> Outcome<TargetView> {
    for _ in 0..LOOK_TRIES_MAX {
        let Some(glance) = view.glance(target.parent(), target.name())? else {
            return Ok(TargetView::Absent);
        };
        if !glance.mount_root {
            if glance.kind != FileType::Directory {
                return Ok(TargetView::NotADirectory);
            }
            match is_empty(target) {
                Ok(empty) => return Ok(TargetView::Directory { empty }),
                Err(Failure { errno: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, .. }) => continue,
                Err(failure) => return Err(failure),
            }
        }
        let stack = view.stack(glance.mount_id)?;
        if stack.is_empty() {
            continue;
        }
        let layer = |entry: &super::view::MountEntry| Layer {
            shown: roots.place_of(entry.device, &entry.root).and_then(|place| place.shown()),
            flags: entry.flags(),
        };
        let layers = stack.iter().rev().map(layer).collect();
        return Ok(TargetView::Mounted(MountStack { layers, visible: glance.identity }));
    }
    Err(Failure { step: "look at", errno: Errno::AGAIN })
}

fn is_empty(target: &OpenTarget) -> Outcome<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open_below(target.parent(), target.name(), flags, Mode::empty()).step("open")?;
    let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.step("read")?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            return Ok(false);
        }
    }
    Ok(true)
}
