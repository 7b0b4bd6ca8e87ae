//! Who shows a copy: the index says what the whole table says, whatever happened in between.

use std::collections::BTreeSet;
use std::time::Duration;

use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::Place;
use per_node::domain::trash::TrashId;
use per_node::ports::mounts::Mounts;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_move, unmount};

use crate::Case;
use crate::kernel::Newer;
use crate::look_cases::restarted;
use crate::setting::{in_each, on_both_kernels};
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        in_each("c15_a_bind_of_something_below_a_copy_counts", below_a_copy),
        in_each("c15_binds_at_any_path_count_and_foreign_ones_do_not", any_path),
        in_each("c15_a_renamed_copy_is_followed_into_the_trash", renamed),
        in_each("c15_a_copy_that_comes_back_from_elsewhere_is_seen", back_from_elsewhere),
        in_each("c15_a_store_whose_directories_are_moved_changes_no_answer", directory_moved),
        in_each("c15_moved_and_recursive_binds_are_followed", moved),
        in_each("c40_a_restart_finds_the_mounts_that_are_there", after_a_restart),
        in_each("c15_mount_events_are_used_where_the_kernel_has_them", events_are_used),
        on_both_kernels("c15_nothing_is_lost_when_the_kernel_drops_events", dropped_events),
        on_both_kernels("c15_ten_thousand_foreign_mounts_change_no_answer", ten_thousand),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether this kernel tells which mounts come and go: from 6.15 on.
pub fn kernel_tells_mount_events() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 15)
}

fn events_are_used(world: World) {
    let needed = [Newer::MountEvents, Newer::ListMount, Newer::StatMount, Newer::Renames];
    let has_them = !needed.iter().any(|call| world.setting.lacks.contains(call));
    assert_eq!(world.mounts.is_watching(), has_them && kernel_tells_mount_events());
}

fn points(world: &World, name: &str) -> Vec<String> {
    let root = world.path("");
    let relative = |mount: per_node::domain::mount_table::StoreMount| {
        mount.mount_point.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()
    };
    world.showing(name).into_iter().map(relative).collect()
}

fn below_a_copy(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir_all(target.as_path().join("sub/dir")).unwrap();
    std::fs::write(target.as_path().join("file"), "").unwrap();
    std::fs::create_dir(world.path("elsewhere/dir")).unwrap();
    std::fs::write(world.path("elsewhere/file"), "").unwrap();
    mount_bind(target.as_path().join("sub/dir"), world.path("elsewhere/dir")).unwrap();
    mount_bind(target.as_path().join("file"), world.path("elsewhere/file")).unwrap();
    world.detach(&target).unwrap();
    assert_eq!(points(&world, "h"), ["elsewhere/dir", "elsewhere/file"]);
    assert!(world.showing("h").iter().all(|mount| !mount.shown.at_root && !mount.shown.deleted));
    // So long that a table which is read only now and then would be trusted.
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(points(&world, "h").len(), 2);
    std::fs::remove_file(world.path("store/copies/h/file")).unwrap();
    let deleted: Vec<bool> = world.showing("h").iter().map(|mount| mount.shown.deleted).collect();
    assert_eq!(deleted, [false, true]);
    // An operator may move it into another copy, which is then shown.
    world.copy("other");
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(points(&world, "other"), [""; 0]);
    std::fs::rename(world.path("store/copies/h/sub"), world.path("store/copies/other/sub")).unwrap();
    assert_eq!(points(&world, "other"), ["elsewhere/dir"]);
}

fn any_path(world: World) {
    world.publish("a", "t", &MountOptions::default());
    world.publish("a.b", "u", &MountOptions::default());
    for name in ["v", "w", "x", "y"] {
        std::fs::create_dir(world.path("elsewhere").join(name)).unwrap();
    }
    mount_bind(world.path("store/copies/a"), world.path("elsewhere/v")).unwrap();
    mount_bind(world.path("store/copies"), world.path("elsewhere/w")).unwrap();
    mount_bind(world.path("store"), world.path("elsewhere/x")).unwrap();
    mount("foreign", world.path("elsewhere/y"), "tmpfs", MountFlags::empty(), c"").unwrap();
    assert_eq!(points(&world, "a"), ["elsewhere/v", "kubelet/t"]);
    assert_eq!(points(&world, "a.b"), ["kubelet/u"]);
    assert_eq!(points(&world, "b"), [""; 0]);
}

fn renamed(world: World) {
    world.publish("h", "t", &MountOptions::default());
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
    std::fs::rename(world.path("store/copies/h"), world.path("store/trash/t1")).unwrap();
    assert_eq!(points(&world, "h"), [""; 0]);
    let trashed = BTreeSet::from([TrashId(1)]);
    let shown = world.wait(world.mounts.showing(&handle("h"), &trashed)).unwrap();
    assert_eq!((shown.len(), &shown[0].shown.place), (1, &Place::Trash(TrashId(1))));
    assert!(world.wait(world.mounts.table()).unwrap().shows_trash(TrashId(1)));
    // A person may bring it back under another name.
    std::fs::rename(world.path("store/trash/t1"), world.path("store/copies/other")).unwrap();
    assert_eq!((points(&world, "h"), points(&world, "other")), (vec![], vec!["kubelet/t".to_owned()]));
}

