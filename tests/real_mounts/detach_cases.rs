//! Detaching: what goes, in which order, and what stays.

use std::os::unix::fs::symlink;

use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::TargetView;
use per_node::ports::mounts::MountsError;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

use crate::Case;
use crate::namespace::Peer;
use crate::setting::in_each;
use crate::world::{World, lines_at, own_lines_at};

pub fn cases() -> Vec<Case> {
    [
        in_each("c17_the_whole_stack_goes", whole_stack),
        in_each("c17_what_is_mounted_below_goes_first", mounts_below),
        in_each("c17_a_mount_hidden_below_another_layer_goes_too", hidden_mount),
        in_each("c17_a_mount_below_is_found_where_the_pod_moved_it", moved_by_the_pod),
        in_each("c17_a_symlink_at_the_target_is_never_followed", symlink_at_the_target),
        in_each("c17_a_target_without_a_mount_is_left_as_it_is", bare_targets),
        in_each("c17_a_busy_target_stays_and_says_so", busy),
        in_each("c17_a_peer_sees_the_mount_go", peer_sees_it_go),
        in_each("c17_a_target_that_is_busy_in_a_peer_stays_and_says_so", busy_in_a_peer),
        in_each("c11_one_bind_shown_twice_is_one_mount_and_goes_whole", two_lines),
        in_each("c17_a_target_directory_is_removed_with_one_rmdir", removing_targets),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn tmpfs(at: &std::path::Path) {
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), c"").unwrap();
}

fn whole_stack(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    world.attach("h", world.copy("h"), &target, &MountOptions::default()).unwrap();
    tmpfs(target.as_path());
    assert_eq!(own_lines_at(target.as_path()).len(), 3);
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
    assert_eq!(world.look(&target), TargetView::Directory { empty: true });
}

fn mounts_below(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir_all(target.as_path().join("a/b")).unwrap();
    tmpfs(&target.as_path().join("a"));
    std::fs::create_dir_all(target.as_path().join("a/b")).unwrap();
    tmpfs(&target.as_path().join("a/b"));
    tmpfs(&target.as_path().join("a/b"));
    std::fs::write(target.as_path().join("file"), "").unwrap();
    mount_bind(target.as_path().join("file"), target.as_path().join("file")).unwrap();
    world.detach(&target).unwrap();
    assert_eq!(world.mounts_below("kubelet/t"), [""; 0]);
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn hidden_mount(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir(target.as_path().join("a")).unwrap();
    tmpfs(&target.as_path().join("a"));
    world.attach("h", world.copy("h"), &target, &MountOptions::default()).unwrap();
    world.detach(&target).unwrap();
    assert_eq!(world.mounts_below("kubelet/t"), [""; 0]);
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn moved_by_the_pod(world: World) {
    // The mount is made at a/m; then the pod moves a away and puts a symlink there that leads out of the target.
    let target = world.publish("h", "t", &MountOptions::default());
    let outside = world.path("elsewhere/m");
    std::fs::create_dir_all(&outside).unwrap();
    tmpfs(&outside);
    std::fs::create_dir_all(target.as_path().join("a/m")).unwrap();
    tmpfs(&target.as_path().join("a/m"));
    std::fs::rename(target.as_path().join("a"), target.as_path().join("moved")).unwrap();
    symlink(world.path("elsewhere"), target.as_path().join("a")).unwrap();
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
    assert_eq!(own_lines_at(&outside).len(), 1, "what the symlink led to stays mounted");
}

fn symlink_at_the_target(world: World) {
    let real = world.publish("h", "real", &MountOptions::default());
    symlink("real", world.path("kubelet/link")).unwrap();
    let link = world.target("link");
    assert_eq!(world.look(&link), TargetView::NotADirectory);
    world.detach(&link).unwrap();
    assert_eq!(own_lines_at(real.as_path()).len(), 1);
    let error = world.wait(world.remove(&link)).unwrap_err();
    assert!(matches!(error, MountsError::Occupied(_)), "{error:?}");
    assert!(world.path("kubelet/link").is_symlink());
}

fn bare_targets(world: World) {
    world.detach(&world.target("absent")).unwrap();
    world.detach(&world.target("no/parent")).unwrap();
    let bare = world.target("bare");
    world.make(&bare).unwrap();
    world.detach(&bare).unwrap();
    assert_eq!(world.look(&bare), TargetView::Directory { empty: true });
}

fn busy(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    let inside = rustix::fs::open(target.as_path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let error = world.detach(&target).unwrap_err();
    assert!(matches!(error, MountsError::Busy(_)), "{error:?}");
    assert_eq!(own_lines_at(target.as_path()).len(), 1, "never lazily");
    drop(inside);
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn peer_sees_it_go(world: World) {
    let peer = Peer::start();
    let target = world.publish("h", "t", &MountOptions::default());
    assert_eq!(lines_at(&peer.mountinfo(), target.as_path()).len(), 1);
    world.detach(&target).unwrap();
    assert_eq!(lines_at(&peer.mountinfo(), target.as_path()), []);
}

fn busy_in_a_peer(world: World) {
    let peer = Peer::start();
    let target = world.publish("h", "t", &MountOptions::default());
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let inside = rustix::fs::open(peer.path(target.as_path()), flags, Mode::empty()).unwrap();
    let error = world.detach(&target).unwrap_err();
    assert!(matches!(error, MountsError::Busy(_)), "{error:?}");
    assert_eq!(own_lines_at(target.as_path()).len(), 1);
    drop(inside);
    world.detach(&target).unwrap();
    assert_eq!(lines_at(&peer.mountinfo(), target.as_path()), []);
}

fn two_lines(world: World) {
    // The kubelet's directory is bound on itself below a shared mount: one bind shows as two lines.
    let world = World::with(world.setting, |root| {
        mount_change(root, MountPropagationFlags::SHARED).unwrap();
        std::fs::create_dir(root.join("kubelet/k")).unwrap();
        let bound = root.join("kubelet/k");
        mount_bind(&bound, &bound).unwrap();
    });
    let target = world.publish("h", "k/t", &MountOptions::default());
    assert!(own_lines_at(target.as_path()).len() > 1, "the case needs two lines");
    let TargetView::Mounted(stack) = world.look(&target) else { panic!("nothing is mounted") };
    assert_eq!(stack.layers.len(), 1);
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
    assert_eq!(world.showing("h"), []);
}

fn removing_targets(world: World) {
    world.wait(world.remove(&world.target("absent"))).unwrap();
    world.wait(world.remove(&world.target("no/parent"))).unwrap();
    let target = world.publish("h", "t", &MountOptions::default());
    let mounted = world.wait(world.remove(&target)).unwrap_err();
    assert!(matches!(mounted, MountsError::Busy(_)), "{mounted:?}");
    world.detach(&target).unwrap();
    std::fs::create_dir(target.as_path().join("entry")).unwrap();
    let full = world.wait(world.remove(&target)).unwrap_err();
    assert!(matches!(full, MountsError::Occupied(_)), "{full:?}");
    std::fs::remove_dir(target.as_path().join("entry")).unwrap();
    world.wait(world.remove(&target)).unwrap();
    assert_eq!(world.look(&target), TargetView::Absent);
    assert!(world.path("store/copies/h").is_dir());
}
