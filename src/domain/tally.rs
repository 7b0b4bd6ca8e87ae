//! What the driver counts: numbers that only the HTTP adapter reads. Counting never waits and never fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::health::Room;
use super::kept::WhyEmptied;
use super::refusal::Reason;

/// What a sweep decided about one copy or one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SweepOutcome {
    /// The copy was moved into the trash or deleted in place.
    Removed,
    /// A PersistentVolume names it.
    Named,
    /// A mount shows it.
    InUse,
    /// It vanished without a deletion seen: the next tick decides.
    SecondTick,
    /// It was published or unpublished while the proof was sought.
    Disturbed,
    /// The API server gave no complete answer, or the watch is not live.
    NoProof,
    /// A person must confirm first.
    WaitsForPerson,
    /// The pass would have removed more copies than the limit (C26).
    OverLimit,
    /// The removal itself failed; the next tick tries again.
    Failed,
}

/// Why removals wait for a person (C22 (c) and (e), C26).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitingFor {
    /// The API server's revision is lower than one seen before.
    Revision,
    /// The store has copies and no marker.
    MarkerMissing,
    /// The store's marker names another cluster or driver.
    MarkerDiffers,
    /// A pass would have removed more copies than the limit.
    SweepLimit,
}

/// What the store's file system had at the latest look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreRoom {
    pub bytes: Room,
    /// Nothing in all where the file system does not count them.
    pub inodes: Room,
}

/// All counters and gauges of one process.
#[derive(Debug, Default)]
pub struct Tally {
    answers: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    refusals: [AtomicU64; Reason::REFUSALS.len()],
    sweep: Mutex<BTreeMap<SweepOutcome, u64>>,
    sync_failures: Mutex<BTreeMap<&'static str, u64>>,
    api_calls: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    waiting: Mutex<Option<WaitingFor>>,
    room: Mutex<Option<StoreRoom>>,
    pub copies: AtomicU64,
    pub strangers: AtomicU64,
    pub trash: AtomicU64,
    /// Copies in the trash that can be restored, their bytes as far as they were measured, and the age of the oldest in
    /// the store's own time, at the latest pass (C26).
    pub kept: AtomicU64,
    pub kept_bytes: AtomicU64,
    pub kept_oldest_ms: AtomicU64,
    pub restored: AtomicU64,
    emptied: [AtomicU64; WhyEmptied::ALL.len()],
    /// Copies that wait because a pass would have removed more than the limit, and how often a pass was stopped.
    pub over_limit: AtomicU64,
    pub sweeps_stopped: AtomicU64,
    pub events_queued: AtomicU64,
    pub events_dropped: AtomicU64,
    pub events_posted: AtomicU64,
    pub event_failures: AtomicU64,
    /// Copies whose removal waits until the watch has passed the API server's head (C27).
    pub removals_searching: AtomicU64,
    /// Copies and trash entries whose removal failed at the latest pass.
    pub stuck_removals: AtomicU64,
}

impl SweepOutcome {
    pub const ALL: [SweepOutcome; 9] = [
        SweepOutcome::Removed,
        SweepOutcome::Named,
        SweepOutcome::InUse,
        SweepOutcome::SecondTick,
        SweepOutcome::Disturbed,
        SweepOutcome::NoProof,
        SweepOutcome::WaitsForPerson,
        SweepOutcome::OverLimit,
        SweepOutcome::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SweepOutcome::Removed => "removed",
            SweepOutcome::Named => "named",
            SweepOutcome::InUse => "in_use",
            SweepOutcome::SecondTick => "second_tick",
            SweepOutcome::Disturbed => "disturbed",
            SweepOutcome::NoProof => "no_proof",
            SweepOutcome::WaitsForPerson => "waits_for_person",
            SweepOutcome::OverLimit => "over_limit",
            SweepOutcome::Failed => "failed",
        }
    }
}

impl WaitingFor {
    pub const ALL: [WaitingFor; 4] =
        [WaitingFor::Revision, WaitingFor::MarkerMissing, WaitingFor::MarkerDiffers, WaitingFor::SweepLimit];

    pub fn as_str(self) -> &'static str {
        match self {
            WaitingFor::Revision => "revision",
            WaitingFor::MarkerMissing => "marker_missing",
            WaitingFor::MarkerDiffers => "marker_differs",
            WaitingFor::SweepLimit => "sweep_limit",
        }
    }

    /// One sentence for the log, `/readyz` and `per-node confirm`.
    pub fn sentence(self) -> &'static str {
        match self {
            WaitingFor::Revision => {
                "the API server's revision is lower than one seen before (was etcd restored from a backup?)"
            }
            WaitingFor::MarkerMissing => "the store has copies and no marker that says whose they are",
            WaitingFor::MarkerDiffers => "the store's marker names another cluster or driver",
            WaitingFor::SweepLimit => "one pass would remove more copies than --sweep-limit allows",
        }
    }
}

