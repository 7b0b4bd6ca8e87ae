//! The sweep: removes the copies of volumes that are gone, on a proof and on nothing less (C21–C25).
//!
//! A loop calls `step` when the sweep is wanted or when the delay is over that the last step asked for. No
//! lock is held while the API server is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::Driver;
use super::proof_search::{Proof, Search};
use super::sweep_limit::{Limit, Orphans};
use crate::domain::handle::Handle;
use crate::domain::proof::Epoch;
use crate::domain::sweep::{ProofFacts, judge_proof};
use crate::domain::tally::{SweepOutcome, WaitingFor};
use crate::domain::time::Monotonic;
use crate::ports::cluster::{Cluster, ClusterError};
use crate::ports::copies::Listing;

/// The first wait after a pass without a proof, and the longest; a tick comes in any case.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(120);

/// How often a proof that waits for the watch is looked after. It costs a look at memory.
const SEARCH_LOOK_EVERY: Duration = Duration::from_secs(5);

/// The state of the sweep between its passes.
pub struct Sweeper {
    pub(super) driver: Arc<Driver>,
    pub(super) cluster: Arc<dyn Cluster>,
    /// When the next tick is due.
    next_tick: Monotonic,
    /// How many passes in a row got no proof.
    failures: u32,
    /// A proof that waits for the watch.
    pub(super) search: Option<Search>,
    /// The API server's history was put back, and nobody has confirmed it. The store knows too, unless it cannot be
    /// written.
    pub(super) went_back: bool,
    /// Handles that the proof of an earlier tick found unnamed though no deletion was seen, and in which epoch.
    unnamed: BTreeMap<Handle, Epoch>,
    /// Strangers under `copies/` that the log has named.
    strangers: BTreeSet<String>,
    /// What a pass may remove at once (C26).
    pub(super) limit: Limit,
}

/// How a pass ended.
pub(super) enum Pass {
    /// With a proof, or with nothing that needed one.
    Complete,
    /// The proof waits for the watch.
    Searching,
    /// The API server gave no complete answer: again soon.
    NoProof,
    /// A person must confirm: again at the next tick, or when confirmed.
    Waits,
}

impl Sweeper {
    /// A sweeper whose first tick is due at once.
    pub fn new(driver: Arc<Driver>, cluster: Arc<dyn Cluster>) -> Sweeper {
        for why in ClusterError::WORDS {
            driver.tally.sync_can_fail(why);
        }
        Sweeper {
            driver,
            cluster,
            next_tick: Monotonic::default(),
            failures: 0,
            search: None,
            went_back: false,
            unnamed: BTreeMap::new(),
            strangers: BTreeSet::new(),
            limit: Limit::default(),
        }
    }

    /// One pass. Answers how long to wait for the next that comes by itself.
    pub async fn step(&mut self) -> Duration {
        if self.is_due()
            && let Err(error) = self.driver.reconcile().await
        {
            tracing::warn!(%error, "mounts cannot be read");
        }
        let pass = match self.search.take() {
            None => self.pass_or_tick().await,
            Some(search) => match self.go_on(search).await {
                (Pass::Complete, others_wait) if others_wait || self.is_due() => self.pass_or_tick().await,
                (pass, _) => pass,
            },
        };
        let searching = self.search.as_ref().map_or(0, Search::candidates);
        self.driver.tally.removals_searching.store(searching, Ordering::Relaxed);
        match pass {
            Pass::NoProof => {
                let backoff = RETRY_FIRST.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
                self.failures = self.failures.saturating_add(1);
                return backoff;
            }
            Pass::Complete | Pass::Waits | Pass::Searching => self.failures = 0,
        }
        match &self.search {
            Some(_) => SEARCH_LOOK_EVERY,
            None => self.next_tick.since(self.driver.ports.clock.monotonic()),
        }
    }

    fn is_due(&self) -> bool {
        self.driver.ports.clock.monotonic() >= self.next_tick
    }

    /// The next tick comes a whole period after what this one began has ended: two proofs a moment apart are one.
    pub(super) fn put_off_next_tick(&mut self) {
        self.next_tick = self.driver.ports.clock.monotonic().after(self.driver.settings.sweep_every);
    }

    async fn pass_or_tick(&mut self) -> Pass {
        let is_tick = self.is_due();
        let pass = self.pass(is_tick).await;
        if is_tick && !matches!(pass, Pass::NoProof) {
            self.put_off_next_tick();
        }
        pass
    }

    /// Looks for candidates and, where there are any, begins a proof. A tick asks the API server in any case: so an
    /// etcd that was put back is noticed before there is something to remove (C22 (c)).
    async fn pass(&mut self, is_tick: bool) -> Pass {
        let listing = match self.driver.ports.copies.list().await {
            Ok(listing) => listing,
            Err(error) => {
                tracing::warn!(%error, "the copies cannot be listed");
                self.count(SweepOutcome::Failed);
                return Pass::NoProof;
            }
        };
        self.take_stock(&listing);
        if !self.cluster.watch_health().synced {
            return Pass::NoProof;
        }
        let Some(candidates) = self.candidates(&listing, is_tick).await else { return Pass::NoProof };
        let is_news = self.cluster.watch_health().went_back && !self.went_back;
        if candidates.is_empty() && !is_tick && !is_news {
            return Pass::Complete;
        }
        self.begin_search(candidates, is_tick).await
    }

