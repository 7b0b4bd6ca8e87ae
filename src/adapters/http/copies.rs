//! `/copies`: what the node has, as JSON, for those who know the UID of the plugin's own pod.
//!
//! The API server's proxy of pods, by which the operator's tool comes, passes no credentials on; whoever may read the plugins'
//! pods knows the key, and nobody else on the pod network does. The page answers from memory, a bounded part at a time, and
//! has no name of anything inside a copy.

use std::hint::black_box;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::{Shared, Sources, readiness};
use crate::domain::handle::Handle;
use crate::domain::pod::{Pod, PodReference};
use crate::domain::time::Wall;
use crate::domain::use_cases::driver::Driver;
use crate::domain::use_cases::report::{CopyReport, HolderReport, Report, TrashReport, Wanted};
use crate::proto::report::{
    API_VERSION, Copy, Holder, KEY_HEADER, NODE_COPIES, NodeReport, PAGE_COPIES_MAX, REFUSAL, Refusal,
    RefusalToTell, Store, Sweep, TRASH_MAX, TrashEntry, timestamp,
};

const JSON: &str = "application/json";

/// What the page needs beside the other pages' sources.
#[derive(Clone)]
pub struct CopiesPage {
    pub driver: Arc<Driver>,
    pub node_id: String,
    pub key: PageKey,
}

/// The UID of the plugin's own pod. It is not shown where this is printed.
#[derive(Clone)]
pub struct PageKey(String);

impl PageKey {
    /// `None` where it is empty: that would let everybody in.
    #[must_use]
    pub fn new(pod_uid: &str) -> Option<Self> {
        (!pod_uid.is_empty()).then(|| Self(pod_uid.to_owned()))
    }

    /// Whether `told` is the key, in a time that depends on its length alone.
    fn fits(&self, told: &[u8]) -> bool {
        let own = self.0.as_bytes();
        if told.len() != own.len() {
            return false;
        }
        let differing = told.iter().zip(own).fold(0, |so_far, (a, b)| black_box(so_far | (a ^ b)));
        black_box(differing) == 0
    }
}

impl std::fmt::Debug for PageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageKey")
    }
}

/// What a query may ask for.
struct Query {
    handle: Option<Handle>,
    after: Option<Handle>,
}

pub(super) async fn copies(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let Some(page) = &shared.sources.copies_page else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !headers.get(KEY_HEADER).is_some_and(|told| page.key.fits(told.as_bytes())) {
        let why = format!("send the UID of this plugin's own pod in the header {KEY_HEADER}");
        return refuse(StatusCode::FORBIDDEN, why);
    }
    match Query::parse(uri.query().unwrap_or_default()) {
        Ok(query) => answer(StatusCode::OK, json(&page.report(&shared.sources, query))),
        Err(why) => refuse(StatusCode::BAD_REQUEST, why),
    }
}

impl Query {
    /// Handles have no character that a query would escape.
    fn parse(raw: &str) -> Result<Self, String> {
        let mut query = Self { handle: None, after: None };
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let wanted = match name {
                "handle" => &mut query.handle,
                "after" => &mut query.after,
                _ => return Err("ask with handle= and after= alone".to_owned()),
            };
            *wanted = Some(Handle::parse(value).map_err(|error| error.to_string())?);
        }
        Ok(query)
    }
}

impl CopiesPage {
    fn report(&self, sources: &Sources, query: Query) -> NodeReport {
        let Query { handle, after } = query;
        let now = sources.clock.wall();
        let wanted = Wanted { handle, after, copies_max: PAGE_COPIES_MAX };
        let told = self.driver.report(&wanted);
        let mut report = NodeReport {
            started_at: Some(time(sources.started)),
            sweep: Some(sweep(sources)),
            ..node_report(&self.driver, &self.node_id, told, now)
        };
        if wanted.after.is_none() {
            self.add_refusals(&mut report, wanted.handle.as_ref());
            add_trash(&mut report, self.driver.trash_report(), wanted.handle.as_ref());
        }
        report
    }

    fn add_refusals(&self, report: &mut NodeReport, only: Option<&Handle>) {
        let mut refusals = self.driver.recent_refusals();
        refusals.retain(|(key, _)| only.is_none() || key.handle.as_ref() == only);
        report.refusals = refusals
            .into_iter()
            .map(|(key, repeated)| {
                let (namespace, pod, uid) = reference(key.pod);
                Refusal {
                    handle: key.handle.map(String::from),
                    namespace,
                    pod,
                    uid,
                    reason: key.reason.as_str().to_owned(),
                    message: key.message,
                    count: repeated.count,
                    first: time(repeated.first),
                    last: time(repeated.last),
                }
            })
            .collect();
    }
}

