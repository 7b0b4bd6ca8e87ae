//! The double on a scratch directory: what its mounts say, what outlives a restart, what it refuses to show.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use futures_util::FutureExt;

use super::Rootless;
use crate::domain::handle::Handle;
use crate::domain::holds::{Makes, TargetRecord, TargetState};
use crate::domain::mount_options::MountOptions;
use crate::domain::mount_table::{FileIdentity, Place, TargetView};
use crate::domain::proof::{ClusterUid, History, Marker, Revision};
use crate::domain::target::TargetPath;
use crate::domain::trash::TrashId;
use crate::ports::copies::{Copies, CopiesError, Deletion};
use crate::ports::mounts::{Mounts, MountsError};
use crate::ports::records::Records;

const MODE: u32 = 0o770;

struct Node {
    _scratch: tempfile::TempDir,
    base: PathBuf,
    double: Rootless,
}

fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the double never waits")
}

fn h(raw: &str) -> Handle {
    Handle::parse(raw).unwrap()
}

fn node() -> Node {
    let scratch = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(scratch.path()).unwrap();
    std::fs::create_dir_all(base.join("store")).unwrap();
    std::fs::create_dir_all(base.join("kubelet/p")).unwrap();
    let double = Rootless::open(&base.join("store"), MODE).unwrap();
    Node { _scratch: scratch, base, double }
}

impl Node {
    fn target(&self, name: &str) -> TargetPath {
        TargetPath::from_mount_point(self.base.join("kubelet/p").join(name))
    }

    fn look(&self, name: &str) -> TargetView {
        now(self.double.look(&self.target(name))).unwrap()
    }

    fn attach(&self, handle: &str, name: &str, options: &MountOptions) -> Result<FileIdentity, MountsError> {
        let copy = now(self.double.ensure(&h(handle))).unwrap().identity;
        now(self.double.attach(&h(handle), copy, &self.target(name), options)).map(|()| copy)
    }

    fn published(&self, handle: &str, name: &str) -> FileIdentity {
        now(self.double.make_target(&self.target(name))).unwrap();
        self.attach(handle, name, &MountOptions::default()).unwrap()
    }

    fn restarted(self) -> Node {
        let double = Rootless::open(self.double.store(), MODE).unwrap();
        Node { double, ..self }
    }

