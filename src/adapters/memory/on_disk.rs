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
