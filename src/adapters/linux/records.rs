//! The port [`Records`] on slot files below `holds/`.
//!
//! Revision, marker and how copies are kept have two slots each and are written in turns ([`Turns`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::blocking;
use super::failure::{Failure, Outcome};
use super::slots::{Access, Layout};
use super::store::StoreDirs;
use super::table::Table;
use super::turns::Turns;
use crate::domain::event_series::{EventName, SERIES_MAX, Series};
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::{Keeping, Kept, KeptCopy};
use crate::domain::proof::{History, Marker, Revision};
use crate::domain::target::TargetPath;
use crate::domain::trash::{CopyMark, TrashId};
use crate::ports::records::{Records, RecordsError};

/// Targets on a node: more than a kubelet runs pods by default. The file grows past it where there is space.
const TARGETS: Layout = Layout { name: "targets", slot_bytes: 8192, slots: 256 };
const TRASH: Layout = Layout { name: "trash", slot_bytes: 512, slots: 256 };
const SERIES: Layout = Layout { name: "events", slot_bytes: 8192, slots: SERIES_MAX };
const HISTORY: Layout = Layout { name: "history", slot_bytes: 4096, slots: 2 };
const KEEPING: Layout = Layout { name: "keeping", slot_bytes: 512, slots: 2 };
const MARKER: Layout = Layout { name: "marker", slot_bytes: 4096, slots: 2 };

/// The small records of the store.
#[derive(Clone)]
pub struct SlotRecords {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    targets: Table<TargetPath, TargetRecord>,
    trash: Table<TrashId, TrashRecord>,
    /// Under which ids this process has begun to write that a copy is condemned, whatever became of it.
    condemning: Mutex<BTreeMap<TrashId, Handle>>,
    series: Table<EventName, Series>,
    history: Turns<History>,
    marker: Turns<Marker>,
    /// `None` where the disk was too full to make the file: a plugin that is new to it starts all the same.
    keeping: Option<Turns<Keeping>>,
    next_trash: AtomicU64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TrashRecord {
    id: TrashId,
    handle: Handle,
    /// The copy is being deleted in its place; nothing in the trash has this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condemned: Option<CopyMark>,
    /// It can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Kept>,
}

impl SlotRecords {
    /// Opens the files; the first time, sets their space aside.
    pub fn open(store: &StoreDirs) -> Outcome<SlotRecords> {
        SlotRecords::of(store, Access::Write)
    }

    /// Reads the files as they are, beside the process that writes them or without one. Every write fails.
    pub fn look(store: &StoreDirs) -> Outcome<SlotRecords> {
        SlotRecords::of(store, Access::Read)
    }

    fn of(store: &StoreDirs, access: Access) -> Outcome<SlotRecords> {
        let holds = store.holds();
        let trash = Table::open_for(holds, TRASH, access, |record: &TrashRecord| record.id)?;
        let shared = Shared {
            path: store.path().join("holds"),
            targets: Table::open_for(holds, TARGETS, access, |record: &TargetRecord| record.target.clone())?,
            next_trash: AtomicU64::new(first_trash(&trash)),
            trash,
            condemning: Mutex::default(),
            series: Table::open_for(holds, SERIES, access, |series: &Series| series.name.clone())?,
            history: Turns::open(holds, HISTORY, access)?,
            marker: Turns::open(holds, MARKER, access)?,
            keeping: Turns::open_if_there_is_space(holds, KEEPING, access)?,
        };
        Ok(SlotRecords { shared: Arc::new(shared) })
    }

    async fn write(
        &self,
        job: impl FnOnce(&Shared) -> Outcome<()> + Send + 'static,
    ) -> Result<(), RecordsError> {
        let shared = self.shared.clone();
        match blocking::run(move || job(&shared)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(as_error(failure, &self.shared.path)),
            Err(lost) => Err(RecordsError::Unknown(lost.at(&self.shared.path))),
        }
    }
}

impl Shared {
    fn next_trash(&self) -> TrashId {
        TrashId(self.next_trash.fetch_add(1, Ordering::Relaxed))
    }

    fn condemning(&self) -> MutexGuard<'_, BTreeMap<TrashId, Handle>> {
        self.condemning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under which ids a copy of the handle is condemned on record, or may be.
    fn condemned_as(&self, handle: &Handle) -> Vec<TrashId> {
        let records = self.trash.select(|record| &record.handle == handle && record.condemned.is_some());
        let mut ids: BTreeSet<TrashId> = records.into_iter().map(|record| record.id).collect();
        ids.extend(self.condemning().iter().filter(|(_, whose)| *whose == handle).map(|(id, _)| *id));
        ids.into_iter().collect()
    }
}

/// Ids begin at the calendar's milliseconds: above every id of every earlier process, also of those whose records
/// are gone while a mount still shows what they named.
fn first_trash(trash: &Table<TrashId, TrashRecord>) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let known = trash.select(|_| true).into_iter().map(|record| record.id.0).max();
    let above = known.map_or(0, |id| id.saturating_add(1));
    u64::try_from(now).unwrap_or(u64::MAX).max(above)
}

