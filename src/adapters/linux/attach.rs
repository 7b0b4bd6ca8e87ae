//! Attaching a copy to a target with every flag in force before anybody can see the mount (C5).
//!
//! The clone of the copy's mount is changed while it is attached nowhere, then moved onto the target. Never bind and
//! then remount: the bind reaches the host at once, the remount never does. Kernels that lack the calls get a bind
//! that is prepared on a private mount where nobody else sees it, and bound to the target from there.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount_bind, mount_change,
    mount_remount, move_mount, open_tree, unmount,
};

use super::failure::{Outcome, Step};
use super::store::open_below;
use super::syscalls::{self, AttrChange, attr, propagation};
use super::target::OpenTarget;
use super::view::View;
use crate::domain::mount_options::{AccessTime, MountOptions};

/// How this kernel attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `open_tree`, `mount_setattr`, `move_mount` (5.12).
    Tree,
    /// `mount(2)` by way of a private staging mount.
    Staging,
}

/// Where the staging route prepares a bind: an entry of the trash that nobody else uses.
#[derive(Debug, Clone, Copy)]
pub struct StagingPlace<'a> {
    pub trash: BorrowedFd<'a>,
    pub name: &'a str,
}

/// Which route this kernel has, found by asking for the calls with arguments that they must refuse. Each is asked for: a
/// filter of system calls may lack any of them, whatever the kernel has.
pub fn route() -> Route {
    let answers = [
        open_tree(CWD, c"", OpenTreeFlags::empty()).err(),
        syscalls::mount_setattr(CWD, AttrChange::new(0, 0, 0)).err(),
        move_mount(CWD, c"", CWD, c"", MoveMountFlags::empty()).err(),
    ];
    if answers.contains(&Some(Errno::NOSYS)) { Route::Staging } else { Route::Tree }
}

/// Puts the directory open as `copy` on top of the target. On an error nothing was attached.
pub fn attach(
    route: Route,
    copy: BorrowedFd<'_>,
    target: &OpenTarget,
    options: &MountOptions,
    staging: StagingPlace<'_>,
) -> Outcome<()> {
    match route {
        Route::Tree => attach_tree(copy, target, options),
        Route::Staging => attach_staged(copy, target, options, staging),
    }
}

fn attach_tree(copy: BorrowedFd<'_>, target: &OpenTarget, options: &MountOptions) -> Outcome<()> {
    let clone =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(copy, c"", clone).step("open_tree for")?;
    let (set, clear) = bits(options);
    // Private, or what a pod's runtime mounts inside the target would appear below the store's own mount.
    syscalls::mount_setattr(&tree, AttrChange::new(set, clear, propagation::PRIVATE))
        .step("mount_setattr for")?;
    let directory = target.open_directory()?;
    let onto = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree, c"", &directory, c"", onto).step("move_mount to")
}

/// The mount attributes to set and to clear; what is not asked for stays as the store's mount has it.
pub fn bits(options: &MountOptions) -> (u64, u64) {
    let asked = [
        (options.read_only, attr::RDONLY),
        (options.no_exec, attr::NOEXEC),
        (options.no_suid, attr::NOSUID),
        (options.no_dev, attr::NODEV),
        (options.no_dir_access_time, attr::NODIRATIME),
    ];
    let collect = |wanted: bool| {
        asked.iter().filter(|(ask, _)| *ask == Some(wanted)).fold(0, |bits, (_, bit)| bits | bit)
    };
    let (set, clear) = (collect(true), collect(false));
    // The access-time policy is a field, not a bit: it is cleared whole before one value is set.
    match options.access_time {
        None => (set, clear),
        Some(AccessTime::Relative) => (set, clear | attr::ATIME_FIELD),
        Some(AccessTime::Never) => (set | attr::NOATIME, clear | attr::ATIME_FIELD),
        Some(AccessTime::Strict) => (set | attr::STRICTATIME, clear | attr::ATIME_FIELD),
    }
}

fn attach_staged(
    copy: BorrowedFd<'_>,
    target: &OpenTarget,
    options: &MountOptions,
    place: StagingPlace<'_>,
) -> Outcome<()> {
    let stage = Stage::make(place)?;
    stage.prepare(copy, options)?;
    let directory = target.open_directory()?;
    mount_bind(stage.bind_path(), path_of(directory.as_fd())).step("bind to")
}

/// Two directories in the trash, one in the other: the outer is a private mount of itself, the inner carries the
/// prepared bind. Both mounts and both directories go when this is dropped.
struct Stage<'a> {
    place: StagingPlace<'a>,
}

