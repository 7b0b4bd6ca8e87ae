//! The store on real directories: modes, mounts in it, and what a killed process left.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use per_node::adapters::linux::confine::confine;
use per_node::adapters::linux::leftovers;
use per_node::adapters::linux::self_check::{self, SelfCheckError};
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::mount_options::MountOptions;
use per_node::domain::trash::TrashId;
use per_node::domain::volume_request::Gid;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

use crate::Case;
use crate::contract::COPY_MODE;
use crate::setting::{OLDEST, in_each, in_one, on_each_file_system};
use crate::world::{World, handle, own_lines_at};

pub fn cases() -> Vec<Case> {
    [
        in_each("c06_no_parent_changes_the_mode_of_a_copy", exact_mode),
        in_each("c06_the_stores_own_directories_are_closed_again", own_directories),
        in_each("c07_a_group_goes_to_the_root_alone", group_of_the_root),
        in_each("c23_a_copy_with_mounts_on_or_below_it_is_not_discarded", mounts_in_a_copy),
        in_each("c23_copies_on_a_mount_of_their_own_cannot_be_discarded", copies_apart),
        on_each_file_system("c23_an_immutable_copy_stays_and_says_so", immutable),
        in_each("c40_what_a_killed_attach_left_is_cleared", cleared_leftovers),
        on_each_file_system("c44_the_rights_that_are_kept_are_enough", confined),
        vec![in_one(OLDEST, "c44_the_rights_that_are_kept_are_enough", confined).needs_root()],
        in_each("c44_the_kubelets_directory_must_be_shared", shared_kubelet_dir),
        in_each("c44_a_store_on_a_file_system_of_its_own_is_told_from_a_directory", store_mount),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A default access-control list as the kernel stores it: version 2, and rwxr-x--- for owner, group and others.
fn default_list() -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions) in [(1u16, 7u16), (4, 5), (0x20, 0)] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(u32::MAX.to_le_bytes());
    }
    list
}

fn set_default_list(path: &Path) {
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, "system.posix_acl_default", &default_list(), none).expect("a default list");
}

fn exact_mode(world: World) {
    for parent in ["store/trash", "store/copies"] {
        std::fs::set_permissions(world.path(parent), PermissionsExt::from_mode(0o2777)).unwrap();
        set_default_list(&world.path(parent));
    }
    std::fs::create_dir(world.path("store/copies/plain")).unwrap();
    let plain = std::fs::metadata(world.path("store/copies/plain")).unwrap().mode() & 0o7777;
    assert_ne!(plain, COPY_MODE, "the case needs parents that change the mode");
    world.wait(world.copies.ensure(&handle("h"))).unwrap();
    let copy = world.path("store/copies/h");
    assert_eq!(std::fs::metadata(&copy).unwrap().mode() & 0o7777, COPY_MODE);
    let mut list = [0u8; 64];
    rustix::fs::getxattr(&copy, "system.posix_acl_default", &mut list)
        .expect_err("nor does it hand on a list");
}

fn own_directories(world: World) {
    for name in ["copies", "trash", "holds"] {
        let path = world.path("store").join(name);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o2777)).unwrap();
        set_default_list(&path);
    }
    StoreDirs::open(&world.path("store")).unwrap();
    for name in ["copies", "trash", "holds"] {
        let found = std::fs::metadata(world.path("store").join(name)).unwrap();
        assert_eq!((found.mode() & 0o7777, found.uid()), (0o700, 0), "{name}");
    }
    std::fs::remove_dir(world.path("store/trash")).unwrap();
    std::os::unix::fs::symlink("/tmp", world.path("store/trash")).unwrap();
    StoreDirs::open(&world.path("store")).expect_err("nothing in the store follows a symlink");
}

fn group_of_the_root(world: World) {
    const GROUP: u32 = 4711;
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::create_dir(target.as_path().join("inner")).unwrap();
    let before = std::fs::metadata(target.as_path().join("inner")).unwrap();
    let given = world.wait(world.copies.set_group(&handle("h"), Gid(GROUP)));
    if world.setting.user_namespace {
        // EINVAL: the namespace maps no such group.
        assert!(matches!(&given, Err(CopiesError::Io(failure)) if failure.errno == 22), "{given:?}");
        return;
    }
    given.unwrap();
    let root = std::fs::metadata(target.as_path()).unwrap();
    assert_eq!((root.gid(), root.mode() & 0o2070), (GROUP, 0o2070));
    let inner = std::fs::metadata(target.as_path().join("inner")).unwrap();
    assert_eq!((inner.gid(), inner.mode()), (before.gid(), before.mode()));
    std::fs::write(target.as_path().join("new"), "").unwrap();
    assert_eq!(std::fs::metadata(target.as_path().join("new")).unwrap().gid(), GROUP, "setgid");
}

fn mounts_in_a_copy(world: World) {
    for name in ["on", "below", "free"] {
        world.copy(name);
    }
    std::fs::create_dir_all(world.path("store/copies/below/a/b")).unwrap();
    mount("disk", world.path("store/copies/on"), "tmpfs", MountFlags::empty(), c"").unwrap();
    mount_bind(world.path("elsewhere"), world.path("store/copies/below/a/b")).unwrap();
    for name in ["on", "below"] {
        let error = world.wait(world.copies.discard(&handle(name), TrashId(1))).unwrap_err();
        assert!(matches!(error, CopiesError::MountPoint(_)), "{name}: {error:?}");
        let error = world.wait(world.copies.delete_in_place(&handle(name))).unwrap_err();
        assert!(matches!(error, CopiesError::MountPoint(_)), "{name}: {error:?}");
        assert!(world.path("store/copies").join(name).is_dir());
    }
    assert_eq!(world.wait(world.copies.trash()), Ok(vec![]));
    world.wait(world.copies.discard(&handle("free"), TrashId(1))).unwrap();
}

