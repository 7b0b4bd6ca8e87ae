//! The adapter under the process's own filter of system calls: on each file system and on both kinds of kernel, all that
//! it does must be on the list. What the filter forbids is in the tests beside it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use per_node::adapters::linux::mounts::Abilities;
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::{leftovers, lock::StoreLock, self_check, syscall_filter};
use per_node::domain::mount_options::{AccessTime, MountOptions};
use per_node::domain::trash::TrashId;
use per_node::domain::volume_request::Gid;
use per_node::ports::copies::{Copies, Deletion};
use per_node::ports::records::Records;
use rustix::fs::{CWD, Mode};

use crate::Case;
use crate::file_system_cases::{few_inodes, followed, full, newest, on_image, small_tmpfs, tree_goes};
use crate::image::{self, Kind};
use crate::world::{World, handle};

/// What is shown on each file system: its name, how a tmpfs is made for it, and how it is shown.
type OnEach = (&'static str, fn(&Path), fn(&World));

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kernel, abilities) in [("newest", Abilities::found()), ("oldest", Abilities::OLDEST)] {
        let run = move || filtered(World::with(abilities, |_| {}), whole_life);
        cases.push(Case::new(format!("filtered_a_whole_life::{kernel}"), run));
    }
    let each: [OnEach; 3] = [
        ("is_followed", small_tmpfs, followed),
        ("is_full", few_inodes, full),
        ("tree_goes", small_tmpfs, tree_goes),
    ];
    for (name, on_tmpfs, case) in each {
        let run = move || filtered(World::with(newest(), on_tmpfs), case);
        cases.push(Case::new(format!("filtered_{name}::tmpfs"), run));
        for kind in Kind::ALL {
            let run = move || filtered(World::with(newest(), move |root| on_image(kind, root)), case);
            let case = Case::new(format!("filtered_{name}::{}", kind.name()), run).needs_root();
            cases.push(if kind.can_be_made() { case } else { case.left_out() });
        }
    }
    let btrfs = Case::new("filtered_read_only_snapshots_go", read_only_snapshot).needs_root();
    cases.push(if Kind::Btrfs.can_be_made() { btrfs } else { btrfs.left_out() });
    cases
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
        no_dir_access_time: Some(true),
        access_time: Some(AccessTime::Never),
    };
    let target = world.publish("h", "t", &options);
    assert_eq!(world.showing("h").len(), 1);
    world.wait(world.copies.examine(&handle("h"))).unwrap();
    let copy = world.path("store/copies/h");
    std::fs::create_dir_all(copy.join("a/closed")).unwrap();
    std::fs::write(copy.join("a/closed/file"), "x").unwrap();
    std::fs::set_permissions(copy.join("a/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    assert_eq!(world.wait(world.copies.usage(&handle("h"))).unwrap().used_inodes, 4);
    world.wait(world.copies.capacity()).unwrap();
    world.detach(&target).unwrap();
    world.wait(world.remove(&target)).unwrap();
    let id = world.wait(records.reserve_trash(&handle("h"))).unwrap();
    world.wait(world.copies.discard(&handle("h"), id)).unwrap();
    assert_eq!(world.wait(world.copies.delete(id)), Ok(Deletion::Done));
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    assert_eq!(world.wait(world.copies.delete_in_place(&handle("h"))), Ok(Deletion::Done));
}

fn read_only_snapshot() {
    let world = World::with(newest(), |root| on_image(Kind::Btrfs, root));
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
