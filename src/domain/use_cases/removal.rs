//! The removal itself (C23): what is asked once more under the handle's lock, and how the copy leaves its name.

use std::fmt::Display;

use crate::domain::handle::Handle;
use crate::domain::proof::Epoch;
use crate::domain::sweep::{LockedFacts, judge_locked};
use crate::domain::tally::SweepOutcome;
use crate::ports::copies::CopiesError;

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
        let outcome = self.take_its_name(handle).await;
        drop(guard);
        if outcome == SweepOutcome::Removed {
            self.driver.sight.gone(handle);
            let kept_for = self.driver.settings.brakes.trash_for;
            tracing::info!(%handle, ?kept_for, "copy removed: no PersistentVolume names it");
            self.driver.trash_wanted.raise();
        }
        outcome
    }

    /// Moves the copy into the trash, or deletes it where it is.
    async fn take_its_name(&self, handle: &Handle) -> SweepOutcome {
        let driver = &self.driver;
        if driver.condemned(handle).is_some() {
            return removed(handle, driver.finish_condemned(handle).await);
        }
        match driver.discard(handle, driver.keeps(handle)).await {
            Err(CopiesError::NoSpace(failure)) => {
                tracing::info!(%handle, %failure, "no space to move the copy into the trash; draining it first");
                driver.drain_entries().await;
            }
            discarded => return removed(handle, discarded),
        }
        // As long as an older kept copy can make room for this one. Each turn takes one away.
        loop {
            match driver.discard(handle, driver.keeps(handle)).await {
                Err(CopiesError::NoSpace(_)) if driver.empty_oldest().await => {}
                Err(CopiesError::NoSpace(_)) => break,
                discarded => return removed(handle, discarded),
            }
        }
        removed(handle, driver.delete_in_place(handle).await)
    }
}

fn removed(handle: &Handle, outcome: Result<(), impl Display>) -> SweepOutcome {
    match outcome {
        Ok(()) => SweepOutcome::Removed,
        Err(error) => {
            tracing::warn!(%handle, %error, "copy not removed; the next tick tries again");
            SweepOutcome::Failed
        }
    }
}