fn copies_apart(world: World) {
    let world = World::with(world.setting, |root| {
        std::fs::create_dir(root.join("store/copies")).unwrap();
        mount_bind(root.join("store/copies"), root.join("store/copies")).unwrap();
    });
    world.copy("h");
    let error = self_check::check_open_store(&world.store).unwrap_err();
    assert!(matches!(error, SelfCheckError::OtherMount { .. }), "{error:?}");
    let error = world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap_err();
    assert!(matches!(error, CopiesError::OtherMount(_)), "{error:?}");
    assert!(world.path("store/copies/h").is_dir());
}

fn immutable(world: World) {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    world.copy("h");
    let copy = std::fs::File::open(world.path("store/copies/h")).unwrap();
    let flags = ioctl_getflags(&copy).unwrap();
    ioctl_setflags(&copy, flags | IFlags::IMMUTABLE).unwrap();
    let error = world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap_err();
    ioctl_setflags(&copy, flags).unwrap();
    assert!(matches!(error, CopiesError::Denied(_)), "{error:?}");
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
}

fn cleared_leftovers(world: World) {
    // As a SIGKILL in the middle of the staging route leaves it, beside a trash entry that a pod still shows.
    world.publish("h", "t", &MountOptions::default());
    world.wait(world.copies.discard(&handle("h"), TrashId(5))).unwrap();
    let stage = world.path("store/trash/s0");
    std::fs::create_dir_all(stage.join("bind")).unwrap();
    mount_bind(&stage, &stage).unwrap();
    mount_change(&stage, MountPropagationFlags::PRIVATE).unwrap();
    world.copy("other");
    std::fs::write(world.path("store/copies/other/data"), "kept").unwrap();
    mount_bind(world.path("store/copies/other"), stage.join("bind")).unwrap();
    std::fs::create_dir(world.path("store/trash/n3")).unwrap();
    assert_eq!(leftovers::clear(&world.store), Ok(0));
    assert_eq!(own_lines_at(&stage), []);
    let names: Vec<_> = std::fs::read_dir(world.path("store/trash"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["t5"]);
    assert_eq!(std::fs::read(world.path("store/copies/other/data")).unwrap(), b"kept");
    assert_eq!(own_lines_at(&world.path("kubelet/t")).len(), 1);
}

/// What the case gives up, its own thread alone gives up, with the threads that it starts.
fn confined(before: World) {
    confine().unwrap();
    assert!(std::fs::File::open("/dev/mem").is_err(), "CAP_SYS_RAWIO is gone");
    let world = World::new(before.setting);
    assert_eq!(world.mounts.is_watching(), before.mounts.is_watching());
    let target = world.publish("h", "t", &MountOptions { read_only: Some(true), ..Default::default() });
    world.wait(world.copies.set_group(&handle("h"), Gid(4711))).unwrap();
    let closed = world.path("store/copies/h/closed");
    std::fs::create_dir_all(closed.join("inner")).unwrap();
    std::fs::write(closed.join("inner/file"), "x").unwrap();
    for path in [closed.join("inner/file"), closed.join("inner"), closed.clone()] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
    }
    assert_eq!(world.usage("h").used_inodes, 4);
    world.detach(&target).unwrap();
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    assert_eq!(world.wait(world.copies.delete(TrashId(1))), Ok(Deletion::Done));
}

fn shared_kubelet_dir(world: World) {
    let (_, warning) = self_check::check_kubelet_dir(&world.path("kubelet")).unwrap();
    assert!(warning.is_none(), "{warning:?}");
    std::fs::create_dir(world.path("kubelet/below")).unwrap();
    let (_, warning) = self_check::check_kubelet_dir(&world.path("kubelet/below")).unwrap();
    assert!(warning.is_none(), "a directory below a shared mount is shared: {warning:?}");
    mount_change(world.path("kubelet"), MountPropagationFlags::PRIVATE).unwrap();
    let (_, warning) = self_check::check_kubelet_dir(&world.path("kubelet")).unwrap();
    let line = warning.expect("a private directory is told").to_string();
    assert!(line.contains("--kubelet-dir") && line.contains("Bidirectional"), "{line}");
    // A slave receives mounts and hands on none.
    mount_change(world.path("kubelet"), MountPropagationFlags::SHARED).unwrap();
    mount_bind(world.path("kubelet"), world.path("elsewhere")).unwrap();
    mount_change(world.path("elsewhere"), MountPropagationFlags::DOWNSTREAM).unwrap();
    let (_, warning) = self_check::check_kubelet_dir(&world.path("elsewhere")).unwrap();
    assert!(matches!(warning, Some(SelfCheckError::NotShared { .. })), "{warning:?}");
}

fn store_mount(world: World) {
    let store = world.path("elsewhere");
    let error = self_check::check_store(&store, true).unwrap_err();
    assert!(matches!(error, SelfCheckError::StoreNotMounted { .. }), "{error:?}");
    // In a container every hostPath is a mount point: that alone is no disk.
    mount_bind(&store, &store).unwrap();
    self_check::check_store(&store, true).expect_err("a bind of a directory is no disk");
    mount("disk", &store, "tmpfs", MountFlags::empty(), c"").unwrap();
    self_check::check_store(&store, true).unwrap();
}
