//! A store and an API server that know a few numbers by heart and fail the test when a page asks them for more:
//! no page may touch the disk or the API (C45).

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::handle::Handle;
use crate::domain::mount_table::FileIdentity;
use crate::domain::proof::{ClusterUid, Revision};
use crate::domain::time::{Monotonic, Wall};
use crate::domain::trash::{CopyMark, TrashId};
use crate::domain::volume_request::Gid;
use crate::ports::clock::Clock;
use crate::ports::cluster::{Cluster, ClusterError, NamedHandles, WatchHealth};
use crate::ports::copies::{
    Capacity, Copies, CopiesError, Counted, Deletion, Ensured, Examined, Listing, Measured, Usage,
};

/// The store.
pub(super) struct Store(pub(super) Counted);

#[async_trait]
impl Copies for Store {
    fn counted(&self) -> Counted {
        self.0
    }
    fn measured(&self, _: &Handle) -> Option<Measured> {
        unreachable!("a page asked about one copy")
    }
    async fn find(&self, _: &Handle) -> Result<Option<FileIdentity>, CopiesError> {
        unreachable!("a page looked for a copy")
    }
    async fn ensure(&self, _: &Handle) -> Result<Ensured, CopiesError> {
        unreachable!("a page made a copy")
    }
    async fn unmake(&self, _: &Handle, _: FileIdentity) -> Result<(), CopiesError> {
        unreachable!("a page removed a copy")
    }
    async fn set_group(&self, _: &Handle, _: Gid) -> Result<(), CopiesError> {
        unreachable!("a page changed a copy")
    }
    async fn list(&self) -> Result<Listing, CopiesError> {
        unreachable!("a page listed the store")
    }
    async fn discard(&self, _: &Handle, _: TrashId) -> Result<(), CopiesError> {
        unreachable!("a page removed a copy")
    }
    async fn restore(&self, _: TrashId, _: &Handle) -> Result<(), CopiesError> {
        unreachable!("a page restored a copy")
    }
    async fn trash(&self) -> Result<Vec<TrashId>, CopiesError> {
        unreachable!("a page listed the trash")
    }
    async fn delete(&self, _: TrashId) -> Result<Deletion, CopiesError> {
        unreachable!("a page emptied the trash")
    }
    async fn delete_in_place(&self, _: &Handle) -> Result<Deletion, CopiesError> {
        unreachable!("a page removed a copy")
    }
    async fn mark(&self, _: &Handle) -> Result<Option<CopyMark>, CopiesError> {
        unreachable!("a page looked for a copy")
    }
    async fn settle(&self) -> Result<(), CopiesError> {
        unreachable!("a page wrote to the store")
    }
    async fn usage(&self, _: &Handle) -> Result<Usage, CopiesError> {
        unreachable!("a page measured a copy")
    }
    async fn capacity(&self) -> Result<Capacity, CopiesError> {
        unreachable!("a page asked the file system")
    }
    async fn examine(&self, _: &Handle) -> Result<Examined, CopiesError> {
        unreachable!("a page examined a copy")
    }
}

/// The API server's watch.
pub(super) struct Watched(pub(super) Mutex<WatchHealth>);

#[async_trait]
impl Cluster for Watched {
    fn watch_health(&self) -> WatchHealth {
        *self.0.lock().expect("lock")
    }
    fn is_named(&self, _: &Handle) -> bool {
        unreachable!("a page asked for a handle")
    }
    fn deletion_was_seen(&self, _: &Handle) -> bool {
        unreachable!("a page asked for a handle")
    }
    fn start_over(&self) {
        unreachable!("a page began the watch anew")
    }
    async fn head(&self) -> Result<Revision, ClusterError> {
        unreachable!("a page asked the API server")
    }
    async fn list(&self) -> Result<NamedHandles, ClusterError> {
        unreachable!("a page asked the API server")
    }
    async fn cluster_uid(&self) -> Result<ClusterUid, ClusterError> {
        unreachable!("a page asked the API server")
    }
}

/// A clock that stands still, a hundred seconds after it began and a thousand after 1970 did.
pub(super) struct Stopped;

impl Clock for Stopped {
    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_secs(100))
    }
    fn wall(&self) -> Wall {
        Wall { unix_ms: 1_000_000 }
    }
}
