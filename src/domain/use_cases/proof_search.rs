//! How a proof is sought (C22, C27): epochs first, then a revision that is fixed by a consistent read, then a complete view
//! at that revision or a later one. In a small cluster the view is a new list; in a large one it is the watch, once its
//! unbroken chain has passed the revision, which costs the API server nothing.
//!
//! No lock is held here, and nothing is removed here.

use std::collections::{BTreeMap, BTreeSet};

use super::marker::MarkerError;
use super::sweeper::{Pass, Sweeper};
use crate::domain::handle::Handle;
use crate::domain::proof::{Epoch, History, Revision};
use crate::domain::sweep::{PROOF_LIST_VOLUMES_MAX, WatchFacts, WatchVerdict, judge_history, judge_watch};
use crate::domain::tally::WaitingFor;

/// A proof that was begun: all candidates of a pass share it.
pub(super) struct Search {
    /// The candidates, each with its epoch before the revision was fixed.
    epochs: BTreeMap<Handle, Epoch>,
    /// A tick began it: it judges also what vanished unseen.
    is_of_tick: bool,
    /// The complete view must be of this revision or a later one.
    wanted: Revision,
    /// How many bookmarks had come when the head was last read.
    bookmarks: u64,
    head_was_repeated: bool,
}

impl Search {
    /// How many copies wait for it.
    pub(super) fn candidates(&self) -> u64 {
        self.epochs.len() as u64
    }
}

/// A finished proof.
pub(super) struct Proof {
    pub epochs: BTreeMap<Handle, Epoch>,
    pub is_of_tick: bool,
    /// The candidates that the complete view names.
    pub named: BTreeSet<Handle>,
}

impl Sweeper {
    /// Fixes the revision and, where that is to be had at once, the view.
    pub(super) async fn begin_search(&mut self, candidates: Vec<Handle>, is_tick: bool) -> Pass {
        let count = candidates.len();
        if count > 0 && !self.cluster.watch_health().live {
            return self.no_proof(count);
        }
        let epochs: BTreeMap<Handle, Epoch> =
            candidates.into_iter().map(|handle| (handle.clone(), self.driver.epochs.of(&handle))).collect();
        let before = self.history();
        let wanted = match self.cluster.head().await {
            Ok(head) => head,
            Err(error) => return self.no_answer(&error, count),
        };
        // Another cluster's revisions mean nothing: whose they are comes before what they say.
        match self.driver.check_marker(self.cluster.as_ref()).await {
            Ok(None) => {}
            Ok(Some(waiting)) => return self.wait_for_person(waiting, count),
            Err(MarkerError::Cluster(error)) => return self.no_answer(&error, count),
            Err(error @ (MarkerError::Copies(_) | MarkerError::Records(_))) => {
                tracing::warn!(%error, "nothing is removed");
                return self.no_proof(count);
            }
        }
        // Asked again: what the watch saw meanwhile counts too.
        let before =
            History { went_back: self.history_went_back(), ..before.unwrap_or(History::up_to(wanted)) };
        if let Some(waiting) = judge_history(wanted, Some(before)) {
            return self.doubt_history(waiting, count).await;
        }
        self.stop_waiting();
        self.keep_history(wanted).await;
        if count == 0 {
            return Pass::Complete;
        }
        let health = self.cluster.watch_health();
        let search = Search {
            epochs,
            is_of_tick: is_tick,
            wanted,
            bookmarks: health.bookmarks,
            head_was_repeated: false,
        };
        if health.volumes <= PROOF_LIST_VOLUMES_MAX {
            return self.list(search).await;
        }
        let pass = self.watch(search).await;
        if matches!(pass, Pass::Searching) {
            tracing::info!(
                candidates = count,
                revision = wanted.0,
                "a removal waits until the watch has passed this revision"
            );
        }
        pass
    }

    /// Looks after a search that waits for the watch. Answers also whether candidates have come that need one of their own.
    pub(super) async fn go_on(&mut self, search: Search) -> (Pass, bool) {
        let (covered, is_of_tick) = (search.epochs.clone(), search.is_of_tick);
        let pass = self.watch(search).await;
        if !matches!(pass, Pass::Complete) {
            return (pass, false);
        }
        if is_of_tick {
            self.put_off_next_tick();
        }
        match self.driver.ports.copies.list().await {
            Ok(listing) => (pass, self.is_not_covered(&listing, &covered)),
            // The pass lists again, and says what is wrong.
            Err(_) => (pass, true),
        }
    }

