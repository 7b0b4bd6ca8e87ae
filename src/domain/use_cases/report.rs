//! What the driver tells people of its copies: handles, sizes, holders, orphans, the trash, the last refusals. From memory
//! alone: it asks neither the disk, nor the kernel, nor the API server, takes no lock of a handle, and decides nothing.
//!
//! Who holds a copy is told by the records, which each publish and unpublish keeps and each tick compares with the kernel's
//! mounts, and by the mounts without a record that the latest of those looks found.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use super::driver::{Driver, Ports};
use super::sight::SeenMount;
use crate::domain::handle::Handle;
use crate::domain::holds::{TargetRecord, TargetState, pod_at};
use crate::domain::kept::{Keeping, Kept};
use crate::domain::pod::Pod;
use crate::domain::recent_refusals::{RefusalKey, Repeated};
use crate::domain::time::Wall;
use crate::domain::trash::TrashId;
use crate::ports::copies::{Capacity, CopiesError, Measured};
use crate::ports::mounts::MountsError;

/// Which part of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// This copy alone.
    pub handle: Option<Handle>,
    /// Copies behind this one, in the order of handles.
    pub after: Option<Handle>,
    pub copies_max: usize,
}

/// One page of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// By handle.
    pub copies: Vec<CopyReport>,
    pub copies_total: u64,
    /// Whether copies follow behind the last of these.
    pub more: bool,
    /// When the store was last listed.
    pub listed: Option<Wall>,
    pub capacity: Option<(Capacity, Wall)>,
}

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyReport {
    pub handle: Handle,
    pub measured: Option<Measured>,
    /// No PersistentVolume names it; `None` where this process has not read them.
    pub orphan: Option<bool>,
    /// By target.
    pub holders: Vec<HolderReport>,
    /// Mounts that are no pod's target.
    pub leftovers: u64,
}

/// One target that shows a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderReport {
    pub pod: Pod,
    pub since: Option<Wall>,
    pub readonly: Option<bool>,
}

/// A removed copy that is not gone yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashReport {
    pub id: TrashId,
    pub handle: Handle,
    /// Of one that is kept (C26).
    pub kept: Option<Kept>,
    /// How much longer; zero where its time is over, `None` where it is not kept or nobody has said for how long.
    pub left: Option<Duration>,
}

/// Why a look brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookError {
    #[error("the kernel's mounts cannot be read: {0}")]
    Mounts(MountsError),
    #[error("the copies cannot be listed: {0}")]
    Copies(CopiesError),
    #[error("copy {handle} cannot be counted: {why}")]
    Count { handle: Handle, why: CopiesError },
}

impl Driver {
    /// The report of a store that nobody need be serving: the mounts, the copies and the space are looked at now, and who
    /// holds a copy is told by the mounts, to which the records only add names. With `sizes` every copy that is told is
    /// counted to its end. It takes no lock and writes nothing.
    ///
    /// # Errors
    /// Where not all could be seen.
    pub async fn look(&self, wanted: &Wanted, sizes: bool) -> Result<Report, LookError> {
        let Ports { mounts, copies, records, clock, .. } = &self.ports;
        let table = mounts.table().await.map_err(LookError::Mounts)?.mounts;
        let handled = table.iter().filter_map(|mount| Some((mount, self.handle_at(&mount.shown.place)?)));
        self.sight.mounted(handled, &self.settings.kubelet_dir);
        let listing = copies.list().await.map_err(LookError::Copies)?;
        let now = clock.wall();
        self.sight.listed(&listing.handles, now);
        if let Ok(capacity) = copies.capacity().await {
            self.sight.measured(capacity, now);
        }
        if sizes {
            let is_wanted = |handle: &&Handle| wanted.handle.as_ref().is_none_or(|only| &only == handle);
            for handle in listing.handles.iter().filter(is_wanted) {
                self.count(handle).await?;
            }
        }
        let mut records = records.targets();
        records.retain(|record| table.iter().any(|mount| mount.mount_point == record.target.as_path()));
        Ok(self.report_of(wanted, records))
    }

    /// Counts a copy to the end of its walk, which is bounded (C46).
    async fn count(&self, handle: &Handle) -> Result<(), LookError> {
        loop {
            match self.ports.copies.usage(handle).await {
                Ok(usage) if usage.complete => return Ok(()),
                Ok(_) => {}
                // It went meanwhile.
                Err(CopiesError::Missing(_)) => return Ok(()),
                Err(why) => return Err(LookError::Count { handle: handle.clone(), why }),
            }
        }
    }

