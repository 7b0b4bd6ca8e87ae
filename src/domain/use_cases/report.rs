//! What the driver tells people of its copies: handles, sizes, holders, orphans, the trash, the last refusals. From memory
//! alone: it asks neither the disk, nor the kernel, nor the API server, takes no lock of a handle, and decides nothing.
//!
//! Who holds a copy is told by the records, which each publish and unpublish keeps and each tick compares with the kernel's
//! mounts, and by the mounts without a record that the latest of those looks found.

use std::collections::BTreeMap;

use super::driver::Driver;
use super::sight::SeenMount;
use crate::domain::handle::Handle;
use crate::domain::holds::{TargetRecord, TargetState, pod_at};
use crate::domain::pod::Pod;
use crate::domain::recent_refusals::{RefusalKey, Repeated};
use crate::domain::time::Wall;
use crate::domain::trash::TrashId;
use crate::ports::copies::{Capacity, Measured};

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

impl Driver {
    /// The part of the report that is wanted.
    pub fn report(&self, wanted: &Wanted) -> Report {
        let records = self.ports.records.targets();
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

    /// What is in the trash, in order.
    pub fn trash_report(&self) -> Vec<(TrashId, Handle)> {
        let mut trash = self.ports.records.trash_records();
        trash.sort();
        trash
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
