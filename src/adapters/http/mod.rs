//! `/healthz`, `/readyz`, `/metrics` and, where it is asked for, `/copies` on one port (C45).
//!
//! Everything is answered from memory: neither disk nor API server is touched, so that a probe never fails, and a
//! scrape never hangs, because of them. It tells; it never changes anything.

mod copies;
pub mod listener;
mod metrics;
mod readiness;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::domain::tally::Tally;
use crate::domain::time::Wall;
use crate::ports::clock::Clock;
use crate::ports::cluster::Cluster;
use crate::ports::copies::Copies;

pub use copies::{CopiesPage, PageKey, add_trash, json, node_report};
pub use readiness::Readiness;

/// The longest life of a connection. A scrape takes milliseconds.
const CONNECTION_LIFE: Duration = Duration::from_millis(15_000);

/// How long an answer may take after the shutdown. Nobody waits for a page as the process stops (C42).
const DRAIN_MS: u64 = 500;

const PLAIN: &str = "text/plain; charset=utf-8";

/// Where the answers come from.
#[derive(Clone)]
pub struct Sources {
    pub tally: Arc<Tally>,
    pub copies: Arc<dyn Copies>,
    pub clock: Arc<dyn Clock>,
    /// `None` with `--standalone`.
    pub cluster: Option<Arc<dyn Cluster>>,
    pub readiness: Readiness,
    /// When this process began to serve.
    pub started: Wall,
    /// `None` without `--http-copies`.
    pub copies_page: Option<CopiesPage>,
}

/// What the handlers share.
struct Shared {
    sources: Sources,
    registry: Registry,
}

/// The pages.
pub fn router(sources: Sources) -> Router {
    let registry = metrics::registry(sources.clone());
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_page))
        .route("/copies", get(copies::copies))
        .with_state(Arc::new(Shared { sources, registry }))
}

/// Serves until `shutdown`; what is being answered then has [`DRAIN_MS`] to end.
pub async fn serve(listener: TcpListener, sources: Sources, shutdown: CancellationToken) {
    let router = router(sources);
    let time_is_up = async {
        shutdown.cancelled().await;
        tokio::time::sleep(Duration::from_millis(DRAIN_MS)).await;
    };
    tokio::select! {
        () = listener::serve(&listener, &router, CONNECTION_LIFE, &shutdown) => {}
        () = time_is_up => {}
    }
}

/// What Probe answers: the process runs. It fails only when the runtime no longer answers at all; everything that
/// passes by itself is `/readyz`'s, for a restart would not mend it.
async fn healthz() -> Response {
    page(StatusCode::OK, PLAIN, "ok\n".to_owned())
}

async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let Sources { tally, cluster, readiness, .. } = &shared.sources;
    let reasons = readiness.reasons();
    let mut text = String::new();
    for reason in &reasons {
        text += &format!("not ready: {reason}\n");
    }
    if reasons.is_empty() {
        text += "ready\n";
    }
    for note in readiness::notes(tally, cluster.as_deref()) {
        text += &format!("note: {note}\n");
    }
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    page(status, PLAIN, text)
}

async fn metrics_page(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let format = metrics::Format::asked_for(&headers);
    match format.write(&shared.registry) {
        Ok(text) => page(StatusCode::OK, format.content_type(), text),
        Err(error) => page(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")),
    }
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, content_type)], text).into_response()
}

#[cfg(test)]
mod doubles;
#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;
