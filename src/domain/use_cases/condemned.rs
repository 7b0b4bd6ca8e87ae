//! Copies that leave their name: into the trash, or deleted in their place where the disk is too full for that (C23).
//!
//! While a copy is deleted in its place its name belongs to half a copy. So that no publish ever serves that, not even
//! after a kill or a power failure, it is condemned first: a durable record says which directory it is, and goes only
//! when that directory has left its name for good. A directory that somebody else puts there is never taken for it.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::kept::Kept;
use crate::domain::trash::CopyMark;
use crate::ports::copies::{CopiesError, Deletion};
use crate::ports::failure::Failure;
use crate::ports::records::RecordsError;

impl Driver {
    /// Moves the copy into the trash, under the handle's lock; to be kept there, if it is a whole one.
    pub(super) async fn discard(&self, handle: &Handle, kept: Option<Kept>) -> Result<(), CopiesError> {
        let ports = &self.ports;
        let id = match ports.records.reserve_trash(handle, kept).await {
            Ok(id) => id,
            Err(error) => {
                let failure = Failure {
                    operation: "reserve a trash entry for",
                    path: handle.as_path().to_owned(),
                    errno: 0,
                };
                tracing::warn!(%handle, %error, "no trash entry");
                return Err(match error {
                    RecordsError::Full(_) => CopiesError::NoSpace(failure),
                    RecordsError::TooLarge(_)
                    | RecordsError::ReadOnly(_)
                    | RecordsError::Io(_)
                    | RecordsError::Unknown(_) => CopiesError::Io(failure),
                });
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

    /// Deletes the copy in its place, under the handle's lock. What this does not end, the next publish of the handle
    /// or the next tick does.
    pub(super) async fn delete_in_place(&self, handle: &Handle) -> Result<(), String> {
        let mark = self.ports.copies.mark(handle).await.map_err(|error| error.to_string())?;
        let Some(mark) = mark else { return Ok(()) };
        if let Err(error) = self.ports.records.condemn(handle, mark).await {
            // It may be on record all the same, and nothing has been deleted: it is taken back, now or later.
            self.undecided().insert(handle.clone());
            let taken_back = self.finish_condemned(handle).await;
            return Err(taken_back.err().unwrap_or_else(|| error.to_string()));
        }
        self.clear_place(handle).await?;
        self.acquit(handle).await
    }

    /// Copies that were to be condemned, of which nobody knows whether that is on record. Nothing is published there
    /// before it surely is not.
    fn undecided(&self) -> MutexGuard<'_, BTreeSet<Handle>> {
        self.undecided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn condemned(&self, handle: &Handle) -> Option<CopyMark> {
        let all = self.ports.records.condemned();
        all.into_iter().find(|(condemned, _)| condemned == handle).map(|(_, mark)| mark)
    }

    /// Sees to it, under the handle's lock, that what is left of a condemned copy no longer has its name. Nothing
    /// where none is condemned.
    pub(super) async fn finish_condemned(&self, handle: &Handle) -> Result<(), String> {
        if self.undecided().contains(handle) {
            self.acquit(handle).await?;
            self.undecided().remove(handle);
        }
        let Some(condemned) = self.condemned(handle) else { return Ok(()) };
        let is_there = match self.ports.copies.mark(handle).await {
            Ok(found) => found == Some(condemned),
            // Something that is no directory has the name: not what was condemned.
            Err(CopiesError::NotADirectory(_)) => false,
            Err(error) => return Err(error.to_string()),
        };
        if is_there {
            let table = self.ports.mounts.table().await.map_err(|error| error.to_string())?;
            if table.is_in_use(handle, &self.ports.records.trashed(handle)) {
                return Err("a mount shows what is left of it".to_owned());
            }
            if self.discard(handle, None).await.is_err() {
                self.clear_place(handle).await?;
            }
            tracing::info!(%handle, "what was left of a copy that was being deleted has gone from its place");
        }
        self.acquit(handle).await
    }

    /// The same for every handle, each under its lock; what fails is tried again at the next tick.
    pub(super) async fn finish_all_condemned(&self) {
        let condemned = self.ports.records.condemned().into_iter().map(|(handle, _)| handle);
        let all: BTreeSet<Handle> = condemned.chain(self.undecided().iter().cloned()).collect();
        for handle in all {
            let _guard = self.locks.lock(handle.as_str()).await;
            if let Err(why) = self.finish_condemned(&handle).await {
                tracing::warn!(%handle, why, "half a copy stays in its place; the next tick tries again");
            }
        }
    }

    async fn clear_place(&self, handle: &Handle) -> Result<(), String> {
        match self.ports.copies.delete_in_place(handle).await {
            Ok(Deletion::Done) => return Ok(()),
            Ok(Deletion::Left { entries, first }) => {
                tracing::warn!(%handle, entries, %first, "copy not deleted whole in its place");
            }
            Err(error) => tracing::warn!(%handle, %error, "copy not deleted in its place"),
        }
        // What was deleted has made space.
        self.discard(handle, None).await.map_err(|error| error.to_string())
    }

    /// The record goes last, after a power failure too.
    async fn acquit(&self, handle: &Handle) -> Result<(), String> {
        self.ports.copies.settle().await.map_err(|error| error.to_string())?;
        self.ports.records.acquit(handle).await.map_err(|error| error.to_string())
    }
}