    /// Copies that the view does not name and no mount shows. What vanished unseen is judged at ticks alone (C22 (d)).
    async fn candidates(&mut self, listing: &Listing, is_tick: bool) -> Option<Vec<Handle>> {
        let unnamed: Vec<Handle> =
            listing.handles.iter().filter(|handle| !self.cluster.is_named(handle)).cloned().collect();
        self.forget_who_came_back(&unnamed);
        let (cluster, epochs) = (&self.cluster, &self.driver.epochs);
        self.unnamed.retain(|handle, epoch| unnamed.contains(handle) && epochs.of(handle) == *epoch);
        let candidates =
            unnamed.into_iter().filter(|handle| is_tick || cluster.deletion_was_seen(handle)).collect();
        self.not_in_use(candidates).await
    }

    /// Whether a copy has become a candidate that a search begun earlier does not cover.
    pub(super) fn is_not_covered(&self, listing: &Listing, epochs: &BTreeMap<Handle, Epoch>) -> bool {
        listing.handles.iter().any(|handle| {
            !self.cluster.is_named(handle)
                && self.cluster.deletion_was_seen(handle)
                && epochs.get(handle) != Some(&self.driver.epochs.of(handle))
        })
    }

    /// Numbers for the operator, and the strangers, each named once (C25).
    fn take_stock(&mut self, listing: &Listing) {
        let tally = &self.driver.tally;
        tally.copies.store(listing.handles.len() as u64, Ordering::Relaxed);
        tally.strangers.store(listing.strangers.len() as u64, Ordering::Relaxed);
        self.driver.sight.listed(&listing.handles, self.driver.ports.clock.wall());
        self.strangers.retain(|known| listing.strangers.contains(known));
        for stranger in &listing.strangers {
            if self.strangers.insert(stranger.clone()) {
                tracing::warn!(name = stranger, "not a copy, left alone: it does not belong below copies/");
            }
        }
        self.driver.epochs.retain(&listing.handles.iter().cloned().collect());
    }

    async fn not_in_use(&self, candidates: Vec<Handle>) -> Option<Vec<Handle>> {
        if candidates.is_empty() {
            return Some(candidates);
        }
        let ports = &self.driver.ports;
        let table = match ports.mounts.table().await {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "mounts cannot be read");
                return None;
            }
        };
        let (in_use, free): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|handle| table.is_in_use(handle, &ports.records.trashed(handle)));
        in_use.iter().for_each(|_| self.count(SweepOutcome::InUse));
        Some(free)
    }

    /// Removes what the proof allows.
    pub(super) async fn judge_all(&mut self, proof: &Proof) {
        let mut stuck = 0;
        let verdicts: BTreeMap<&Handle, (Epoch, Option<SweepOutcome>)> = proof
            .epochs
            .iter()
            .map(|(handle, &epoch)| {
                let facts = ProofFacts {
                    named: proof.named.contains(handle),
                    deletion_seen: self.cluster.deletion_was_seen(handle),
                    unnamed_at_earlier_tick: proof.is_of_tick && self.unnamed.get(handle) == Some(&epoch),
                };
                (handle, (epoch, judge_proof(facts)))
            })
            .collect();
        let removable = verdicts.iter().filter(|(_, (_, verdict))| verdict.is_none());
        let removable: Orphans = removable.map(|(&handle, &(epoch, _))| (handle.clone(), epoch)).collect();
        let is_within_limit = self.is_within_limit(&removable);
        for (handle, (epoch, verdict)) in verdicts {
            let outcome = match verdict {
                Some(outcome) => outcome,
                None if is_within_limit => self.remove(handle, epoch).await,
                None => SweepOutcome::OverLimit,
            };
            self.count(outcome);
            match outcome {
                // The ticks are a period apart, so the next one is another instant.
                SweepOutcome::SecondTick if proof.is_of_tick => {
                    self.unnamed.insert(handle.clone(), epoch);
                }
                SweepOutcome::Named | SweepOutcome::Removed | SweepOutcome::Disturbed => {
                    self.unnamed.remove(handle);
                }
                SweepOutcome::Failed => stuck += 1,
                SweepOutcome::SecondTick
                | SweepOutcome::InUse
                | SweepOutcome::NoProof
                | SweepOutcome::OverLimit
                | SweepOutcome::WaitsForPerson => {}
            }
        }
        self.driver.tally.stuck_removals.store(stuck, Ordering::Relaxed);
    }

    pub(super) fn wait_for_person(&self, waiting: WaitingFor, candidates: usize) -> Pass {
        let tally = &self.driver.tally;
        if tally.waiting() != Some(waiting) {
            let why = waiting.sentence();
            tracing::warn!(candidates, "nothing is removed until `per-node confirm` is run: {why}");
        }
        tally.set_waiting(Some(waiting));
        self.count_each(candidates, SweepOutcome::WaitsForPerson);
        Pass::Waits
    }

    pub(super) fn stop_waiting(&self) {
        self.driver.tally.set_waiting(None);
    }

    /// Nothing is known of these candidates: why, in the log and in a counter.
    pub(super) fn no_answer(&self, error: &ClusterError, candidates: usize) -> Pass {
        self.driver.tally.sync_failed(error.word());
        tracing::warn!(%error, "nothing is removed without a complete answer");
        self.no_proof(candidates)
    }

    pub(super) fn no_proof(&self, candidates: usize) -> Pass {
        self.count_each(candidates, SweepOutcome::NoProof);
        Pass::NoProof
    }

    fn count_each(&self, candidates: usize, outcome: SweepOutcome) {
        (0..candidates).for_each(|_| self.count(outcome));
    }

    fn count(&self, outcome: SweepOutcome) {
        self.driver.tally.swept(outcome);
    }
}
