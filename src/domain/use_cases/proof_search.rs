//! How a proof is sought (C22, C27): epochs first, then a revision that is fixed by a consistent read, then a complete view
//! at that revision or a later one. In a small cluster the view is a new list; in a large one it is the watch, once its
//! unbroken chain has passed the revision, which costs the API server nothing.
//!
//! No lock is held here, and nothing is removed here.

use std::collections::{BTreeMap, BTreeSet};

use super::marker::MarkerError;
use super::sweeper::{Pass, Sweeper};
use crate::domain::handle::Handle;
use crate::domain::proof::{Epoch, Revision};
use crate::domain::sweep::{PROOF_LIST_VOLUMES_MAX, WatchFacts, WatchVerdict, judge_revision, judge_watch};

/// A proof that was begun: all candidates of a pass share it.
pub(super) struct Search {
    /// The candidates, each with its epoch before the revision was fixed.
    epochs: BTreeMap<Handle, Epoch>,
    /// The tick that began it, if one did.
    tick: Option<u64>,
    /// The complete view must be of this revision or a later one.
    wanted: Revision,
    /// How many bookmarks had come when the head was last read.
    bookmarks: u64,
    head_was_repeated: bool,
}

/// A finished proof.
pub(super) struct Proof {
    pub epochs: BTreeMap<Handle, Epoch>,
    pub tick: Option<u64>,
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
        let highest_before = self.highest();
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
        if let Some(waiting) = judge_revision(wanted, highest_before) {
            return self.wait_for_person(waiting, count);
        }
        self.stop_waiting();
        self.keep_revision(wanted).await;
        if count == 0 {
            return Pass::Complete;
        }
        let health = self.cluster.watch_health();
        let search = Search {
            epochs,
            tick: is_tick.then_some(self.tick + 1),
            wanted,
            bookmarks: health.bookmarks,
            head_was_repeated: false,
        };
        if health.volumes <= PROOF_LIST_VOLUMES_MAX {
            self.list(search).await
        } else {
            self.watch(search).await
        }
    }

    /// Looks after a search that waits for the watch. Answers also whether candidates have come that need one of their own.
    pub(super) async fn go_on(&mut self, search: Search) -> (Pass, bool) {
        let (covered, is_of_tick) = (search.epochs.clone(), search.tick.is_some());
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
                let highest_before = self.highest();
                match self.cluster.head().await {
                    Ok(head) => {
                        if let Some(waiting) = judge_revision(head, highest_before) {
                            return self.wait_for_person(waiting, search.epochs.len());
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
        let highest_before = self.highest().max(Some(search.wanted));
        match self.cluster.list().await {
            Ok(named) => match judge_revision(named.revision, highest_before) {
                Some(waiting) => self.wait_for_person(waiting, count),
                None => self.finish(search, named.revision, named.handles).await,
            },
            Err(error) => self.no_answer(&error, count),
        }
    }

    /// A complete view at `revision`: what it does not name may go.
    async fn finish(&mut self, search: Search, revision: Revision, named: BTreeSet<Handle>) -> Pass {
        let Search { epochs, tick, .. } = search;
        // A power failure must not bring back what is removed on this proof and forget the revision: it is written again
        // even where it is kept already, as nobody waited for the disk then.
        let records = &self.driver.ports.records;
        let highest = records.revision().max(Some(revision)).unwrap_or(revision);
        if let Err(error) = records.put_revision(highest, true).await {
            tracing::warn!(%error, "the highest revision cannot be kept; nothing is removed");
            return self.no_proof(epochs.len());
        }
        self.judge_all(&Proof { epochs, tick, named }).await;
        Pass::Complete
    }

    fn highest(&self) -> Option<Revision> {
        self.driver.ports.records.revision().max(self.cluster.watch_health().highest)
    }

    /// Writes the highest revision that was seen, so that a restart knows it. Only where the marker fits: another
    /// cluster's revisions mean nothing here.
    async fn keep_revision(&self, head: Revision) {
        let records = &self.driver.ports.records;
        let highest = self.cluster.watch_health().highest.unwrap_or(head).max(head);
        if records.revision().is_some_and(|kept| kept >= highest) {
            return;
        }
        if let Err(error) = records.put_revision(highest, false).await {
            tracing::warn!(%error, "the highest revision is not kept for a restart");
        }
    }
}
