//! The removal itself (C23): what is asked once more under the handle's lock, and how the copy leaves its name.

use crate::domain::handle::Handle;
use crate::domain::proof::Epoch;
use crate::domain::sweep::{LockedFacts, judge_locked};
use crate::domain::tally::SweepOutcome;
use crate::ports::copies::{CopiesError, Deletion};
use crate::ports::failure::Failure;

use super::sweeper::Sweeper;

impl Sweeper {
    /// C23, under the handle's lock.
    pub(super) async fn remove(&self, handle: &Handle, epoch: Epoch) -> SweepOutcome {
        let ports = &self.driver.ports;
        let guard = self.driver.locks.lock(handle.as_str()).await;
        let table = match ports.mounts.table().await {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%handle, %error, "copy kept: nobody can tell who uses it");
                return SweepOutcome::Failed;
            }
        };
        let facts = LockedFacts {
            epoch_is_the_same: self.driver.epochs.of(handle) == epoch,
            watch_is_live: self.cluster.watch_health().live,
            named_by_view: self.cluster.is_named(handle),
            in_use: table.is_in_use(handle, &ports.records.trashed(handle)),
        };
        if let Some(outcome) = judge_locked(facts) {
            return outcome;
        }
        let outcome = match self.discard(handle).await {
            Ok(()) => SweepOutcome::Removed,
            Err(CopiesError::NoSpace(failure)) => {
                tracing::info!(%handle, %failure, "no space to move the copy into the trash; draining it first");
                self.driver.drain_trash().await;
                match self.discard(handle).await {
                    Ok(()) => SweepOutcome::Removed,
                    Err(CopiesError::NoSpace(_)) => self.delete_in_place(handle).await,
                    Err(error) => removal_failed(handle, &error),
                }
            }
            Err(error) => removal_failed(handle, &error),
        };
        drop(guard);
        if outcome == SweepOutcome::Removed {
            tracing::info!(%handle, "copy removed: no PersistentVolume names it");
            self.driver.trash_wanted.raise();
        }
        outcome
    }

    async fn discard(&self, handle: &Handle) -> Result<(), CopiesError> {
        let ports = &self.driver.ports;
        let id = match ports.records.reserve_trash(handle).await {
            Ok(id) => id,
            Err(error) => {
                let failure = Failure {
                    operation: "reserve a trash entry for",
                    path: handle.as_path().to_owned(),
                    errno: 0,
                };
                tracing::warn!(%handle, %error, "no trash entry");
                return Err(CopiesError::Io(failure));
            }
        };
        let discarded = ports.copies.discard(handle, id).await;
        // Where the outcome is unknown the entry must stay on record: the copy may lie there.
        let keep = matches!(discarded, Ok(()) | Err(CopiesError::Unknown(_)));
        if !keep && let Err(error) = ports.records.forget_trash(id).await {
            tracing::warn!(%handle, %error, "unused trash entry not forgotten");
        }
        discarded
    }

    async fn delete_in_place(&self, handle: &Handle) -> SweepOutcome {
        match self.driver.ports.copies.delete_in_place(handle).await {
            Ok(Deletion::Done) => return SweepOutcome::Removed,
            Ok(Deletion::Left { entries, first }) => {
                tracing::warn!(%handle, entries, %first, "copy not deleted whole in its place");
            }
            Err(error) => tracing::warn!(%handle, %error, "copy not deleted in its place"),
        }
        // What was deleted has made space: half a copy must not keep the name of a whole one.
        match self.discard(handle).await {
            Ok(()) => SweepOutcome::Removed,
            Err(error) => removal_failed(handle, &error),
        }
    }
}

fn removal_failed(handle: &Handle, error: &CopiesError) -> SweepOutcome {
    tracing::warn!(%handle, %error, "copy not removed; the next tick tries again");
    SweepOutcome::Failed
}
