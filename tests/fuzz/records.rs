//! The record files: whatever bytes they have, a record is read as it was written or not at all, what is no record is
//! counted, and the store goes on from there. So nobody gets a hold of somebody else's (C15).

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::slots::{Layout, SlotFile};
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::handle::Handle;
use per_node::domain::holds::{TargetRecord, TargetState};
use per_node::domain::pod::PodUid;
use per_node::domain::proof::{ClusterUid, History, Marker, Revision};
use per_node::domain::target::TargetPath;
use per_node::domain::time::Wall;
use per_node::ports::records::Records;
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::runner::{Mutation, fuzz, mutate, mutations, scratch};

const SLOT_BYTES: usize = 128;
const LAYOUT: Layout = Layout { name: "records", slot_bytes: SLOT_BYTES, slots: 8 };

fn open(directory: &TempDir) -> (SlotFile, per_node::adapters::linux::slots::Read<String>) {
    let opened = File::open(directory.path()).expect("the directory");
    SlotFile::open(opened.as_fd(), LAYOUT).expect("any bytes can be opened")
}

/// Changes around a place in the file.
fn spread(mutations: Vec<Mutation>, at: usize, bytes: Vec<u8>) -> Vec<u8> {
    let at = at % (bytes.len() + 1);
    let (before, after) = bytes.split_at(at);
    let after = mutations.iter().fold(after.to_vec(), |bytes, one| mutate(bytes, one, &[b"{}".to_vec()]));
    [before, &after].concat()
}

#[test]
fn a_record_file_of_any_bytes_is_read_or_reported() {
    let at = (0..8usize, 0..40usize).prop_map(|(slot, within)| slot * SLOT_BYTES + within);
    let strategy = (vec("[ -~é]{0,40}", 0..8), mutations(32), at, any::<prop::sample::Index>());
    fuzz("slots", 150, &strategy, |(texts, mutations, at, slot)| {
        let directory = scratch();
        let (slots, _) = open(&directory);
        for (slot, text) in texts.iter().enumerate() {
            slots.write(slot, text).expect("it fits");
        }
        drop(slots);
        let path = directory.path().join("records");
        let bytes = spread(mutations, at, fs::read(&path).expect("read"));
        fs::write(&path, &bytes).expect("write");
        let (slots, read) = open(&directory);
        for (_, record) in &read.records {
            prop_assert!(texts.contains(record), "{:?} was never written", record);
        }
        let now = fs::read(&path).expect("read");
        let not_blank =
            now.chunks_exact(SLOT_BYTES).filter(|slot| !slot.iter().all(u8::is_ascii_whitespace)).count();
        prop_assert_eq!(read.records.len() + read.damaged, not_blank, "passed over in silence");
        prop_assert_eq!(read.records.len() + read.free.len(), now.len() / SLOT_BYTES);
        prop_assert!(now.len() >= 8 * SLOT_BYTES, "its space is set aside again");
        // It goes on: a record that is written is there, and nothing else has changed.
        let slot = slot.index(8);
        slots.write(slot, &"written anew").expect("it fits");
        let mut expect: Vec<(usize, String)> =
            read.records.into_iter().filter(|(at, _)| *at != slot).collect();
        expect.push((slot, "written anew".to_owned()));
        expect.sort();
        prop_assert_eq!(open(&directory).1.records, expect);
        Ok(())
    });
}

fn record(number: usize) -> TargetRecord {
    TargetRecord {
        target: TargetPath::from_mount_point(format!("/kubelet/pods/u-{number}/mount").into()),
        handle: Handle::parse(&format!("handle-{number}")).expect("a handle"),
        uid: PodUid::parse(&format!("u-{number}")),
        pod: None,
        readonly: number.is_multiple_of(2),
        state: TargetState::Held,
        since: number.is_multiple_of(3).then_some(Wall { unix_ms: number as u64 }),
    }
}

fn wait<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(call)
}

/// A store with records of every kind.
fn kept() -> TempDir {
    let directory = scratch();
    let store = StoreDirs::open(directory.path()).expect("a store");
    let records = SlotRecords::open(&store).expect("records");
    for number in 0..6 {
        wait(records.put_target(&record(number))).expect("put");
        wait(records.reserve_trash(&record(number).handle, None)).expect("reserved");
    }
    wait(records.put_history(History { highest: Revision(417), went_back: false }, true)).expect("put");
    wait(records.put_history(History { highest: Revision(418), went_back: true }, true)).expect("put");
    wait(records.put_marker(&marker())).expect("put");
    directory
}

fn marker() -> Marker {
    Marker { driver_name: "per-node.liken.sh".to_owned(), cluster_uid: ClusterUid("c".to_owned()) }
}

fn copy_of(directory: &Path) -> TempDir {
    let copy = scratch();
    fs::create_dir(copy.path().join("holds")).expect("mkdir");
    for name in ["targets", "trash", "events", "history", "marker"] {
        fs::copy(directory.join("holds").join(name), copy.path().join("holds").join(name)).expect("copy");
    }
    copy
}

#[test]
fn c15_a_damaged_store_opens_and_has_no_record_that_was_not_written() {
    let original = kept();
    let file = prop::sample::select(vec!["targets", "trash", "events", "history", "marker"]);
    // Most of a file is blank: the records are at the beginning of its first slots, which have 512, 4096 or 8192 bytes.
    let slot =
        (0..7usize, prop::sample::select(vec![512, 4096, 8192])).prop_map(|(slot, bytes)| slot * bytes);
    let at = prop_oneof![6 => slot, 1 => 0..50_000usize, 1 => any::<usize>()];
    fuzz("store", 24, &(vec((file, mutations(256), at), 1..4)), |damages| {
        let copy = copy_of(original.path());
        for (file, mutations, at) in damages {
            let path = copy.path().join("holds").join(file);
            let bytes = spread(mutations, at, fs::read(&path).expect("read"));
            fs::write(&path, bytes).expect("write");
        }
        let store = StoreDirs::open(copy.path()).expect("a store");
        let records = SlotRecords::open(&store).expect("any bytes can be opened");
        for found in records.targets() {
            prop_assert!((0..6).any(|number| record(number) == found), "{:?} was never written", found);
        }
        for number in 0..6 {
            prop_assert!(records.trashed(&record(number).handle).len() <= 1);
        }
        let history = records.history().map(|history| (history.highest.0, history.went_back));
        // One that is there and cannot be read is doubted; none at all is a file that is blank.
        let bytes = fs::read(copy.path().join("holds/history")).expect("read");
        let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
        prop_assert!(
            matches!(history, Some((417, false) | (418, true) | (0, true))) || history.is_none() && is_blank,
            "{:?}",
            history
        );
        prop_assert!(records.marker().is_none_or(|found| found == marker()));
        wait(records.put_target(&record(9))).expect("it goes on");
        drop(records);
        let again = SlotRecords::open(&store).expect("records");
        prop_assert_eq!(again.target(&record(9).target), Some(record(9)));
        Ok(())
    });
}
