//! Mounts where the walks come by: loops of binds, binds of the same file system, mounts of another namespace, and a
//! copy whose root is no longer the directory that was made.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::{Canary, count_and_delete, delete, hostile_copy, is_gone, on_each};
use crate::Case;
use crate::image;
use crate::namespace::Peer;
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        on_each("c24_loops_of_binds_and_binds_of_the_same_file_system_are_not_entered", loops),
        on_each("c24_a_mount_that_lives_in_another_namespace_is_not_entered", other_namespace),
        on_each("c24_a_copy_whose_root_was_replaced_leads_nowhere", replaced_root),
        on_each("c24_a_trash_entry_that_was_replaced_leads_nowhere", replaced_entry),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn loops(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    for directory in ["a/b/c", "whole", "store", "tree", "root"] {
        std::fs::create_dir_all(copy.join(directory)).unwrap();
    }
    std::fs::write(copy.join("a/b/file"), "x").unwrap();
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    let entry = world.path("store/trash/t1");
    // Its own root below itself, what is above it, and what is beside it: one file system, other mounts.
    let binds = [
        (entry.clone(), entry.join("a/b/c")),
        (world.path(""), entry.join("whole")),
        (world.path("store"), entry.join("store")),
        (canary.tree(), entry.join("tree")),
        ("/".into(), entry.join("root")),
    ];
    for (from, to) in &binds {
        mount_bind(from, to).unwrap();
    }
    let first = delete(world);
    let Deletion::Left { entries: 5, first: failure } = &first else { panic!("{first:?}") };
    assert!(failure.path.starts_with(&entry), "{failure}");
    assert_eq!(delete(world), first, "the same is told until they are gone");
    assert!(!entry.join("a/b/file").exists());
    canary.is_untouched();
    for (_, at) in binds.iter().rev() {
        unmount(at, UnmountFlags::empty()).unwrap();
    }
    is_gone(world, &delete(world));
    // In a live copy they are not counted, and keep it from being moved.
    let copy = hostile_copy(world);
    std::fs::create_dir_all(copy.join("a/b")).unwrap();
    mount_bind(&copy, copy.join("a/b")).unwrap();
    let usage = world.usage("h");
    assert_eq!(usage.used_inodes, 2, "the root and a");
    let refused = world.wait(world.copies.discard(&handle("h"), TrashId(1)));
    assert!(matches!(refused, Err(CopiesError::MountPoint(_))), "{refused:?}");
    unmount(copy.join("a/b"), UnmountFlags::empty()).unwrap();
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

/// Mounts of a namespace that the process does not see keep nothing: their mount points go, what is mounted stays whole.
fn other_namespace(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    for directory in ["a/bound", "a/other"] {
        std::fs::create_dir_all(copy.join(directory)).unwrap();
    }
    let peer = Peer::start();
    let inside = |arguments: &[&Path]| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", peer.id())).arg("mount").args(arguments);
        image::run(&mut command);
    };
    inside(&[Path::new("--bind"), &canary.tree(), &copy.join("a/bound")]);
    inside(&[Path::new("-t"), Path::new("tmpfs"), Path::new("other"), &copy.join("a/other")]);
    std::fs::write(peer.path(&copy.join("a/other/file")), "x").unwrap();
    assert!(!copy.join("a/other/file").exists(), "the case needs a mount that is not seen here");
    is_gone(world, &count_and_delete(world));
    canary.is_untouched();
}

fn replaced_root(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::rename(&copy, world.path("store/taken")).unwrap();
    symlink(canary.tree(), &copy).unwrap();
    for refused in [
        world.wait(world.copies.find(&handle("h"))).map(drop),
        world.wait(world.copies.usage(&handle("h"))).map(drop),
        world.wait(world.copies.mark(&handle("h"))).map(drop),
        world.wait(world.copies.ensure(&handle("h"))).map(drop),
        world.wait(world.copies.discard(&handle("h"), TrashId(1))),
    ] {
        assert!(matches!(refused, Err(CopiesError::NotADirectory(_))), "{refused:?}");
    }
    assert_eq!(world.wait(world.copies.list()).unwrap().strangers, ["h"]);
    canary.is_untouched();
    // Another directory under its name is another copy.
    std::fs::remove_file(&copy).unwrap();
    std::fs::create_dir(&copy).unwrap();
    is_gone(world, &count_and_delete(world));
    assert!(world.path("store/taken").is_dir());
}

fn replaced_entry(world: &World) {
    let canary = Canary::make(world);
    hostile_copy(world);
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    let entry = world.path("store/trash/t1");
    std::fs::remove_dir(&entry).unwrap();
    symlink(canary.tree(), &entry).unwrap();
    is_gone(world, &delete(world));
    canary.is_untouched();
}
