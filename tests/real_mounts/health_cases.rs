//! C49 on the kernel: copies moved and removed under their mounts, stores that are read-only, full, broken or silent.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use per_node::adapters::event_log::EventLog;
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::memory::{MemoryRecords, Node};
use per_node::adapters::system_clock::SystemClock;
use per_node::domain::health::Condition;
use per_node::domain::pod::PodInfo;
use per_node::domain::signal::Signal;
use per_node::domain::tally::Tally;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::domain::volume_request::{AccessType, PublishRequest, VolumeCapability};
use per_node::ports::records::Records;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

use crate::Case;
use crate::file_system::FileSystem;
use crate::file_system_cases::{few_inodes, on_small, on_small_ones, small_tmpfs};
use crate::image;
use crate::look_cases::restarted;
use crate::setting::{PLAIN, in_each, on_both_kernels};
use crate::world::World;

/// Reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        in_each("c49_a_copy_that_lost_its_name_under_a_mount_is_a_loss", lost_names),
        in_each("c49_a_question_leaves_no_trace", no_trace),
        in_each("c49_a_copy_on_a_disk_of_its_own_is_judged_by_that_disk", disk_of_its_own),
        // Only root may open /dev/fuse everywhere.
        on_both_kernels("c49_a_copy_that_does_not_answer_is_told_and_holds_up_no_other", silent)
            .into_iter()
            .map(Case::needs_root)
            .collect(),
        on_small_ones("c49_a_nearly_full_store_is_degraded", nearly_full),
    ]
    .into_iter()
    .flatten()
    .collect();
    cases.push(Case::new("c49_a_store_remounted_read_only_is_inaccessible", read_only));
    cases.push(Case::new("c49_a_nearly_full_tmpfs_is_degraded", || {
        nearly_full(World::with(PLAIN, small_tmpfs))
    }));
    cases.push(Case::new("c49_a_tmpfs_nearly_without_inodes_is_degraded", out_of_inodes));
    cases.push(Case::new("c49_an_aborted_ext4_is_inaccessible", aborted).on(FileSystem::Ext4));
    cases.push(Case::new("c49_a_shut_down_xfs_is_inaccessible", shut_down).on(FileSystem::Xfs));
    cases
}

/// A driver on the world's store, as it is after a start.
pub fn driver(world: &World) -> Driver {
    driver_on(world, Arc::new(SlotRecords::open(&world.store).unwrap()))
}

fn driver_on(world: &World, records: Arc<dyn Records>) -> Driver {
    driver_with(world, records, Brakes::default())
}

/// The same on other records, with other flags.
pub fn driver_with(world: &World, records: Arc<dyn Records>, brakes: Brakes) -> Driver {
    let ports = Ports {
        mounts: Arc::new(restarted(world)),
        copies: Arc::new(world.copies.clone()),
        records,
        clock: Arc::new(SystemClock::default()),
        sink: Arc::new(EventLog),
        cluster: None,
    };
    let settings = Settings {
        driver_name: "per-node.liken.sh".to_owned(),
        node_name: "node".to_owned(),
        kubelet_dir: world.kubelet_dir.clone(),
        sweep_every: Duration::from_secs(600),
        event_window: Duration::from_secs(600),
        brakes,
    };
    let driver = Driver::new(ports, settings, Arc::new(Tally::default()), Arc::new(Signal::default()));
    world.wait(driver.reconcile()).unwrap();
    driver
}

pub fn path_of(world: &World, target: &str) -> String {
    world.target(target).as_path().to_str().unwrap().to_owned()
}

/// Publishes a copy at the target of the same name.
pub fn publish(world: &World, driver: &Driver, handle: &str) {
    let access_type = AccessType::Mount { flags: vec![], volume_mount_group: String::new() };
    let request = PublishRequest {
        volume_id: handle.to_owned(),
        target_path: path_of(world, handle),
        capability: Some(VolumeCapability { access_type: Some(access_type), access_mode: Some(5) }),
        readonly: false,
        pod: PodInfo::default(),
    };
    world.wait(driver.publish(&request)).expect("published");
}

#[track_caller]
fn told(world: &World, driver: &Driver, handle: &str) -> Vec<Condition> {
    world.wait(driver.health(handle, &path_of(world, handle))).expect("an answer")
}

fn lost_names(world: World) {
    let first = driver(&world);
    for handle in ["moved", "removed", "renamed"] {
        publish(&world, &first, handle);
        assert_eq!(told(&world, &first, handle), [], "{handle}");
    }
    let copy = |name: &str| world.path("store/copies").join(name);
    std::fs::rename(copy("moved"), world.path("store/moved")).unwrap();
    std::fs::remove_dir(copy("removed")).unwrap();
    std::fs::rename(copy("renamed"), copy("other")).unwrap();
    drop(first);
    // Another process knows as much.
    let driver = driver(&world);
    for handle in ["moved", "removed", "renamed"] {
        assert_eq!(told(&world, &driver, handle), [Condition::CopyGone], "{handle}");
        std::fs::create_dir(copy(handle)).unwrap();
        assert_eq!(told(&world, &driver, handle), [Condition::CopyReplaced], "{handle}");
        std::fs::remove_dir(copy(handle)).unwrap();
    }
    // Back in its place it is what the pod sees: nothing is lost.
    std::fs::rename(world.path("store/moved"), copy("moved")).unwrap();
    std::fs::rename(copy("other"), copy("renamed")).unwrap();
    for handle in ["moved", "renamed"] {
        assert_eq!(told(&world, &driver, handle), [], "{handle}");
    }
    // A disk mounted over the copy hides what the pod wrote from the next one.
    mount("disk", copy("moved"), "tmpfs", MountFlags::empty(), c"").unwrap();
    assert_eq!(told(&world, &driver, "moved"), [Condition::CopyReplaced]);
}

