//! Copies that are kept in the trash (C26): how one comes to be kept, when it goes, and how the trash makes room.
//!
//! A copy is on record as kept before it comes into the trash, and as kept no longer before its deletion begins, durably
//! both times: whatever ends the process, what is on record as kept is a whole copy. Nothing here touches what is no trash.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::Driver;
use super::trash::Drained;
use crate::domain::handle::Handle;
use crate::domain::health::Room;
use crate::domain::kept::{Keeping, Kept, KeptCopy, WhyEmptied, is_short, oldest_first};
use crate::domain::refusal::Reason;
use crate::domain::trash::TrashId;
use crate::ports::copies::CopiesError;

/// What the node's event says; how many and which, the log does.
pub(crate) const EMPTIED_EARLY: &str = "the store is full or nearly: kept copies of deleted volumes go before their time, the \
                             oldest first; free space, or lower --trash-for";

/// How often the space is looked at while anything is kept: a question of the file system, which reads nothing.
const LOOK_AT_ROOM_EVERY: Duration = Duration::from_secs(30);

/// The right to restore or to empty one kept copy, which one task has at a time. It goes with the task, however that ends.
pub(super) struct Claim<'a> {
    driver: &'a Driver,
    id: TrashId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.driver.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Driver {
    /// What is to be on record of a copy that is removed now; `None` where copies are not kept.
    pub(super) fn keeps(&self, handle: &Handle) -> Option<Kept> {
        self.settings.brakes.trash_for?;
        let bytes = self.ports.copies.measured(handle).map(|measured| measured.usage.used_bytes);
        Some(Kept { removed: self.ports.clock.wall(), since: self.served(), bytes })
    }

    pub(super) fn is_kept_on(&self, copy: &KeptCopy) -> bool {
        copy.kept.left(self.served(), self.settings.brakes.trash_for).is_some()
    }

    /// `None` where somebody has it.
    pub(super) fn claim(&self, id: TrashId) -> Option<Claim<'_>> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        // Lazily: a claim that is dropped gives back what it never had.
        claimed.insert(id).then(|| Claim { driver: self, id })
    }

    /// Whether it is still on record as kept: asked by whoever has the claim.
    pub(super) fn is_on_record(&self, id: TrashId) -> bool {
        self.ports.records.kept_trash().iter().any(|copy| copy.id == id)
    }

    /// The kept copies that are really there, the oldest first.
    pub async fn kept_copies(&self) -> Result<Vec<KeptCopy>, CopiesError> {
        let kept = self.ports.records.kept_trash();
        if kept.is_empty() {
            return Ok(kept);
        }
        let there: BTreeSet<TrashId> = self.ports.copies.trash().await?.into_iter().collect();
        Ok(oldest_first(kept.into_iter().filter(|copy| there.contains(&copy.id)).collect()))
    }

    /// Deletes a kept copy, if no mount shows it and nobody restores it.
    pub(super) async fn empty_kept(&self, copy: &KeptCopy, why: WhyEmptied, drained: &mut Drained) {
        if self.release(copy, why, drained).await {
            self.drain_entry(copy.id, drained).await;
        }
    }

    /// Makes a kept copy one that is on its way out; false where it stays.
    pub(super) async fn release(&self, copy: &KeptCopy, why: WhyEmptied, drained: &mut Drained) -> bool {
        let (KeptCopy { id, handle, kept }, records) = (copy, &self.ports.records);
        let Some(_claim) = self.claim(*id) else { return false };
        if !self.is_on_record(*id) || !self.is_unused(*id, drained).await {
            return false;
        }
        if let Err(error) = records.release_trash(*id).await {
            tracing::warn!(%id, %handle, %error, "kept copy stays: that it goes cannot be put on record");
            drained.stuck += 1;
            return false;
        }
        self.tally.emptied(why);
        tracing::info!(%id, %handle, removed_ms = kept.removed.unix_ms, why = why.as_str(), "kept copy goes");
        true
    }

    /// A call that met a full file system has the kept trash make room, in the background.
    pub(super) fn make_room_after(&self, error: &CopiesError) {
        match error {
            CopiesError::NoSpace(_) if !self.ports.records.kept_trash().is_empty() => {
                self.room_wanted.store(true, Ordering::Relaxed);
                self.trash_wanted.raise();
            }
            CopiesError::NoSpace(_)
            | CopiesError::Missing(_)
            | CopiesError::NotADirectory(_)
            | CopiesError::MountPoint(_)
            | CopiesError::Denied(_)
            | CopiesError::OtherMount(_)
            | CopiesError::Io(_)
            | CopiesError::Unknown(_) => {}
        }
    }

    /// Deletes the oldest kept copy for want of space. False where there is none that can go.
    pub(super) async fn empty_oldest(&self) -> bool {
        let _one = self.trash_drain.lock().await;
        let kept = match self.kept_copies().await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(%error, "the trash cannot be listed");
                return false;
            }
        };
        for copy in kept {
            let mut drained = Drained::default();
            self.empty_kept(&copy, WhyEmptied::Space, &mut drained).await;
            if drained.removed > 0 {
                self.tell_emptied_early();
                return true;
            }
        }
        false
    }

    /// Deletes kept copies, the oldest first, until the store has room again. Nothing is asked where nothing is kept.
    pub async fn make_room(&self) {
        let mut is_wanted = self.room_wanted.swap(false, Ordering::Relaxed);
        let most = self.ports.records.kept_trash().len();
        for _ in 0..most {
            if !is_wanted && !self.is_short_of_room().await {
                return;
            }
            is_wanted = false;
            if !self.empty_oldest().await {
                return;
            }
        }
    }

    /// How often `make_room` is worth a call between two drains; `None` where nothing is kept.
    pub fn look_at_room_every(&self) -> Option<Duration> {
        (!self.ports.records.kept_trash().is_empty()).then_some(LOOK_AT_ROOM_EVERY)
    }

    async fn is_short_of_room(&self) -> bool {
        match self.look_at_capacity().await {
            Ok(capacity) => is_short(
                Room { available: capacity.available_bytes, total: capacity.total_bytes },
                Room { available: capacity.available_inodes, total: capacity.total_inodes },
            ),
            Err(error) => {
                tracing::warn!(%error, "nobody can tell how much space is left; kept copies stay");
                false
            }
        }
    }

    fn tell_emptied_early(&self) {
        tracing::warn!("the store is short of space: the oldest kept copy went before its time");
        self.tell_node(Reason::TrashEmptied, EMPTIED_EARLY);
    }

    /// Numbers for the operator, and the store's own time for the next process.
    pub(super) async fn take_stock_of_kept(&self) {
        let kept = match self.kept_copies().await {
            Ok(kept) => kept,
            Err(error) => return tracing::warn!(%error, "the trash cannot be listed"),
        };
        let served = self.served();
        let oldest = kept.first().map(|copy| served.since(copy.kept.since)).unwrap_or_default();
        let oldest_ms = u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX);
        self.tally.kept.store(kept.len() as u64, Ordering::Relaxed);
        self.tally.kept_bytes.store(kept.iter().filter_map(|copy| copy.kept.bytes).sum(), Ordering::Relaxed);
        self.tally.kept_oldest_ms.store(oldest_ms, Ordering::Relaxed);
        if kept.is_empty() {
            return;
        }
        let keeping = Keeping { served, trash_for: self.settings.brakes.trash_for };
        if let Err(error) = self.ports.records.put_keeping(keeping).await {
            tracing::warn!(%error, "a restart will keep copies longer: how long they were is not on record");
        }
    }
}
