//! What the store remembers beside the copies: targets (journal and holds), whose the trash is, event
//! series, the API server's history, the marker.
//!
//! All of it lies in space set aside at the first start, so that a full disk stops none of it (C16). Reads
//! answer from memory and wait for nothing.

use std::collections::BTreeSet;

use async_trait::async_trait;
use thiserror::Error;

use super::failure::Failure;
use crate::domain::event_series::{EventName, Series};
use crate::domain::handle::Handle;
use crate::domain::holds::TargetRecord;
use crate::domain::kept::{Keeping, Kept, KeptCopy};
use crate::domain::proof::{History, Marker};
use crate::domain::target::TargetPath;
use crate::domain::trash::{CopyMark, TrashId};

/// Why a record could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// Every slot is taken and no more space is to be had.
    #[error("no free record: {0}")]
    Full(Failure),
    /// The record does not fit its slot.
    #[error("the record is too large: {0}")]
    TooLarge(Failure),
    /// The store takes no writes: nothing was written.
    #[error("{0}")]
    ReadOnly(Failure),
    /// Any other errno; the record may be there or not.
    #[error("{0}")]
    Io(Failure),
    /// The call was lost on the way: whether it acted is unknown.
    #[error("outcome unknown: {0}")]
    Unknown(Failure),
}

/// The small records of the store.
#[async_trait]
pub trait Records: Send + Sync {
    /// Every target record, in path order.
    fn targets(&self) -> Vec<TargetRecord>;
    /// The record of one target.
    fn target(&self, target: &TargetPath) -> Option<TargetRecord>;
    /// The targets on record for a handle.
    fn targets_of(&self, handle: &Handle) -> Vec<TargetRecord>;
    /// Writes the record of a target, in place of the one it has.
    async fn put_target(&self, record: &TargetRecord) -> Result<(), RecordsError>;
    /// Fine where there is none.
    async fn drop_target(&self, target: &TargetPath) -> Result<(), RecordsError>;

    /// The handle's entries in the trash.
    fn trashed(&self, handle: &Handle) -> BTreeSet<TrashId>;
    /// Sets aside a trash entry for the handle; the id was never in use while this store lives. What is to be kept there
    /// is on record durably, so that no power failure makes it a copy that nobody wants to keep (C26).
    async fn reserve_trash(&self, handle: &Handle, kept: Option<Kept>) -> Result<TrashId, RecordsError>;
    /// Forgets an entry that is no more. Fine where there is none.
    async fn forget_trash(&self, id: TrashId) -> Result<(), RecordsError>;
    /// Every entry on record.
    fn trash_records(&self) -> Vec<(TrashId, Handle)>;
    /// Those of them that are kept, in order of their ids.
    fn kept_trash(&self) -> Vec<KeptCopy>;
    /// Writes down, durably, that an entry is kept no longer: from then on it may be half a copy. Fine where it is not
    /// kept, or is none.
    async fn release_trash(&self, id: TrashId) -> Result<(), RecordsError>;
    /// How the serving process keeps copies, as it was last written.
    fn keeping(&self) -> Option<Keeping>;
    /// Writes that.
    async fn put_keeping(&self, keeping: Keeping) -> Result<(), RecordsError>;

    /// Writes down, durably, that this directory under the handle's name is being deleted in its place (C23). On an
    /// error it may be on record all the same, for the next process: `acquit` makes sure.
    async fn condemn(&self, handle: &Handle, mark: CopyMark) -> Result<(), RecordsError>;
    /// The copies that are condemned, in no order.
    fn condemned(&self) -> Vec<(Handle, CopyMark)>;
    /// Takes that back, durably. Fine where there is none.
    async fn acquit(&self, handle: &Handle) -> Result<(), RecordsError>;

    /// The event series that outlived a restart.
    fn series(&self) -> Vec<Series>;
    /// Writes a series, by its name.
    async fn put_series(&self, series: &Series) -> Result<(), RecordsError>;
    /// Fine where there is none.
    async fn drop_series(&self, name: &EventName) -> Result<(), RecordsError>;

    /// How far the API server's history had come, and whether it went back.
    fn history(&self) -> Option<History>;
    /// Writes it; with `durable`, returns only when it outlives a power failure.
    async fn put_history(&self, history: History, durable: bool) -> Result<(), RecordsError>;

    /// Which driver and cluster this store belongs to.
    fn marker(&self) -> Option<Marker>;
    /// Writes the marker, durably.
    async fn put_marker(&self, marker: &Marker) -> Result<(), RecordsError>;
}
