//! The removal walk on small trees.

use super::*;
use crate::adapters::linux::store::READ_DIRECTORY;
use std::os::unix::fs::{PermissionsExt, symlink};

fn removed(scratch: &tempfile::TempDir) -> Leftovers {
    let parent = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
    remove(parent.as_fd(), c"t", &|| false).unwrap()
}

#[test]
fn c24_a_tree_of_every_kind_of_entry_goes_and_what_it_points_to_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("t");
    std::fs::create_dir_all(root.join("a/b/c")).unwrap();
    std::fs::create_dir_all(scratch.path().join("outside")).unwrap();
    std::fs::write(scratch.path().join("outside/kept"), "x").unwrap();
    std::fs::write(root.join("a/file"), "x").unwrap();
    std::fs::write(root.join("a/b").join(OsStr::from_bytes(b"\xff\n \x01")), "x").unwrap();
    std::fs::hard_link(scratch.path().join("outside/kept"), root.join("a/b/hard")).unwrap();
    symlink("../../outside", root.join("a/b/dirlink")).unwrap();
    symlink("/nowhere", root.join("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), Mode::RWXU).unwrap();
    assert_eq!(removed(&scratch), Leftovers::default());
    assert!(!root.exists());
    assert_eq!(std::fs::read(scratch.path().join("outside/kept")).unwrap(), b"x");
}

#[test]
fn c24_what_is_not_there_is_removed() {
    assert_eq!(removed(&tempfile::tempdir().unwrap()), Leftovers::default());
}

#[test]
fn c24_directories_that_refuse_everybody_go() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("t");
    std::fs::create_dir_all(root.join("a/b/c")).unwrap();
    std::fs::write(root.join("a/b/c/file"), "x").unwrap();
    for closed in ["a/b/c", "a/b", "a", ""] {
        std::fs::set_permissions(root.join(closed), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    // A thread without capabilities: there root, too, is refused.
    let left = std::thread::scope(|scope| {
        let walk = scope.spawn(|| {
            caps::clear(None, caps::CapSet::Effective).unwrap();
            assert!(std::fs::read_dir(&root).is_err(), "the case needs to be refused");
            removed(&scratch)
        });
        walk.join().unwrap()
    });
    assert_eq!(left, Leftovers::default());
    assert!(!root.exists());
}

#[test]
fn c24_a_directory_with_very_many_entries_goes() {
    let scratch = tempfile::tempdir().unwrap();
    for number in 0..1500 {
        std::fs::create_dir_all(scratch.path().join("t").join(number.to_string()).join("x")).unwrap();
    }
    assert_eq!(removed(&scratch), Leftovers::default());
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn c24_a_walk_ends_after_very_many_entries_and_the_next_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(scratch.path().join("t/a")).unwrap();
    for number in 0..250 {
        std::fs::write(scratch.path().join(format!("t/a/{number}")), "").unwrap();
    }
    let parent = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
    let walk = || remove_at_most(100, parent.as_fd(), c"t", &|| false).unwrap();
    let left = walk();
    assert_eq!((left.entries, left.first.unwrap().1.errno), (1, Errno::AGAIN));
    assert_eq!(walk().entries, 1);
    assert_eq!(walk(), Leftovers::default());
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn c24_a_long_path_is_told_by_its_beginning_and_its_end() {
    let path = |length: usize| [b"t1/".to_vec(), vec![b'x'; length], b"/end".to_vec()].concat();
    assert_eq!(shortened(path(100)), path(100));
    let told = shortened(path(1 << 20));
    assert!(told.len() < PATH_TOLD_MAX + 8 && told.starts_with(b"t1/x") && told.ends_with(b"x/end"));
}

#[test]
fn c42_a_walk_that_is_told_to_stop_stops() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(scratch.path().join("t/a/b")).unwrap();
    let parent = rustix::fs::open(scratch.path(), READ_DIRECTORY, Mode::empty()).unwrap();
    let outcome = remove(parent.as_fd(), c"t", &|| true);
    assert_eq!(outcome.unwrap_err().errno, Errno::CANCELED);
}

#[test]
fn c24_a_file_in_place_of_the_tree_goes() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("t"), "x").unwrap();
    assert_eq!(removed(&scratch), Leftovers::default());
    assert!(!scratch.path().join("t").exists());
}