    fn store(&self, below: &str) -> PathBuf {
        self.base.join("store").join(below)
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn c10_a_published_target_leads_to_the_copy_and_says_its_flags() {
    let node = node();
    let asked = MountOptions { read_only: Some(true), no_exec: Some(true), ..MountOptions::default() };
    now(node.double.make_target(&node.target("t"))).unwrap();
    let copy = node.attach("h", "t", &asked).unwrap();
    let TargetView::Mounted(stack) = node.look("t") else { panic!("nothing is mounted") };
    assert_eq!(stack.visible, copy);
    assert!(asked.are_met_by(&stack.layers[0].flags));
    assert!(!MountOptions { no_dev: Some(true), ..asked }.are_met_by(&stack.layers[0].flags));
    std::fs::write(node.target("t").as_path().join("file"), "x").unwrap();
    assert_eq!(std::fs::read_to_string(node.store("copies/h/file")).unwrap(), "x");
}

#[test]
fn c15_the_symlink_is_the_truth_and_not_the_table() {
    let node = node();
    node.published("h", "t");
    assert!(now(node.double.table()).unwrap().is_in_use(&h("h"), &BTreeSet::new()));
    std::fs::remove_file(node.target("t").as_path()).unwrap();
    assert_eq!(node.look("t"), TargetView::Absent);
    assert_eq!(now(node.double.table()).unwrap().mounts, []);
    symlink("/elsewhere", node.target("t").as_path()).unwrap();
    assert_eq!(node.look("t"), TargetView::NotADirectory);
    assert_eq!(now(node.double.showing(&h("h"), &BTreeSet::new())).unwrap(), []);
}

#[test]
fn c40_a_restart_finds_every_mount_and_record() {
    let node = node();
    let copy = node.published("h", "t");
    let record = TargetRecord {
        target: node.target("t"),
        handle: h("h"),
        uid: None,
        pod: None,
        readonly: true,
        state: TargetState::Attaching(Makes { copy: true, target: true }),
        since: None,
    };
    let marker = Marker { driver_name: "d".into(), cluster_uid: ClusterUid("c".into()) };
    now(node.double.put_target(&record)).unwrap();
    let history = History { highest: Revision(7), went_back: true };
    now(node.double.put_history(history, true)).unwrap();
    now(node.double.put_marker(&marker)).unwrap();
    let node = node.restarted();
    assert!(matches!(node.look("t"), TargetView::Mounted(stack) if stack.visible == copy));
    assert_eq!(now(node.double.showing(&h("h"), &BTreeSet::new())).unwrap().len(), 1);
    assert_eq!(node.double.targets_of(&h("h")), [record]);
    assert_eq!((node.double.history(), node.double.marker()), (Some(history), Some(marker)));
}

#[test]
fn c17_a_detach_gives_the_bare_target_directory_back() {
    let node = node();
    node.published("h", "t");
    let busy = now(node.double.remove_target(&node.target("t")));
    assert!(matches!(busy, Err(MountsError::Busy(_))));
    now(node.double.detach(&node.target("t"))).unwrap();
    assert_eq!(node.look("t"), TargetView::Directory { empty: true });
    now(node.double.detach(&node.target("t"))).unwrap();
    now(node.double.remove_target(&node.target("t"))).unwrap();
    now(node.double.remove_target(&node.target("t"))).unwrap();
    assert_eq!(node.look("t"), TargetView::Absent);
    assert!(node.store("copies/h").is_dir());
}

#[test]
fn c17_a_whole_stack_goes() {
    let node = node();
    node.published("a", "t");
    node.attach("b", "t", &MountOptions::default()).unwrap();
    let TargetView::Mounted(stack) = node.look("t") else { panic!("nothing is mounted") };
    let places: Vec<_> = stack.layers.iter().map(|layer| layer.shown.clone().unwrap().place).collect();
    assert_eq!(places, [Place::Copy(h("a")), Place::Copy(h("b"))]);
    now(node.double.detach(&node.target("t"))).unwrap();
    assert_eq!(node.look("t"), TargetView::Directory { empty: true });
    assert_eq!(now(node.double.table()).unwrap().mounts, []);
}

#[test]
fn c16_an_attach_that_fails_leaves_the_target_as_it_was() {
    let node = node();
    let missing = node.attach("h", "t", &MountOptions::default());
    assert!(matches!(missing, Err(MountsError::Missing(_))));
    std::fs::create_dir_all(node.target("t").as_path().join("full")).unwrap();
    let occupied = node.attach("h", "t", &MountOptions::default());
    assert!(matches!(occupied, Err(MountsError::Occupied(_))));
    assert_eq!(node.look("t"), TargetView::Directory { empty: false });
    symlink("/", node.target("s").as_path()).unwrap();
    assert!(matches!(node.attach("h", "s", &MountOptions::default()), Err(MountsError::Occupied(_))));
    let other = FileIdentity { device: 0, inode: 0 };
    let swapped = now(node.double.attach(&h("h"), other, &node.target("t"), &MountOptions::default()));
    assert!(matches!(swapped, Err(MountsError::Missing(_))));
    assert_eq!(now(node.double.table()).unwrap().mounts, []);
}

#[test]
fn c18_no_symlink_is_followed_on_the_way_to_a_target() {
    let node = node();
    symlink(node.base.join("kubelet/p"), node.base.join("kubelet/q")).unwrap();
    let target = TargetPath::from_mount_point(node.base.join("kubelet/q/t"));
    assert!(matches!(now(node.double.make_target(&target)), Err(MountsError::Occupied(_))));
    node.published("h", "t");
    let below = TargetPath::from_mount_point(node.base.join("kubelet/p/t/below"));
    assert!(now(node.double.make_target(&below)).is_err());
}

#[test]
fn c16_a_target_is_forgotten_when_its_directory_has_no_volume_data() {
    let node = node();
    let forgotten = |name: &str| now(node.double.is_forgotten(&node.target(name))).unwrap();
    assert!(forgotten("t"));
    assert!(!forgotten("none/t"));
    std::fs::write(node.base.join("kubelet/p/vol_data.json"), "{}").unwrap();
    assert!(!forgotten("t"));
}

#[test]
fn c06_a_new_copy_has_its_mode_and_an_old_one_keeps_its_own() {
    let node = node();
    std::fs::set_permissions(node.store("copies"), Permissions::from_mode(0o2700)).unwrap();
    let made = now(node.double.ensure(&h("h"))).unwrap();
    assert!(made.made);
    assert_eq!(mode(&node.store("copies/h")), MODE);
    std::fs::set_permissions(node.store("copies/h"), Permissions::from_mode(0o701)).unwrap();
    let again = now(node.double.ensure(&h("h"))).unwrap();
    assert_eq!((again.made, again.identity), (false, made.identity));
    assert_eq!(mode(&node.store("copies/h")), 0o701);
    let node = node.restarted();
    for own in ["copies", "trash", "holds"] {
        assert_eq!(mode(&node.store(own)), 0o700, "{own}");
    }
}

#[test]
fn c16_only_an_empty_copy_of_this_identity_is_unmade() {
    let node = node();
    let made = now(node.double.ensure(&h("h"))).unwrap().identity;
    now(node.double.unmake(&h("h"), FileIdentity { inode: made.inode + 1, ..made })).unwrap();
    assert_eq!(now(node.double.find(&h("h"))).unwrap(), Some(made));
    std::fs::write(node.store("copies/h/file"), "").unwrap();
    now(node.double.unmake(&h("h"), made)).unwrap();
    std::fs::remove_file(node.store("copies/h/file")).unwrap();
    now(node.double.unmake(&h("h"), made)).unwrap();
    assert_eq!(now(node.double.find(&h("h"))).unwrap(), None);
}

#[test]
fn c25_strangers_under_copies_are_listed_apart() {
    let node = node();
    now(node.double.ensure(&h("b"))).unwrap();
    now(node.double.ensure(&h("a.b"))).unwrap();
    std::fs::write(node.store("copies/file"), "").unwrap();
    std::fs::create_dir(node.store("copies/Not_A_Handle")).unwrap();
    symlink("b", node.store("copies/link")).unwrap();
    let listing = now(node.double.list()).unwrap();
    assert_eq!(listing.handles, [h("a.b"), h("b")]);
    assert_eq!(listing.strangers, ["Not_A_Handle", "file", "link"]);
    assert!(matches!(now(node.double.ensure(&h("file"))), Err(CopiesError::NotADirectory(_))));
}

#[test]
fn c23_a_copy_in_the_trash_is_shown_there_until_it_is_deleted() {
    let node = node();
    let copy = node.published("h", "t");
    let id = now(node.double.reserve_trash(&h("h"), None)).unwrap();
    now(node.double.discard(&h("h"), id)).unwrap();
    assert_eq!(now(node.double.find(&h("h"))).unwrap(), None);
    assert_eq!(now(node.double.trash()).unwrap(), [id]);
    assert!(now(node.double.table()).unwrap().shows_trash(id));
    assert_eq!(now(node.double.showing(&h("h"), &node.double.trashed(&h("h")))).unwrap().len(), 1);
    assert_eq!(now(node.double.delete(id)).unwrap(), Deletion::Done);
    let TargetView::Mounted(stack) = node.look("t") else { panic!("nothing is mounted") };
    assert!(stack.visible == copy && stack.layers[0].shown.as_ref().unwrap().deleted);
}

#[test]
fn c03_a_trash_id_is_never_used_twice() {
    let node = node();
    let first = now(node.double.reserve_trash(&h("h"), None)).unwrap();
    now(node.double.forget_trash(first)).unwrap();
    let second = now(node.double.reserve_trash(&h("h"), None)).unwrap();
    std::fs::create_dir(node.store("trash/t9")).unwrap();
    std::fs::write(node.store("holds/records.json"), "{ torn").unwrap();
    let node = node.restarted();
    let third = now(node.double.reserve_trash(&h("h"), None)).unwrap();
    assert_eq!((first, second, third), (TrashId(1), TrashId(2), TrashId(10)));
    assert!(node.store("holds/records.unreadable").exists());
}

#[test]
fn c24_a_deletion_follows_no_symlink_and_copes_with_depth_and_modes() {
    let node = node();
    now(node.double.ensure(&h("h"))).unwrap();
    let outside = node.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "").unwrap();
    symlink(&outside, node.store("copies/h/link")).unwrap();
    std::fs::create_dir_all(node.store("copies/h/hoisted-1/full")).unwrap();
    let deep = node.store("copies/h").join(vec!["d"; 200].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("file"), "").unwrap();
    std::fs::create_dir_all(node.store("copies/h/closed/inner")).unwrap();
    std::fs::set_permissions(node.store("copies/h/closed"), Permissions::from_mode(0o000)).unwrap();
    let id = now(node.double.reserve_trash(&h("h"), None)).unwrap();
    now(node.double.discard(&h("h"), id)).unwrap();
    assert_eq!(now(node.double.delete(id)).unwrap(), Deletion::Done);
    assert_eq!(now(node.double.trash()).unwrap(), []);
    assert!(outside.join("kept").exists());
    assert_eq!(now(node.double.delete(id)).unwrap(), Deletion::Done);
}

#[test]
fn c46_a_file_with_two_names_is_counted_once() {
    let node = node();
    now(node.double.ensure(&h("h"))).unwrap();
    let empty = now(node.double.usage(&h("h"))).unwrap();
    std::fs::write(node.store("copies/h/a"), vec![1; 100_000]).unwrap();
    std::fs::hard_link(node.store("copies/h/a"), node.store("copies/h/b")).unwrap();
    let usage = now(node.double.usage(&h("h"))).unwrap();
    assert_eq!((empty.used_inodes, usage.used_inodes, usage.complete), (1, 2, true));
    assert_eq!(node.double.counted().bytes, usage.used_bytes);
    let capacity = now(node.double.capacity()).unwrap();
    assert!(capacity.total_bytes >= capacity.available_bytes && capacity.total_bytes > 0);
}
