//! Emptying the trash, in the background and after a restart (C23). An entry that any mount still shows stays, and so does
//! a copy that is kept, for its time (C26).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::driver::Driver;
use crate::domain::kept::WhyEmptied;
use crate::domain::trash::TrashId;
use crate::ports::copies::Deletion;

/// What a drain left in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    pub removed: u64,
    /// Entries that a mount still shows.
    pub in_use: u64,
    /// Entries that could not be deleted whole.
    pub stuck: u64,
    /// Copies that are kept for their time (C26).
    pub kept: u64,
}

impl Driver {
    /// Forgets reserved entries that a killed process never moved anything into. Only for the start: later a
    /// reservation may be a removal on its way.
    pub async fn forget_unused_trash(&self) {
        let there: BTreeSet<TrashId> = match self.ports.copies.trash().await {
            Ok(there) => there.into_iter().collect(),
            Err(error) => return tracing::warn!(%error, "the trash cannot be listed"),
        };
        for (id, handle) in self.ports.records.trash_records() {
            if !there.contains(&id)
                && let Err(error) = self.ports.records.forget_trash(id).await
            {
                tracing::warn!(%id, %handle, %error, "unused trash entry not forgotten");
            }
        }
    }

    /// Deletes what is in the trash, and what is left of copies that were being deleted in their place.
    pub async fn drain_trash(&self) -> Drained {
        let drained = self.drain_entries().await;
        self.make_room().await;
        self.take_stock_of_kept().await;
        self.finish_all_condemned().await;
        drained
    }

    /// Deletes what is in the trash. One drain at a time; what a mount shows is asked just before each entry.
    pub(super) async fn drain_entries(&self) -> Drained {
        let _one = self.trash_drain.lock().await;
        let mut drained = Drained::default();
        let entries = match self.ports.copies.trash().await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(%error, "the trash cannot be listed");
                return drained;
            }
        };
        // After the list: what is kept is on record before it is in the trash.
        let kept = self.ports.records.kept_trash().into_iter();
        let kept: BTreeMap<_, _> = kept.map(|copy| (copy.id, copy)).collect();
        for id in entries {
            match kept.get(&id) {
                None => self.drain_entry(id, &mut drained).await,
                Some(copy) if self.is_kept_on(copy) => drained.kept += 1,
                Some(copy) => self.empty_kept(copy, WhyEmptied::Over, &mut drained).await,
            }
        }
        self.tally.trash.store(drained.in_use + drained.stuck, Ordering::Relaxed);
        drained
    }

    pub(super) async fn drain_entry(&self, id: TrashId, drained: &mut Drained) {
        if !self.is_unused(id, drained).await {
            return;
        }
        match self.ports.copies.delete(id).await {
            Ok(Deletion::Done) => {
                drained.removed += 1;
                if let Err(error) = self.ports.records.forget_trash(id).await {
                    tracing::warn!(%id, %error, "deleted trash entry not forgotten");
                }
            }
            Ok(Deletion::Left { entries, first }) => {
                drained.stuck += 1;
                tracing::warn!(%id, entries, %first, "trash entry not deleted whole; the next tick tries again");
            }
            Err(error) => {
                drained.stuck += 1;
                tracing::warn!(%id, %error, "trash entry not deleted; the next tick tries again");
            }
        }
    }

    /// Whether no mount shows the entry, asked now.
    pub(super) async fn is_unused(&self, id: TrashId, drained: &mut Drained) -> bool {
        match self.ports.mounts.table().await {
            Ok(table) if table.shows_trash(id) => drained.in_use += 1,
            Ok(_) => return true,
            Err(error) => {
                tracing::warn!(%id, %error, "trash entry kept: nobody can tell who uses it");
                drained.stuck += 1;
            }
        }
        false
    }
}