    /// The part of the report that is wanted.
    pub fn report(&self, wanted: &Wanted) -> Report {
        self.report_of(wanted, self.ports.records.targets())
    }

    fn report_of(&self, wanted: &Wanted, records: Vec<TargetRecord>) -> Report {
        let mounts = self.sight.mounts();
        let mut handles = self.sight.copies();
        // Also what was published since the store was last listed, and what only a mount still shows.
        handles.extend(held(&records).map(|record| record.handle.clone()));
        handles.extend(mounts.iter().map(|mount| mount.handle.clone()));
        let copies_total = handles.len() as u64;
        let mut selected = handles.into_iter().filter(|handle| {
            wanted.handle.as_ref().is_none_or(|only| only == handle)
                && wanted.after.as_ref().is_none_or(|after| handle > after)
        });
        let page: Vec<Handle> = selected.by_ref().take(wanted.copies_max).collect();
        let more = selected.next().is_some();
        let mut holders = self.holders(&records, &mounts);
        let mut leftovers: BTreeMap<&Handle, u64> = BTreeMap::new();
        for mount in mounts.iter().filter(|mount| !mount.is_target) {
            *leftovers.entry(&mount.handle).or_default() += 1;
        }
        let copies = page.into_iter().map(|handle| CopyReport {
            measured: self.ports.copies.measured(&handle),
            orphan: self.is_orphan(&handle),
            holders: holders.remove(&handle).unwrap_or_default(),
            leftovers: leftovers.get(&handle).copied().unwrap_or_default(),
            handle,
        });
        let copies = copies.collect();
        let (listed, capacity) = (self.sight.listed_at(), self.sight.capacity());
        Report { copies, copies_total, more, listed, capacity }
    }

    /// What is in the trash, in the order of its ids, and how long this process keeps it.
    pub fn trash_report(&self) -> Vec<TrashReport> {
        self.trash_kept_by(Some(Keeping { served: self.served(), trash_for: self.settings.brakes.trash_for }))
    }

    /// The same as the process that serves the store, or served it last, has it on record.
    pub fn trash_on_record(&self) -> Vec<TrashReport> {
        self.trash_kept_by(self.ports.records.keeping())
    }

    fn trash_kept_by(&self, keeping: Option<Keeping>) -> Vec<TrashReport> {
        let records = &self.ports.records;
        let kept: BTreeMap<TrashId, Kept> =
            records.kept_trash().into_iter().map(|copy| (copy.id, copy.kept)).collect();
        let mut trash = records.trash_records();
        trash.sort();
        let entries = trash.into_iter().map(|(id, handle)| {
            let kept = kept.get(&id).copied();
            let left = kept
                .zip(keeping)
                .map(|(kept, keeping)| kept.left(keeping.served, keeping.trash_for).unwrap_or_default());
            TrashReport { id, handle, kept, left }
        });
        entries.collect()
    }

    /// The refusals of the last hour, the latest first.
    pub fn recent_refusals(&self) -> Vec<(RefusalKey, Repeated)> {
        self.events.recent().latest(self.ports.clock.wall())
    }

    fn holders(&self, records: &[TargetRecord], mounts: &[SeenMount]) -> BTreeMap<Handle, Vec<HolderReport>> {
        let mut holders: BTreeMap<Handle, Vec<HolderReport>> = BTreeMap::new();
        for record in held(records) {
            let readonly = Some(record.readonly);
            let holder = HolderReport { pod: record.holder(), since: record.since, readonly };
            holders.entry(record.handle.clone()).or_default().push(holder);
        }
        let recorded = |mount: &SeenMount| records.iter().any(|record| record.target == mount.target);
        for mount in mounts.iter().filter(|mount| mount.is_target && !recorded(mount)) {
            let pod = pod_at(mount.target.clone(), &self.settings.kubelet_dir, |_| None);
            let holder = HolderReport { pod, since: None, readonly: None };
            holders.entry(mount.handle.clone()).or_default().push(holder);
        }
        for of_one in holders.values_mut() {
            of_one.sort_by(|a, b| a.pod.target.cmp(&b.pod.target));
        }
        holders
    }

    fn is_orphan(&self, handle: &Handle) -> Option<bool> {
        let cluster = self.ports.cluster.as_ref().filter(|cluster| cluster.watch_health().synced)?;
        Some(!cluster.is_named(handle))
    }
}

fn held(records: &[TargetRecord]) -> impl Iterator<Item = &TargetRecord> {
    records.iter().filter(|record| match record.state {
        TargetState::Held => true,
        TargetState::Attaching(_) => false,
    })
}
