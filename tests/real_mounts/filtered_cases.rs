//! The adapter under the process's own filter of system calls: on each file system and on both kinds of kernel, all that
//! it does must be on the list. What the filter forbids is in the tests beside it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::{leftovers, lock::StoreLock, self_check, syscall_filter};
use per_node::domain::kept::{Kept, ServedTime};
use per_node::domain::mount_options::{AccessTime, MountOptions};
use per_node::domain::time::Wall;
use per_node::domain::trash::TrashId;
use per_node::domain::volume_request::Gid;
use per_node::ports::copies::{Copies, Deletion};
use per_node::ports::records::Records;
use rustix::fs::{CWD, Mode};

use crate::Case;
use crate::file_system::FileSystem;
use crate::file_system_cases::{few_inodes, followed, full, on_small, on_small_ones, tree_goes};
use crate::image;
use crate::setting::{PLAIN, in_each, on_each_file_system};
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        in_each("filtered_a_whole_life", |world| filtered(world, whole_life)),
        on_each_file_system("filtered_is_followed", |world| filtered(world, followed)),
        on_small_ones("filtered_is_full", |world| filtered(world, full)),
        on_each_file_system("filtered_tree_goes", |world| filtered(world, tree_goes)),
        vec![
            Case::new("filtered_is_full::tmpfs", || filtered(World::with(PLAIN, few_inodes), full)),
            Case::new("filtered_read_only_snapshots_go", read_only_snapshot).on(FileSystem::Btrfs),
        ],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs the case on a thread of its own, with the filter in force there. The world ends outside: its own unmount is
/// lazy, which no filtered thread can do.
fn filtered(world: World, case: fn(&World)) {
    let run = move || {
        syscall_filter::install().expect("the filter is in force");
        case(&world);
        world
    };
    drop(std::thread::spawn(run).join().expect("every call was allowed"));
}

/// A start, a publish with every flag, statistics, health, and the removal of a tree of every kind.
fn whole_life(world: &World) {
    let store = StoreDirs::open(&world.path("store")).unwrap();
    let lock = StoreLock::try_take(store.root()).unwrap();
    assert!(lock.is_some());
    self_check::check_open_store(&store).unwrap();
    self_check::check_kubelet_dir(&world.path("kubelet")).unwrap();
    self_check::check_store(&world.path("store"), false).unwrap();
    leftovers::clear(&store).unwrap();
    let records = SlotRecords::open(&store).unwrap();
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    world.wait(world.copies.set_group(&handle("h"), Gid(0))).unwrap();
    let options = MountOptions {
        read_only: Some(true),
        no_exec: Some(true),
        no_suid: Some(true),
        no_dev: Some(true),
        no_dir_access_time: (!world.setting.has_locked_times()).then_some(true),
        access_time: (!world.setting.has_locked_times()).then_some(AccessTime::Never),
    };
    let target = world.publish("h", "t", &options);
    assert_eq!(world.showing("h").len(), 1);
    world.wait(world.copies.examine(&handle("h"))).unwrap();
    let copy = world.path("store/copies/h");
    std::fs::create_dir_all(copy.join("a/closed")).unwrap();
    std::fs::write(copy.join("a/closed/file"), "x").unwrap();
    std::fs::set_permissions(copy.join("a/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    assert_eq!(world.usage("h").used_inodes, 4);
    world.wait(world.copies.capacity()).unwrap();
    world.detach(&target).unwrap();
    world.wait(world.remove(&target)).unwrap();
    let kept = Kept { removed: Wall { unix_ms: 1 }, since: ServedTime { ms: 1 }, bytes: None };
    let id = world.wait(records.reserve_trash(&handle("h"), Some(kept))).unwrap();
    for _ in 0..2 {
        world.wait(world.copies.discard(&handle("h"), id)).unwrap();
        world.wait(world.copies.restore(id, &handle("h"))).unwrap();
        world.wait(world.copies.settle()).unwrap();
    }
    world.wait(world.copies.discard(&handle("h"), id)).unwrap();
    world.wait(records.release_trash(id)).unwrap();
    assert_eq!(world.wait(world.copies.delete(id)), Ok(Deletion::Done));
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    assert_eq!(world.wait(world.copies.delete_in_place(&handle("h"))), Ok(Deletion::Done));
}

fn read_only_snapshot() {
    let world = on_small(FileSystem::Btrfs);
    let copy = world.path("store/copies/h");
    world.copy("h");
    let btrfs = |arguments: &[&str]| {
        image::run(Command::new("btrfs").args(["-q", "subvolume"]).args(arguments).current_dir(&copy));
    };
    btrfs(&["create", "volume"]);
    std::fs::write(copy.join("volume/file"), "x").unwrap();
    symlink("/", copy.join("volume/link")).unwrap();
    rustix::fs::mkfifoat(CWD, copy.join("volume/pipe"), Mode::RWXU).unwrap();
    btrfs(&["snapshot", "-r", "volume", "snapshot"]);
    filtered(world, |world| {
        world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
        assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    });
}