fn back_from_elsewhere(world: World) {
    world.publish("h", "t", &MountOptions::default());
    world.publish("i", "u", &MountOptions::default());
    std::fs::rename(world.path("store/copies/h"), world.path("store/aside")).unwrap();
    // One that never saw it in its place.
    let again = restarted(&world);
    let showing = |name| world.wait(again.showing(&handle(name), &BTreeSet::new())).unwrap().len();
    assert_eq!((showing("h"), showing("i")), (0, 1));
    // So long that a table which is read only now and then would be trusted.
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!((showing("h"), showing("i")), (0, 1));
    std::fs::rename(world.path("store/aside"), world.path("store/copies/h")).unwrap();
    assert_eq!((showing("h"), showing("i")), (1, 1));
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
}

fn directory_moved(world: World) {
    world.publish("h", "t", &MountOptions::default());
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
    std::fs::rename(world.path("store/copies"), world.path("store/aside")).unwrap();
    assert_eq!(points(&world, "h"), [""; 0]);
    // So long that a table which is read only now and then would be trusted.
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(points(&world, "h"), [""; 0]);
    std::fs::rename(world.path("store/aside"), world.path("store/copies")).unwrap();
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
    std::fs::rename(world.path("store/copies/h"), world.path("store/copies/i")).unwrap();
    assert_eq!((points(&world, "h"), points(&world, "i")), (vec![], vec!["kubelet/t".to_owned()]));
    // Another directory in its place, with what is mounted from it already.
    for name in ["store/other/j", "elsewhere/k"] {
        std::fs::create_dir_all(world.path(name)).unwrap();
    }
    mount_bind(world.path("store/other/j"), world.path("elsewhere/k")).unwrap();
    assert_eq!(points(&world, "j"), [""; 0]);
    std::fs::rename(world.path("store/copies"), world.path("store/aside")).unwrap();
    std::fs::rename(world.path("store/other"), world.path("store/copies")).unwrap();
    assert_eq!((points(&world, "i"), points(&world, "j")), (vec![], vec!["elsewhere/k".to_owned()]));
}

fn moved(world: World) {
    for name in ["from", "to", "copy-of-kubelet"] {
        std::fs::create_dir(world.path("elsewhere").join(name)).unwrap();
    }
    world.publish("h", "t", &MountOptions::default());
    mount_bind(world.path("store/copies/h"), world.path("elsewhere/from")).unwrap();
    assert_eq!(points(&world, "h"), ["elsewhere/from", "kubelet/t"]);
    mount_move(world.path("elsewhere/from"), world.path("elsewhere/to")).unwrap();
    assert_eq!(points(&world, "h"), ["elsewhere/to", "kubelet/t"]);
    mount_bind_recursive(world.path("kubelet"), world.path("elsewhere/copy-of-kubelet")).unwrap();
    assert_eq!(points(&world, "h"), ["elsewhere/copy-of-kubelet/t", "elsewhere/to", "kubelet/t"]);
    unmount(world.path("elsewhere/copy-of-kubelet"), UnmountFlags::DETACH).unwrap();
    unmount(world.path("elsewhere/to"), UnmountFlags::empty()).unwrap();
    let left = points(&world, "h");
    // The recursive bind is a peer of the kubelet's directory: what goes from one goes from the other, or neither.
    assert!(left == ["kubelet/t"] || left.is_empty(), "{left:?}");
}

fn after_a_restart(world: World) {
    world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir(world.path("elsewhere/leftover")).unwrap();
    mount_bind(world.path("store/copies/h"), world.path("elsewhere/leftover")).unwrap();
    let again = restarted(&world);
    let shown = world.wait(again.showing(&handle("h"), &BTreeSet::new())).unwrap();
    assert_eq!(shown, world.showing("h"));
    assert_eq!(shown.len(), 2);
}

fn dropped_events(world: World) {
    let limit: u32 =
        std::fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap().trim().parse().unwrap();
    world.publish("h", "t", &MountOptions::default());
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
    std::fs::create_dir(world.path("elsewhere/churn")).unwrap();
    for _ in 0..limit / 2 + 8 {
        mount_bind(world.path("elsewhere"), world.path("elsewhere/churn")).unwrap();
        unmount(world.path("elsewhere/churn"), UnmountFlags::empty()).unwrap();
    }
    world.publish("h", "u", &MountOptions::default());
    assert_eq!(points(&world, "h"), ["kubelet/t", "kubelet/u"]);
    world.detach(&world.target("t")).unwrap();
    assert_eq!(points(&world, "h"), ["kubelet/u"]);
}

fn ten_thousand(world: World) {
    const FOREIGN: usize = 10_000;
    world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir(world.path("elsewhere/source")).unwrap();
    std::fs::create_dir(world.path("elsewhere/many")).unwrap();
    mount("many", world.path("elsewhere/many"), "tmpfs", MountFlags::empty(), c"").unwrap();
    for number in 0..FOREIGN {
        let at = world.path("elsewhere/many").join(number.to_string());
        std::fs::create_dir(&at).unwrap();
        mount_bind(world.path("elsewhere/source"), &at).unwrap();
    }
    assert_eq!(points(&world, "h"), ["kubelet/t"]);
    let target = world.publish("i", "u", &MountOptions::default());
    assert_eq!(points(&world, "i"), ["kubelet/u"]);
    let again = restarted(&world);
    assert_eq!(world.wait(again.showing(&handle("i"), &BTreeSet::new())).unwrap().len(), 1);
    world.detach(&target).unwrap();
    assert_eq!((points(&world, "h"), points(&world, "i")), (vec!["kubelet/t".to_owned()], vec![]));
    unmount(world.path("elsewhere/many"), UnmountFlags::DETACH).unwrap();
}
