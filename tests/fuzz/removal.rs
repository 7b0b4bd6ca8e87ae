//! The removal walk on generated trees: what is in the tree goes, what is beside it stays as it was, whatever leads there
//! (C24).

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use per_node::adapters::linux::removal::{Leftovers, remove};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use rustix::fs::{CWD, Mode};

use super::runner::{fuzz, scratch};

/// One entry that a pod makes.
#[derive(Debug, Clone)]
enum Entry {
    Directory,
    Deep(u16),
    Wide(u16),
    File(usize),
    /// To one of [`LEADS`].
    Symlink(usize),
    HardLinkToTheCanary,
    Pipe,
    Socket,
    /// A directory's mode, taken at the end.
    Closed(u32),
    /// Its name, after it was made.
    Renamed(Vec<u8>),
}

/// Where a symlink may lead: to the canary from any depth, and round about. Never further: a walk that is broken must not
/// take the machine with it.
const LEADS: [&str; 8] =
    [CANARY, "../canary", "../../canary", "../../../canary", ".", "..", "nowhere", "file"];
/// Stands for the canary's absolute path.
const CANARY: &str = "CANARY";

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-c]{1,2}".prop_map(String::into_bytes),
        2 => vec((1u8..=255).prop_filter("no slash", |byte| *byte != b'/'), 1..12),
        1 => vec(Just(0xffu8), 255),
        1 => prop::sample::select(vec!["...", " ", "-rf", "\n", "\\"]).prop_map(|name| name.as_bytes().to_vec()),
    ]
    .prop_filter("a name", |name| name != b"." && name != b"..")
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        6 => Just(Entry::Directory),
        1 => (1..90u16).prop_map(Entry::Deep),
        1 => (1..300u16).prop_map(Entry::Wide),
        4 => (0..2000usize).prop_map(Entry::File),
        4 => (0..LEADS.len()).prop_map(Entry::Symlink),
        2 => Just(Entry::HardLinkToTheCanary),
        1 => Just(Entry::Pipe),
        1 => Just(Entry::Socket),
        3 => prop::sample::select(vec![0o000u32, 0o111, 0o444, 0o555, 0o7777]).prop_map(Entry::Closed),
        1 => name().prop_map(Entry::Renamed),
    ]
}

fn make(
    at: &Path,
    canary: &Path,
    directories: &mut Vec<PathBuf>,
    closed: &mut Vec<(PathBuf, u32)>,
    entry: &Entry,
) {
    // Only where nothing has the name: through a link that is there the test itself would reach out of the tree.
    match entry {
        Entry::Directory => {
            if fs::create_dir(at).is_ok() {
                directories.push(at.to_owned());
            }
        }
        Entry::Deep(levels) => {
            if fs::create_dir(at).is_ok() {
                let deep: PathBuf = std::iter::repeat_n("d", (*levels).into()).collect();
                let _ = fs::create_dir_all(at.join(deep));
            }
        }
        Entry::Wide(entries) => {
            if fs::create_dir(at).is_ok() {
                (0..*entries).for_each(|number| drop(File::create(at.join(number.to_string()))));
            }
        }
        Entry::File(length) => {
            drop(File::create_new(at).map(|mut file| file.write_all(&vec![b'x'; *length])))
        }
        Entry::Symlink(lead) if LEADS[*lead] == CANARY => drop(symlink(canary, at)),
        Entry::Symlink(lead) => drop(symlink(LEADS[*lead], at)),
        Entry::HardLinkToTheCanary => drop(fs::hard_link(canary.join("file"), at)),
        Entry::Pipe => {
            let _ = rustix::fs::mkfifoat(CWD, at, Mode::RWXU);
        }
        Entry::Socket => drop(UnixListener::bind(at)),
        Entry::Closed(mode) => {
            if fs::create_dir(at).is_ok() {
                drop(File::create_new(at.join("in it")));
                closed.push((at.to_owned(), *mode));
            }
        }
        Entry::Renamed(name) => {
            if fs::create_dir(at).is_ok() {
                let _ = fs::create_dir(at.join("inner"));
                let _ = fs::rename(at, at.with_file_name(OsStr::from_bytes(name)));
            }
        }
    }
}

/// Names, modes, owners and bytes of the canary.
fn portrait(canary: &Path) -> Vec<(PathBuf, u32, u32, Vec<u8>)> {
    let mut portrait = Vec::new();
    let mut open = vec![canary.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).expect("the canary lives");
        if found.is_dir() {
            open.extend(fs::read_dir(&path).expect("read").map(|entry| entry.expect("an entry").path()));
        }
        let bytes = if found.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        portrait.push((path, found.mode(), found.uid(), bytes));
    }
    portrait.sort();
    portrait
}

#[test]
fn a_removal_never_touches_what_is_not_in_the_tree() {
    let entries = vec((any::<Index>(), name(), entry()), 0..40);
    fuzz("removal", 60, &entries, |entries| {
        let scratch = scratch();
        let (tree, canary) = (scratch.path().join("tree"), scratch.path().join("canary"));
        fs::create_dir(&tree).expect("mkdir");
        fs::create_dir_all(canary.join("inner/closed")).expect("mkdir");
        fs::write(canary.join("file"), "sings").expect("write");
        fs::set_permissions(canary.join("inner"), fs::Permissions::from_mode(0o750)).expect("chmod");
        let before = portrait(&canary);
        let (mut directories, mut closed) = (vec![tree.clone()], Vec::new());
        for (parent, name, entry) in &entries {
            let parent = directories[parent.index(directories.len())].clone();
            make(&parent.join(OsStr::from_bytes(name)), &canary, &mut directories, &mut closed, entry);
        }
        for (path, mode) in &closed {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(*mode));
        }
        let parent = File::open(scratch.path()).expect("open");
        let name = CString::new("tree").expect("a name");
        prop_assert_eq!(remove(parent.as_fd(), &name, &|| false), Ok(Leftovers::default()));
        prop_assert!(!tree.exists());
        prop_assert_eq!(portrait(&canary), before);
        Ok(())
    });
}
