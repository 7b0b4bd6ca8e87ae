//! Every fact, and what is said of it.

use super::*;
use crate::domain::mount_options::{AccessTime, MountFlags};
use crate::domain::mount_table::{Layer, MountStack};

const STORE: u64 = 1;
const OURS: FileIdentity = FileIdentity { device: STORE, inode: 10 };
const ANOTHER: FileIdentity = FileIdentity { device: STORE, inode: 11 };
const FOREIGN: FileIdentity = FileIdentity { device: 2, inode: 10 };

fn h() -> Handle {
    Handle::parse("h").unwrap()
}

fn copy(name: &str) -> Shown {
    Shown { place: Place::Copy(Handle::parse(name).unwrap()), at_root: true, deleted: false }
}

fn trash(id: u64) -> Shown {
    Shown { place: Place::Trash(TrashId(id)), ..copy("h") }
}

/// A target with these layers, the lowest first.
fn mounted(layers: &[Option<Shown>], visible: FileIdentity) -> TargetView {
    let flags = MountFlags {
        read_only: false,
        no_exec: false,
        no_suid: false,
        no_dev: false,
        no_dir_access_time: false,
        access_time: AccessTime::Relative,
    };
    let layers = layers.iter().map(|shown| Layer { shown: shown.clone(), flags }).collect();
    TargetView::Mounted(MountStack { layers, visible })
}

/// What a target shows that no record names, for a handle with the entry 7 in the trash.
fn seen(view: &TargetView, recorded: bool) -> Option<Published> {
    published(view, &h(), &BTreeSet::from([TrashId(7)]), recorded)
}

fn well() -> StoreFacts {
    let half = Room { available: 50, total: 100 };
    StoreFacts { copy: Some(OURS), device: STORE, read_only: false, bytes: half, inodes: half }
}

#[track_caller]
fn check(published: Published, facts: StoreFacts, expect: &[Condition]) {
    assert_eq!(conditions(&published, &Ok(facts)), expect, "{published:?}, {facts:?}");
}

#[test]
fn c49_a_target_without_a_mount_of_the_copy_holds_nothing() {
    let bare = [
        TargetView::Absent,
        TargetView::NotADirectory,
        TargetView::Directory { empty: true },
        TargetView::Directory { empty: false },
    ];
    for view in bare {
        assert_eq!(seen(&view, true), None, "{view:?}");
    }
    let below = Shown { at_root: false, ..copy("h") };
    assert_eq!(seen(&mounted(&[Some(below)], OURS), true), None);
    assert_eq!(seen(&mounted(&[Some(copy("other"))], ANOTHER), false), None, "another volume's target");
    assert_eq!(seen(&mounted(&[Some(trash(8))], ANOTHER), false), None, "another volume's, in the trash");
}

#[test]
fn c49_what_a_target_shows_of_a_copy_is_told_apart() {
    let named = Some(Published::Named(Some(OURS)));
    for recorded in [false, true] {
        assert_eq!(seen(&mounted(&[Some(copy("h"))], OURS), recorded), named);
        assert_eq!(seen(&mounted(&[None, Some(copy("h"))], OURS), recorded), named);
        let hidden = mounted(&[Some(copy("h")), None], FOREIGN);
        assert_eq!(seen(&hidden, recorded), Some(Published::Named(None)));
        let deleted = Shown { deleted: true, ..copy("h") };
        assert_eq!(seen(&mounted(&[Some(deleted)], OURS), recorded), Some(Published::Nameless));
        assert_eq!(seen(&mounted(&[Some(trash(7))], OURS), recorded), Some(Published::Nameless));
        let elsewhere = mounted(&[None], OURS);
        assert_eq!(seen(&elsewhere, recorded), Some(Published::Elsewhere(OURS)));
    }
    // Renamed to another handle's name: only the record can tell.
    assert_eq!(seen(&mounted(&[Some(copy("other"))], OURS), true), Some(Published::Nameless));
    assert_eq!(seen(&mounted(&[Some(trash(8))], OURS), true), Some(Published::Nameless));
}

#[test]
fn c49_a_copy_in_its_place_on_a_store_that_works_is_healthy() {
    check(Published::Named(Some(OURS)), well(), &[]);
    check(Published::Named(None), well(), &[]);
    check(Published::Elsewhere(OURS), well(), &[]);
}