impl<'a> Stage<'a> {
    fn make(place: StagingPlace<'a>) -> Outcome<Stage<'a>> {
        let stage = Stage { place };
        rustix::fs::mkdirat(place.trash, place.name, Mode::RWXU).step("make a staging directory for")?;
        rustix::fs::mkdirat(place.trash, format!("{}/bind", place.name), Mode::RWXU)
            .step("make a staging directory for")?;
        mount_bind(stage.outer_path(), stage.outer_path()).step("bind a staging directory for")?;
        mount_change(stage.outer_path(), MountPropagationFlags::PRIVATE)
            .step("make private a staging mount for")?;
        Ok(stage)
    }

    fn prepare(&self, copy: BorrowedFd<'_>, options: &MountOptions) -> Outcome<()> {
        mount_bind(path_of(copy), self.bind_path()).step("bind to staging for")?;
        mount_change(self.bind_path(), MountPropagationFlags::PRIVATE)
            .step("make private a staged bind for")?;
        let view = View::table()?;
        let inner = open_below(
            self.place.trash,
            format!("{}/bind", self.place.name),
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
            Mode::empty(),
        )
        .step("open a staged bind for")?;
        let now = view.mount_of(inner.as_fd())?.attributes;
        drop(inner);
        let (set, clear) = bits(options);
        // A remount drops every flag that it does not name, so that those in force are named again.
        let flags = remount_flags((now & !clear) | set) | MountFlags::BIND;
        mount_remount(self.bind_path(), flags, c"").step("remount a staged bind for")
    }

    fn outer_path(&self) -> String {
        format!("/proc/self/fd/{}/{}", self.place.trash.as_raw_fd(), self.place.name)
    }

    fn bind_path(&self) -> String {
        format!("{}/bind", self.outer_path())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // Whatever of it was not made is not there to undo; what cannot be undone now is undone at the next start.
        let _ = unmount(self.bind_path(), UnmountFlags::NOFOLLOW);
        let _ = unmount(self.outer_path(), UnmountFlags::NOFOLLOW);
        let _ =
            rustix::fs::unlinkat(self.place.trash, format!("{}/bind", self.place.name), AtFlags::REMOVEDIR);
        let _ = rustix::fs::unlinkat(self.place.trash, self.place.name, AtFlags::REMOVEDIR);
    }
}

fn path_of(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// Mount attributes in the older words of `mount(2)`, the access-time policy always spelled out.
fn remount_flags(attributes: u64) -> MountFlags {
    let words = [
        (attr::RDONLY, MountFlags::RDONLY),
        (attr::NOSUID, MountFlags::NOSUID),
        (attr::NODEV, MountFlags::NODEV),
        (attr::NOEXEC, MountFlags::NOEXEC),
        (attr::NODIRATIME, MountFlags::NODIRATIME),
    ];
    let policy = match attributes & attr::ATIME_FIELD {
        attr::NOATIME => MountFlags::NOATIME,
        attr::STRICTATIME => MountFlags::STRICTATIME,
        _ => MountFlags::RELATIME,
    };
    words.into_iter().filter(|(bit, _)| attributes & bit != 0).fold(policy, |flags, (_, word)| flags | word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c05_only_what_is_asked_is_changed() {
        assert_eq!(bits(&MountOptions::default()), (0, 0));
        let options = MountOptions { read_only: Some(true), no_exec: Some(false), ..Default::default() };
        assert_eq!(bits(&options), (attr::RDONLY, attr::NOEXEC));
    }

    #[test]
    fn c05_the_access_time_field_is_cleared_before_it_is_set() {
        let with = |access_time| bits(&MountOptions { access_time: Some(access_time), ..Default::default() });
        assert_eq!(with(AccessTime::Never), (attr::NOATIME, attr::ATIME_FIELD));
        assert_eq!(with(AccessTime::Strict), (attr::STRICTATIME, attr::ATIME_FIELD));
        assert_eq!(with(AccessTime::Relative), (0, attr::ATIME_FIELD));
    }

    #[test]
    fn c05_a_remount_names_every_flag_again() {
        let all = attr::RDONLY | attr::NOSUID | attr::NODEV | attr::NOEXEC | attr::NOATIME | attr::NODIRATIME;
        let words = MountFlags::RDONLY
            | MountFlags::NOSUID
            | MountFlags::NODEV
            | MountFlags::NOEXEC
            | MountFlags::NOATIME
            | MountFlags::NODIRATIME;
        assert_eq!(remount_flags(all), words);
        assert_eq!(remount_flags(0), MountFlags::RELATIME);
        assert_eq!(remount_flags(attr::STRICTATIME), MountFlags::STRICTATIME);
    }
}
