//! The node in memory behaves as the kernel does, where decisions depend on it.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::FutureExt;

use super::kernel_fault::errno;
use super::*;
use crate::domain::event_series::{Post, SeriesBook, SeriesKey};
use crate::domain::handle::Handle;
use crate::domain::holds::{TargetRecord, TargetState};
use crate::domain::mount_options::MountOptions;
use crate::domain::mount_table::{Place, TargetView};
use crate::domain::pod::{PodName, PodReference, PodUid};
use crate::domain::proof::{History, Revision};
use crate::domain::refusal::Reason;
use crate::domain::target::TargetPath;
use crate::domain::time::{Monotonic, Wall};
use crate::domain::trash::TrashId;
use crate::ports::copies::{Copies, CopiesError, Deletion};
use crate::ports::event_sink::{EventSink, EventSinkError};
use crate::ports::mounts::{Mounts, MountsError};
use crate::ports::records::{Records, RecordsError};

const TARGET: &str = "/k/pods/u/mount";

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nothing was told to wait")
}

fn h(raw: &str) -> Handle {
    Handle::parse(raw).unwrap()
}

fn at(raw: &str) -> TargetPath {
    TargetPath::from_mount_point(raw.into())
}

/// A node with the copy `a` attached at [`TARGET`].
fn attached() -> (Node, MemoryMounts, MemoryCopies) {
    let node = Node::default();
    let (mounts, copies) = (MemoryMounts::new(&node), MemoryCopies::new(&node));
    node.make_directory(Path::new(TARGET).parent().unwrap());
    now(mounts.make_target(&at(TARGET))).unwrap();
    let copy = now(copies.ensure(&h("a"))).unwrap();
    now(mounts.attach(&h("a"), copy.identity, &at(TARGET), &MountOptions::default())).unwrap();
    (node, mounts, copies)
}

fn up_to(revision: u64) -> History {
    History::up_to(Revision(revision))
}

#[test]
fn an_unmount_takes_what_is_below_then_the_whole_stack() {
    let (node, mounts, _) = attached();
    node.mount_foreign(TARGET);
    node.mount_foreign(format!("{TARGET}/x"));
    node.mount_foreign(format!("{TARGET}/x/y"));
    assert!(!node.unmount(TARGET));
    now(mounts.detach(&at(TARGET))).unwrap();
    assert_eq!(node.view(TARGET), TargetView::Directory { empty: true });
    assert_eq!(node.view(format!("{TARGET}/x")), TargetView::Absent);
}

#[test]
fn a_busy_mount_stays_with_everything_below_it() {
    let (node, mounts, _) = attached();
    node.mount_foreign(TARGET);
    node.set_busy(TARGET, true);
    assert!(matches!(now(mounts.detach(&at(TARGET))), Err(MountsError::Busy(_))));
    let TargetView::Mounted(stack) = node.view(TARGET) else { panic!("still mounted") };
    assert_eq!(stack.layers.len(), 2);
    assert!(matches!(now(mounts.remove_target(&at(TARGET))), Err(MountsError::Busy(_))));
}

#[test]
fn a_target_is_made_in_its_parent_alone_and_removed_only_empty() {
    let node = Node::default();
    let mounts = MemoryMounts::new(&node);
    assert!(matches!(now(mounts.make_target(&at(TARGET))), Err(MountsError::Missing(_))));
    node.make_directory(Path::new(TARGET).parent().unwrap());
    now(mounts.make_target(&at(TARGET))).unwrap();
    assert!(matches!(now(mounts.make_target(&at(TARGET))), Err(MountsError::Occupied(_))));
    node.make_file(format!("{TARGET}/left"));
    assert!(matches!(now(mounts.remove_target(&at(TARGET))), Err(MountsError::Occupied(_))));
    assert!(node.remove(format!("{TARGET}/left")));
    now(mounts.remove_target(&at(TARGET))).unwrap();
    now(mounts.remove_target(&at(TARGET))).unwrap();
    assert!(!node.exists(TARGET));
}

