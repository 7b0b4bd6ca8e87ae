//! The port `Cluster` on an API server in memory: one process's watch, which follows at once or is led by
//! hand, and its lists.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::api_server::{ApiServer, State};
use super::gate::Gate;
use super::locked;
use crate::domain::handle::Handle;
use crate::domain::proof::{ClusterUid, NamingView, Revision};
use crate::domain::signal::Signal;
use crate::ports::clock::Clock;
use crate::ports::cluster::{Cluster, ClusterError, NamedHandles, WatchHealth};

/// The calls of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterCall {
    Head,
    List,
    ClusterUid,
}

pub(super) type ClusterGate = Gate<ClusterCall, ClusterError>;

/// One process's view of the cluster.
pub struct ClusterView {
    api: ApiServer,
    driver: String,
    state: Mutex<ViewState>,
    wanted: Mutex<Option<Arc<Signal>>>,
}

#[derive(Debug, Default)]
pub(super) struct ViewState {
    names: NamingView,
    health: WatchHealth,
    follows: bool,
    /// The gap between two streams was too long to go on from the last one.
    chain_is_broken: bool,
}

impl ClusterView {
    pub(super) fn new(api: ApiServer, driver: String, state: ViewState) -> ClusterView {
        ClusterView { api, driver, state: Mutex::new(state), wanted: Mutex::new(None) }
    }

    /// What is raised when the watch sees a handle's last volume go.
    pub fn wake_on_deletion(&self, wanted: Arc<Signal>) {
        *locked(&self.wanted) = Some(wanted);
    }

    /// From now on shows every change at once, also after a lost stream.
    pub fn follow(&self) {
        locked(&self.state).follows = true;
        self.changed();
    }

    /// From now on shows what it is told to deliver.
    pub fn lead_by_hand(&self) {
        locked(&self.state).follows = false;
    }

    /// Lists and opens a stream from there. What vanished meanwhile was not seen to be deleted.
    pub fn relist(&self) {
        let server = self.api.state();
        let mut state = locked(&self.state);
        self.relist_locked(&server, &mut state);
    }

    /// Opens the lost stream where it ended, or lists anew where that cannot be: its history is gone (410) or was put
    /// back, the gap was too long, or none was open.
    pub fn reopen(&self) {
        let server = self.api.state();
        let mut state = locked(&self.state);
        let goes_on = !state.chain_is_broken
            && state.health.reached.is_some_and(|at| at >= server.compacted && at <= server.head());
        if goes_on {
            state.health.live = true;
        } else {
            self.relist_locked(&server, &mut state);
        }
    }

    /// The stream is lost.
    pub fn drop_watch(&self) {
        let mut state = locked(&self.state);
        state.health.live = false;
        state.follows = false;
    }

    /// The stream is lost for longer than a chain of streams may be interrupted.
    pub fn break_chain(&self) {
        self.drop_watch();
        locked(&self.state).chain_is_broken = true;
    }

    /// The stream brings up to this many changes; answers how many it brought.
    pub fn deliver(&self, at_most: usize) -> usize {
        let (delivered, freed) = {
            let server = self.api.state();
            let mut state = locked(&self.state);
            self.deliver_locked(&server, &mut state, at_most)
        };
        if freed {
            self.wake();
        }
        delivered
    }

    /// The stream brings a bookmark, if nothing else is left to bring.
    pub fn bookmark(&self) {
        let server = self.api.state();
        let mut state = locked(&self.state);
        let is_current = server.changes_after(state.reached(), 1).is_empty();
        if state.health.live && is_current {
            let head = server.head();
            state.health.bookmarks += 1;
            self.advance(&mut state, head);
        }
    }

    /// The stream brings a bookmark with the revision it has reached already, as idle ones do.
    pub fn repeat_bookmark(&self) {
        let mut state = locked(&self.state);
        if state.health.live {
            state.health.bookmarks += 1;
        }
    }

    /// The server has changed.
    pub(super) fn changed(&self) {
        let freed = {
            let server = self.api.state();
            let mut state = locked(&self.state);
            if !state.follows {
                return;
            }
            if state.health.live {
                self.deliver_locked(&server, &mut state, usize::MAX).1
            } else {
                self.relist_locked(&server, &mut state);
                false
            }
        };
        if freed {
            self.wake();
        }
    }

    fn deliver_locked(&self, server: &State, state: &mut ViewState, at_most: usize) -> (usize, bool) {
        if !state.health.live {
            return (0, false);
        }
        let changes = server.changes_after(state.reached(), at_most);
        let mut freed = false;
        for change in &changes {
            match &change.volume {
                Some(volume) if volume.driver == self.driver => {
                    state.names.apply(change.uid.clone(), volume.handle.clone());
                }
                Some(_) => {}
                None => freed |= state.names.delete(&change.uid),
            }
            self.advance(state, change.revision);
        }
        (changes.len(), freed)
    }

    fn relist_locked(&self, server: &State, state: &mut ViewState) {
        let head = server.head();
        state.health.went_back |= Some(head) < state.health.highest;
        state.names.relist(server.volumes_at(&self.driver, head));
        state.health.synced = true;
        state.health.live = true;
        state.health.reached = None;
        state.health.volumes = server.volume_count(head);
        state.chain_is_broken = false;
        self.advance(state, head);
    }