#[test]
fn c49_a_directory_that_is_gone_or_replaced_is_a_loss() {
    let gone = StoreFacts { copy: None, ..well() };
    let replaced = StoreFacts { copy: Some(ANOTHER), ..well() };
    let covered = StoreFacts { copy: Some(FOREIGN), ..well() };
    for seen in [Published::Named(Some(OURS)), Published::Nameless, Published::Elsewhere(OURS)] {
        check(seen, gone, &[Condition::CopyGone]);
        check(seen, replaced, &[Condition::CopyReplaced]);
        check(seen, covered, &[Condition::CopyReplaced]);
    }
    check(Published::Named(None), gone, &[Condition::CopyGone]);
    check(Published::Nameless, well(), &[Condition::CopyReplaced]);
}

#[test]
fn c49_somebodys_own_mount_at_the_target_is_no_volume_of_ours() {
    let bad = StoreFacts { read_only: true, bytes: Room { available: 0, total: 9 }, ..well() };
    check(Published::Elsewhere(FOREIGN), bad, &[]);
    check(Published::Elsewhere(FOREIGN), StoreFacts { copy: None, ..well() }, &[]);
    // A disk that somebody mounted as the copy is the copy.
    let disk = StoreFacts { copy: Some(FOREIGN), read_only: true, ..well() };
    check(Published::Elsewhere(FOREIGN), disk, &[Condition::StoreReadOnly]);
}

#[test]
fn c49_a_store_that_fails_is_inaccessible_and_hides_no_loss_that_the_mount_tells() {
    let failed = |published: Published| conditions(&published, &Err("open /s: EIO".to_owned()));
    let failing = Condition::StoreFailing { why: "open /s: EIO".to_owned() };
    assert_eq!(failed(Published::Named(Some(OURS))), std::slice::from_ref(&failing));
    assert_eq!(failed(Published::Elsewhere(OURS)), std::slice::from_ref(&failing));
    assert_eq!(failed(Published::Nameless), [Condition::CopyGone, failing]);
}

#[test]
fn c49_a_store_is_nearly_full_below_the_threshold_and_not_at_it() {
    let room = |available, total| Room { available, total };
    for (room, is_full) in [
        (room(5, 100), false),
        (room(4, 100), true),
        (room(0, 1), true),
        (room(0, 0), false),
        (room(u64::MAX, u64::MAX), false),
        (room(u64::MAX / 100 * 4, u64::MAX), true),
        (room(49, 999), true),
        (room(50, 1000), false),
    ] {
        let bytes = StoreFacts { bytes: room, ..well() };
        let inodes = StoreFacts { inodes: room, ..well() };
        let expect = |condition: Condition| if is_full { vec![condition] } else { vec![] };
        check(Published::Named(None), bytes, &expect(Condition::StoreNearlyFull));
        check(Published::Named(None), inodes, &expect(Condition::StoreNearlyOutOfInodes));
    }
}

#[test]
fn c49_everything_that_is_wrong_is_told_once_the_worst_first() {
    let none = Room { available: 0, total: 100 };
    let worst = StoreFacts { copy: None, device: STORE, read_only: true, bytes: none, inodes: none };
    let told = conditions(&Published::Nameless, &Ok(worst));
    let severities: Vec<Severity> = told.iter().map(Condition::severity).collect();
    let mut sorted = severities.clone();
    sorted.sort_by_key(|&severity| std::cmp::Reverse(severity));
    assert_eq!((told.len(), &severities), (4, &sorted));
    let keys: BTreeSet<_> = told.iter().map(|condition| (condition.severity(), condition.reason())).collect();
    assert_eq!(keys.len(), told.len(), "CSI: a pair of status and reason comes once");
}

#[test]
fn c49_each_condition_has_a_reason_for_machines_and_a_text_that_a_pods_status_takes() {
    let why = "é".repeat(MESSAGE_BYTES_MAX);
    let all = [
        (Condition::CopyGone, Severity::DataLoss, "CopyGone"),
        (Condition::CopyReplaced, Severity::DataLoss, "CopyReplaced"),
        (Condition::StoreFailing { why }, Severity::Inaccessible, "StoreFailing"),
        (Condition::StoreReadOnly, Severity::Inaccessible, "StoreReadOnly"),
        (Condition::StoreNearlyFull, Severity::Degraded, "StoreNearlyFull"),
        (Condition::StoreNearlyOutOfInodes, Severity::Degraded, "StoreNearlyOutOfInodes"),
    ];
    for (condition, severity, reason) in all {
        assert_eq!((condition.severity(), condition.reason()), (severity, reason));
        let message = condition.message();
        assert!((20..=MESSAGE_BYTES_MAX).contains(&message.len()), "{message}");
        assert!(!message.contains('\n') && !message.contains("  "), "{message:?}");
    }
    assert!(Condition::StoreNearlyFull.message().contains("5 %"));
}
