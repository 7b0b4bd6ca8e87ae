//! Entries of every kind, name and mode, that an ordinary pod or a privileged one leaves.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use per_node::adapters::linux::confine::confine;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use rustix::fs::{
    CWD, FileType, IFlags, Mode, XattrFlags, ioctl_getflags, ioctl_setflags, mknodat, setxattr,
};
use rustix::io::Errno;

use super::{Canary, count_and_delete, delete, hostile_copy, is_gone, on_each};
use crate::Case;
use crate::file_system::FileSystem;
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        on_each("c24_names_of_any_bytes_and_of_every_length_go", names),
        on_each("c24_symlinks_to_everywhere_go_and_lead_nowhere", symlinks),
        on_each("c24_hard_links_to_other_copies_and_the_store_go_alone", hard_links),
        on_each("c24_fifos_and_sockets_go_and_nobody_waits_for_them", fifos),
        on_each("c24_device_nodes_and_whiteouts_go_unopened", devices),
        on_each("c24_immutable_and_append_only_entries_are_told_until_they_may_go", immutable),
        on_each("c24_sparse_files_count_by_their_blocks_and_go", sparse),
        on_each("c24_lists_and_attributes_of_every_kind_go", attributes),
        on_each("c24_an_overlays_upper_directory_goes", overlay),
        on_each("c24_trees_that_are_closed_to_everybody_go_with_the_rights_that_are_kept", closed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn names(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    let names = (1..=255u8).filter(|&byte| byte != b'/').map(|byte| vec![byte]);
    let long = [b'x', 0xff, b'\n', b' ', b'"'].map(|byte| vec![byte; 255]);
    let lengths = (2..=255).map(|length| vec![0x80; length]);
    for (number, name) in names.chain(long).chain(lengths).enumerate() {
        if name == b"." {
            continue;
        }
        let path = copy.join(OsStr::from_bytes(&name));
        match number % 2 {
            0 => std::fs::create_dir_all(path.join(OsStr::from_bytes(&name))).unwrap(),
            _ => std::fs::write(path, "x").unwrap(),
        }
    }
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn symlinks(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    let store = world.path("store");
    let longest_bytes = match world.setting.file_system {
        FileSystem::Xfs => 1023,
        FileSystem::Tmpfs | FileSystem::Ext4 | FileSystem::Btrfs | FileSystem::Overlay => 4000,
    };
    let long = format!("/{}", "d/".repeat((longest_bytes - 1) / 2));
    let absolute = ["/", "/proc/self/root", "/proc/self/fd/0", "/proc/1/cwd", "/dev/null", &long];
    let places =
        [store.clone(), store.join("copies/other"), store.join("holds/targets"), canary.tree(), copy.clone()];
    let places = places.iter().map(|place| place.to_str().unwrap());
    let relative = [".", "..", "../other", "../../trash", "../../..", "itself"];
    for (number, place) in absolute.into_iter().chain(places).chain(relative).enumerate() {
        for directory in ["", "a", "a/b"] {
            std::fs::create_dir_all(copy.join(directory)).unwrap();
            symlink(place, copy.join(directory).join(format!("link{number}"))).unwrap();
        }
    }
    symlink("itself", copy.join("itself")).unwrap();
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn hard_links(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::create_dir(copy.join("a")).unwrap();
    for (number, file) in
        ["elsewhere/tree/file", "store/copies/other/tree/file", "store/copies/other/tree/link"]
            .into_iter()
            .enumerate()
    {
        for directory in ["", "a"] {
            std::fs::hard_link(world.path(file), copy.join(directory).join(format!("{number}"))).unwrap();
        }
    }
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn fifos(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    for directory in ["", "a", "a/b"] {
        std::fs::create_dir_all(copy.join(directory)).unwrap();
        mknodat(CWD, copy.join(directory).join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        UnixListener::bind(copy.join(directory).join("socket")).unwrap();
    }
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

/// A character device 0:0 is what an overlay takes for a deleted file.
fn devices(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::create_dir(copy.join("a")).unwrap();
    let nodes =
        [(FileType::CharacterDevice, 0, 0), (FileType::CharacterDevice, 1, 3), (FileType::BlockDevice, 7, 0)];
    for (number, (kind, major, minor)) in nodes.into_iter().enumerate() {
        let device = rustix::fs::makedev(major, minor);
        let made = mknodat(CWD, copy.join(format!("a/node{number}")), kind, Mode::RWXU, device);
        // An overlay lets nobody make its own mark by hand.
        let is_refused = device == 0 && world.setting.file_system == FileSystem::Overlay;
        assert_eq!(made, if is_refused { Err(Errno::PERM) } else { Ok(()) });
    }
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn set_flag(path: &Path, flag: IFlags, on: bool) {
    let open = std::fs::File::open(path).unwrap();
    let mut flags = ioctl_getflags(&open).unwrap();
    flags.set(flag, on);
    ioctl_setflags(&open, flags).unwrap();
}

fn immutable(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    for directory in ["fixed", "appended", "free"] {
        std::fs::create_dir_all(copy.join(directory).join("inner")).unwrap();
        std::fs::write(copy.join(directory).join("file"), "x").unwrap();
    }
    // What is in a directory that is fixed, or takes new entries alone, stays with it.
    let fixed = [("fixed", IFlags::IMMUTABLE), ("appended", IFlags::APPEND), ("free/file", IFlags::APPEND)];
    fixed.iter().for_each(|(path, flag)| set_flag(&copy.join(path), *flag, true));
    let first = count_and_delete(world);
    let again = delete(world);
    let entry = world.path("store/trash/t1");
    fixed.iter().for_each(|(path, flag)| set_flag(&entry.join(path), *flag, false));
    let Deletion::Left { entries, first: failure } = &first else { panic!("{first:?}") };
    assert!(*entries >= 3 && failure.errno == 1, "{first:?}");
    assert_eq!(first, again, "the same is told until it may go");
    assert!(!entry.join("free/inner").exists(), "the rest has gone");
    is_gone(world, &delete(world));
    // Where its root is fixed the copy stays where it is, and keeps its name.
    let copy = hostile_copy(world);
    set_flag(&copy, IFlags::APPEND, true);
    let refused = world.wait(world.copies.discard(&handle("h"), TrashId(1)));
    set_flag(&copy, IFlags::APPEND, false);
    assert!(matches!(refused, Err(CopiesError::Denied(_))), "{refused:?}");
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn sparse(world: &World) {
    let copy = hostile_copy(world);
    for number in 0..8 {
        std::fs::File::create(copy.join(format!("sparse{number}"))).unwrap().set_len(1 << 40).unwrap();
    }
    let usage = world.usage("h");
    assert_eq!(usage.used_inodes, 9);
    assert!(usage.used_bytes < 1 << 20, "{usage:?}");
    is_gone(world, &count_and_delete(world));
}

/// An access-control list as the kernel stores it: version 2, then tag, permissions and id of each entry.
fn list(group_permissions: u16) -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    let nobody = u32::MAX;
    let entries = [
        (1u16, 0u16, nobody),
        (2, 0, 4711),
        (4, group_permissions, nobody),
        (0x10, 0, nobody),
        (0x20, 0, nobody),
    ];
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

fn attributes(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::create_dir_all(copy.join("a/b")).unwrap();
    std::fs::write(copy.join("a/b/file"), "x").unwrap();
    // Every capability, permitted and effective, by the second version of the attribute.
    let capabilities = [0x0200_0001u32, u32::MAX, 0, u32::MAX, 0].map(u32::to_le_bytes).concat();
    let none = XattrFlags::empty();
    for path in ["a/b/file", "a/b", "a", ""] {
        let path = copy.join(path);
        setxattr(&path, "user.note", &[b'x'; 1000], none).unwrap();
        setxattr(&path, "trusted.overlay.opaque", b"y", none).unwrap();
        setxattr(&path, "system.posix_acl_access", &list(0), none).unwrap();
        if path.is_dir() {
            setxattr(&path, "system.posix_acl_default", &list(7), none).unwrap();
        } else {
            setxattr(&path, "security.capability", &capabilities, none).unwrap();
        }
    }
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

/// As a privileged pod that runs containers of its own leaves it: its layers in the copy, the merged tree mounted over
/// them until it ends.
fn overlay(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    for directory in ["upper", "work", "merged", "lower/gone", "lower/kept"] {
        std::fs::create_dir_all(copy.join(directory)).unwrap();
    }
    std::fs::write(copy.join("lower/kept/file"), "x").unwrap();
    let layer = |name: &str| copy.join(name).display().to_string();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", layer("lower"), layer("upper"), layer("work"));
    let options = std::ffi::CString::new(options).unwrap();
    let merged = copy.join("merged");
    let none = rustix::mount::MountFlags::empty();
    let mounted = rustix::mount::mount("overlay", &merged, "overlay", none, options.as_c_str());
    if world.setting.file_system == FileSystem::Overlay {
        assert_eq!(mounted, Err(Errno::INVAL), "no overlay is another's upper layer");
        return;
    }
    mounted.unwrap();
    std::fs::remove_dir(merged.join("gone")).unwrap();
    std::fs::remove_dir_all(merged.join("kept")).unwrap();
    std::fs::create_dir(merged.join("kept")).unwrap();
    std::fs::write(merged.join("kept/other"), "x").unwrap();
    let refused = world.wait(world.copies.discard(&handle("h"), TrashId(1)));
    assert!(matches!(refused, Err(CopiesError::MountPoint(_))), "{refused:?}");
    rustix::mount::unmount(&merged, rustix::mount::UnmountFlags::empty()).unwrap();
    assert!(std::fs::symlink_metadata(copy.join("upper/gone")).is_ok(), "the case needs a whiteout");
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

/// With no more rights than the process keeps, and in a thread of its own, for they do not come back.
fn closed(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::create_dir_all(copy.join("a/b/c")).unwrap();
    for file in ["file", "a/file", "a/b/file", "a/b/c/file"] {
        std::fs::write(copy.join(file), "x").unwrap();
    }
    for path in ["a/b/c/file", "a/b/c", "a/b/file", "a/b", "a/file", "a", "file", ""] {
        chown(copy.join(path), Some(65_534), Some(65_534)).unwrap();
        std::fs::set_permissions(copy.join(path), Permissions::from_mode(0o000)).unwrap();
    }
    std::thread::scope(|scope| {
        let confined = scope.spawn(|| {
            confine().unwrap();
            is_gone(world, &count_and_delete(world));
        });
        confined.join().expect("every call was allowed");
    });
    canary.is_untouched();
}
