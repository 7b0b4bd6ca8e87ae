//! Whose store this is (C22 (e)): the marker is compared with the cluster that answers, and written into a new store.

use thiserror::Error;

use super::driver::Driver;
use crate::domain::proof::Marker;
use crate::domain::sweep::{MarkerVerdict, judge_marker};
use crate::domain::tally::WaitingFor;
use crate::ports::cluster::{Cluster, ClusterError};
use crate::ports::copies::CopiesError;
use crate::ports::records::RecordsError;

/// Why nobody can tell whose the store is.
#[derive(Debug, Error)]
pub enum MarkerError {
    #[error("the copies cannot be listed: {0}")]
    Copies(CopiesError),
    #[error("the API server does not say which cluster it is: {0}")]
    Cluster(ClusterError),
    #[error("the store's marker cannot be written: {0}")]
    Records(RecordsError),
}

impl Driver {
    /// Compares the store's marker with the cluster; `Some` where removals must wait. A store that has neither marker
    /// nor copies gets its marker.
    pub async fn check_marker(&self, cluster: &dyn Cluster) -> Result<Option<WaitingFor>, MarkerError> {
        let cluster_uid = cluster.cluster_uid().await.map_err(MarkerError::Cluster)?;
        let answering = Marker { driver_name: self.settings.driver_name.clone(), cluster_uid };
        // After the answer: a copy that was made while it was on its way counts.
        let is_empty = self.store_is_empty().await?;
        let records = &self.ports.records;
        match judge_marker(records.marker().as_ref(), &answering, is_empty) {
            MarkerVerdict::Fits => Ok(None),
            MarkerVerdict::Waits(waiting) => Ok(Some(waiting)),
            MarkerVerdict::Write => {
                records.put_marker(&answering).await.map_err(MarkerError::Records)?;
                tracing::info!(cluster = answering.cluster_uid.0, "this store is now that cluster's");
                Ok(None)
            }
        }
    }

    /// Whether the marker of a new store is still to be written. Pods that are let in before that leave copies in a
    /// store without a marker, and then only a person can say whose they are.
    pub async fn store_is_new(&self) -> bool {
        self.ports.records.marker().is_none() && self.store_is_empty().await.unwrap_or(false)
    }

    async fn store_is_empty(&self) -> Result<bool, MarkerError> {
        let listing = self.ports.copies.list().await.map_err(MarkerError::Copies)?;
        Ok(listing.handles.is_empty() && self.ports.records.trash_records().is_empty())
    }
}
