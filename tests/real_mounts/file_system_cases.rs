//! Stores on other file systems: each answers the rule of C15 the same, and each can be full or broken.

use std::path::Path;
use std::process::Command;

use per_node::adapters::linux::mounts::Abilities;
use per_node::adapters::linux::records::SlotRecords;
use per_node::domain::holds::{Makes, TargetRecord, TargetState};
use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::Place;
use per_node::domain::target::TargetPath;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use per_node::ports::records::{Records, RecordsError};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use crate::Case;
use crate::image::{self, Kind};
use crate::world::{World, handle, identity};

pub fn cases() -> Vec<Case> {
    let tmpfs = |name: &str, case: fn()| Case::new(name, case);
    let mut cases = vec![
        tmpfs("c16_a_full_tmpfs_still_takes_records", full_tmpfs),
        tmpfs("c16_a_tmpfs_without_inodes_refuses_a_new_copy_alone", || {
            full(&World::with(newest(), few_inodes))
        }),
        tmpfs("c15_a_store_on_overlay_is_followed", || followed(&World::with(newest(), overlay)))
            .needs_root(),
        tmpfs("c23_a_copy_in_a_lower_layer_cannot_be_renamed", lower_layer).needs_root(),
        tmpfs("c16_a_store_that_went_read_only_still_serves_its_copies", read_only_store),
        tmpfs("c44_a_store_that_vanished_is_an_error_and_no_panic", vanished_store),
    ];
    for kind in Kind::ALL {
        let on = |name: &str, case: fn(&World)| {
            let run = move || case(&World::with(newest(), move |root| on_image(kind, root)));
            let case = Case::new(format!("{name}::{}", kind.name()), run).needs_root();
            if kind.can_be_made() { case } else { case.left_out() }
        };
        cases.push(on("c15_a_store_on_another_file_system_is_followed", followed));
        cases.push(on("c16_a_full_file_system_refuses_a_new_copy_alone", full));
        cases.push(on("c24_a_tree_goes_from_another_file_system", tree_goes));
    }
    cases.push(Case::new("c16_an_aborted_ext4_is_an_error_and_no_panic", aborted).needs_root());
    let btrfs = Case::new("c24_subvolumes_and_read_only_snapshots_go", subvolumes).needs_root();
    cases.push(if Kind::Btrfs.can_be_made() { btrfs } else { btrfs.left_out() });
    cases
}

pub fn newest() -> Abilities {
    Abilities::found()
}

pub fn on_image(kind: Kind, root: &Path) {
    image::mount_new(kind, &root.join("image"), &root.join("store"));
}

pub fn small_tmpfs(root: &Path) {
    mount("store", root.join("store"), "tmpfs", MountFlags::empty(), c"size=12m").unwrap();
}

pub fn few_inodes(root: &Path) {
    mount("store", root.join("store"), "tmpfs", MountFlags::empty(), c"size=12m,nr_inodes=40").unwrap();
}

fn overlay(root: &Path) {
    for layer in ["lower", "upper", "work"] {
        std::fs::create_dir(root.join("elsewhere").join(layer)).unwrap();
    }
    std::fs::create_dir_all(root.join("elsewhere/lower/copies/old")).unwrap();
    let layer = |name: &str| root.join("elsewhere").join(name).display().to_string();
    let (lower, upper, work) = (layer("lower"), layer("upper"), layer("work"));
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},redirect_dir=off");
    let options = std::ffi::CString::new(options).unwrap();
    mount("overlay", root.join("store"), "overlay", MountFlags::empty(), options.as_c_str()).unwrap();
}

pub fn followed(world: &World) {
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    let target = world.publish("h", "t", &MountOptions::default());
    assert_eq!(identity(target.as_path()), identity(&world.path("store/copies/h")));
    assert_eq!(world.look(&target).visible().unwrap().place, Place::Copy(handle("h")));
    std::fs::create_dir(target.as_path().join("sub")).unwrap();
    std::fs::create_dir(world.path("elsewhere/leftover")).unwrap();
    mount_bind(target.as_path().join("sub"), world.path("elsewhere/leftover")).unwrap();
    assert_eq!(world.showing("h").len(), 2);
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.look(&target).visible().unwrap().place, Place::Trash(TrashId(1)));
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert!(world.look(&target).visible().unwrap().deleted);
    world.detach(&target).unwrap();
    assert_eq!(world.showing("h"), []);
}

fn full_tmpfs() {
    let world = World::with(newest(), small_tmpfs);
    let records = SlotRecords::open(&world.store).unwrap();
    world.copy("old");
    image::fill(&world.path("store/copies/old/ballast"));
    let target = world.publish("old", "t", &MountOptions::default());
    record_on(&world, &records, &target);
}

fn record_on(world: &World, records: &SlotRecords, target: &TargetPath) {
    for state in [TargetState::Attaching(Makes { copy: false, target: false }), TargetState::Held] {
        let target = target.clone();
        let record =
            TargetRecord { target, handle: handle("old"), uid: None, pod: None, readonly: false, state };
        world.wait(records.put_target(&record)).expect("records have their space already");
    }
}

