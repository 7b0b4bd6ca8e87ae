//! NodeGetVolumeStats: what this copy takes up, and what its file system has (C46). It changes nothing and
//! takes no lock.

use std::sync::atomic::Ordering;

use super::driver::Driver;
use crate::domain::handle::Handle;
use crate::domain::health::Room;
use crate::domain::mount_table::Place;
use crate::domain::refusal::StatisticsError;
use crate::domain::tally::StoreRoom;
use crate::domain::target::TargetPath;
use crate::ports::copies::{Capacity, CopiesError, Usage};

/// What the kubelet shows of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    pub usage: Usage,
    pub capacity: Capacity,
}

impl Driver {
    /// The statistics of the copy that is published at `volume_path`.
    pub async fn statistics(
        &self,
        volume_id: &str,
        volume_path: &str,
    ) -> Result<Statistics, StatisticsError> {
        if volume_id.is_empty() {
            return Err(StatisticsError::MissingField { field: "volume_id" });
        }
        if volume_path.is_empty() {
            return Err(StatisticsError::MissingField { field: "volume_path" });
        }
        let handle = Handle::parse(volume_id).map_err(|_| StatisticsError::NotPublished)?;
        let kubelet_dir = &self.settings.kubelet_dir;
        let target = TargetPath::parse_for_publish(volume_path, kubelet_dir)
            .map_err(|_| StatisticsError::NotPublished)?;
        let view = self.ports.mounts.look(&target).await;
        let view = view.map_err(|error| StatisticsError::Look { why: error.to_string() })?;
        let shows_copy =
            view.visible().is_some_and(|shown| shown.at_root && shown.place == Place::Copy(handle.clone()));
        if !shows_copy {
            return Err(StatisticsError::NotPublished);
        }
        let usage = self.ports.copies.usage(&handle).await.map_err(measure_failed)?;
        let capacity = self.look_at_capacity().await.map_err(measure_failed)?;
        Ok(Statistics { usage, capacity })
    }
}

impl Driver {
    /// Counts the copies, and has each one walked that never was: the sum over all copies is then known. A copy that
    /// no pod holds does not change, and one that a pod holds is asked about by its kubelet.
    pub async fn measure_copies(&self) {
        let listing = match self.ports.copies.list().await {
            Ok(listing) => listing,
            Err(error) => return tracing::warn!(%error, "the copies cannot be listed"),
        };
        let now = self.ports.clock.wall();
        self.tally.copies.store(listing.handles.len() as u64, Ordering::Relaxed);
        self.sight.listed(&listing.handles, now);
        if let Err(error) = self.look_at_capacity().await {
            tracing::debug!(%error, "the store's space cannot be told");
        }
        for handle in listing.handles.iter().filter(|handle| self.ports.copies.measured(handle).is_none()) {
            if let Err(error) = self.ports.copies.usage(handle).await {
                tracing::debug!(%handle, %error, "copy not measured");
            }
        }
    }
}

impl Driver {
    /// What the store's file system has, also for the report and the metrics: no number there rather than an old one.
    pub(super) async fn look_at_capacity(&self) -> Result<Capacity, CopiesError> {
        let capacity = self.ports.copies.capacity().await;
        self.tally.set_room(capacity.as_ref().ok().map(|capacity| StoreRoom {
            bytes: Room { available: capacity.available_bytes, total: capacity.total_bytes },
            inodes: Room { available: capacity.available_inodes, total: capacity.total_inodes },
        }));
        let capacity = capacity?;
        self.sight.measured(capacity, self.ports.clock.wall());
        Ok(capacity)
    }
}

fn measure_failed(error: CopiesError) -> StatisticsError {
    match error {
        CopiesError::Missing(_) => StatisticsError::NotPublished,
        CopiesError::NoSpace(_)
        | CopiesError::NotADirectory(_)
        | CopiesError::MountPoint(_)
        | CopiesError::Denied(_)
        | CopiesError::OtherMount(_)
        | CopiesError::Io(_)
        | CopiesError::Unknown(_) => StatisticsError::Measure { why: error.to_string() },
    }
}
