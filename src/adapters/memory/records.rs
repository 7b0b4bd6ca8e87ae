//! The port `Records` on a node in memory: a disk that outlives the process, and what the process knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;

use super::kernel_fault::{KernelFault, errno, failure, of_fault, records_error};
use super::locked;
use super::node::{Node, NodeCall};
use crate::domain::event_series::{EventName, SERIES_MAX, Series};
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::{Keeping, Kept, KeptCopy};
use crate::domain::proof::{History, Marker};
use crate::domain::target::TargetPath;
use crate::domain::trash::{CopyMark, TrashId};
use crate::ports::records::{Records, RecordsError};

/// How many target records a node has room for, unless told otherwise.
const TARGET_SLOTS: usize = 4096;

/// What is written.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub targets: BTreeMap<TargetPath, TargetRecord>,
    pub target_slots: usize,
    pub trash: BTreeMap<TrashId, Handle>,
    last_trash: u64,
    pub kept: BTreeMap<TrashId, Kept>,
    keeping: Option<Keeping>,
    pub condemned: BTreeMap<Handle, CopyMark>,
    pub series: BTreeMap<EventName, Series>,
    pub history: Option<History>,
    history_durable: Option<History>,
    pub marker: Option<Marker>,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk {
            targets: BTreeMap::new(),
            target_slots: TARGET_SLOTS,
            trash: BTreeMap::new(),
            last_trash: 0,
            kept: BTreeMap::new(),
            keeping: None,
            condemned: BTreeMap::new(),
            series: BTreeMap::new(),
            history: None,
            history_durable: None,
            marker: None,
        }
    }
}

impl Disk {
    pub fn lose_what_is_not_durable(&mut self) {
        self.keeping = None;
        self.history = self.history_durable;
    }
}

/// The records of one process, read when it opened them. A write that is answered with an error may be on
/// the disk all the same; the process does not know it.
pub struct MemoryRecords {
    node: Node,
    known: Mutex<Disk>,
}

impl MemoryRecords {
    /// Reads what the disk has.
    pub fn open(node: &Node) -> MemoryRecords {
        let known = Mutex::new(node.world().disk.clone());
        MemoryRecords { node: node.clone(), known }
    }

    async fn write<T: Send>(
        &self,
        call: NodeCall,
        mut change: impl FnMut(&mut Disk) -> Result<T, i32> + Send,
    ) -> Result<T, RecordsError> {
        let path = Path::new("holds");
        let act = move |is_answered: bool| {
            let mut world = self.node.world();
            world.check_writable().map_err(|no| records_error(failure("pwrite", path, no)))?;
            let done = change(&mut world.disk).map_err(|no| records_error(failure("pwrite", path, no)))?;
            if is_answered {
                change(&mut locked(&self.known)).map_err(|no| records_error(failure("pwrite", path, no)))?;
            }
            Ok(done)
        };
        let error =
            |fault: KernelFault| of_fault(fault, "pwrite", path, records_error, RecordsError::Unknown);
        self.node.gate().pass_knowing(call, act, error).await
    }
}

#[async_trait]
impl Records for MemoryRecords {
    fn targets(&self) -> Vec<TargetRecord> {
        locked(&self.known).targets.values().cloned().collect()
    }

    fn target(&self, target: &TargetPath) -> Option<TargetRecord> {
        locked(&self.known).targets.get(target).cloned()
    }

    fn targets_of(&self, handle: &Handle) -> Vec<TargetRecord> {
        let known = locked(&self.known);
        known.targets.values().filter(|record| &record.handle == handle).cloned().collect()
    }

    async fn put_target(&self, record: &TargetRecord) -> Result<(), RecordsError> {
        self.write(NodeCall::PutTarget, |disk| {
            let is_new = !disk.targets.contains_key(&record.target);
            if is_new && disk.targets.len() >= disk.target_slots {
                return Err(errno::ENOSPC);
            }
            disk.targets.insert(record.target.clone(), record.clone());
            Ok(())
        })
        .await
    }

    async fn drop_target(&self, target: &TargetPath) -> Result<(), RecordsError> {
        self.write(NodeCall::DropTarget, |disk| {
            disk.targets.remove(target);
            Ok(())
        })
        .await
    }