#[test]
fn a_renamed_copy_is_still_shown_by_its_new_name_and_a_deleted_one_as_deleted() {
    let (node, mounts, copies) = attached();
    node.write(TARGET, "file", b"bytes").unwrap();
    now(copies.discard(&h("a"), TrashId(1))).unwrap();
    let shown = node.store_mounts().remove(0).shown;
    assert_eq!((shown.place, shown.deleted), (Place::Trash(TrashId(1)), false));
    assert_eq!(node.read(TARGET, "file").as_deref(), Some(&b"bytes"[..]));
    assert_eq!(now(mounts.showing(&h("a"), &BTreeSet::new())).unwrap(), []);
    assert_eq!(now(mounts.showing(&h("a"), &BTreeSet::from([TrashId(1)]))).unwrap().len(), 1);
    assert_eq!(now(copies.delete(TrashId(1))), Ok(Deletion::Done));
    let shown = node.store_mounts().remove(0).shown;
    assert_eq!((shown.place, shown.deleted), (Place::Trash(TrashId(1)), true));
    assert_eq!(node.write(TARGET, "file", b""), Err(WriteError::Deleted));
    assert!(node.unmount(TARGET));
    assert_eq!(node.store_mounts(), []);
}

#[test]
fn another_copy_of_the_same_name_cannot_be_attached() {
    let (_, mounts, copies) = attached();
    let first = now(copies.find(&h("a"))).unwrap().unwrap();
    now(copies.discard(&h("a"), TrashId(1))).unwrap();
    let second = now(copies.ensure(&h("a"))).unwrap();
    assert!(second.made && second.identity != first);
    let answer = now(mounts.attach(&h("a"), first, &at(TARGET), &MountOptions::default()));
    assert!(matches!(answer, Err(MountsError::Missing(_))));
}

#[test]
fn a_full_store_makes_and_renames_nothing_and_still_deletes() {
    let (node, _, copies) = attached();
    node.write(TARGET, "file", &[0; 4096]).unwrap();
    node.set_available_bytes(0);
    assert!(matches!(now(copies.ensure(&h("b"))), Err(CopiesError::NoSpace(_))));
    assert!(matches!(now(copies.discard(&h("a"), TrashId(1))), Err(CopiesError::NoSpace(_))));
    assert!(!now(copies.ensure(&h("a"))).unwrap().made);
    assert_eq!(now(copies.delete_in_place(&h("a"))), Ok(Deletion::Done));
    assert!(now(copies.ensure(&h("b"))).unwrap().made);
}

#[test]
fn a_walk_leaves_what_it_cannot_delete() {
    let (node, _, copies) = attached();
    node.write(TARGET, "fixed", b"1").unwrap();
    node.write(TARGET, "loose", b"2").unwrap();
    node.set_undeletable(&h("a"), Some("fixed"));
    now(copies.discard(&h("a"), TrashId(1))).unwrap();
    assert!(matches!(now(copies.delete(TrashId(1))), Ok(Deletion::Left { entries: 1, .. })));
    assert_eq!(node.read(TARGET, "loose"), None);
    node.clear_undeletable();
    assert_eq!(now(copies.delete(TrashId(1))), Ok(Deletion::Done));
    assert_eq!(node.trash_ids(), []);
}

#[test]
fn what_is_mounted_on_a_copy_or_immutable_is_not_moved() {
    let (node, _, copies) = attached();
    node.mount_foreign("/store/copies/a/data");
    assert!(matches!(now(copies.discard(&h("a"), TrashId(1))), Err(CopiesError::MountPoint(_))));
    assert!(matches!(now(copies.delete_in_place(&h("a"))), Err(CopiesError::MountPoint(_))));
    assert!(node.unmount("/store/copies/a/data"));
    node.set_immutable(&h("a"), true);
    assert!(matches!(now(copies.discard(&h("a"), TrashId(1))), Err(CopiesError::Denied(_))));
}

#[test]
fn only_directories_with_a_handles_name_are_copies() {
    let (node, _, copies) = attached();
    node.put_stranger("b");
    node.put_stranger_symlink("c");
    node.put_stranger("Not_A_Handle");
    let listing = now(copies.list()).unwrap();
    assert_eq!(listing.handles, [h("a")]);
    assert_eq!(listing.strangers, ["Not_A_Handle", "b", "c"]);
    assert!(matches!(now(copies.find(&h("b"))), Err(CopiesError::NotADirectory(_))));
    assert!(matches!(now(copies.ensure(&h("c"))), Err(CopiesError::NotADirectory(_))));
}

