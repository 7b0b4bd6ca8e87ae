//! The decision about one copy that nobody seems to name (C21, C22): facts in, one outcome out.

use super::proof::{Marker, Revision};
use super::tally::{SweepOutcome, WaitingFor};

/// What a finished proof says of one handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofFacts {
    /// A complete, consistent list, begun after the handle's epoch, names it.
    pub named_by_list: bool,
    /// The watch itself saw the deletion.
    pub deletion_seen: bool,
    /// A proof of an earlier tick found it unnamed too, in the same epoch.
    pub unnamed_at_earlier_tick: bool,
}

/// What is asked once more under the handle's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedFacts {
    pub epoch_is_the_same: bool,
    pub watch_is_live: bool,
    pub named_by_view: bool,
    pub in_use: bool,
}

/// Whether a proof allows a removal: `None` allows it.
pub fn judge_proof(facts: ProofFacts) -> Option<SweepOutcome> {
    if facts.named_by_list {
        return Some(SweepOutcome::Named);
    }
    if facts.deletion_seen || facts.unnamed_at_earlier_tick {
        return None;
    }
    Some(SweepOutcome::SecondTick)
}

/// Whether the last look under the lock allows the removal: `None` allows it.
pub fn judge_locked(facts: LockedFacts) -> Option<SweepOutcome> {
    if !facts.epoch_is_the_same {
        return Some(SweepOutcome::Disturbed);
    }
    if !facts.watch_is_live {
        return Some(SweepOutcome::NoProof);
    }
    if facts.named_by_view {
        return Some(SweepOutcome::Named);
    }
    facts.in_use.then_some(SweepOutcome::InUse)
}

/// Whether a list may prove anything: its revision is not below the highest seen before it was begun (C22 (c)).
pub fn judge_revision(list: Revision, highest_before: Option<Revision>) -> Option<WaitingFor> {
    highest_before.is_some_and(|highest| list < highest).then_some(WaitingFor::Revision)
}

/// What the store's marker says (C22 (e)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerVerdict {
    Fits,
    /// The store is new: the marker is written now.
    Write,
    Waits(WaitingFor),
}

/// Compares the store's marker with the cluster that answers.
pub fn judge_marker(kept: Option<&Marker>, answering: &Marker, store_is_empty: bool) -> MarkerVerdict {
    match kept {
        Some(kept) if kept == answering => MarkerVerdict::Fits,
        Some(_) => MarkerVerdict::Waits(WaitingFor::MarkerDiffers),
        None if store_is_empty => MarkerVerdict::Write,
        None => MarkerVerdict::Waits(WaitingFor::MarkerMissing),
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::ClusterUid;
    use super::*;

    #[test]
    fn c22_each_fact_alone_keeps_the_copy() {
        let free =
            LockedFacts { epoch_is_the_same: true, watch_is_live: true, named_by_view: false, in_use: false };
        assert_eq!(judge_locked(free), None);
        let check = |facts, expect| assert_eq!(judge_locked(facts), Some(expect));
        check(LockedFacts { epoch_is_the_same: false, ..free }, SweepOutcome::Disturbed);
        check(LockedFacts { watch_is_live: false, ..free }, SweepOutcome::NoProof);
        check(LockedFacts { named_by_view: true, ..free }, SweepOutcome::Named);
        check(LockedFacts { in_use: true, ..free }, SweepOutcome::InUse);
    }

    #[test]
    fn c22_what_vanished_unseen_waits_for_a_second_tick() {
        let unnamed =
            ProofFacts { named_by_list: false, deletion_seen: false, unnamed_at_earlier_tick: false };
        assert_eq!(judge_proof(unnamed), Some(SweepOutcome::SecondTick));
        assert_eq!(judge_proof(ProofFacts { deletion_seen: true, ..unnamed }), None);
        assert_eq!(judge_proof(ProofFacts { unnamed_at_earlier_tick: true, ..unnamed }), None);
        let named = ProofFacts { named_by_list: true, deletion_seen: true, unnamed_at_earlier_tick: true };
        assert_eq!(judge_proof(named), Some(SweepOutcome::Named));
    }

    #[test]
    fn c22_a_revision_that_goes_back_proves_nothing() {
        assert_eq!(judge_revision(Revision(5), None), None);
        assert_eq!(judge_revision(Revision(5), Some(Revision(5))), None);
        assert_eq!(judge_revision(Revision(4), Some(Revision(5))), Some(WaitingFor::Revision));
    }

    #[test]
    fn c22_only_a_new_store_takes_the_cluster_that_answers() {
        let marker = |driver: &str, uid: &str| Marker {
            driver_name: driver.into(),
            cluster_uid: ClusterUid(uid.into()),
        };
        let ours = marker("d", "c");
        assert_eq!(judge_marker(Some(&ours), &ours, false), MarkerVerdict::Fits);
        assert_eq!(judge_marker(None, &ours, true), MarkerVerdict::Write);
        let missing = MarkerVerdict::Waits(WaitingFor::MarkerMissing);
        assert_eq!(judge_marker(None, &ours, false), missing);
        let differs = MarkerVerdict::Waits(WaitingFor::MarkerDiffers);
        assert_eq!(judge_marker(Some(&marker("d", "x")), &ours, true), differs);
        assert_eq!(judge_marker(Some(&marker("x", "c")), &ours, false), differs);
    }
}