/// On a full file system copies that are there are published, recorded and removed; only a new one fails.
pub fn full(world: &World) {
    let records = SlotRecords::open(&world.store).unwrap();
    world.wait(world.copies.ensure(&handle("old"))).unwrap();
    let old = world.path("store/copies/old");
    image::fill(&old.join("ballast"));
    let more = (0..).map(|number| old.join(format!("{number:0>200}")));
    let made = more.take_while(|path| std::fs::create_dir(path).is_ok()).count();
    assert!(made < 1_000_000, "the file system is never full");
    let error = world.wait(world.copies.ensure(&handle("new"))).unwrap_err();
    assert!(matches!(error, CopiesError::NoSpace(_)), "{error:?}");
    assert!(!world.path("store/copies/new").exists());
    assert_eq!(std::fs::read_dir(world.path("store/trash")).unwrap().count(), 0);
    let target = world.publish("old", "t", &MountOptions::default());
    record_on(world, &records, &target);
    let id = world.wait(records.reserve_trash(&handle("old"))).expect("so has the trash");
    world.detach(&target).unwrap();
    let removed = match world.wait(world.copies.discard(&handle("old"), id)) {
        Ok(()) => world.wait(world.copies.delete(id)),
        // Not every full file system can rename; none needs space to delete.
        Err(CopiesError::NoSpace(_)) => {
            let mark = world.wait(world.copies.mark(&handle("old"))).expect("told").expect("a copy");
            world.wait(records.condemn(&handle("old"), mark)).expect("and so has what is condemned");
            let removed = world.wait(world.copies.delete_in_place(&handle("old")));
            world.wait(world.copies.settle()).expect("durable");
            world.wait(records.acquit(&handle("old"))).expect("taken back");
            removed
        }
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(removed, Ok(Deletion::Done));
    world.wait(world.copies.ensure(&handle("new"))).expect("there is space again");
}

pub fn tree_goes(world: &World) {
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    let copy = world.path("store/copies/h");
    for number in 0..300 {
        std::fs::create_dir_all(copy.join(format!("wide/{number}/deep/{number}"))).unwrap();
        std::fs::write(copy.join(format!("wide/{number}/file")), "x").unwrap();
    }
    let deep = vec!["d"; 200].join("/");
    std::fs::create_dir_all(copy.join(deep)).unwrap();
    let usage = world.wait(world.copies.usage(&handle("h"))).unwrap();
    assert_eq!((usage.used_inodes, usage.complete), (1 + 1 + 300 * 4 + 200, true));
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert!(!world.path("store/trash/t1").exists());
}

fn lower_layer() {
    let world = World::with(newest(), overlay);
    let error = world.wait(world.copies.discard(&handle("old"), TrashId(1))).unwrap_err();
    assert!(matches!(error, CopiesError::OtherMount(_)), "{error:?}");
    assert!(world.path("store/copies/old").is_dir());
    assert_eq!(world.wait(world.copies.trash()), Ok(vec![]));
}

fn read_only_store() {
    let world = World::with(newest(), |root| {
        mount_bind(root.join("store"), root.join("store")).unwrap();
    });
    world.copy("old");
    mount_remount(world.path("store"), MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
    let error = world.wait(world.copies.ensure(&handle("new"))).unwrap_err();
    assert!(matches!(error, CopiesError::Denied(_)), "{error:?}");
    let error = world.wait(world.copies.discard(&handle("old"), TrashId(1))).unwrap_err();
    assert!(matches!(error, CopiesError::Denied(_)), "{error:?}");
    let target = world.publish("old", "t", &MountOptions::default());
    assert!(world.look(&target).visible().is_some());
    world.detach(&target).unwrap();
}

fn vanished_store() {
    let world = World::new(newest());
    world.copy("h");
    std::fs::remove_dir_all(world.path("store")).unwrap();
    assert_eq!(world.wait(world.copies.find(&handle("h"))), Ok(None));
    world.wait(world.copies.ensure(&handle("h"))).expect_err("no store, no copy");
    assert_eq!(world.showing("h"), []);
}

fn aborted() {
    let world = World::with(newest(), |root| on_image(Kind::Ext4, root));
    world.wait(world.copies.ensure(&handle("old"))).unwrap();
    std::fs::write(world.path("store/copies/old/file"), "x").unwrap();
    let records = SlotRecords::open(&world.store).unwrap();
    image::run(Command::new("mount").args(["-o", "remount,abort"]).arg(world.path("store")));
    let failed = |outcome: Result<(), CopiesError>| {
        let error = outcome.expect_err("a broken file system takes nothing");
        assert!(matches!(error, CopiesError::Denied(_) | CopiesError::Io(_)), "{error:?}");
    };
    failed(world.wait(world.copies.ensure(&handle("new"))).map(drop));
    failed(world.wait(world.copies.discard(&handle("old"), TrashId(1))));
    let error = world.wait(records.reserve_trash(&handle("old"))).expect_err("nor does it take a record");
    assert!(matches!(error, RecordsError::ReadOnly(_)), "{error:?}");
    let target = world.publish("old", "t", &MountOptions::default());
    assert!(world.look(&target).visible().is_some(), "a mount needs no write");
    world.detach(&target).unwrap();
}

fn subvolumes() {
    let world = World::with(newest(), |root| on_image(Kind::Btrfs, root));
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    let copy = world.path("store/copies/h");
    let btrfs = |arguments: &[&str], paths: &[&Path]| {
        image::run(Command::new("btrfs").args(["-q", "subvolume"]).args(arguments).args(paths));
    };
    btrfs(&["create"], &[&copy.join("volume")]);
    std::fs::create_dir(copy.join("volume/inner")).unwrap();
    std::fs::write(copy.join("volume/inner/file"), "x").unwrap();
    btrfs(&["snapshot", "-r"], &[&copy.join("volume"), &copy.join("snapshot")]);
    btrfs(&["create"], &[&copy.join("volume/inner/nested")]);
    let usage = world.wait(world.copies.usage(&handle("h"))).unwrap();
    assert_eq!(usage.used_inodes, 1 + 4 + 3);
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert!(!world.path("store/trash/t1").exists());
}