fn no_trace(world: World) {
    let driver = driver(&world);
    publish(&world, &driver, "h");
    let copy = world.path("store/copies/h");
    std::fs::write(copy.join("file"), "x").unwrap();
    let seen = || {
        let found = std::fs::metadata(&copy).unwrap();
        let below = |name: &str| std::fs::read_dir(world.path("store").join(name)).unwrap().count();
        let times = (found.atime(), found.atime_nsec(), found.mtime_nsec(), found.ctime_nsec());
        (times, below("copies"), below("trash"), below("holds"), world.mounts_below(""))
    };
    let before = seen();
    assert_eq!(told(&world, &driver, "h"), []);
    assert_eq!(seen(), before);
}

fn disk_of_its_own(world: World) {
    let driver = driver(&world);
    for name in ["disk", "store"] {
        world.copy(name);
    }
    let disk = world.path("store/copies/disk");
    mount("disk", &disk, "tmpfs", MountFlags::empty(), c"size=1m").unwrap();
    for handle in ["disk", "store"] {
        publish(&world, &driver, handle);
    }
    image::fill(&disk.join("ballast"));
    assert_eq!(told(&world, &driver, "disk"), [Condition::StoreNearlyFull]);
    assert_eq!(told(&world, &driver, "store"), []);
}

fn silent(world: World) {
    let driver = driver(&world);
    for handle in ["dead", "alive"] {
        publish(&world, &driver, handle);
    }
    let device = std::fs::File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let options = std::ffi::CString::new(options).unwrap();
    let copy = world.path("store/copies/dead");
    mount("dead", &copy, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
    for _ in 0..2 {
        let conditions = told(&world, &driver, "dead");
        let [Condition::StoreFailing { why }] = conditions.as_slice() else { panic!("{conditions:?}") };
        assert!(why.contains("in vain") && why.contains("copies/dead"), "{why}");
        assert_eq!(told(&world, &driver, "alive"), []);
    }
    unmount(&copy, UnmountFlags::DETACH).unwrap();
    // The last descriptor of the connection: whoever waits for its server gets an error.
    drop(device);
    assert_eq!(told(&world, &driver, "dead"), []);
}

fn read_only() {
    let world = World::with(PLAIN, small_tmpfs);
    // The kernel makes nothing read-only in which files are open for writing, as the driver's own records are.
    let driver = driver_on(&world, Arc::new(MemoryRecords::open(&Node::default())));
    publish(&world, &driver, "h");
    assert_eq!(told(&world, &driver, "h"), []);
    let remount = |flags: MountFlags| mount_remount(world.path("store"), flags, c"").unwrap();
    remount(MountFlags::RDONLY);
    assert_eq!(told(&world, &driver, "h"), [Condition::StoreReadOnly]);
    remount(MountFlags::empty());
    assert_eq!(told(&world, &driver, "h"), []);
}

fn nearly_full(world: World) {
    let driver = driver(&world);
    publish(&world, &driver, "h");
    assert_eq!(told(&world, &driver, "h"), []);
    let ballast = world.path("store/copies/h/ballast");
    image::fill(&ballast);
    assert_eq!(told(&world, &driver, "h"), [Condition::StoreNearlyFull]);
    std::fs::remove_file(&ballast).unwrap();
    // Space comes back when the file system gets to it.
    let began = Instant::now();
    while !told(&world, &driver, "h").is_empty() {
        assert!(began.elapsed() < PATIENCE, "it is still full");
        image::sync(&world.path("store"));
    }
}

fn out_of_inodes() {
    let world = World::with(PLAIN, few_inodes);
    let driver = driver(&world);
    publish(&world, &driver, "h");
    assert_eq!(told(&world, &driver, "h"), []);
    let file = |number: u32| world.path("store/copies/h").join(number.to_string());
    let made = (0..100).take_while(|&number| std::fs::write(file(number), "").is_ok()).count();
    assert!(made < 100, "there is no end to the inodes");
    assert_eq!(told(&world, &driver, "h"), [Condition::StoreNearlyOutOfInodes]);
    std::fs::remove_file(file(0)).unwrap();
    std::fs::remove_file(file(1)).unwrap();
    assert_eq!(told(&world, &driver, "h"), []);
}

fn aborted() {
    let world = on_small(FileSystem::Ext4);
    let driver = driver(&world);
    publish(&world, &driver, "h");
    assert_eq!(told(&world, &driver, "h"), []);
    image::run(Command::new("mount").args(["-o", "remount,abort"]).arg(world.path("store")));
    std::fs::write(world.path("store/copies/h/file"), "x").expect_err("it takes no writes");
    assert_eq!(told(&world, &driver, "h"), [Condition::StoreReadOnly]);
}

fn shut_down() {
    let world = on_small(FileSystem::Xfs);
    let driver = driver(&world);
    publish(&world, &driver, "h");
    assert_eq!(told(&world, &driver, "h"), []);
    xfs_shutdown(&world.path("store"));
    let conditions = told(&world, &driver, "h");
    let [Condition::StoreFailing { why }] = conditions.as_slice() else { panic!("{conditions:?}") };
    assert!(why.contains("Input/output error"), "{why}");
}

fn xfs_shutdown(store: &Path) {
    image::run(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(store));
}
