//! The sweep: removes the copies of volumes that are gone, on a proof and on nothing less (C21–C25).
//!
//! A loop calls `step` when the sweep is wanted or when the delay is over that the last step asked for. No
//! lock is held while the API server is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::Driver;
use super::marker::MarkerError;
use crate::domain::handle::Handle;
use crate::domain::proof::{Epoch, Revision};
use crate::domain::sweep::{LockedFacts, ProofFacts, judge_locked, judge_proof, judge_revision};
use crate::domain::tally::{SweepOutcome, WaitingFor};
use crate::domain::time::Monotonic;
use crate::ports::cluster::{Cluster, ClusterError, NamedHandles};
use crate::ports::copies::{CopiesError, Deletion, Listing};

/// The first wait after a pass without a proof, and the longest; a tick comes in any case.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(120);

/// The state of the sweep between its passes.
pub struct Sweeper {
    driver: Arc<Driver>,
    cluster: Arc<dyn Cluster>,
    /// When the next tick is due.
    next_tick: Monotonic,
    /// When a pass that got no proof is tried again, and how many did in a row.
    retry: Option<Monotonic>,
    failures: u32,
    /// How many ticks have ended with a proof.
    tick: u64,
    /// Handles that a tick's proof found unnamed though no deletion was seen: in which epoch, at which tick.
    unnamed: BTreeMap<Handle, (Epoch, u64)>,
    /// Strangers under `copies/` that the log has named.
    strangers: BTreeSet<String>,
}

/// How a pass ended.
enum Pass {
    /// With a proof, or with nothing that needed one.
    Complete,
    /// The API server gave no complete answer: again soon.
    NoProof,
    /// A person must confirm: again at the next tick, or when confirmed.
    Waits,
}

/// A finished proof and what it was begun with.
struct Proof {
    named: NamedHandles,
    epochs: BTreeMap<Handle, Epoch>,
}

impl Sweeper {
    /// A sweeper whose first tick is due at once.
    pub fn new(driver: Arc<Driver>, cluster: Arc<dyn Cluster>) -> Sweeper {
        Sweeper {
            driver,
            cluster,
            next_tick: Monotonic::default(),
            retry: None,
            failures: 0,
            tick: 0,
            unnamed: BTreeMap::new(),
            strangers: BTreeSet::new(),
        }
    }