impl Tally {
    /// A call was answered: its name, and the name of its code, as the inbound adapter has them.
    pub fn answered(&self, call: &'static str, code: &'static str) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((call, code)).or_default() += 1;
    }

    /// A call that can be answered is counted from zero, so that its first answer is seen to be one more.
    pub fn can_be_answered(&self, call: &'static str, code: &'static str) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.entry((call, code)).or_default();
    }

    /// Answers by call and code.
    pub fn answers(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn refused(&self, reason: Reason) {
        if let Some(count) = self.refusals.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn refusals(&self, reason: Reason) -> u64 {
        self.refusals.get(reason as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub fn swept(&self, outcome: SweepOutcome) {
        let mut sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        *sweep.entry(outcome).or_default() += 1;
    }

    pub fn sweeps(&self, outcome: SweepOutcome) -> u64 {
        let sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        sweep.get(&outcome).copied().unwrap_or_default()
    }

    /// A read of the API server failed, by a short word for why.
    pub fn sync_failed(&self, why: &'static str) {
        let mut failures = self.sync_failures.lock().unwrap_or_else(PoisonError::into_inner);
        *failures.entry(why).or_default() += 1;
    }

    /// The same for a word that a failure can have.
    pub fn sync_can_fail(&self, why: &'static str) {
        let mut failures = self.sync_failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.entry(why).or_default();
    }

    pub fn sync_failures(&self) -> BTreeMap<&'static str, u64> {
        self.sync_failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A call to the API server ended: which kind of call, and how, both as the outbound adapter names them.
    pub fn api_called(&self, call: &'static str, end: &'static str) {
        let mut calls = self.api_calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((call, end)).or_default() += 1;
    }

    /// The same for a kind of call that can be made, and an end that it can have.
    pub fn api_can_be_called(&self, call: &'static str, end: &'static str) {
        let mut calls = self.api_calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry((call, end)).or_default();
    }

    /// Calls to the API server by kind and end.
    pub fn api_calls(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.api_calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_waiting(&self, waiting: Option<WaitingFor>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }

    /// Why removals wait for a person, if they do. A doubt whose copies these are comes before how many they are.
    pub fn waiting(&self) -> Option<WaitingFor> {
        let doubt = *self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let over_limit = self.over_limit.load(Ordering::Relaxed) > 0;
        doubt.or_else(|| over_limit.then_some(WaitingFor::SweepLimit))
    }

    /// What the store's file system has, or that nobody can tell.
    pub fn set_room(&self, room: Option<StoreRoom>) {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = room;
    }

    /// What it had at the latest look, if that could tell.
    pub fn room(&self) -> Option<StoreRoom> {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kept copy went.
    pub fn emptied(&self, why: WhyEmptied) {
        self.emptied[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many kept copies went, and why.
    pub fn emptied_for(&self, why: WhyEmptied) -> u64 {
        self.emptied[why as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c45_answers_and_calls_are_counted_by_both_of_their_names() {
        let tally = Tally::default();
        assert_eq!((tally.answers(), tally.api_calls()), (BTreeMap::new(), BTreeMap::new()));
        for (call, end) in [("a", "OK"), ("a", "ABORTED"), ("b", "OK"), ("a", "OK")] {
            tally.answered(call, end);
            tally.api_called(end, call);
        }
        assert_eq!(
            tally.answers(),
            BTreeMap::from([(("a", "ABORTED"), 1), (("a", "OK"), 2), (("b", "OK"), 1)])
        );
        assert_eq!(
            tally.api_calls(),
            BTreeMap::from([(("ABORTED", "a"), 1), (("OK", "a"), 2), (("OK", "b"), 1)])
        );
    }

    #[test]
    fn c45_what_can_be_counted_begins_at_zero_and_goes_on_from_what_it_is() {
        let tally = Tally::default();
        for _ in 0..2 {
            tally.can_be_answered("a", "OK");
            tally.api_can_be_called("b", "ok");
            tally.sync_can_fail("c");
            let counts = (tally.answers(), tally.api_calls(), tally.sync_failures());
            let so_far = counts.1[&("b", "ok")];
            assert_eq!(
                counts,
                (
                    BTreeMap::from([(("a", "OK"), so_far)]),
                    BTreeMap::from([(("b", "ok"), so_far)]),
                    BTreeMap::from([("c", so_far)]),
                )
            );
            tally.answered("a", "OK");
            tally.api_called("b", "ok");
            tally.sync_failed("c");
        }
        assert_eq!(tally.sync_failures()["c"], 2);
    }

    #[test]
    fn c45_kept_copies_that_went_are_counted_by_why() {
        let tally = Tally::default();
        for why in [WhyEmptied::Space, WhyEmptied::Over, WhyEmptied::Space] {
            tally.emptied(why);
        }
        let counts = WhyEmptied::ALL.map(|why| (why.as_str(), tally.emptied_for(why)));
        assert_eq!(counts, [("over", 1), ("space", 2), ("person", 0)]);
    }

    #[test]
    fn c45_no_two_outcomes_or_reasons_to_wait_have_one_name() {
        let outcomes: std::collections::BTreeSet<_> =
            SweepOutcome::ALL.into_iter().map(SweepOutcome::as_str).collect();
        assert_eq!(outcomes.len(), SweepOutcome::ALL.len());
        for name in [WaitingFor::as_str, WaitingFor::sentence] {
            let names: std::collections::BTreeSet<_> = WaitingFor::ALL.into_iter().map(name).collect();
            assert_eq!(names.len(), WaitingFor::ALL.len());
        }
    }
}
