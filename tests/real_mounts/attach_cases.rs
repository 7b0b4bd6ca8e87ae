//! Attaching: the flags, who sees them, and what a failed attach leaves.

use per_node::domain::mount_options::{AccessTime, MountOptions};
use per_node::domain::mount_table::FileIdentity;
use per_node::ports::mounts::MountsError;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount};

use crate::Case;
use crate::namespace::Peer;
use crate::setting::{Setting, in_each};
use crate::world::{World, identity, lines_at, own_lines_at};

pub fn cases() -> Vec<Case> {
    [
        in_each("c05_flags_are_in_force_in_a_peer_namespace_too", flags_in_a_peer),
        in_each("c05_a_read_only_publish_refuses_writes_of_a_peer", a_peer_cannot_write),
        in_each("c05_opposites_undo_what_the_stores_mount_has", opposites),
        in_each("c05_flags_of_the_stores_mount_stay_unless_undone", inherited_flags_stay),
        in_each("c10_the_target_shows_the_copys_inode", shows_the_inode),
        in_each("c15_what_is_mounted_inside_a_target_does_not_appear_in_the_store", nothing_flows_back),
        in_each("c16_a_copy_that_was_replaced_is_not_attached", another_identity),
        in_each("c16_an_attach_that_fails_leaves_nothing", failed_attach),
        in_each("c10_an_attach_survives_a_name_with_any_byte", odd_names),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn only(change: impl FnOnce(&mut MountOptions)) -> MountOptions {
    let mut options = MountOptions::default();
    change(&mut options);
    options
}

fn flags_in_a_peer(world: World) {
    let peer = Peer::start();
    let all = MountOptions {
        read_only: Some(true),
        no_exec: Some(true),
        no_suid: Some(true),
        no_dev: Some(true),
        no_dir_access_time: Some(true),
        access_time: Some(AccessTime::Never),
    };
    let asked = [
        ("none", MountOptions::default(), "rw,relatime"),
        ("ro", only(|options| options.read_only = Some(true)), "ro,relatime"),
        ("noexec", only(|options| options.no_exec = Some(true)), "rw,noexec,relatime"),
        ("nosuid", only(|options| options.no_suid = Some(true)), "rw,nosuid,relatime"),
        ("nodev", only(|options| options.no_dev = Some(true)), "rw,nodev,relatime"),
        ("noatime", only(|options| options.access_time = Some(AccessTime::Never)), "rw,noatime"),
        ("strict", only(|options| options.access_time = Some(AccessTime::Strict)), "rw"),
        ("nodiratime", only(|options| options.no_dir_access_time = Some(true)), "rw,nodiratime,relatime"),
        ("all", all, "ro,nosuid,nodev,noexec,noatime,nodiratime"),
    ];
    for (name, options, expect) in asked {
        let changes_times = options.access_time.is_some() || options.no_dir_access_time.is_some();
        if changes_times && world.setting.has_locked_times() {
            is_denied(&world, name, &options);
            continue;
        }
        let target = world.publish("h", name, &options);
        for table in [std::fs::read("/proc/self/mountinfo").unwrap(), peer.mountinfo()] {
            let lines = lines_at(&table, target.as_path());
            assert_eq!(lines.len(), 1, "{name}");
            assert_eq!(String::from_utf8_lossy(&lines[0].options), expect, "{name}");
        }
        let stack = world.look(&target);
        assert!(stack.visible().unwrap().at_root, "{name}: {stack:?}");
    }
}

/// EPERM, as for every change of a flag that the kernel has locked, and nothing is mounted.
pub fn is_denied(world: &World, target: &str, options: &MountOptions) {
    let target = world.target(target);
    world.make(&target).unwrap();
    let error = world.attach("h", world.copy("h"), &target, options).unwrap_err();
    assert!(matches!(&error, MountsError::Denied(failure) if failure.errno == 1), "{error:?}");
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn a_peer_cannot_write(world: World) {
    let peer = Peer::start();
    let target = world.publish("h", "t", &only(|options| options.read_only = Some(true)));
    let error = std::fs::write(peer.path(&target.as_path().join("file")), "x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(30), "EROFS");
    let target = world.publish("h", "u", &MountOptions::default());
    std::fs::write(peer.path(&target.as_path().join("file")), "x").unwrap();
    assert_eq!(std::fs::read(world.path("store/copies/h/file")).unwrap(), b"x");
}

/// Puts the store on a mount with every flag that can be set, opened anew.
fn with_a_flagged_store(setting: Setting) -> World {
    World::with(setting, |root| {
        mount_bind(root.join("store"), root.join("store")).unwrap();
        let times = if setting.has_locked_times() { MountFlags::empty() } else { MountFlags::NOATIME };
        let flags = MountFlags::BIND | MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(root.join("store"), flags | times, c"").unwrap();
    })
}

fn opposites(world: World) {
    let world = with_a_flagged_store(world.setting);
    let options = MountOptions {
        read_only: Some(false),
        no_exec: Some(false),
        no_suid: Some(false),
        no_dev: Some(false),
        no_dir_access_time: Some(false),
        access_time: Some(AccessTime::Relative),
    };
    let target = world.publish("h", "t", &options);
    assert_eq!(String::from_utf8_lossy(&own_lines_at(target.as_path())[0].options), "rw,relatime");
}

fn inherited_flags_stay(world: World) {
    let world = with_a_flagged_store(world.setting);
    let target = world.publish("h", "t", &only(|options| options.read_only = Some(true)));
    let options = own_lines_at(target.as_path())[0].options.clone();
    let times = if world.setting.has_locked_times() { "relatime" } else { "noatime" };
    assert_eq!(String::from_utf8_lossy(&options), format!("ro,nosuid,nodev,noexec,{times}"));
}

fn shows_the_inode(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    assert_eq!(identity(target.as_path()), identity(&world.path("store/copies/h")));
}

fn nothing_flows_back(world: World) {
    let world = World::with(world.setting, |root| {
        mount_bind(root.join("store"), root.join("store")).unwrap();
        mount_change(root.join("store"), MountPropagationFlags::SHARED).unwrap();
    });
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir(target.as_path().join("inner")).unwrap();
    mount("inner", target.as_path().join("inner"), "tmpfs", MountFlags::empty(), c"").unwrap();
    assert_eq!(own_lines_at(&target.as_path().join("inner")).len(), 1);
    assert_eq!(own_lines_at(&world.path("store/copies/h/inner")), []);
    assert_eq!(world.mounts_below("store"), [""; 0], "nor is anything left of the staging");
    world.detach(&target).unwrap();
}

fn another_identity(world: World) {
    let made = world.copy("h");
    let target = world.target("t");
    world.make(&target).unwrap();
    let other = FileIdentity { inode: made.inode + 1, ..made };
    let error = world.attach("h", other, &target, &MountOptions::default()).unwrap_err();
    assert!(matches!(error, MountsError::Missing(_)), "{error:?}");
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn failed_attach(world: World) {
    let made = world.copy("h");
    let before = world.mounts_below("");
    let none = MountOptions::default();
    let absent = world.attach("h", made, &world.target("absent"), &none).unwrap_err();
    assert!(matches!(absent, MountsError::Missing(_)), "{absent:?}");
    let orphan = world.attach("h", made, &world.target("no/parent"), &none).unwrap_err();
    assert!(matches!(orphan, MountsError::Missing(_)), "{orphan:?}");
    std::fs::write(world.path("kubelet/file"), "").unwrap();
    let file = world.attach("h", made, &world.target("file"), &none).unwrap_err();
    assert!(matches!(file, MountsError::Missing(_)), "{file:?}");
    std::os::unix::fs::symlink("elsewhere", world.path("kubelet/link")).unwrap();
    std::fs::create_dir(world.path("kubelet/elsewhere")).unwrap();
    world.attach("h", made, &world.target("link"), &none).unwrap_err();
    std::fs::remove_dir(world.path("store/copies/h")).unwrap();
    let target = world.target("t");
    world.make(&target).unwrap();
    let gone = world.attach("h", made, &target, &none).unwrap_err();
    assert!(matches!(gone, MountsError::Missing(_)), "{gone:?}");
    assert_eq!(world.mounts_below(""), before);
    assert_eq!(std::fs::read_dir(world.path("store/trash")).unwrap().count(), 0, "no staging is left");
}

fn odd_names(world: World) {
    for name in ["a b", "tab\there", "new\nline", "back\\slash", "uml\u{e4}ut", "#hash", "d//deleted"] {
        let name = name.replace('/', "_");
        let target = world.publish("h", &name, &MountOptions::default());
        let shown = world.look(&target);
        assert!(shown.visible().is_some_and(|shown| shown.at_root && !shown.deleted), "{name:?}: {shown:?}");
        assert!(world.showing("h").iter().any(|mount| mount.mount_point == target.as_path()), "{name:?}");
        world.detach(&target).unwrap();
        assert_eq!(own_lines_at(target.as_path()), [], "{name:?}");
    }
}
