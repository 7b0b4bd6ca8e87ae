//! Looking at a target: what is told, and that nothing makes it hang.

use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use per_node::adapters::linux::mounts::LinuxMounts;
use per_node::domain::mount_options::MountOptions;
use per_node::domain::mount_table::{Place, Shown, TargetView};
use per_node::domain::trash::TrashId;
use per_node::ports::mounts::{Mounts, MountsError};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::Case;
use crate::setting::in_each;
use crate::world::{World, handle, identity, own_lines_at};

pub fn cases() -> Vec<Case> {
    [
        in_each("c11_every_kind_of_target_is_told_apart", kinds),
        in_each("c11_each_layer_of_a_stack_is_told", layers),
        in_each("c15_a_copy_is_recognised_in_the_trash_and_deleted", trash_and_deleted),
        in_each("c12_a_target_that_is_there_is_not_made_again", making_targets),
        in_each("c18_a_symlinked_kubelet_directory_and_store_are_resolved_once", symlinked),
        // Only root may open /dev/fuse everywhere.
        in_each("c17_a_mount_that_nobody_serves_does_not_hang_anything", hung_fuse)
            .into_iter()
            .map(Case::needs_root)
            .collect(),
        in_each("c23_a_copy_whose_root_is_a_mount_is_shown_by_its_target", covered_copy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn shown(place: Place) -> Shown {
    Shown { place, at_root: true, deleted: false }
}

fn kinds(world: World) {
    let view = |name: &str| world.look(&world.target(name));
    for directory in ["bare", "full/entry"] {
        std::fs::create_dir_all(world.path("kubelet").join(directory)).unwrap();
    }
    std::fs::write(world.path("kubelet/file"), "").unwrap();
    symlink("bare", world.path("kubelet/link")).unwrap();
    symlink("nowhere", world.path("kubelet/dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.path("kubelet/fifo"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(view("absent"), TargetView::Absent);
    assert_eq!(view("no/parent"), TargetView::Absent);
    assert_eq!(view("file/below"), TargetView::Absent);
    assert_eq!(view("bare"), TargetView::Directory { empty: true });
    assert_eq!(view("full"), TargetView::Directory { empty: false });
    for other in ["file", "link", "dangling", "fifo"] {
        assert_eq!(view(other), TargetView::NotADirectory, "{other}");
    }
    let error = world.wait(world.mounts.look(&world.target("link/below"))).unwrap_err();
    assert!(matches!(error, MountsError::Occupied(_)), "{error:?}");
}

fn layers(world: World) {
    let read_only = MountOptions { read_only: Some(true), ..Default::default() };
    let target = world.publish("h", "t", &read_only);
    mount("tmpfs", target.as_path(), "tmpfs", MountFlags::NOSUID, c"").unwrap();
    world.attach("other", world.copy("other"), &target, &MountOptions::default()).unwrap();
    let TargetView::Mounted(stack) = world.look(&target) else { panic!("nothing is mounted") };
    let told: Vec<_> = stack
        .layers
        .iter()
        .map(|layer| (layer.shown.clone(), layer.flags.read_only, layer.flags.no_suid))
        .collect();
    assert_eq!(
        told,
        [
            (Some(shown(Place::Copy(handle("h")))), true, false),
            (None, false, true),
            (Some(shown(Place::Copy(handle("other")))), false, false),
        ]
    );
    assert_eq!(stack.visible, identity(&world.path("store/copies/other")));
    let view = TargetView::Mounted(stack);
    assert_eq!(view.visible().unwrap().place, Place::Copy(handle("other")));
    // A file bound onto a file is a mount of something foreign.
    std::fs::write(world.path("kubelet/file"), "").unwrap();
    mount_bind("/proc/self/status", world.path("kubelet/file")).unwrap();
    assert!(
        matches!(world.look(&world.target("file")), TargetView::Mounted(stack) if stack.layers[0].shown.is_none())
    );
}

fn trash_and_deleted(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::rename(world.path("store/copies/h"), world.path("store/trash/t7")).unwrap();
    assert_eq!(world.look(&target).visible(), Some(&shown(Place::Trash(TrashId(7)))));
    world.copy("h");
    assert_eq!(world.showing("h"), [], "a new copy under the name is nobody's");
    std::fs::remove_dir(world.path("store/trash/t7")).unwrap();
    let gone = Shown { deleted: true, ..shown(Place::Trash(TrashId(7))) };
    assert_eq!(world.look(&target).visible(), Some(&gone));
    world.detach(&target).unwrap();
    let target = world.publish("i", "u", &MountOptions::default());
    std::fs::remove_dir(world.path("store/copies/i")).unwrap();
    assert!(world.look(&target).visible().unwrap().deleted);
    assert_eq!(world.showing("i").len(), 1, "a deleted copy that is shown still belongs to its handle");
}

fn making_targets(world: World) {
    let target = world.target("t");
    world.make(&target).unwrap();
    assert!(matches!(world.make(&target).unwrap_err(), MountsError::Occupied(_)));
    std::fs::write(world.path("kubelet/file"), "").unwrap();
    assert!(matches!(world.make(&world.target("file")).unwrap_err(), MountsError::Occupied(_)));
    symlink("nowhere", world.path("kubelet/link")).unwrap();
    assert!(matches!(world.make(&world.target("link")).unwrap_err(), MountsError::Occupied(_)));
    assert!(matches!(world.make(&world.target("no/parent")).unwrap_err(), MountsError::Missing(_)));
    assert!(matches!(world.make(&world.target("file/below")).unwrap_err(), MountsError::Missing(_)));
}

fn symlinked(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    assert_eq!(target.as_path(), world.path("kubelet/t"));
    assert_eq!(world.look(&target).visible(), Some(&shown(Place::Copy(handle("h")))));
    assert_eq!(world.showing("h").len(), 1);
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn hung_fuse(world: World) {
    let device = std::fs::File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
    let target = world.publish("h", "t", &MountOptions::default());
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let options = std::ffi::CString::new(options).unwrap();
    mount("dead", target.as_path(), "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
    let TargetView::Mounted(stack) = world.look(&target) else { panic!("nothing is mounted") };
    assert_eq!(stack.layers.iter().map(|layer| layer.shown.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(world.showing("h").len(), 1);
    assert!(matches!(world.make(&target).unwrap_err(), MountsError::Occupied(_)));
    world.detach(&target).unwrap();
    assert_eq!(own_lines_at(target.as_path()), []);
}

fn covered_copy(world: World) {
    let made = |name: &str| {
        world.copy(name);
        mount("disk", world.path("store/copies").join(name), "tmpfs", MountFlags::empty(), c"").unwrap();
        identity(&world.path("store/copies").join(name))
    };
    let identity = made("h");
    let target = world.target("t");
    world.make(&target).unwrap();
    world.attach("h", identity, &target, &MountOptions::default()).unwrap();
    let TargetView::Mounted(stack) = world.look(&target) else { panic!("nothing is mounted") };
    assert_eq!(
        (stack.layers[0].shown.clone(), stack.visible),
        (Some(shown(Place::Copy(handle("h")))), identity)
    );
    // The disk itself keeps the copy from being removed, the target makes its pod a holder.
    let points: Vec<_> = world.showing("h").into_iter().map(|mount| mount.mount_point).collect();
    assert_eq!(points, [target.as_path().to_owned(), world.path("store/copies/h")]);
    world.detach(&target).unwrap();
    unmount(world.path("store/copies/h"), UnmountFlags::empty()).unwrap();
    assert_eq!(world.showing("h"), []);
}

/// A second adapter on the same store and kubelet's directory, as after a restart.
pub fn restarted(world: &World) -> LinuxMounts {
    LinuxMounts::new(std::sync::Arc::clone(&world.store), world.kubelet_dir.clone(), world.abilities)
}
