//! The decision about one copy that nobody seems to name (C21, C22): facts in, one outcome out.

use super::proof::{History, Marker, Revision};
use super::tally::{SweepOutcome, WaitingFor};

/// The most PersistentVolumes, of any driver, that a proof lists. Where there are more it waits for the watch instead
/// (C27): a thousand nodes that each list a hundred thousand volumes would be an outage.
pub const PROOF_LIST_VOLUMES_MAX: usize = 500;

/// How many bookmarks may stay below the revision that the watch has to pass. Then the head is read once more, which
/// moves the API server on that answers; then the volumes are listed after all.
pub const BOOKMARKS_BELOW_MAX: u64 = 2;

/// How far the watch is on its way to the revision that a proof asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchFacts {
    pub live: bool,
    /// The revision up to which the view is complete.
    pub reached: Option<Revision>,
    /// What it has to pass: a consistent read that was begun after the candidates' epochs.
    pub wanted: Revision,
    /// Bookmarks that came since the head was last read, all of them below `wanted`.
    pub bookmarks_below: u64,
    /// The head was read a second time.
    pub head_was_repeated: bool,
}

/// What to do about a proof that waits for the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchVerdict {
    /// The view is complete up to the revision: it is the proof.
    Passed,
    Wait,
    /// Idle streams are moved on by consistent reads.
    ReadHeadAgain,
    /// The watch does not get there.
    ListInstead,
}

/// Whether the watch has proved what a list would have (C22 (b), C27).
pub fn judge_watch(facts: WatchFacts) -> WatchVerdict {
    if facts.live && facts.reached.is_some_and(|reached| reached >= facts.wanted) {
        return WatchVerdict::Passed;
    }
    // A stream that is down brings no bookmark: it comes back, or a new list begins another chain.
    if !facts.live || facts.bookmarks_below < BOOKMARKS_BELOW_MAX {
        return WatchVerdict::Wait;
    }
    if facts.head_was_repeated { WatchVerdict::ListInstead } else { WatchVerdict::ReadHeadAgain }
}

/// What a finished proof says of one handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofFacts {
    /// A complete view, at a revision that was fixed after the handle's epoch, names it.
    pub named: bool,
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
    if facts.named {
        return Some(SweepOutcome::Named);
    }
    if facts.deletion_seen || facts.unnamed_at_earlier_tick {
        return None;
    }
    Some(SweepOutcome::SecondTick)
}

/// Whether a pass that would remove so many copies removes none (C26).
pub fn exceeds_limit(removable: usize, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| removable as u64 > u64::from(limit))
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

/// Whether an answer may prove anything: its revision is not below the highest that was seen before it was asked for
/// (C22 (c)), and none ever was. A history that went back and has come further since is still another one.
pub fn judge_history(answer: Revision, before: Option<History>) -> Option<WaitingFor> {
    before.is_some_and(|before| before.went_back || answer < before.highest).then_some(WaitingFor::Revision)
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
    fn c26_only_more_than_the_limit_exceeds_it() {
        assert!(!exceeds_limit(usize::MAX, None));
        assert!(!exceeds_limit(2, Some(2)) && exceeds_limit(3, Some(2)));
        assert!(!exceeds_limit(0, Some(0)) && exceeds_limit(1, Some(0)));
    }

    #[test]
    fn c22_what_vanished_unseen_waits_for_a_second_tick() {
        let unnamed = ProofFacts { named: false, deletion_seen: false, unnamed_at_earlier_tick: false };
        assert_eq!(judge_proof(unnamed), Some(SweepOutcome::SecondTick));
        assert_eq!(judge_proof(ProofFacts { deletion_seen: true, ..unnamed }), None);
        assert_eq!(judge_proof(ProofFacts { unnamed_at_earlier_tick: true, ..unnamed }), None);
        let named = ProofFacts { named: true, deletion_seen: true, unnamed_at_earlier_tick: true };
        assert_eq!(judge_proof(named), Some(SweepOutcome::Named));
    }

    #[test]
    fn c22_only_a_live_watch_that_has_passed_the_revision_is_a_proof() {
        let wanted = Revision(20);
        let waiting = WatchFacts {
            live: true,
            reached: Some(Revision(19)),
            wanted,
            bookmarks_below: 0,
            head_was_repeated: false,
        };
        assert_eq!(judge_watch(waiting), WatchVerdict::Wait);
        assert_eq!(judge_watch(WatchFacts { reached: None, ..waiting }), WatchVerdict::Wait);
        let passed = WatchFacts { reached: Some(wanted), ..waiting };
        assert_eq!(judge_watch(passed), WatchVerdict::Passed);
        assert_eq!(judge_watch(WatchFacts { live: false, ..passed }), WatchVerdict::Wait);
    }

    #[test]
    fn c27_bookmarks_that_stay_below_ask_again_and_then_list() {
        let waiting = WatchFacts {
            live: true,
            reached: Some(Revision(19)),
            wanted: Revision(20),
            bookmarks_below: BOOKMARKS_BELOW_MAX - 1,
            head_was_repeated: false,
        };
        assert_eq!(judge_watch(waiting), WatchVerdict::Wait);
        let stuck = WatchFacts { bookmarks_below: BOOKMARKS_BELOW_MAX, ..waiting };
        assert_eq!(judge_watch(stuck), WatchVerdict::ReadHeadAgain);
        let repeated = WatchFacts { head_was_repeated: true, ..stuck };
        assert_eq!(judge_watch(repeated), WatchVerdict::ListInstead);
        assert_eq!(judge_watch(WatchFacts { bookmarks_below: 0, ..repeated }), WatchVerdict::Wait);
        // Where no stream stands a list would not help: nothing is removed without a live watch.
        assert_eq!(judge_watch(WatchFacts { live: false, ..repeated }), WatchVerdict::Wait);
        assert_eq!(judge_watch(WatchFacts { reached: Some(Revision(20)), ..repeated }), WatchVerdict::Passed);
    }

    #[test]
    fn c22_a_revision_that_goes_back_proves_nothing() {
        let before = History::up_to(Revision(5));
        assert_eq!(judge_history(Revision(5), None), None);
        assert_eq!(judge_history(Revision(5), Some(before)), None);
        assert_eq!(judge_history(Revision(4), Some(before)), Some(WaitingFor::Revision));
        let went_back = History { went_back: true, ..before };
        assert_eq!(judge_history(Revision(6), Some(went_back)), Some(WaitingFor::Revision));
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
