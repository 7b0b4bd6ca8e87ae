//! Root that is root in a user namespace alone, as in `unshare -Ur`: what the kernel refuses it, and with which words.

use per_node::domain::mount_options::{AccessTime, MountOptions};
use rustix::fs::{CWD, FileType, IFlags, Mode, ioctl_getflags, ioctl_setflags, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::Case;
use crate::attach_cases::is_denied;
use crate::file_system::FileSystem;
use crate::file_system_cases::{followed, mount_overlay};
use crate::setting::in_user_namespaces;
use crate::world::{World, own_lines_at};

pub fn cases() -> Vec<Case> {
    [
        in_user_namespaces("no_disk_is_mounted_here", no_disk),
        in_user_namespaces("c15_a_store_on_an_overlay_of_ones_own_is_followed", own_overlay),
        in_user_namespaces("c05_locked_access_times_are_denied_and_nothing_is_mounted", locked_times),
        in_user_namespaces("nothing_is_made_immutable_here_and_no_device_is_made", no_flags_and_no_devices),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn no_disk(world: World) {
    for disk in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let mounted = mount("/dev/loop0", world.path("elsewhere"), disk.name(), MountFlags::empty(), c"");
        assert_eq!(mounted, Err(Errno::PERM), "{}", disk.name());
    }
}

fn own_overlay(world: World) {
    if world.setting.file_system == FileSystem::Overlay {
        assert_eq!(
            mount_overlay(&world.path(""), "userxattr"),
            Err(Errno::INVAL),
            "no overlay is another's upper layer"
        );
        return;
    }
    followed(&World::with(world.setting, |root| mount_overlay(root, "userxattr").unwrap()));
}

fn locked_times(world: World) {
    let never = MountOptions { access_time: Some(AccessTime::Never), ..Default::default() };
    if !world.setting.has_locked_times() {
        let target = world.publish("h", "t", &never);
        assert_eq!(String::from_utf8_lossy(&own_lines_at(target.as_path())[0].options), "rw,noatime");
        return;
    }
    let target = world.target("t");
    is_denied(&world, "t", &never);
    assert_eq!(std::fs::read_dir(world.path("store/trash")).unwrap().count(), 0, "no staging is left");
    // What is there already is no change.
    let same = MountOptions { access_time: Some(AccessTime::Relative), ..Default::default() };
    world.attach("h", world.copy("h"), &target, &same).unwrap();
}

fn no_flags_and_no_devices(world: World) {
    let copy = std::fs::File::open(world.path("store/copies")).unwrap();
    let flags = ioctl_getflags(&copy).unwrap();
    assert_eq!(ioctl_setflags(&copy, flags | IFlags::IMMUTABLE), Err(Errno::PERM));
    let device = rustix::fs::makedev(1, 3);
    let made = mknodat(CWD, world.path("store/null"), FileType::CharacterDevice, Mode::RWXU, device);
    assert_eq!(made, Err(Errno::PERM));
}