    fn trashed(&self, handle: &Handle) -> BTreeSet<TrashId> {
        let known = locked(&self.known);
        known.trash.iter().filter(|(_, whose)| *whose == handle).map(|(id, _)| *id).collect()
    }

    async fn reserve_trash(&self, handle: &Handle, kept: Option<Kept>) -> Result<TrashId, RecordsError> {
        let mut reserved = None;
        self.write(NodeCall::ReserveTrash, |disk| {
            // The disk is changed first: its counter may be ahead of what the process knows.
            let id = *reserved.get_or_insert(TrashId(disk.last_trash + 1));
            disk.last_trash = id.0;
            disk.trash.insert(id, handle.clone());
            disk.kept.extend(kept.map(|kept| (id, kept)));
            Ok(id)
        })
        .await
    }

    async fn forget_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        self.write(NodeCall::ForgetTrash, |disk| {
            disk.trash.remove(&id);
            disk.kept.remove(&id);
            Ok(())
        })
        .await
    }

    fn kept_trash(&self) -> Vec<KeptCopy> {
        let known = locked(&self.known);
        let kept = known.kept.iter().filter_map(|(&id, &kept)| {
            let handle = known.trash.get(&id)?.clone();
            Some(KeptCopy { id, handle, kept })
        });
        kept.collect()
    }

    async fn release_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        self.write(NodeCall::ReleaseTrash, |disk| {
            disk.kept.remove(&id);
            Ok(())
        })
        .await
    }

    fn keeping(&self) -> Option<Keeping> {
        locked(&self.known).keeping
    }

    async fn put_keeping(&self, keeping: Keeping) -> Result<(), RecordsError> {
        self.write(NodeCall::PutKeeping, |disk| {
            disk.keeping = Some(keeping);
            Ok(())
        })
        .await
    }

    fn trash_records(&self) -> Vec<(TrashId, Handle)> {
        locked(&self.known).trash.iter().map(|(id, handle)| (*id, handle.clone())).collect()
    }

    async fn condemn(&self, handle: &Handle, mark: CopyMark) -> Result<(), RecordsError> {
        self.write(NodeCall::Condemn, |disk| {
            disk.condemned.insert(handle.clone(), mark);
            Ok(())
        })
        .await
    }

    fn condemned(&self) -> Vec<(Handle, CopyMark)> {
        locked(&self.known).condemned.iter().map(|(handle, mark)| (handle.clone(), *mark)).collect()
    }

    async fn acquit(&self, handle: &Handle) -> Result<(), RecordsError> {
        self.write(NodeCall::Acquit, |disk| {
            disk.condemned.remove(handle);
            Ok(())
        })
        .await
    }

    fn series(&self) -> Vec<Series> {
        locked(&self.known).series.values().cloned().collect()
    }

    async fn put_series(&self, series: &Series) -> Result<(), RecordsError> {
        self.write(NodeCall::PutSeries, |disk| {
            // Only what was set aside: a full disk gives no more.
            if !disk.series.contains_key(&series.name) && disk.series.len() >= SERIES_MAX {
                return Err(errno::ENOSPC);
            }
            disk.series.insert(series.name.clone(), series.clone());
            Ok(())
        })
        .await
    }

    async fn drop_series(&self, name: &EventName) -> Result<(), RecordsError> {
        self.write(NodeCall::DropSeries, |disk| {
            disk.series.remove(name);
            Ok(())
        })
        .await
    }

    fn history(&self) -> Option<History> {
        locked(&self.known).history
    }

    async fn put_history(&self, history: History, durable: bool) -> Result<(), RecordsError> {
        self.write(NodeCall::PutHistory, |disk| {
            disk.history = Some(history);
            if durable {
                disk.history_durable = Some(history);
            }
            Ok(())
        })
        .await
    }

    fn marker(&self) -> Option<Marker> {
        locked(&self.known).marker.clone()
    }

    async fn put_marker(&self, marker: &Marker) -> Result<(), RecordsError> {
        self.write(NodeCall::PutMarker, |disk| {
            disk.marker = Some(marker.clone());
            Ok(())
        })
        .await
    }
}
