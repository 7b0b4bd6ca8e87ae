//! Why the driver is not ready, and what a person should know of one that is.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::tally::Tally;
use crate::ports::cluster::Cluster;

/// The reasons for not being ready, by who gives them. Cloned freely: there is one list.
///
/// A reason is something that keeps pods from getting their volumes here. An API server that is away is none: publish
/// works without it (C41).
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Readiness {
    /// Gives `part`'s reason, in place of its earlier one; `None` takes it back.
    pub fn set(&self, part: &'static str, reason: Option<String>) {
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            Some(reason) => reasons.insert(part, reason),
            None => reasons.remove(part),
        };
    }

    /// Every reason, in the order of the parts' names.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// What does not keep pods from their volumes, and yet somebody should see: above all removals that wait for a
/// person (C21).
pub(super) fn notes(tally: &Tally, cluster: Option<&dyn Cluster>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(waiting) = tally.waiting() {
        notes.push(format!("removals wait for a person: {}; see `per-node confirm`", waiting.sentence()));
    }
    let over_limit = tally.over_limit.load(Ordering::Relaxed);
    if over_limit > 0 {
        notes.push(format!("{over_limit} copies wait: together they are more than --sweep-limit"));
    }
    let searching = tally.removals_searching.load(Ordering::Relaxed);
    if searching > 0 {
        notes.push(format!(
            "{searching} removals wait until the watch has passed the API server's head (C27)"
        ));
    }
    match cluster {
        None => notes.push("standalone: no API server, nothing is removed".to_owned()),
        Some(cluster) => {
            let health = cluster.watch_health();
            if !health.synced {
                notes.push("the PersistentVolumes have not been read yet: nothing is removed".to_owned());
            } else if !health.live {
                notes
                    .push("the watch of the PersistentVolumes is interrupted: nothing is removed".to_owned());
            }
        }
    }
    notes
}
