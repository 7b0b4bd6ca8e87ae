//! Stores on other file systems: each answers the rule of C15 the same, and each can be full or broken.

use std::path::Path;
use std::process::Command;

use per_node::adapters::linux::attach::Route;
use per_node::adapters::linux::records::SlotRecords;
use per_node::domain::holds::{Makes, TargetRecord, TargetState};
use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::Place;
use per_node::domain::target::TargetPath;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use per_node::ports::mounts::MountsError;
use per_node::ports::records::{Records, RecordsError};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use crate::Case;
use crate::file_system::FileSystem;
use crate::image;
use crate::setting::{Layout, PLAIN, in_each};
use crate::world::{World, handle, identity};

pub fn cases() -> Vec<Case> {
    let here = |name: &str, case: fn()| Case::new(name, case);
    let mut cases = vec![
        here("c16_a_full_tmpfs_still_takes_records", full_tmpfs),
        here("c16_a_tmpfs_without_inodes_refuses_a_new_copy_alone", || full(&World::with(PLAIN, few_inodes))),
        here("c23_a_copy_in_a_lower_layer_cannot_be_renamed", lower_layer).needs_root(),
        here("c16_an_aborted_ext4_is_an_error_and_no_panic", aborted).on(FileSystem::Ext4),
        here("c24_subvolumes_and_read_only_snapshots_go", subvolumes).on(FileSystem::Btrfs),
    ];
    cases.extend(on_small_ones("c16_a_full_file_system_refuses_a_new_copy_alone", |world| full(&world)));
    let each = [
        in_each("c15_a_store_is_followed", |world| followed(&world)),
        in_each("c24_a_tree_goes", |world| tree_goes(&world)),
        in_each("c16_a_store_that_went_read_only_still_serves_its_copies", read_only_store),
        in_each("c44_a_store_that_vanished_is_an_error_and_no_panic", vanished_store),
    ];
    cases.into_iter().chain(each.into_iter().flatten()).collect()
}

/// The case on a small file system of each kind that lies on a disk, made for it alone.
pub fn on_small_ones(name: &str, case: fn(World)) -> Vec<Case> {
    let on = |kind: FileSystem| {
        let run = move || case(on_small(kind));
        Case::new(format!("{name}::{}", kind.name()), run).on(kind)
    };
    [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs, FileSystem::Overlay].map(on).into()
}

/// A world whose store is such a file system.
pub fn on_small(kind: FileSystem) -> World {
    World::with(PLAIN, |root| image::mount_new(kind, &root.join("store")))
}

pub fn small_tmpfs(root: &Path) {
    mount("store", root.join("store"), "tmpfs", MountFlags::empty(), c"size=12m").unwrap();
}

pub fn few_inodes(root: &Path) {
    mount("store", root.join("store"), "tmpfs", MountFlags::empty(), c"size=12m,nr_inodes=40").unwrap();
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
    let world = World::with(PLAIN, small_tmpfs);
    let records = SlotRecords::open(&world.store).unwrap();
    world.copy("old");
    image::fill(&world.path("store/copies/old/ballast"));
    let target = world.publish("old", "t", &MountOptions::default());
    record_on(&world, &records, &target);
}

fn record_on(world: &World, records: &SlotRecords, target: &TargetPath) {
    for state in [TargetState::Attaching(Makes { copy: false, target: false }), TargetState::Held] {
        let target = target.clone();
        let (uid, pod, since) = (None, None, None);
        let record = TargetRecord { target, handle: handle("old"), uid, pod, readonly: false, state, since };
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
    let id = world.wait(records.reserve_trash(&handle("old"), None)).expect("so has the trash");
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
    let usage = world.usage("h");
    assert_eq!(usage.used_inodes, 1 + 1 + 300 * 4 + 200);
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert!(!world.path("store/trash/t1").exists());
}

/// Puts the store on an overlay, mounted with that option, with a copy in its lower layer.
pub fn mount_overlay(root: &Path, option: &str) -> rustix::io::Result<()> {
    let layer = |name: &str| root.join("elsewhere").join(name);
    for name in ["lower/copies/old", "upper", "work"] {
        std::fs::create_dir_all(layer(name)).unwrap();
    }
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| layer(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},{option}");
    let options = std::ffi::CString::new(options).unwrap();
    mount("overlay", root.join("store"), "overlay", MountFlags::empty(), options.as_c_str())
}

fn lower_layer() {
    let world = World::with(PLAIN, |root| mount_overlay(root, "redirect_dir=off").unwrap());
    let error = world.wait(world.copies.discard(&handle("old"), TrashId(1))).unwrap_err();
    assert!(matches!(error, CopiesError::OtherMount(_)), "{error:?}");
    assert!(world.path("store/copies/old").is_dir());
    assert_eq!(world.wait(world.copies.trash()), Ok(vec![]));
}

fn read_only_store(world: World) {
    let world = World::with(world.setting, |root| {
        mount_bind(root.join("store"), root.join("store")).unwrap();
    });
    world.copy("old");
    mount_remount(world.path("store"), MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
    let error = world.wait(world.copies.ensure(&handle("new"))).unwrap_err();
    assert!(matches!(error, CopiesError::Denied(_)), "{error:?}");
    let error = world.wait(world.copies.discard(&handle("old"), TrashId(1))).unwrap_err();
    assert!(matches!(error, CopiesError::Denied(_)), "{error:?}");
    if world.abilities.route == Route::Staging {
        // A kernel before 5.12 needs a new directory for every mount that it prepares.
        let target = world.target("t");
        world.make(&target).unwrap();
        let error = world.attach("old", world.copy("old"), &target, &MountOptions::default()).unwrap_err();
        assert!(matches!(&error, MountsError::Denied(failure) if failure.errno == 30), "{error:?}");
        return;
    }
    let target = world.publish("old", "t", &MountOptions::default());
    assert!(world.look(&target).visible().is_some());
    world.detach(&target).unwrap();
}

fn vanished_store(world: World) {
    world.copy("h");
    for name in ["copies", "trash", "holds"] {
        std::fs::remove_dir_all(world.path("store").join(name)).unwrap();
    }
    // EBUSY where it is a mount.
    let removed = std::fs::remove_dir(world.path("store"));
    assert_eq!(removed.is_err(), world.setting.layout == Layout::StoreMount);
    assert_eq!(world.wait(world.copies.find(&handle("h"))), Ok(None));
    world.wait(world.copies.ensure(&handle("h"))).expect_err("no store, no copy");
    assert_eq!(world.showing("h"), []);
}

fn aborted() {
    let world = on_small(FileSystem::Ext4);
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
    let error =
        world.wait(records.reserve_trash(&handle("old"), None)).expect_err("nor does it take a record");
    assert!(matches!(error, RecordsError::ReadOnly(_)), "{error:?}");
    let target = world.publish("old", "t", &MountOptions::default());
    assert!(world.look(&target).visible().is_some(), "a mount needs no write");
    world.detach(&target).unwrap();
}

fn subvolumes() {
    let world = on_small(FileSystem::Btrfs);
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
    let usage = world.usage("h");
    assert_eq!(usage.used_inodes, 1 + 4 + 3);
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert!(!world.path("store/trash/t1").exists());
}