#[test]
fn a_reboot_leaves_directories_copies_and_records_and_no_mount() {
    let (node, _, copies) = attached();
    node.write(TARGET, "file", b"bytes").unwrap();
    let records = MemoryRecords::open(&node);
    now(records.put_history(up_to(5), true)).unwrap();
    now(records.put_history(up_to(9), false)).unwrap();
    node.power_failure();
    assert_eq!(node.view(TARGET), TargetView::Directory { empty: true });
    assert_eq!(node.copy(&h("a")).unwrap()["file"], b"bytes");
    assert!(!now(copies.ensure(&h("a"))).unwrap().made);
    assert_eq!(MemoryRecords::open(&node).history(), Some(up_to(5)));
}

fn record(target: &str) -> TargetRecord {
    let (uid, pod) = (PodUid::parse("u"), PodName::parse("ns", "p"));
    let state = TargetState::Held;
    TargetRecord { target: at(target), handle: h("a"), uid, pod, readonly: false, state, since: None }
}

#[test]
fn a_record_whose_write_failed_late_is_found_by_the_next_process() {
    let node = Node::default();
    let records = MemoryRecords::open(&node);
    node.gate().script(NodeCall::PutTarget, Fault::After(KernelFault::Errno(errno::EIO)));
    assert!(matches!(now(records.put_target(&record("/k/1"))), Err(RecordsError::Io(_))));
    assert_eq!(records.targets(), []);
    assert_eq!(MemoryRecords::open(&node).targets(), [record("/k/1")]);
    node.gate().script(NodeCall::PutTarget, Fault::Before(KernelFault::Lost));
    assert!(matches!(now(records.put_target(&record("/k/2"))), Err(RecordsError::Unknown(_))));
    assert_eq!(MemoryRecords::open(&node).targets().len(), 1);
}

#[test]
fn a_trash_id_is_never_given_twice() {
    let node = Node::default();
    let records = MemoryRecords::open(&node);
    let first = now(records.reserve_trash(&h("a"), None)).unwrap();
    node.gate().script(NodeCall::ReserveTrash, Fault::After(KernelFault::Lost));
    now(records.reserve_trash(&h("a"), None)).unwrap_err();
    let third = now(records.reserve_trash(&h("b"), None)).unwrap();
    now(records.forget_trash(third)).unwrap();
    let fourth = now(MemoryRecords::open(&node).reserve_trash(&h("b"), None)).unwrap();
    assert_eq!([first, third, fourth], [TrashId(1), TrashId(3), TrashId(4)]);
    assert_eq!(records.trashed(&h("a")), BTreeSet::from([TrashId(1)]));
}

#[test]
fn slots_for_records_are_bounded() {
    let node = Node::default();
    node.set_target_slots(1);
    let records = MemoryRecords::open(&node);
    now(records.put_target(&record("/k/1"))).unwrap();
    now(records.put_target(&record("/k/1"))).unwrap();
    assert!(matches!(now(records.put_target(&record("/k/2"))), Err(RecordsError::Full(_))));
}

#[test]
fn events_age_and_end_with_their_namespace() {
    let clock = SteppedClock::at(Wall::default());
    let (api, mut book) = (ApiServer::new(&clock), SeriesBook::new(std::time::Duration::from_secs(600), []));
    let pod = PodReference { name: PodName::parse("ns", "p").unwrap(), uid: PodUid::parse("u").unwrap() };
    book.record(SeriesKey::new(pod.clone(), Reason::VolumeHeld, "held".into()), Wall::default());
    let Some(Post::Create(series)) = book.next_post(Monotonic::default()) else { panic!("a first post") };
    let sink = MemorySink::new(&api);
    assert_eq!(now(sink.patch(&series)), Err(EventSinkError::NotFound));
    now(sink.create(&series)).unwrap();
    assert_eq!(now(sink.create(&series)), Err(EventSinkError::AlreadyExists));
    api.terminate_namespace("ns");
    now(sink.patch(&series)).unwrap();
    clock.advance(std::time::Duration::from_secs(3600));
    assert_eq!(api.events_of(&pod), []);
    assert_eq!(now(sink.patch(&series)), Err(EventSinkError::NotFound));
    assert_eq!(now(sink.create(&series)), Err(EventSinkError::NamespaceGone));
}
