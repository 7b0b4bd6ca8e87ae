//! What the watch has told so far, for others to look at: which handles are named, and how good that view is.
//!
//! It decides nothing: the view is trustworthy while it is synced and live, and whoever wants to remove something asks for
//! more than that (C22).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::handle::Handle;
use crate::domain::proof::{NamingView, Revision};
use crate::domain::signal::Signal;
use crate::ports::clock::Clock;
use crate::ports::cluster::WatchHealth;

use super::api_error::ApiError;
use super::listing::Listing;
use super::volume::Volume;

/// The view. Shared between the watcher that writes it and those who look.
pub struct LiveView {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    sweep_wanted: Arc<Signal>,
    started_over: Signal,
}

/// The right to write the view, until it is started over: what was asked of the server before that moment comes from a
/// history that a person has given up, and is dropped.
#[derive(Clone)]
pub(super) struct Writer {
    view: Arc<LiveView>,
    life: u64,
}

#[derive(Default)]
struct State {
    /// How often the view was started over.
    life: u64,
    naming: NamingView,
    health: WatchHealth,
    /// A list was read whose watch has not stood yet.
    fresh: bool,
}

impl LiveView {
    /// An empty view: neither synced nor live. `sweep_wanted` is raised when a sweep may find something new.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, sweep_wanted: Arc<Signal>) -> Self {
        Self { state: Mutex::default(), clock, sweep_wanted, started_over: Signal::default() }
    }

    /// How the watch is.
    #[must_use]
    pub fn health(&self) -> WatchHealth {
        self.lock().health
    }

    /// Whether a volume names the handle, as far as the watch has told.
    #[must_use]
    pub fn names(&self, handle: &Handle) -> bool {
        self.lock().naming.names(handle)
    }

    /// Whether the watch saw the deletion after which nobody named the handle.
    #[must_use]
    pub fn deletion_was_seen(&self, handle: &Handle) -> bool {
        self.lock().naming.deletion_was_seen(handle)
    }

    /// How many volumes are kept in memory (C48).
    #[must_use]
    pub fn kept_count(&self) -> usize {
        self.lock().naming.len()
    }

    /// The revision from which the watch goes on.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.lock().reached()
    }

    /// Forgets everything. Whoever waits in [`started_over`](Self::started_over) is to list anew.
    pub fn start_over(&self) {
        let mut state = self.lock();
        *state = State { life: state.life + 1, ..State::default() };
        drop(state);
        self.started_over.raise();
    }

    /// Waits for [`start_over`](Self::start_over). For one waiter.
    pub(super) async fn started_over(&self) {
        self.started_over.wait().await;
    }

    /// The right to write what is asked of the server from now on.
    pub(super) fn writer(self: &Arc<Self>) -> Writer {
        Writer { view: self.clone(), life: self.lock().life }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// An answer outside of the watch carried this revision.
    pub(super) fn heard_of(&self, revision: u64) {
        self.write(|state| state.hear(revision));
    }

    /// A full list was read beside the watch: it says what the next one would cost.
    pub(super) fn listed_beside(&self, listing: &Listing) {
        self.write(|state| {
            state.health.volumes = listing.item_count;
            state.hear(listing.revision);
        });
    }

    /// The API server's history was put back: what it answers now is lower than what was seen before it was asked.
    pub(super) fn went_back(&self) {
        self.write(|state| state.health.went_back = true);
        self.view.sweep_wanted.raise();
    }

    /// A full list was read: a new chain begins, its watch does not stand yet. `highest_before` was known before the list
    /// was asked for.
    pub(super) fn begin(&self, listing: Listing, highest_before: Option<Revision>) {
        let now = self.view.clock.monotonic();
        if Some(Revision(listing.revision)) < highest_before {
            self.went_back();
        }
        self.write(|state| {
            state.naming.relist(listing.volumes);
            state.health.reached = Some(Revision(listing.revision));
            state.health.volumes = listing.item_count;
            state.health.synced = true;
            state.health.last_sync = Some(now);
            state.hear(listing.revision);
            state.fresh = true;
        });
    }

    /// A stream of the watch stands.
    pub(super) fn stream_stands(&self) {
        let mut fresh = false;
        self.write(|state| {
            state.health.live = true;
            fresh = std::mem::take(&mut state.fresh);
        });
        // Not sooner: a sweep that finds the watch not live goes away again. Not each time: the list is what is new.
        if fresh {
            self.view.sweep_wanted.raise();
        }
    }

    /// The stream ended. The view stays as it was last and is not live until the next one stands.
    pub(super) fn stream_ended(&self) {
        self.write(|state| state.health.live = false);
    }

    /// ADDED or MODIFIED.
    ///
    /// # Errors
    /// `WentBack`.
    pub(super) fn named(&self, volume: Volume, revision: u64) -> Result<(), ApiError> {
        self.advance(revision, |state| {
            // A volume of another driver is none of ours, and `spec.csi` cannot be edited: if it ever could, the old
            // handle would stay named, which removes nothing.
            if let Some(handle) = volume.handle {
                state.naming.apply(volume.uid, handle);
            }
        })
    }

    /// DELETED.
    ///
    /// # Errors
    /// `WentBack`.
    pub(super) fn deleted(&self, volume: &Volume, revision: u64) -> Result<(), ApiError> {
        let mut nobody_names_it = false;
        self.advance(revision, |state| nobody_names_it = state.naming.delete(&volume.uid))?;
        if nobody_names_it {
            self.view.sweep_wanted.raise();
        }
        Ok(())
    }

    /// BOOKMARK.
    ///
    /// # Errors
    /// `WentBack`.
    pub(super) fn bookmark(&self, revision: u64) -> Result<(), ApiError> {
        self.advance(revision, |state| state.health.bookmarks += 1)
    }

    /// Takes a revision that the watch delivered, and the change that came with it. The same revision again is fine
    /// (bookmarks repeat), a lower one is not.
    fn advance(&self, revision: u64, change: impl FnOnce(&mut State)) -> Result<(), ApiError> {
        let now = self.view.clock.monotonic();
        let mut outcome = Ok(());
        self.write(|state| {
            if revision < state.reached() {
                outcome = Err(ApiError::WentBack { from: state.reached(), to: revision });
                return;
            }
            state.health.reached = Some(Revision(revision));
            state.health.last_sync = Some(now);
            state.hear(revision);
            change(state);
        });
        outcome
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.view.lock();
        if state.life == self.life {
            change(&mut state);
        }
    }
}

