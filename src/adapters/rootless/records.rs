//! The port `Records` on the record file.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::Rootless;
use super::failure::of_record;
use super::record_file::AllRecords;
use crate::domain::event_series::{EventName, Series};
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::{Keeping, Kept, KeptCopy};
use crate::domain::proof::{History, Marker};
use crate::domain::target::TargetPath;
use crate::domain::trash::{CopyMark, TrashId};
use crate::ports::records::{Records, RecordsError};

impl Rootless {
    fn change(&self, durable: bool, change: impl FnOnce(&mut AllRecords)) -> Result<(), RecordsError> {
        let mut file = self.record_file();
        let changed = file.change(durable, change);
        changed.map_err(|error| of_record(file.path(), &error))
    }
}

#[async_trait]
impl Records for Rootless {
    fn targets(&self) -> Vec<TargetRecord> {
        self.record_file().all().targets.clone()
    }

    fn target(&self, target: &TargetPath) -> Option<TargetRecord> {
        self.record_file().all().targets.iter().find(|record| &record.target == target).cloned()
    }

    fn targets_of(&self, handle: &Handle) -> Vec<TargetRecord> {
        self.record_file().all().targets.iter().filter(|record| &record.handle == handle).cloned().collect()
    }

    async fn put_target(&self, record: &TargetRecord) -> Result<(), RecordsError> {
        self.change(false, |all| {
            all.targets.retain(|kept| kept.target != record.target);
            let at = all.targets.partition_point(|kept| kept.target < record.target);
            all.targets.insert(at, record.clone());
        })
    }

    async fn drop_target(&self, target: &TargetPath) -> Result<(), RecordsError> {
        self.change(false, |all| all.targets.retain(|kept| &kept.target != target))
    }

    fn trashed(&self, handle: &Handle) -> BTreeSet<TrashId> {
        let file = self.record_file();
        file.all().trash.iter().filter(|(_, kept)| *kept == handle).map(|(id, _)| *id).collect()
    }

    async fn reserve_trash(&self, handle: &Handle, kept: Option<Kept>) -> Result<TrashId, RecordsError> {
        let mut file = self.record_file();
        let id = TrashId(file.all().last_trash + 1);
        let reserved = file.change(kept.is_some(), |all| {
            all.last_trash = id.0;
            all.trash.insert(id, handle.clone());
            all.kept.extend(kept.map(|kept| (id, kept)));
        });
        reserved.map(|()| id).map_err(|error| of_record(file.path(), &error))
    }

    async fn forget_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        self.change(false, |all| {
            all.trash.remove(&id);
            all.kept.remove(&id);
        })
    }

    fn kept_trash(&self) -> Vec<KeptCopy> {
        let file = self.record_file();
        let kept = file.all().kept.iter().filter_map(|(&id, &kept)| {
            let handle = file.all().trash.get(&id)?.clone();
            Some(KeptCopy { id, handle, kept })
        });
        kept.collect()
    }

    async fn release_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        self.change(true, |all| {
            all.kept.remove(&id);
        })
    }

    fn keeping(&self) -> Option<Keeping> {
        self.record_file().all().keeping
    }

    async fn put_keeping(&self, keeping: Keeping) -> Result<(), RecordsError> {
        self.change(false, |all| all.keeping = Some(keeping))
    }

    fn trash_records(&self) -> Vec<(TrashId, Handle)> {
        self.record_file().all().trash.iter().map(|(id, handle)| (*id, handle.clone())).collect()
    }

    async fn condemn(&self, handle: &Handle, mark: CopyMark) -> Result<(), RecordsError> {
        self.change(true, |all| {
            all.condemned.insert(handle.clone(), mark);
        })
    }

    fn condemned(&self) -> Vec<(Handle, CopyMark)> {
        self.record_file().all().condemned.iter().map(|(handle, mark)| (handle.clone(), *mark)).collect()
    }

    async fn acquit(&self, handle: &Handle) -> Result<(), RecordsError> {
        self.change(true, |all| {
            all.condemned.remove(handle);
        })
    }

    fn series(&self) -> Vec<Series> {
        self.record_file().all().series.clone()
    }

    async fn put_series(&self, series: &Series) -> Result<(), RecordsError> {
        self.change(false, |all| {
            all.series.retain(|kept| kept.name != series.name);
            all.series.push(series.clone());
        })
    }

    async fn drop_series(&self, name: &EventName) -> Result<(), RecordsError> {
        self.change(false, |all| all.series.retain(|kept| &kept.name != name))
    }

    fn history(&self) -> Option<History> {
        self.record_file().all().history
    }

    async fn put_history(&self, history: History, durable: bool) -> Result<(), RecordsError> {
        self.change(durable, |all| all.history = Some(history))
    }

    fn marker(&self) -> Option<Marker> {
        self.record_file().all().marker.clone()
    }

    async fn put_marker(&self, marker: &Marker) -> Result<(), RecordsError> {
        self.change(true, |all| all.marker = Some(marker.clone()))
    }
}
