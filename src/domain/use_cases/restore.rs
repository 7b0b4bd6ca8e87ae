//! What a person does with kept copies (C26): one is restored to its handle, or some are emptied. Neither ever touches a live
//! copy.

use std::fmt::Display;

use thiserror::Error;

use super::driver::Driver;
use super::trash::Drained;
use crate::domain::handle::Handle;
use crate::domain::kept::{KeptCopy, Meant, WhyEmptied, meant};
use crate::domain::trash::TrashId;
use crate::ports::copies::CopiesError;

/// Why nothing was restored or emptied, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrashError {
    #[error("no kept copy is {word}: see `per-node trash ls`")]
    NotKept { word: String },
    #[error("several kept copies are {word}: name one of the entries {entries}")]
    Several { word: String, entries: String },
    #[error("{id} is being restored or emptied already")]
    Busy { id: TrashId },
    #[error(
        "volume {handle} has a copy on this node, which stays as it is: stop its pods, move that copy out of copies/, \
         and come again"
    )]
    Live { handle: Handle },
    #[error(
        "no PersistentVolume names {handle}, and the next pass would remove it again: create the PersistentVolume \
         first, and come again"
    )]
    NoVolume { handle: Handle },
    #[error(
        "the PersistentVolumes have not been read yet, so nobody knows whether one names {handle}: come again"
    )]
    NotSynced { handle: Handle },
    #[error("a mount still shows {id}: unmount it, and come again")]
    InUse { id: TrashId },
    #[error("{id} stays in the trash: {why}")]
    Failed { id: TrashId, why: String },
    #[error("the trash cannot be listed: {why}")]
    Unlisted { why: String },
    #[error("nobody knows what became of {id}: {why}; see `per-node trash ls` and copies/{handle}")]
    Unknown { id: TrashId, handle: Handle, why: String },
}

impl Driver {
    /// Gives a kept copy its name again. `word` is the entry's name or the handle.
    pub async fn restore(&self, word: &str) -> Result<KeptCopy, TrashError> {
        let copy = self.kept_copy(word).await?;
        let _claim = self.claim(copy.id).ok_or(TrashError::Busy { id: copy.id })?;
        let guard = self.locks.lock(copy.handle.as_str()).await;
        // A proof that was begun without this copy says nothing of it (C22).
        self.epochs.advance(&copy.handle);
        let restored = self.restore_locked(&copy).await;
        self.epochs.advance(&copy.handle);
        drop(guard);
        restored?;
        self.tally.restored.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.sight.found(&copy.handle);
        tracing::info!(id = %copy.id, handle = %copy.handle, "kept copy restored");
        self.trash_wanted.raise();
        Ok(copy)
    }

    async fn restore_locked(&self, copy: &KeptCopy) -> Result<(), TrashError> {
        let (KeptCopy { id, handle, .. }, ports) = (copy, &self.ports);
        if !self.is_on_record(*id) {
            return Err(TrashError::NotKept { word: id.to_string() });
        }
        self.check_named(handle)?;
        self.finish_condemned(handle).await.map_err(|why| failed(copy, why))?;
        match ports.copies.find(handle).await {
            Ok(None) => {}
            Ok(Some(_)) | Err(CopiesError::NotADirectory(_)) => {
                return Err(TrashError::Live { handle: handle.clone() });
            }
            Err(error) => return Err(failed(copy, error)),
        }
        match ports.copies.restore(*id, handle).await {
            Ok(()) => {}
            Err(CopiesError::NotADirectory(_)) => return Err(TrashError::Live { handle: handle.clone() }),
            Err(CopiesError::Unknown(failure)) => {
                let (handle, why) = (handle.clone(), failure.to_string());
                return Err(TrashError::Unknown { id: *id, handle, why });
            }
            Err(error) => return Err(failed(copy, error)),
        }
        // The record goes last, after a power failure too: until then the copy may be found in the trash again.
        if let Err(error) = ports.copies.settle().await {
            tracing::warn!(%id, %handle, %error, "a power failure may put the restored copy back into the trash");
            return Ok(());
        }
        if let Err(error) = ports.records.forget_trash(*id).await {
            tracing::warn!(%id, %handle, %error, "restored trash entry not forgotten; the next start does it");
        }
        Ok(())
    }

    /// With `--standalone` nothing is swept, so that nobody need name it.
    fn check_named(&self, handle: &Handle) -> Result<(), TrashError> {
        let Some(cluster) = &self.ports.cluster else { return Ok(()) };
        if cluster.is_named(handle) {
            return Ok(());
        }
        let handle = handle.clone();
        match cluster.watch_health().synced {
            true => Err(TrashError::NoVolume { handle }),
            false => Err(TrashError::NotSynced { handle }),
        }
    }

    /// Has one kept copy deleted, by its entry's name or its handle.
    pub async fn empty_one(&self, word: &str) -> Result<KeptCopy, TrashError> {
        let copy = self.kept_copy(word).await?;
        self.empty_now(&copy).await?;
        self.trash_wanted.raise();
        Ok(copy)
    }

    /// Has every kept copy deleted that can be; answers which, and why the others stay.
    pub async fn empty_all(&self) -> Result<(Vec<KeptCopy>, Vec<TrashError>), TrashError> {
        let kept = self.kept_copies().await.map_err(unlisted)?;
        let (mut emptied, mut left) = (Vec::new(), Vec::new());
        for copy in kept {
            match self.empty_now(&copy).await {
                Ok(()) => emptied.push(copy),
                Err(error) => left.push(error),
            }
        }
        self.trash_wanted.raise();
        Ok((emptied, left))
    }

    async fn empty_now(&self, copy: &KeptCopy) -> Result<(), TrashError> {
        let mut drained = Drained::default();
        if self.release(copy, WhyEmptied::Person, &mut drained).await {
            return Ok(());
        }
        let id = copy.id;
        Err(match drained {
            Drained { in_use: 1.., .. } => TrashError::InUse { id },
            Drained { stuck: 1.., .. } => failed(copy, "the log says why"),
            Drained { .. } => TrashError::Busy { id },
        })
    }

    async fn kept_copy(&self, word: &str) -> Result<KeptCopy, TrashError> {
        let kept = self.kept_copies().await.map_err(unlisted)?;
        let word = word.to_owned();
        match meant(&word, &kept) {
            Meant::One(copy) => Ok(copy),
            Meant::Nothing => Err(TrashError::NotKept { word }),
            Meant::Several(copies) => {
                let entries: Vec<String> = copies.iter().map(|copy| copy.id.to_string()).collect();
                Err(TrashError::Several { word, entries: entries.join(", ") })
            }
        }
    }
}

fn failed(copy: &KeptCopy, why: impl Display) -> TrashError {
    TrashError::Failed { id: copy.id, why: why.to_string() }
}

fn unlisted(error: CopiesError) -> TrashError {
    TrashError::Unlisted { why: error.to_string() }
}
