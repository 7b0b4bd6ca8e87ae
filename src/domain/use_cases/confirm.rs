//! What a person confirms: that the API server's history began anew, or that this store belongs to the
//! cluster that answers now (C22 (c) and (e)), or that all of these copies are to go (C26). Nothing is removed by the confirmation itself.

use std::fmt;
use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;
use thiserror::Error;

use super::sweeper::Sweeper;
use crate::domain::proof::{History, Marker};
use crate::domain::tally::WaitingFor;
use crate::ports::cluster::ClusterError;
use crate::ports::records::RecordsError;

/// What a person was shown: what is confirmed by it is that, however much time there was between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    /// Reads what [`Seen`] writes: sixteen digits, base sixteen.
    pub fn parse(text: &str) -> Option<Seen> {
        let seen = Seen(u64::from_str_radix(text, 16).ok()?);
        (seen.to_string() == text).then_some(seen)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Why nothing was confirmed.
#[derive(Debug, Error)]
pub enum ConfirmError {
    #[error("nothing waits for a confirmation")]
    NothingWaits,
    #[error("what waits is no longer what was seen: look again")]
    Changed,
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

    /// What waits, down to each copy that a limit holds back, as a number to know it again by in this process.
    pub fn seen(&self) -> Option<Seen> {
        let waiting = self.waiting()?;
        let mut hasher = SipHasher13::new();
        waiting.as_str().hash(&mut hasher);
        if waiting == WaitingFor::SweepLimit {
            self.limit.waiting().hash(&mut hasher);
        }
        Some(Seen(hasher.finish()))
    }

    /// Confirms what waits, or, given what somebody has seen, that and nothing else; the next pass goes on from there with a
    /// proof of its own.
    pub async fn confirm(&mut self, seen: Option<Seen>) -> Result<WaitingFor, ConfirmError> {
        let waiting = self.waiting().ok_or(ConfirmError::NothingWaits)?;
        if seen.is_some() && seen != self.seen() {
            return Err(ConfirmError::Changed);
        }
        let (driver, cluster) = (&self.driver, &self.cluster);
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
