//! A fake API server over plain HTTP on 127.0.0.1: it stores volumes and events, and lists, streams and watches as
//! kube-apiserver does, as far as the driver can tell.
//!
//! It can be told to fail: to be away, to be late, to answer with a status, to break or end its watches, to lose its
//! history, to come back from an older backup. It keeps account of which verbs on which resources were used, so that the
//! deployment's ClusterRole can be compared with them, and of how many requests came. Volumes can be made and deleted over
//! HTTP too, so that it can also run on its own (`fake_api_server.rs`).

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::api_routes::serve;
use crate::api_store::Store;

/// How a call fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answered with this status; with `Retry-After` where given.
    Status(u16, Option<u64>),
    /// The connection breaks before an answer.
    Break,
    /// Taken and never answered.
    Hang,
}

/// How the server is to behave.
pub struct Behaviour {
    /// Every call breaks, and so do the watches that stand.
    pub away: bool,
    /// Every call is answered that late. Watches that stand go on as they are.
    pub late_by: Duration,
    /// Every new call fails like that. Watches that stand go on.
    pub fails: Option<Fault>,
    /// The feature is off: a streamed list is invalid.
    pub refuses_streamed_lists: bool,
    /// What `Authorization` must be, if anything.
    pub token: Option<String>,
    /// Between two bookmarks.
    pub bookmark_every: Duration,
    /// The next calls whose request line begins like this fail like that.
    pub faults: VecDeque<(String, Fault)>,
}

impl Default for Behaviour {
    fn default() -> Self {
        let bookmark_every = Duration::from_secs(60);
        let (away, late_by, fails, refuses_streamed_lists, token, faults) = Default::default();
        Self { away, late_by, fails, refuses_streamed_lists, token, bookmark_every, faults }
    }
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) behaviour: Behaviour,
    pub(crate) used: BTreeSet<(String, String)>,
    pub(crate) requests: u64,
    pub(crate) standing_watches: usize,
}

/// What wakes the watches.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wake {
    /// Raised by every change of the store.
    pub(crate) changes: u64,
    /// Raised when all watches are to end; `breaks` says whether in good order.
    pub(crate) ends: u64,
    pub(crate) breaks: bool,
}

pub(crate) struct Shared {
    pub(crate) inner: Mutex<Inner>,
    pub(crate) wake: watch::Sender<Wake>,
}

/// The running server. It stops when it is dropped.
pub struct ApiServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl ApiServer {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start() -> Self {
        Self::start_on("127.0.0.1:0".parse().expect("an address")).await
    }

    /// Listens on `address`.
    pub async fn start_on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("the port is free");
        let address = listener.local_addr().expect("an address");
        let (wake, _) = watch::channel(Wake::default());
        let shared = Arc::new(Shared { inner: Mutex::default(), wake });
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener") });
        Self { shared, address, task }
    }

    /// The kubeconfig of somebody who may use it.
    pub fn kubeconfig(&self) -> String {
        let token = self.lock().behaviour.token.clone();
        let user = token.map(|token| json!({ "token": token })).unwrap_or(json!({}));
        // JSON is YAML.
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "contexts": [{ "name": "fake", "context": { "cluster": "fake", "user": "driver" } }],
            "clusters": [{ "name": "fake", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "driver", "user": user }],
        })
        .to_string()
    }

    /// Looks at or changes what is stored. Watches are told.
    pub fn store<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let result = change(&mut self.lock().store);
        self.shared.wake.send_modify(|wake| wake.changes += 1);
        result
    }

    /// Changes how it behaves. Becoming away breaks the watches.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        let away = {
            let mut inner = self.lock();
            change(&mut inner.behaviour);
            inner.behaviour.away
        };
        if away {
            self.end_watches(true);
        }
    }

    /// The next calls whose request line (`GET /api/v1/…`) begins with `line` fail.
    pub fn fail_next(&self, line: &str, times: usize, fault: &Fault) {
        self.behave(|behaviour| {
            behaviour.faults.extend((0..times).map(|_| (line.to_owned(), fault.clone())));
        });
    }

    /// Ends the watches that stand, in good order or by breaking their connections.
    pub fn end_watches(&self, breaks: bool) {
        self.shared.wake.send_modify(|wake| {
            wake.ends += 1;
            wake.breaks = breaks;
        });
    }

    /// Puts the store back to a backup, as after a restored etcd. The watches that stand are not told.
    pub fn restore(&self, backup: Store) {
        self.lock().store = backup;
    }

    /// The events that are stored.
    pub fn events(&self) -> Vec<Value> {
        self.lock().store.events()
    }

    /// Every verb and resource that was asked for, whether it was granted or not.
    pub fn used(&self) -> BTreeSet<(String, String)> {
        self.lock().used.clone()
    }

    /// How many requests have come, whatever was answered.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// How many watches stand.
    pub fn standing_watches(&self) -> usize {
        self.lock().standing_watches
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.end_watches(true);
        self.task.abort();
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of this lock panics")
    }
}
