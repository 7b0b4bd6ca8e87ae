//! What a person confirms: that the API server's history began anew, or that this store belongs to the
//! cluster that answers now (C22 (c) and (e)), or that all of these copies are to go (C26). Nothing is removed by the confirmation itself.

use thiserror::Error;

use super::sweeper::Sweeper;
use crate::domain::proof::{History, Marker};
use crate::domain::tally::WaitingFor;
use crate::ports::cluster::ClusterError;
use crate::ports::records::RecordsError;

/// Why nothing was confirmed.
#[derive(Debug, Error)]
pub enum ConfirmError {
    #[error("nothing waits for a confirmation")]
    NothingWaits,
    #[error("the API server gave no complete answer: {0}")]
    Cluster(ClusterError),
    #[error("the store could not be written: {0}")]
    Records(RecordsError),
}

impl Sweeper {
    /// What waits, if anything does.
    pub fn waiting(&self) -> Option<WaitingFor> {
        self.driver.tally.waiting()
    }

    /// Confirms what waits; the next pass goes on from there with a proof of its own.
    pub async fn confirm(&mut self) -> Result<WaitingFor, ConfirmError> {
        let (driver, cluster) = (&self.driver, &self.cluster);
        let waiting = driver.tally.waiting().ok_or(ConfirmError::NothingWaits)?;
        if waiting == WaitingFor::SweepLimit {
            self.confirm_limit();
            self.driver.sweep_wanted.raise();
            return Ok(waiting);
        }
        // Whichever it is, the history that counts from now on is the one that answers now.
        let head = cluster.head().await.map_err(ConfirmError::Cluster)?;
        match waiting {
            WaitingFor::Revision | WaitingFor::SweepLimit => {}
            WaitingFor::MarkerMissing | WaitingFor::MarkerDiffers => {
                let cluster_uid = cluster.cluster_uid().await.map_err(ConfirmError::Cluster)?;
                let marker = Marker { driver_name: driver.settings.driver_name.clone(), cluster_uid };
                driver.ports.records.put_marker(&marker).await.map_err(ConfirmError::Records)?;
            }
        }
        cluster.start_over();
        let put = driver.ports.records.put_history(History::up_to(head), true).await;
        put.map_err(ConfirmError::Records)?;
        self.went_back = false;
        driver.tally.set_waiting(None);
        driver.sweep_wanted.raise();
        Ok(waiting)
    }
}
