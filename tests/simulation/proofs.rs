//! What the API server has answered, and whether a removal now has its proof in it (C22).

use std::time::Duration;

use per_node::domain::handle::Handle;
use per_node::domain::proof::{ClusterUid, Revision};

use crate::invariants::{Violation, violated};
use crate::ledger::Ledger;
use crate::plugin::SWEEP_EVERY;
use crate::simulation::Simulation;

/// Whether a copy of this handle may be removed, or condemned, now.
pub fn was_proven(simulation: &Simulation, handle: &Handle) -> Result<(), Violation> {
    // One step may remove, and then find in a later pass that the history went back; or be told to go on, and then remove.
    if simulation.went_back && simulation.went_back_before {
        return violated(format!("{handle} was removed in a history that went back"));
    }
    let Some(plugin) = &simulation.plugin else {
        return violated(format!("{handle} was removed while no process ran"));
    };
    let marker = simulation.node.marker_on_disk().map(|marker| marker.cluster_uid);
    // One step may confirm and then remove, or remove and then go on to a later pass.
    let kept = simulation.node.revision_on_disk().min(simulation.kept_before);
    let mut ledger = simulation.ledger.lock().unwrap();
    let rules = Rules { process: plugin.number, shown: ledger.shown.get(handle).copied(), kept, marker };
    let (lists, heads) = (rules.lists(&ledger, handle), rules.heads(&ledger, handle));
    let is_listed = check_times(&ledger, handle, &lists);
    if is_listed.is_err() && simulation.options.large_cluster {
        check_times(&ledger, handle, &heads)?;
        ledger.seen.removed_by_watch += 1;
        return Ok(());
    }
    is_listed
}

/// When something that may prove an absence was asked for and answered.
struct Times {
    begun: u64,
    at: Duration,
    /// Whether it may be what the removal was done on.
    is_sound: bool,
}

/// What must be true of an answer of the API server for a removal now.
struct Rules {
    process: u32,
    shown: Option<u64>,
    kept: Option<Revision>,
    marker: Option<ClusterUid>,
}

impl Rules {
    /// Complete lists that do not name the handle.
    fn lists(&self, ledger: &Ledger, handle: &Handle) -> Vec<Times> {
        let lists = ledger.lists.iter().filter(|list| {
            list.process == self.process
                && list.begun > self.shown.unwrap_or_default()
                && !list.handles.contains(handle)
        });
        let times = lists.map(|list| Times {
            begun: list.begun,
            at: list.at,
            is_sound: Some(list.revision) >= self.kept.max(list.highest_before)
                && self.fits(&list.cluster_uid),
        });
        times.collect()
    }

    /// Heads after which there was an instant at which nobody named the handle.
    fn heads(&self, ledger: &Ledger, handle: &Handle) -> Vec<Times> {
        let heads = ledger.heads.iter().filter(|head| {
            head.process == self.process
                && head.begun > self.shown.unwrap_or_default()
                && ledger.unnamed.get(&(head.cluster_uid.0.clone(), handle.clone())) >= Some(&head.begun)
        });
        let times = heads.map(|head| Times {
            begun: head.begun,
            at: head.at,
            is_sound: Some(head.revision) >= head.highest_before && self.fits(&head.cluster_uid),
        });
        times.collect()
    }

    fn fits(&self, cluster_uid: &ClusterUid) -> bool {
        self.marker.as_ref() == Some(cluster_uid)
    }
}

/// One proof where the watch saw the deletion, two a tick apart where it did not.
fn check_times(ledger: &Ledger, handle: &Handle, proofs: &[Times]) -> Result<(), Violation> {
    let Some(last) = proofs.iter().rev().find(|proof| proof.is_sound) else {
        return violated(format!("{handle} was removed without a proof"));
    };
    // A rename that hung may come long after its proof, and another proof be begun in the same step.
    let seen = ledger.deletion_seen.get(handle);
    let was_seen = proofs
        .iter()
        .filter(|proof| proof.is_sound)
        .any(|proof| seen.is_some_and(|&step| step + 1 >= proof.begun));
    let two_ticks = proofs.iter().any(|first| last.at.saturating_sub(first.at) >= SWEEP_EVERY);
    if !was_seen && !two_ticks {
        return violated(format!("{handle} vanished unseen and was removed at its first tick"));
    }
    Ok(())
}
