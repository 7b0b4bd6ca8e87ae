//! What a node's disk has on record, as the next process will find it. A look; nothing is changed here.

use std::collections::BTreeMap;

use super::node::Node;
use crate::domain::event_series::Series;
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::Kept;
use crate::domain::proof::{History, Marker, Revision};
use crate::domain::trash::{CopyMark, TrashId};

impl Node {
    /// What is available on the store's file system, and what it has in all, in bytes.
    pub fn space(&self) -> (u64, u64) {
        let world = self.world();
        (world.available_bytes(), world.total_bytes)
    }

    /// What is in the trash: the inode of each entry, and the files in it.
    pub fn trash_files(&self) -> BTreeMap<TrashId, (u64, BTreeMap<String, Vec<u8>>)> {
        let world = self.world();
        let files = |inode: &u64| world.directories.get(inode).map(|copy| copy.files.clone());
        world.trash.iter().map(|(id, inode)| (*id, (*inode, files(inode).unwrap_or_default()))).collect()
    }

    /// The target records on disk, as the next process will find them.
    pub fn records_on_disk(&self) -> Vec<TargetRecord> {
        self.world().disk.targets.values().cloned().collect()
    }

    /// The event series that are on the disk.
    pub fn series_on_disk(&self) -> Vec<Series> {
        self.world().disk.series.values().cloned().collect()
    }

    /// The store's marker, as the next process will find it.
    pub fn marker_on_disk(&self) -> Option<Marker> {
        self.world().disk.marker.clone()
    }

    /// The API server's history as the disk has it.
    pub fn history_on_disk(&self) -> Option<History> {
        self.world().disk.history
    }

    /// The highest revision on disk.
    pub fn revision_on_disk(&self) -> Option<Revision> {
        self.history_on_disk().map(|history| history.highest)
    }

    /// The trash entries on record on disk.
    pub fn trash_records_on_disk(&self) -> BTreeMap<TrashId, Handle> {
        self.world().disk.trash.clone()
    }

    /// Those of them that are kept.
    pub fn kept_on_disk(&self) -> BTreeMap<TrashId, Kept> {
        self.world().disk.kept.clone()
    }

    /// The copies that are condemned on disk.
    pub fn condemned_on_disk(&self) -> BTreeMap<Handle, CopyMark> {
        self.world().disk.condemned.clone()
    }
}
