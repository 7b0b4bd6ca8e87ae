//! The limit of a pass (C26): one that would remove more copies removes none, until a person confirms just these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::sweeper::Sweeper;
use crate::domain::handle::Handle;
use crate::domain::proof::Epoch;
use crate::domain::refusal::Reason;
use crate::domain::sweep::exceeds_limit;

/// What the node's event says; how many and which, the log and `per-node confirm --show` do.
pub(crate) const STOPPED: &str = "a pass of the sweep would remove more copies than --sweep-limit allows, and removed none: see \
                       `per-node confirm --show` in the plugin's pod on this node";

/// Copies by name, each as it was then: one that was published or unpublished since is another.
pub(super) type Orphans = BTreeMap<Handle, Epoch>;

/// What waits for the limit, and what a person has let through. A restart knows neither, and asks again.
#[derive(Default)]
pub(super) struct Limit {
    waiting: Orphans,
    confirmed: Orphans,
}

impl Limit {
    pub(super) fn waiting(&self) -> &Orphans {
        &self.waiting
    }
}

impl Sweeper {
    /// Whether a pass may remove all of these. Where it may not, says so.
    pub(super) fn is_within_limit(&mut self, removable: &Orphans) -> bool {
        let limit = self.driver.settings.brakes.sweep_limit;
        let is_confirmed =
            removable.iter().all(|(handle, epoch)| self.limit.confirmed.get(handle) == Some(epoch));
        if !exceeds_limit(removable.len(), limit) || is_confirmed {
            // What vanished unseen is judged at ticks alone: it waits on beside those that go now.
            let waiting = std::mem::take(&mut self.limit.waiting).into_iter();
            self.set_over_limit(waiting.filter(|(handle, _)| !removable.contains_key(handle)).collect());
            return true;
        }
        // What was confirmed was another set: it does not make this one smaller.
        self.limit.confirmed.clear();
        let names: BTreeSet<&str> = removable.keys().map(Handle::as_str).collect();
        let are_news = removable.keys().any(|handle| !self.limit.waiting.contains_key(handle));
        if are_news {
            tracing::warn!(
                copies = removable.len(),
                limit,
                handles = ?names,
                "nothing is removed until `per-node confirm` is run: one pass would remove more copies than \
                 --sweep-limit allows"
            );
        }
        self.driver.tally.sweeps_stopped.fetch_add(1, Ordering::Relaxed);
        self.driver.tell_node(Reason::SweepStopped, STOPPED);
        let mut waiting = std::mem::take(&mut self.limit.waiting);
        waiting.extend(removable.clone());
        self.set_over_limit(waiting);
        false
    }

    fn set_over_limit(&mut self, waiting: Orphans) {
        self.driver.tally.over_limit.store(waiting.len() as u64, Ordering::Relaxed);
        self.limit.waiting = waiting;
    }

    /// Forgets what waited and is an orphan no more, so that a stop does not outlive its reason.
    pub(super) fn forget_who_came_back(&mut self, unnamed: &[Handle]) {
        let epochs = &self.driver.epochs;
        let still = |handle: &Handle, epoch: &Epoch| unnamed.contains(handle) && epochs.of(handle) == *epoch;
        let waiting: Orphans =
            self.limit.waiting.iter().filter(|(h, e)| still(h, e)).map(|(h, e)| (h.clone(), *e)).collect();
        self.limit.confirmed.retain(|handle, epoch| still(handle, epoch));
        if !exceeds_limit(waiting.len(), self.driver.settings.brakes.sweep_limit) {
            return self.set_over_limit(Orphans::new());
        }
        self.set_over_limit(waiting);
    }

    /// The copies that wait.
    pub fn over_limit(&self) -> Vec<Handle> {
        self.limit.waiting.keys().cloned().collect()
    }

    /// Lets through exactly what waits now.
    pub(super) fn confirm_limit(&mut self) {
        let waiting = std::mem::take(&mut self.limit.waiting);
        self.limit.confirmed = waiting;
        self.set_over_limit(Orphans::new());
    }
}
