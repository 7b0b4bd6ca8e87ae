//! Keyed records in a slot file, with all of them in memory: reads wait for nothing, writes go to the file first.
//!
//! Two writes of one key must not overlap; whoever writes has a lock that sees to it (a handle's, or being the one
//! loop). Writes of different keys may.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::{Failure, Outcome};
use super::slots::{Access, Layout, Read, SlotFile};

/// Records by their keys.
#[derive(Debug)]
pub struct Table<K, V> {
    file: SlotFile,
    /// Slots that held something that is no record when the file was opened.
    damaged: usize,
    state: Mutex<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    records: BTreeMap<K, (usize, V)>,
    free: BTreeSet<usize>,
    /// Slots whose first write failed: the file may have the record all the same. Only a write or a clearing for the
    /// same key settles them; used for another, an older record could come back at the next start.
    unsettled: BTreeMap<K, usize>,
    /// Slots that the file has, or would have.
    slots: usize,
}

impl<K: Ord + Clone, V: Clone + Serialize + DeserializeOwned> Table<K, V> {
    /// Opens the file; of two records with one key the later slot counts.
    pub fn open(directory: BorrowedFd<'_>, layout: Layout, key: impl Fn(&V) -> K) -> Outcome<Table<K, V>> {
        Table::open_for(directory, layout, Access::Write, key)
    }

    /// The same, or read as it is ([`SlotFile::open_for`]).
    pub fn open_for(
        directory: BorrowedFd<'_>,
        layout: Layout,
        access: Access,
        key: impl Fn(&V) -> K,
    ) -> Outcome<Table<K, V>> {
        let (file, read) = SlotFile::open_for::<V>(directory, layout, access)?;
        let damaged = read.damaged;
        match access {
            Access::Write if damaged > 0 => {
                tracing::warn!(file = layout.name, damaged, "records that cannot be read are taken for none");
            }
            Access::Write | Access::Read => {}
        }
        Ok(Table::of(file, read, key))
    }

    fn of(file: SlotFile, read: Read<V>, key: impl Fn(&V) -> K) -> Table<K, V> {
        let Read { records, free, damaged } = read;
        let slots = records.len() + free.len();
        let mut state = State {
            records: BTreeMap::new(),
            free: free.into_iter().collect(),
            unsettled: BTreeMap::new(),
            slots,
        };
        for (slot, record) in records {
            if let Some((older, _)) = state.records.insert(key(&record), (slot, record)) {
                state.free.insert(older);
            }
        }
        Table { file, damaged, state: Mutex::new(state) }
    }

    /// Whether the file held something that could not be read.
    pub fn was_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// Held only for a look or a change in memory, never over a write to the file.
    fn state(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, key: &K) -> Option<V> {
        self.state().records.get(key).map(|(_, record)| record.clone())
    }

    /// Every record that `wanted` takes, in key order.
    pub fn select(&self, wanted: impl Fn(&V) -> bool) -> Vec<V> {
        let state = self.state();
        state
            .records
            .values()
            .filter(|(_, record)| wanted(record))
            .map(|(_, record)| record.clone())
            .collect()
    }

    /// Writes the record, in the place of an earlier one. On an error the earlier one still counts.
    pub fn put(&self, key: K, record: V) -> Outcome<()> {
        let slot = self.state().slot_for(&key);
        let written = self.file.write(slot, &record);
        let mut state = self.state();
        match written {
            Ok(()) => {
                state.unsettled.remove(&key);
                state.records.insert(key, (slot, record));
                Ok(())
            }
            Err(failure) => {
                let is_new = !state.records.contains_key(&key) && !state.unsettled.contains_key(&key);
                if is_new && is_surely_unwritten(failure) {
                    state.free.insert(slot);
                } else if is_new {
                    state.unsettled.insert(key, slot);
                }
                Err(failure)
            }
        }
    }

    /// Forgets the record. On an error it still counts.
    pub fn remove(&self, key: &K) -> Outcome<()> {
        let Some(slot) = self.state().taken_by(key) else { return Ok(()) };
        self.file.clear(slot)?;
        let mut state = self.state();
        state.records.remove(key);
        state.unsettled.remove(key);
        state.free.insert(slot);
        Ok(())
    }