fn kept_copy(record: TrashRecord) -> Option<KeptCopy> {
    Some(KeptCopy { id: record.id, handle: record.handle, kept: record.kept? })
}

fn as_error(failure: Failure, path: &Path) -> RecordsError {
    match failure.errno {
        Errno::NOSPC | Errno::DQUOT => RecordsError::Full(failure.at(path)),
        Errno::MSGSIZE => RecordsError::TooLarge(failure.at(path)),
        Errno::ROFS => RecordsError::ReadOnly(failure.at(path)),
        _ => RecordsError::Io(failure.at(path)),
    }
}

#[async_trait]
impl Records for SlotRecords {
    fn targets(&self) -> Vec<TargetRecord> {
        self.shared.targets.select(|_| true)
    }

    fn target(&self, target: &TargetPath) -> Option<TargetRecord> {
        self.shared.targets.get(target)
    }

    fn targets_of(&self, handle: &Handle) -> Vec<TargetRecord> {
        self.shared.targets.select(|record| &record.handle == handle)
    }

    async fn put_target(&self, record: &TargetRecord) -> Result<(), RecordsError> {
        let record = record.clone();
        self.write(move |shared| shared.targets.put(record.target.clone(), record)).await
    }

    async fn drop_target(&self, target: &TargetPath) -> Result<(), RecordsError> {
        if !self.shared.targets.may_have(target) {
            return Ok(());
        }
        let target = target.clone();
        self.write(move |shared| shared.targets.remove(&target)).await
    }

    fn trashed(&self, handle: &Handle) -> BTreeSet<TrashId> {
        let records =
            self.shared.trash.select(|record| &record.handle == handle && record.condemned.is_none());
        records.into_iter().map(|record| record.id).collect()
    }

    async fn reserve_trash(&self, handle: &Handle, kept: Option<Kept>) -> Result<TrashId, RecordsError> {
        let id = self.shared.next_trash();
        let record = TrashRecord { id, handle: handle.clone(), condemned: None, kept };
        let job = move |shared: &Shared| {
            shared.trash.put(id, record)?;
            if kept.is_none() {
                return Ok(());
            }
            shared.trash.sync().inspect_err(|_| {
                let _ = shared.trash.remove(&id);
            })
        };
        self.write(job).await?;
        Ok(id)
    }