impl State {
    /// The revision that the present chain has reached.
    fn reached(&self) -> u64 {
        self.health.reached.unwrap_or_default().0
    }

    fn hear(&mut self, revision: u64) {
        self.health.highest = self.health.highest.max(Some(Revision(revision)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::domain::time::{Monotonic, Wall};

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn monotonic(&self) -> Monotonic {
            Monotonic(Duration::ZERO)
        }

        fn wall(&self) -> Wall {
            Wall { unix_ms: 0 }
        }
    }

    #[test]
    fn c22_what_was_asked_before_the_view_was_started_over_is_dropped() {
        let view = Arc::new(LiveView::new(Arc::new(StoppedClock), Arc::new(Signal::default())));
        let handle = Handle::parse("a").expect("a handle");
        let listing = || Listing {
            revision: 20,
            volumes: BTreeMap::from([("u".to_owned(), handle.clone())]),
            item_count: 1,
        };
        let old = view.writer();
        old.begin(listing(), None);
        old.stream_stands();
        assert!(view.health().live && view.names(&handle));
        view.start_over();
        old.begin(listing(), None);
        old.stream_stands();
        old.heard_of(500);
        assert_eq!(old.bookmark(30), Ok(()));
        assert_eq!(view.health(), WatchHealth::default());
        assert!(!view.names(&handle));
        let new = view.writer();
        new.begin(listing(), None);
        new.stream_stands();
        assert!(view.health().live && view.names(&handle));
        assert_eq!(view.health().highest, Some(Revision(20)));
    }
}