    /// Whether the file has, or may have, a record of this key.
    pub fn may_have(&self, key: &K) -> bool {
        self.state().taken_by(key).is_some()
    }

    pub fn sync(&self) -> Outcome<()> {
        self.file.sync()
    }
}

/// Too large a record is not begun; one that ran out of space is not whole, and so is no record.
fn is_surely_unwritten(failure: Failure) -> bool {
    matches!(failure.errno, Errno::MSGSIZE | Errno::NOSPC | Errno::DQUOT)
}

impl<K: Ord, V> State<K, V> {
    /// The slot that is the key's already.
    fn taken_by(&self, key: &K) -> Option<usize> {
        self.records.get(key).map(|(slot, _)| *slot).or_else(|| self.unsettled.get(key).copied())
    }

    fn slot_for(&mut self, key: &K) -> usize {
        self.taken_by(key).unwrap_or_else(|| self.take_slot())
    }

    /// A free slot, or one more at the end of the file.
    fn take_slot(&mut self) -> usize {
        self.free.pop_first().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    const LAYOUT: Layout = Layout { name: "table", slot_bytes: 64, slots: 2 };

    fn open(directory: &tempfile::TempDir) -> Table<u32, (u32, String)> {
        let opened = File::open(directory.path()).unwrap();
        Table::open(opened.as_fd(), LAYOUT, |record: &(u32, String)| record.0).unwrap()
    }

    fn all(table: &Table<u32, (u32, String)>) -> Vec<(u32, String)> {
        table.select(|_| true)
    }

    fn record(key: u32, text: &str) -> (u32, String) {
        (key, text.to_owned())
    }

    #[test]
    fn records_are_replaced_in_place_and_slots_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let table = open(&directory);
        for round in 0..10 {
            table.put(1, record(1, &round.to_string())).unwrap();
            table.put(2, record(2, "x")).unwrap();
            table.remove(&2).unwrap();
        }
        assert_eq!(all(&table), [record(1, "9")]);
        assert_eq!(all(&open(&directory)), [record(1, "9")]);
        assert_eq!(std::fs::metadata(directory.path().join("table")).unwrap().len(), 128);
    }

    #[test]
    fn the_file_grows_past_the_space_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let table = open(&directory);
        for key in 0..5 {
            table.put(key, record(key, "x")).unwrap();
        }
        assert_eq!(all(&open(&directory)).len(), 5);
    }

    #[test]
    fn a_write_that_fails_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let table = open(&directory);
        table.put(1, record(1, "old")).unwrap();
        assert!(table.put(1, record(1, &"x".repeat(64))).is_err());
        assert!(table.put(2, record(2, &"x".repeat(64))).is_err());
        assert_eq!(all(&table), [record(1, "old")]);
        assert_eq!(all(&open(&directory)), [record(1, "old")]);
        assert_eq!(table.get(&2), None);
    }

    #[test]
    fn c40_a_slot_whose_write_failed_is_used_for_no_other_record() {
        let directory = tempfile::tempdir().unwrap();
        let table = open(&directory);
        // As if a write had reached the file and failed all the same.
        table.file.write(0, &record(1, "old")).unwrap();
        table.state().free.remove(&0);
        table.state().unsettled.insert(1, 0);
        table.put(2, record(2, "x")).unwrap();
        assert!(table.may_have(&1) && !table.may_have(&3));
        table.put(1, record(1, "new")).unwrap();
        assert_eq!(all(&open(&directory)), [record(1, "new"), record(2, "x")]);
        table.file.write(2, &record(3, "old")).unwrap();
        table.state().unsettled.insert(3, 2);
        table.remove(&3).unwrap();
        assert_eq!(all(&open(&directory)), [record(1, "new"), record(2, "x")]);
    }

    #[test]
    fn a_slot_that_was_surely_not_written_is_free_again() {
        let directory = tempfile::tempdir().unwrap();
        let table = open(&directory);
        for key in 0..9 {
            assert!(table.put(key, record(key, &"x".repeat(64))).is_err());
            assert!(!table.may_have(&key));
        }
        table.put(1, record(1, "x")).unwrap();
        assert_eq!(std::fs::metadata(directory.path().join("table")).unwrap().len(), 128);
    }
}