    fn advance(&self, state: &mut ViewState, revision: Revision) {
        state.health.reached = state.health.reached.max(Some(revision));
        state.health.highest = state.health.highest.max(Some(revision));
        state.health.last_sync = Some(self.api.clock().monotonic());
    }

    /// An answer beside the watch carried this revision, and a list how many volumes there are.
    fn hear(&self, revision: Revision, volumes: Option<usize>) {
        let health = &mut locked(&self.state).health;
        health.highest = health.highest.max(Some(revision));
        health.volumes = volumes.unwrap_or(health.volumes);
    }

    fn wake(&self) {
        let wanted = locked(&self.wanted).clone();
        if let Some(wanted) = wanted {
            wanted.raise();
        }
    }
}

impl ViewState {
    /// The stream has delivered everything up to here.
    fn reached(&self) -> Revision {
        self.health.reached.unwrap_or_default()
    }
}

#[async_trait]
impl Cluster for ClusterView {
    fn watch_health(&self) -> WatchHealth {
        locked(&self.state).health
    }

    fn is_named(&self, handle: &Handle) -> bool {
        locked(&self.state).names.names(handle)
    }

    fn deletion_was_seen(&self, handle: &Handle) -> bool {
        locked(&self.state).names.deletion_was_seen(handle)
    }

    fn start_over(&self) {
        {
            let mut state = locked(&self.state);
            let follows = state.follows;
            *state = ViewState { follows, ..ViewState::default() };
        }
        self.changed();
    }

    async fn head(&self) -> Result<Revision, ClusterError> {
        let act = || {
            let head = self.api.state().head();
            self.hear(head, None);
            Ok(head)
        };
        self.api.cluster_gate().pass(ClusterCall::Head, act, |error| error).await
    }

    async fn list(&self) -> Result<NamedHandles, ClusterError> {
        let act = || {
            let server = self.api.state();
            let revision = server.lists_at.unwrap_or(server.head());
            let handles = server.volumes_at(&self.driver, revision).into_values().collect();
            self.hear(revision, Some(server.volume_count(revision)));
            Ok(NamedHandles { revision, handles })
        };
        self.api.cluster_gate().pass(ClusterCall::List, act, |error| error).await
    }

    async fn cluster_uid(&self) -> Result<ClusterUid, ClusterError> {
        let act = || Ok(self.api.state().cluster_uid.clone());
        self.api.cluster_gate().pass(ClusterCall::ClusterUid, act, |error| error).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::memory::SteppedClock;
    use crate::domain::time::Wall;
    use futures_util::FutureExt;

    const DRIVER: &str = "d";

    fn h(raw: &str) -> Handle {
        Handle::parse(raw).unwrap()
    }

    fn server() -> ApiServer {
        ApiServer::new(&SteppedClock::at(Wall::default()))
    }

    #[test]
    fn a_following_view_sees_every_change_at_once_and_wakes_on_the_last_deletion() {
        let api = server();
        let (view, signal) = (api.follow(DRIVER), Arc::new(Signal::default()));
        view.wake_on_deletion(signal.clone());
        api.create_volume("one", DRIVER, &h("a"));
        api.create_volume("two", DRIVER, &h("a"));
        api.create_volume("other", "another-driver", &h("b"));
        assert!(view.is_named(&h("a")) && !view.is_named(&h("b")));
        api.delete_volume("one");
        assert!(view.is_named(&h("a")) && !signal.take());
        api.terminate_volume("two");
        assert!(view.is_named(&h("a")));
        api.delete_volume("two");
        assert!(!view.is_named(&h("a")) && view.deletion_was_seen(&h("a")) && signal.take());
    }

    #[test]
    fn a_led_view_lags_and_a_lost_stream_brings_nothing() {
        let api = server();
        let view = api.watch(DRIVER);
        assert!(!view.watch_health().synced);
        view.relist();
        api.create_volume("one", DRIVER, &h("a"));
        api.create_volume("two", DRIVER, &h("b"));
        assert!(!view.is_named(&h("a")));
        assert_eq!(view.deliver(1), 1);
        assert!(view.is_named(&h("a")) && !view.is_named(&h("b")));
        view.drop_watch();
        assert_eq!(view.deliver(9), 0);
        api.delete_volume("one");
        api.compact();
        view.reopen();
        assert!(!view.is_named(&h("a")) && !view.deletion_was_seen(&h("a")) && view.is_named(&h("b")));
    }

    #[test]
    fn a_restored_etcd_goes_back_and_an_open_watch_misses_what_comes_then() {
        let api = server();
        let view = api.watch(DRIVER);
        let backup = api.backup();
        api.create_volume("one", DRIVER, &h("a"));
        api.touch();
        view.relist();
        let before = view.watch_health().highest;
        api.restore(&backup);
        api.create_volume("two", DRIVER, &h("b"));
        assert_eq!(view.deliver(9), 0);
        assert!(!view.is_named(&h("b")));
        let named = view.list().now_or_never().unwrap().unwrap();
        assert_eq!(named.handles.into_iter().collect::<Vec<_>>(), [h("b")]);
        assert!(Some(named.revision) < before);
    }

    #[test]
    fn a_list_can_be_stale_and_says_so_by_its_revision() {
        let api = server();
        let view = api.follow(DRIVER);
        let old = api.revision();
        api.create_volume("one", DRIVER, &h("a"));
        api.answer_lists_at(Some(old));
        let named = view.list().now_or_never().unwrap().unwrap();
        assert_eq!((named.revision, named.handles.len()), (old, 0));
    }
}