    /// One pass. Answers how long to wait for the next that comes by itself.
    pub async fn step(&mut self) -> Duration {
        let now = self.driver.ports.clock.monotonic();
        let is_tick = now >= self.next_tick;
        if is_tick && let Err(error) = self.driver.reconcile().await {
            tracing::warn!(%error, "mounts cannot be read");
        }
        let pass = self.pass(is_tick).await;
        let now = self.driver.ports.clock.monotonic();
        self.retry = None;
        match pass {
            Pass::Complete | Pass::Waits => {
                self.failures = 0;
                if is_tick {
                    self.tick += 1;
                    self.next_tick = now.after(self.driver.settings.sweep_every);
                }
            }
            Pass::NoProof => {
                let backoff = RETRY_FIRST.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
                self.failures = self.failures.saturating_add(1);
                self.retry = Some(now.after(backoff));
            }
        }
        let next = self.retry.map_or(self.next_tick, |retry| retry.max(now));
        next.since(now)
    }

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
        let marker = match self.driver.check_marker(self.cluster.as_ref()).await {
            Ok(verdict) => verdict,
            Err(error) => return self.nobody_knows_whose(&error),
        };
        if marker.is_none() {
            self.keep_revision().await;
        }
        let candidates: Vec<Handle> =
            listing.handles.iter().filter(|handle| !self.cluster.is_named(handle)).cloned().collect();
        self.unnamed.retain(|handle, (epoch, _)| {
            candidates.contains(handle) && self.driver.epochs.of(handle) == *epoch
        });
        let candidates = match self.not_in_use(candidates).await {
            Some(candidates) => candidates,
            None => return Pass::NoProof,
        };
        if let Some(waiting) = marker {
            return self.wait_for_person(waiting, candidates.len());
        }
        if candidates.is_empty() {
            self.stop_waiting();
            return Pass::Complete;
        }
        match self.seek_proof(&candidates).await {
            Ok(proof) => {
                self.judge_all(&candidates, &proof, is_tick).await;
                Pass::Complete
            }
            Err(pass) => {
                if matches!(pass, Pass::NoProof) {
                    candidates.iter().for_each(|_| self.count(SweepOutcome::NoProof));
                }
                pass
            }
        }
    }

    /// Numbers for the operator, and the strangers, each named once (C25).
    fn take_stock(&mut self, listing: &Listing) {
        let tally = &self.driver.tally;
        tally.copies.store(listing.handles.len() as u64, Ordering::Relaxed);
        tally.strangers.store(listing.strangers.len() as u64, Ordering::Relaxed);
        self.strangers.retain(|known| listing.strangers.contains(known));
        for stranger in &listing.strangers {
            if self.strangers.insert(stranger.clone()) {
                tracing::warn!(name = stranger, "not a copy, left alone: it does not belong below copies/");
            }
        }
        self.driver.epochs.retain(&listing.handles.iter().cloned().collect());
    }

    fn nobody_knows_whose(&self, error: &MarkerError) -> Pass {
        match error {
            MarkerError::Cluster(error) => self.no_answer(error),
            MarkerError::Copies(_) | MarkerError::Records(_) => tracing::warn!(%error, "nothing is removed"),
        }
        Pass::NoProof
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

    /// C22 (a) to (c): epochs first, then the highest revision known, then the list.
    async fn seek_proof(&mut self, candidates: &[Handle]) -> Result<Proof, Pass> {
        if !self.cluster.watch_health().live {
            return Err(Pass::NoProof);
        }
        let epochs: BTreeMap<Handle, Epoch> =
            candidates.iter().map(|handle| (handle.clone(), self.driver.epochs.of(handle))).collect();
        let highest_before = self.highest();
        let named = match self.cluster.list().await {
            Ok(named) => named,
            Err(error) => {
                self.no_answer(&error);
                return Err(Pass::NoProof);
            }
        };
        if let Some(waiting) = judge_revision(named.revision, highest_before) {
            return Err(self.wait_for_person(waiting, candidates.len()));
        }
        self.stop_waiting();
        // What is removed on this proof must not be forgotten by a power failure before the revision is.
        if self.driver.ports.records.revision().is_none_or(|kept| kept < named.revision) {
            let put = self.driver.ports.records.put_revision(named.revision, true).await;
            if let Err(error) = put {
                tracing::warn!(%error, "the highest revision cannot be kept; nothing is removed");
                return Err(Pass::NoProof);
            }
        }
        Ok(Proof { named, epochs })
    }

    async fn judge_all(&mut self, candidates: &[Handle], proof: &Proof, is_tick: bool) {
        let mut stuck = 0;
        for handle in candidates {
            let epoch = proof.epochs.get(handle).copied().unwrap_or_default();
            let earlier = self.unnamed.get(handle).copied();
            let facts = ProofFacts {
                named_by_list: proof.named.handles.contains(handle),
                deletion_seen: self.cluster.deletion_was_seen(handle),
                unnamed_at_earlier_tick: is_tick
                    && earlier.is_some_and(|(known, tick)| known == epoch && tick < self.tick + 1),
            };
            let outcome = match judge_proof(facts) {
                Some(outcome) => outcome,
                None => self.remove(handle, epoch).await,
            };
            self.count(outcome);
            match outcome {
                SweepOutcome::SecondTick if is_tick => {
                    self.unnamed.insert(handle.clone(), (epoch, self.tick + 1));
                }
                SweepOutcome::Named | SweepOutcome::Removed | SweepOutcome::Disturbed => {
                    self.unnamed.remove(handle);
                }
                SweepOutcome::Failed => stuck += 1,
                SweepOutcome::SecondTick
                | SweepOutcome::InUse
                | SweepOutcome::NoProof
                | SweepOutcome::WaitsForPerson => {}
            }
        }
        self.driver.tally.stuck_removals.store(stuck, Ordering::Relaxed);
    }

    /// C23, under the handle's lock.
    async fn remove(&self, handle: &Handle, epoch: Epoch) -> SweepOutcome {
        let ports = &self.driver.ports;
        let guard = self.driver.locks.lock(handle.as_str()).await;
        let table = match ports.mounts.table().await {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%handle, %error, "copy kept: nobody can tell who uses it");
                return SweepOutcome::Failed;
            }
        };
        let facts = LockedFacts {
            epoch_is_the_same: self.driver.epochs.of(handle) == epoch,
            watch_is_live: self.cluster.watch_health().live,
            named_by_view: self.cluster.is_named(handle),
            in_use: table.is_in_use(handle, &ports.records.trashed(handle)),
        };
        if let Some(outcome) = judge_locked(facts) {
            return outcome;
        }
        let outcome = match self.discard(handle).await {
            Ok(()) => SweepOutcome::Removed,
            Err(CopiesError::NoSpace(failure)) => {
                tracing::info!(%handle, %failure, "no space to move the copy into the trash; draining it first");
                self.driver.drain_trash().await;
                match self.discard(handle).await {
                    Ok(()) => SweepOutcome::Removed,
                    Err(CopiesError::NoSpace(_)) => self.delete_in_place(handle).await,
                    Err(error) => removal_failed(handle, &error),
                }
            }
            Err(error) => removal_failed(handle, &error),
        };
        drop(guard);
        if outcome == SweepOutcome::Removed {
            tracing::info!(%handle, "copy removed: no PersistentVolume names it");
            self.driver.trash_wanted.raise();
        }
        outcome
    }

    async fn discard(&self, handle: &Handle) -> Result<(), CopiesError> {
        let ports = &self.driver.ports;
        let id = match ports.records.reserve_trash(handle).await {
            Ok(id) => id,
            Err(error) => {
                let failure = crate::ports::failure::Failure {
                    operation: "reserve a trash entry for",
                    path: handle.as_path().to_owned(),
                    errno: 0,
                };
                tracing::warn!(%handle, %error, "no trash entry");
                return Err(CopiesError::Io(failure));
            }
        };
        let discarded = ports.copies.discard(handle, id).await;
        // Where the outcome is unknown the entry must stay on record: the copy may lie there.
        let keep = matches!(discarded, Ok(()) | Err(CopiesError::Unknown(_)));
        if !keep && let Err(error) = ports.records.forget_trash(id).await {
            tracing::warn!(%handle, %error, "unused trash entry not forgotten");
        }
        discarded
    }

    async fn delete_in_place(&self, handle: &Handle) -> SweepOutcome {
        match self.driver.ports.copies.delete_in_place(handle).await {
            Ok(Deletion::Done) => return SweepOutcome::Removed,
            Ok(Deletion::Left { entries, first }) => {
                tracing::warn!(%handle, entries, %first, "copy not deleted whole in its place");
            }
            Err(error) => tracing::warn!(%handle, %error, "copy not deleted in its place"),
        }
        // What was deleted has made space: half a copy must not keep the name of a whole one.
        match self.discard(handle).await {
            Ok(()) => SweepOutcome::Removed,
            Err(error) => removal_failed(handle, &error),
        }
    }

    fn highest(&self) -> Option<Revision> {
        self.driver.ports.records.revision().max(self.cluster.watch_health().highest)
    }

    /// Writes the highest revision that the watch has seen, so that a restart knows it. Only where the marker
    /// fits: another cluster's revisions mean nothing here.
    async fn keep_revision(&self) {
        let records = &self.driver.ports.records;
        let Some(highest) = self.cluster.watch_health().highest else { return };
        if records.revision().is_some_and(|kept| kept >= highest) {
            return;
        }
        if let Err(error) = records.put_revision(highest, false).await {
            tracing::warn!(%error, "the highest revision is not kept for a restart");
        }
    }

    fn wait_for_person(&self, waiting: WaitingFor, candidates: usize) -> Pass {
        let tally = &self.driver.tally;
        if tally.waiting() != Some(waiting) {
            let why = waiting.sentence();
            tracing::warn!(candidates, "nothing is removed until `per-node confirm` is run: {why}");
        }
        tally.set_waiting(Some(waiting));
        (0..candidates).for_each(|_| self.count(SweepOutcome::WaitsForPerson));
        Pass::Waits
    }

    fn stop_waiting(&self) {
        self.driver.tally.set_waiting(None);
    }

    fn no_answer(&self, error: &ClusterError) {
        self.driver.tally.sync_failed(error.word());
        tracing::warn!(%error, "nothing is removed without a complete answer");
    }

    fn count(&self, outcome: SweepOutcome) {
        self.driver.tally.swept(outcome);
    }

    pub(super) fn parts(&self) -> (&Arc<Driver>, &Arc<dyn Cluster>) {
        (&self.driver, &self.cluster)
    }
}

fn removal_failed(handle: &Handle, error: &CopiesError) -> SweepOutcome {
    tracing::warn!(%handle, %error, "copy not removed; the next tick tries again");
    SweepOutcome::Failed
}
