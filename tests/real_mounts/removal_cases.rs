//! The removal walk and the usage walk, where mounts, flags and depth are in the way.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use per_node::domain::mount_options::MountOptions;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, CopiesError, Deletion};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::Case;
use crate::setting::{PLAIN, in_each, in_one, on_each_file_system};
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        in_each("c24_no_mount_is_crossed_and_the_rest_goes", no_mount_is_crossed),
        vec![in_one(PLAIN, "c24_fifty_thousand_levels_go", very_deep)],
        on_each_file_system("c24_what_cannot_be_deleted_is_reported_and_tried_again", undeletable),
        on_each_file_system("c24_other_copies_go_on", others_go_on),
        in_each("c23_a_copy_that_is_shown_elsewhere_goes_from_the_store_alone", shown_elsewhere),
        in_each("c46_each_inode_counts_once_and_no_mount_counts", usage),
        in_each("c46_a_copy_that_is_gone_is_missing_at_the_next_walk", usage_of_a_gone_copy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn discarded(world: &World, name: &str, id: u64) -> TrashId {
    world.wait(world.copies.discard(&handle(name), TrashId(id))).unwrap();
    TrashId(id)
}

fn delete(world: &World, id: TrashId) -> Deletion {
    world.wait(world.copies.delete(id)).unwrap()
}

fn no_mount_is_crossed(world: World) {
    world.copy("h");
    let id = discarded(&world, "h", 1);
    let entry = world.path("store/trash/t1");
    for directory in ["a/same", "a/other", "b/c"] {
        std::fs::create_dir_all(entry.join(directory)).unwrap();
    }
    for file in ["a/file", "b/bound", "b/gone"] {
        std::fs::write(entry.join(file), "x").unwrap();
    }
    for kept in ["dir", "dir/kept"] {
        std::fs::create_dir(world.path("elsewhere").join(kept)).unwrap();
    }
    std::fs::write(world.path("elsewhere/kept"), "x").unwrap();
    mount_bind(world.path("elsewhere/dir"), entry.join("a/same")).unwrap();
    mount("other", entry.join("a/other"), "tmpfs", MountFlags::empty(), c"").unwrap();
    std::fs::write(entry.join("a/other/kept"), "x").unwrap();
    mount_bind(world.path("elsewhere/kept"), entry.join("b/bound")).unwrap();
    let Deletion::Left { entries, first } = delete(&world, id) else { panic!("mounts were crossed") };
    assert_eq!(entries, 3, "{first}");
    assert!(first.path.starts_with(&entry), "{first}");
    for gone in ["a/file", "b/c", "b/gone"] {
        assert!(!entry.join(gone).exists(), "{gone}");
    }
    assert!(world.path("elsewhere/dir/kept").is_dir() && world.path("elsewhere/kept").is_file());
    assert!(entry.join("a/other/kept").is_file());
    for mounted in ["a/same", "a/other", "b/bound"] {
        unmount(entry.join(mounted), UnmountFlags::empty()).unwrap();
    }
    assert_eq!(delete(&world, id), Deletion::Done);
    assert!(world.path("elsewhere/kept").is_file());
}

fn very_deep(world: World) {
    world.copy("h");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = rustix::fs::open(world.path("store/copies/h"), flags, Mode::empty()).unwrap();
    for _ in 0..50_000 {
        rustix::fs::mkdirat(&at, c"d", Mode::RWXU).unwrap();
        at = rustix::fs::openat(at.as_fd(), c"d", flags, Mode::empty()).unwrap();
    }
    drop(at);
    let id = discarded(&world, "h", 1);
    assert_eq!(delete(&world, id), Deletion::Done);
    assert!(!world.path("store/trash/t1").exists());
}

fn set_immutable(path: &std::path::Path, immutable: bool) {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let open = std::fs::File::open(path).unwrap();
    let mut flags = ioctl_getflags(&open).unwrap();
    flags.set(IFlags::IMMUTABLE, immutable);
    ioctl_setflags(&open, flags).unwrap();
}

fn undeletable(world: World) {
    world.copy("h");
    for path in ["a/b/stuck", "a/b/free", "free"] {
        std::fs::create_dir_all(world.path("store/copies/h").join(path)).unwrap();
    }
    let id = discarded(&world, "h", 1);
    let stuck = world.path("store/trash/t1/a/b/stuck");
    std::fs::write(stuck.join("file"), "x").unwrap();
    set_immutable(&stuck.join("file"), true);
    let deletion = delete(&world, id);
    let again = delete(&world, id);
    set_immutable(&stuck.join("file"), false);
    let Deletion::Left { entries, first } = &deletion else { panic!("an immutable file went") };
    assert_eq!((*entries, &first.path, first.errno), (1, &stuck.join("file"), 1));
    assert_eq!(again, deletion, "the same is said until it can go");
    assert!(!world.path("store/trash/t1/a/b/free").exists() && !world.path("store/trash/t1/free").exists());
    assert_eq!(delete(&world, id), Deletion::Done);
}

fn others_go_on(world: World) {
    for name in ["stuck", "free"] {
        world.copy(name);
        std::fs::write(world.path("store/copies").join(name).join("file"), "x").unwrap();
    }
    set_immutable(&world.path("store/copies/stuck/file"), true);
    let (stuck, free) = (discarded(&world, "stuck", 1), discarded(&world, "free", 2));
    let outcomes = (delete(&world, stuck), delete(&world, free));
    set_immutable(&world.path("store/trash/t1/file"), false);
    assert!(matches!(outcomes, (Deletion::Left { .. }, Deletion::Done)), "{outcomes:?}");
    assert_eq!(world.wait(world.copies.trash()), Ok(vec![stuck]));
}

fn shown_elsewhere(world: World) {
    let target = world.publish("h", "t", &MountOptions::default());
    std::fs::write(target.as_path().join("file"), "x").unwrap();
    let id = discarded(&world, "h", 1);
    assert_eq!(delete(&world, id), Deletion::Done);
    assert_eq!(std::fs::metadata(target.as_path()).unwrap().nlink(), 0);
    assert!(world.look(&target).visible().unwrap().deleted);
    world.detach(&target).unwrap();
}

fn usage(world: World) {
    world.copy("h");
    let copy = world.path("store/copies/h");
    std::fs::create_dir_all(copy.join("a/b")).unwrap();
    std::fs::write(copy.join("a/file"), vec![1; 100_000]).unwrap();
    std::fs::hard_link(copy.join("a/file"), copy.join("a/b/same")).unwrap();
    std::os::unix::fs::symlink("a/file", copy.join("link")).unwrap();
    std::fs::File::create(copy.join("sparse")).unwrap().set_len(1 << 30).unwrap();
    std::fs::create_dir(copy.join("mounted")).unwrap();
    mount("other", copy.join("mounted"), "tmpfs", MountFlags::empty(), c"").unwrap();
    std::fs::write(copy.join("mounted/file"), vec![1; 100_000]).unwrap();
    let usage = world.usage("h");
    // The root, a, b, the file once, the symlink and the sparse file.
    assert_eq!(usage.used_inodes, 6);
    let blocks: u64 = ["", "a", "a/b", "a/file", "link", "sparse"]
        .iter()
        .map(|path| std::fs::symlink_metadata(copy.join(path)).unwrap().blocks() * 512)
        .sum();
    assert_eq!(usage.used_bytes, blocks);
    assert!((100_000..200_000).contains(&blocks), "{blocks}");
}

fn usage_of_a_gone_copy(world: World) {
    world.copy("h");
    world.usage("h");
    assert_eq!(world.copies.counted().copies, 1);
    discarded(&world, "h", 1);
    assert_eq!(world.copies.counted().copies, 0);
    let error = world.wait(world.copies.usage(&handle("h"))).unwrap_err();
    assert!(matches!(error, CopiesError::Missing(_)), "{error:?}");
}