    /// The view of the watch, as soon as it is complete up to the wanted revision.
    async fn watch(&mut self, mut search: Search) -> Pass {
        let health = self.cluster.watch_health();
        let facts = WatchFacts {
            live: health.live,
            reached: health.reached,
            wanted: search.wanted,
            bookmarks_below: health.bookmarks.saturating_sub(search.bookmarks),
            head_was_repeated: search.head_was_repeated,
        };
        match judge_watch(facts) {
            WatchVerdict::Passed => {
                let named = search.epochs.keys().filter(|handle| self.cluster.is_named(handle)).cloned();
                let (named, revision) = (named.collect(), health.reached.unwrap_or(search.wanted));
                self.finish(search, revision, named).await
            }
            WatchVerdict::Wait => {
                self.search = Some(search);
                Pass::Searching
            }
            WatchVerdict::ReadHeadAgain => {
                let before = self.history();
                match self.cluster.head().await {
                    Ok(head) => {
                        if let Some(waiting) = judge_history(head, before) {
                            return self.doubt_history(waiting, search.epochs.len()).await;
                        }
                        search.head_was_repeated = true;
                        search.bookmarks = self.cluster.watch_health().bookmarks;
                        self.search = Some(search);
                        Pass::Searching
                    }
                    Err(error) => {
                        let pass = self.no_answer(&error, search.epochs.len());
                        self.search = Some(search);
                        pass
                    }
                }
            }
            WatchVerdict::ListInstead => {
                tracing::info!(
                    "the watch stays behind the API server's head; the volumes are listed for a proof"
                );
                self.list(search).await
            }
        }
    }

    /// A list that is begun now.
    async fn list(&mut self, search: Search) -> Pass {
        let count = search.epochs.len();
        let before = self.history();
        match self.cluster.list().await {
            Ok(named) => match judge_history(named.revision, before) {
                Some(waiting) => self.doubt_history(waiting, count).await,
                None => self.finish(search, named.revision, named.handles).await,
            },
            Err(error) => self.no_answer(&error, count),
        }
    }

    /// A complete view at `revision`: what it does not name may go.
    async fn finish(&mut self, search: Search, revision: Revision, named: BTreeSet<Handle>) -> Pass {
        let Search { epochs, is_of_tick, .. } = search;
        if self.history_went_back() {
            return self.doubt_history(WaitingFor::Revision, epochs.len()).await;
        }
        // A power failure must not bring back what is removed on this proof and forget the revision: it is written again
        // even where it is kept already, as nobody waited for the disk then.
        let records = &self.driver.ports.records;
        let highest = records.history().map_or(revision, |kept| kept.highest.max(revision));
        if let Err(error) = records.put_history(History::up_to(highest), true).await {
            tracing::warn!(%error, "the highest revision cannot be kept; nothing is removed");
            return self.no_proof(epochs.len());
        }
        self.judge_all(&Proof { epochs, is_of_tick, named }).await;
        Pass::Complete
    }

    /// What is known of the API server's history, by the store and by the watch.
    fn history(&self) -> Option<History> {
        let kept = self.driver.ports.records.history().map(|kept| kept.highest);
        let highest = kept.max(self.cluster.watch_health().highest)?;
        Some(History { highest, went_back: self.history_went_back() })
    }

    fn history_went_back(&self) -> bool {
        let kept = self.driver.ports.records.history();
        self.went_back || kept.is_some_and(|kept| kept.went_back) || self.cluster.watch_health().went_back
    }

    /// Nothing is removed from now on, also after a restart, until a person confirms.
    async fn doubt_history(&mut self, waiting: WaitingFor, candidates: usize) -> Pass {
        self.went_back = true;
        let records = &self.driver.ports.records;
        let kept = records.history().unwrap_or(History::up_to(Revision::default()));
        if !kept.went_back
            && let Err(error) = records.put_history(History { went_back: true, ..kept }, true).await
        {
            tracing::warn!(%error, "a restart will not know that the API server's history was put back");
        }
        self.wait_for_person(waiting, candidates)
    }

    /// Writes the highest revision that was seen, so that a restart knows it. Only where the marker fits: another
    /// cluster's revisions mean nothing here.
    async fn keep_history(&self, head: Revision) {
        let records = &self.driver.ports.records;
        let highest = self.cluster.watch_health().highest.unwrap_or(head).max(head);
        if records.history().is_some_and(|kept| kept.highest >= highest) {
            return;
        }
        if let Err(error) = records.put_history(History::up_to(highest), false).await {
            tracing::warn!(%error, "the highest revision is not kept for a restart");
        }
    }
}