/// The wire's form of a report, without what only a serving process knows.
pub fn node_report(driver: &Driver, node_id: &str, report: Report, now: Wall) -> NodeReport {
    let Report { copies, copies_total, more, listed, capacity } = report;
    let last = copies.last().filter(|_| more).map(|copy| copy.handle.as_str().to_owned());
    NodeReport {
        api_version: API_VERSION.to_owned(),
        kind: NODE_COPIES.to_owned(),
        driver: driver.settings().driver_name.clone(),
        node: node_id.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: time(now),
        store: capacity.map(|(capacity, at)| Store {
            total_bytes: capacity.total_bytes,
            available_bytes: capacity.available_bytes,
            total_inodes: capacity.total_inodes,
            available_inodes: capacity.available_inodes,
            measured_at: time(at),
        }),
        copies: copies.into_iter().map(|one| copy(one, now)).collect(),
        copies_total,
        listed_at: listed.map(time),
        after: last,
        ..NodeReport::default()
    }
}

/// The trash as far as it is told, and how much there is.
pub fn add_trash(report: &mut NodeReport, mut trash: Vec<TrashReport>, only: Option<&Handle>) {
    trash.retain(|entry| only.is_none_or(|only| only == &entry.handle));
    report.trash_total = trash.len() as u64;
    let entry = |TrashReport { id, handle, kept, left }: TrashReport| TrashEntry {
        id: id.to_string(),
        handle: String::from(handle),
        removed_at: kept.map(|kept| time(kept.removed)),
        bytes: kept.and_then(|kept| kept.bytes),
        left_seconds: left.map(|left| left.as_secs()),
    };
    report.trash = trash.into_iter().take(TRASH_MAX).map(entry).collect();
}

fn copy(copy: CopyReport, now: Wall) -> Copy {
    let CopyReport { handle, measured, orphan, holders, leftovers } = copy;
    let ended = |ago: std::time::Duration| {
        let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        time(Wall { unix_ms: now.unix_ms.saturating_sub(ago) })
    };
    Copy {
        handle: String::from(handle),
        bytes: measured.map(|measured| measured.usage.used_bytes),
        inodes: measured.map(|measured| measured.usage.used_inodes),
        measured_at: measured.map(|measured| ended(measured.ago)),
        orphan,
        holders: holders.into_iter().map(holder).collect(),
        leftover_mounts: leftovers,
    }
}

fn holder(holder: HolderReport) -> Holder {
    let HolderReport { pod: Pod { uid, name, target }, since, readonly } = holder;
    let (namespace, pod) = name.map(|name| (name.namespace, name.name)).unzip();
    Holder {
        namespace,
        pod,
        uid: uid.map(|uid| uid.as_str().to_owned()),
        target: target.as_path().to_string_lossy().into_owned(),
        since: since.map(time),
        readonly,
    }
}

fn reference(pod: Option<PodReference>) -> (Option<String>, Option<String>, Option<String>) {
    match pod {
        None => (None, None, None),
        Some(PodReference { name, uid }) => {
            (Some(name.namespace), Some(name.name), Some(uid.as_str().to_owned()))
        }
    }
}

/// What `/readyz` says, and the numbers behind it.
fn sweep(sources: &Sources) -> Sweep {
    use std::sync::atomic::Ordering::Relaxed;
    let Sources { tally, cluster, readiness: reasons, .. } = sources;
    let health = cluster.as_ref().map(|cluster| cluster.watch_health());
    Sweep {
        not_ready: reasons.reasons(),
        notes: readiness::notes(tally, cluster.as_deref()),
        synced: health.is_some_and(|health| health.synced),
        live: health.is_some_and(|health| health.live),
        waiting_for: tally.waiting().map(|waiting| waiting.as_str().to_owned()),
        searching: tally.removals_searching.load(Relaxed),
        stuck: tally.stuck_removals.load(Relaxed),
    }
}

fn time(wall: Wall) -> String {
    timestamp(wall.unix_ms)
}

fn refuse(status: StatusCode, message: String) -> Response {
    let refusal = RefusalToTell { api_version: API_VERSION.to_owned(), kind: REFUSAL.to_owned(), message };
    answer(status, serde_json::to_vec(&refusal))
}

/// A report as it is written, on the page and by `per-node ls`.
///
/// # Errors
/// None that a report has a reason for.
pub fn json(report: &NodeReport) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(report)
}

fn answer(status: StatusCode, body: Result<Vec<u8>, serde_json::Error>) -> Response {
    match body {
        Ok(body) => (status, [(header::CONTENT_TYPE, JSON)], Body::from(body)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_whole_uid_and_nothing_else() {
        let key = PageKey::new("0f0e-1").expect("a key");
        assert!(key.fits(b"0f0e-1"));
        for other in [&b""[..], b"0f0e-", b"0f0e-2", b"1f0e-1", b"0f0e-11", b"\xff\xff\xff\xff\xff\xff"] {
            assert!(!key.fits(other), "{other:?}");
        }
        assert!(PageKey::new("").is_none());
        assert_eq!(format!("{key:?}"), "PageKey");
    }

    #[test]
    fn a_query_asks_by_handle_alone() {
        let parse = |raw| Query::parse(raw).map(|query| (query.handle, query.after));
        assert_eq!(parse(""), Ok((None, None)));
        assert_eq!(parse("handle=a&after=b.c"), Ok((Handle::parse("a").ok(), Handle::parse("b.c").ok())));
        for wrong in ["limit=1", "handle=", "handle", "after=../x", "handle=A"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