    async fn forget_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        self.write(move |shared| shared.trash.remove(&id)).await
    }

    fn trash_records(&self) -> Vec<(TrashId, Handle)> {
        let records = self.shared.trash.select(|record| record.condemned.is_none());
        records.into_iter().map(|record| (record.id, record.handle)).collect()
    }

    fn kept_trash(&self) -> Vec<KeptCopy> {
        self.shared.trash.select(|record| record.kept.is_some()).into_iter().filter_map(kept_copy).collect()
    }

    async fn release_trash(&self, id: TrashId) -> Result<(), RecordsError> {
        let Some(record) = self.shared.trash.get(&id).filter(|record| record.kept.is_some()) else {
            return Ok(());
        };
        let job = move |shared: &Shared| {
            shared.trash.put(id, TrashRecord { kept: None, ..record.clone() })?;
            // Until the disk has it, it is kept: a power failure might bring the record back and not the copy.
            shared.trash.sync().inspect_err(|_| {
                let _ = shared.trash.put(id, record);
            })
        };
        self.write(job).await
    }

    fn keeping(&self) -> Option<Keeping> {
        self.shared.keeping.as_ref()?.get()
    }

    async fn put_keeping(&self, keeping: Keeping) -> Result<(), RecordsError> {
        let none = Failure { step: "make a record file in", errno: Errno::NOSPC };
        self.write(move |shared| shared.keeping.as_ref().ok_or(none)?.put(keeping)).await
    }

    async fn condemn(&self, handle: &Handle, mark: CopyMark) -> Result<(), RecordsError> {
        let id = self.shared.condemned_as(handle).first().copied();
        let id = id.unwrap_or_else(|| self.shared.next_trash());
        let record = TrashRecord { id, handle: handle.clone(), condemned: Some(mark), kept: None };
        self.shared.condemning().insert(id, handle.clone());
        let job = move |shared: &Shared| {
            shared.trash.put(id, record)?;
            shared.trash.sync()
        };
        self.write(job).await
    }

    fn condemned(&self) -> Vec<(Handle, CopyMark)> {
        let records = self.shared.trash.select(|record| record.condemned.is_some());
        records.into_iter().filter_map(|record| Some((record.handle, record.condemned?))).collect()
    }

    async fn acquit(&self, handle: &Handle) -> Result<(), RecordsError> {
        let ids = self.shared.condemned_as(handle);
        let job = move |shared: &Shared| {
            ids.iter().try_for_each(|id| shared.trash.remove(id))?;
            shared.trash.sync()?;
            shared.condemning().retain(|id, _| !ids.contains(id));
            Ok(())
        };
        self.write(job).await
    }

    fn series(&self) -> Vec<Series> {
        self.shared.series.select(|_| true)
    }

    async fn put_series(&self, series: &Series) -> Result<(), RecordsError> {
        let series = series.clone();
        self.write(move |shared| shared.series.put(series.name.clone(), series)).await
    }

    async fn drop_series(&self, name: &EventName) -> Result<(), RecordsError> {
        let name = name.clone();
        self.write(move |shared| shared.series.remove(&name)).await
    }

    /// One that is there and cannot be read may have said anything: it went back, until a person confirms (C22 (c)).
    fn history(&self) -> Option<History> {
        let history = &self.shared.history;
        let doubted = || History { went_back: true, ..History::up_to(Revision::default()) };
        history.get().or_else(|| history.is_lost().then(doubted))
    }

    async fn put_history(&self, history: History, durable: bool) -> Result<(), RecordsError> {
        let job = move |shared: &Shared| {
            shared.history.put(history)?;
            if durable { shared.history.sync() } else { Ok(()) }
        };
        self.write(job).await
    }

    fn marker(&self) -> Option<Marker> {
        self.shared.marker.get()
    }

    async fn put_marker(&self, marker: &Marker) -> Result<(), RecordsError> {
        let marker = marker.clone();
        let job = move |shared: &Shared| {
            shared.marker.put(marker)?;
            shared.marker.sync()
        };
        self.write(job).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::proof::ClusterUid;

    fn open(scratch: &tempfile::TempDir) -> SlotRecords {
        SlotRecords::open(&StoreDirs::open(scratch.path()).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn c22_revision_and_marker_outlive_a_restart_and_a_torn_write() {
        let scratch = tempfile::tempdir().unwrap();
        let records = open(&scratch);
        assert_eq!((records.history(), records.marker()), (None, None));
        for revision in [5, 9, 7] {
            records.put_history(History::up_to(Revision(revision)), true).await.unwrap();
        }
        let marker = Marker { driver_name: "d".into(), cluster_uid: ClusterUid("c".into()) };
        records.put_marker(&marker).await.unwrap();
        let again = open(&scratch);
        assert_eq!((again.history(), again.marker()), (Some(History::up_to(Revision(7))), Some(marker)));
        // The third write went to the slot of the first; torn, it leaves the second.
        let path = scratch.path().join("holds/history");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] = b'!';
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(&scratch).history(), Some(History::up_to(Revision(9))));
    }

    #[tokio::test]
    async fn c22_a_history_that_cannot_be_read_waits_for_a_person() {
        let scratch = tempfile::tempdir().unwrap();
        let records = open(&scratch);
        records.put_history(History::up_to(Revision(5)), true).await.unwrap();
        let path = scratch.path().join("holds/history");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] = b'!';
        std::fs::write(&path, bytes).unwrap();
        let again = open(&scratch);
        assert!(again.history().is_some_and(|history| history.went_back));
        // What a person confirms is one that can be read.
        again.put_history(History::up_to(Revision(7)), true).await.unwrap();
        assert_eq!(again.history(), Some(History::up_to(Revision(7))));
        assert_eq!(open(&scratch).history(), Some(History::up_to(Revision(7))));
    }

    #[tokio::test]
    async fn c03_trash_ids_are_never_given_twice() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = Handle::parse("a").unwrap();
        let records = open(&scratch);
        let first = records.reserve_trash(&handle, None).await.unwrap();
        let second = records.reserve_trash(&handle, None).await.unwrap();
        assert!(second > first);
        assert_eq!(records.trashed(&handle), [first, second].into());
        records.forget_trash(first).await.unwrap();
        let again = open(&scratch);
        assert_eq!(again.trash_records(), [(second, handle.clone())]);
        assert!(again.reserve_trash(&handle, None).await.unwrap() > second);
    }

    #[tokio::test]
    async fn c15_a_foreign_file_among_the_records_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let records = open(&scratch);
        std::fs::write(scratch.path().join("holds/note"), "mine").unwrap();
        std::fs::write(scratch.path().join("holds/targets"), "no record at all").unwrap();
        drop(records);
        assert_eq!(open(&scratch).targets(), []);
        assert!(scratch.path().join("holds/note").exists());
    }
}
