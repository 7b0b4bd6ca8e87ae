//! The watches of the fake API server: initial events, changes, bookmarks, and their ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::ReceiverStream;

use crate::api_routes::status_of;
use crate::api_server::Shared;

/// Lines that wait for a slow client before the server waits too.
const LINES_QUEUED_MAX: usize = 64;

/// What a watch asks for.
pub struct WatchRequest {
    /// The revision to go on from; `None` asks for the list as initial events.
    pub from: Option<u64>,
    pub bookmarks: bool,
    pub lasts: Duration,
}

type Sender = mpsc::Sender<io::Result<Bytes>>;

/// Answers with a stream that a task fills.
pub fn answer(shared: Arc<Shared>, request: WatchRequest) -> Response {
    let (sender, receiver) = mpsc::channel(LINES_QUEUED_MAX);
    tokio::spawn(async move {
        shared.lock().standing_watches += 1;
        // It ends with an error when the client has gone: nobody is left to be told.
        let _ = fill(&shared, request, &sender).await;
        shared.lock().standing_watches -= 1;
    });
    Response::new(Body::from_stream(ReceiverStream::new(receiver)))
}

/// The client has gone.
struct Gone;

async fn fill(shared: &Arc<Shared>, request: WatchRequest, sender: &Sender) -> Result<(), Gone> {
    let mut wake = shared.wake.subscribe();
    let ends_before = wake.borrow_and_update().ends;
    let until = Instant::now() + request.lasts;
    let mut reached = match request.from {
        Some(revision) => revision,
        None => send_initial_events(shared, sender).await?,
    };
    let every = shared.lock().behaviour.bookmark_every;
    let mut next_bookmark = Instant::now() + every;
    loop {
        let (changes, head) = {
            let inner = shared.lock();
            (inner.store.changes_after(reached), inner.store.revision())
        };
        let Some(changes) = changes else {
            return send(sender, &event("ERROR", &status_of(410, "Expired", &json!({})))).await;
        };
        for change in changes {
            reached = change.revision;
            send(sender, &event(change.kind, &change.volume.render())).await?;
        }
        tokio::select! {
            changed = wake.changed() => {
                let now = *wake.borrow_and_update();
                if changed.is_err() || now.ends != ends_before {
                    return if now.breaks { break_off(sender).await } else { Ok(()) };
                }
            }
            () = sleep_until(next_bookmark), if request.bookmarks => {
                next_bookmark = Instant::now() + every;
                // A restored etcd may be behind what this watch has told; a bookmark never goes back.
                reached = reached.max(head);
                send(sender, &bookmark(reached, &json!({}))).await?;
            }
            () = sleep_until(until) => return Ok(()),
            () = sender.closed() => return Err(Gone),
        }
    }
}

/// Sends what is stored now, and the bookmark that says so. Answers its revision.
async fn send_initial_events(shared: &Arc<Shared>, sender: &Sender) -> Result<u64, Gone> {
    let (volumes, revision) = {
        let inner = shared.lock();
        (inner.store.volumes().cloned().collect::<Vec<_>>(), inner.store.revision())
    };
    for volume in volumes {
        send(sender, &event("ADDED", &volume.render())).await?;
    }
    send(sender, &bookmark(revision, &json!({ "k8s.io/initial-events-end": "true" }))).await?;
    Ok(revision)
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

fn bookmark(revision: u64, annotations: &Value) -> Value {
    let metadata = json!({ "resourceVersion": revision.to_string(), "annotations": annotations });
    event(
        "BOOKMARK",
        &json!({ "kind": "PersistentVolume", "apiVersion": "v1", "metadata": metadata, "spec": {} }),
    )
}

async fn send(sender: &Sender, line: &Value) -> Result<(), Gone> {
    sender.send(Ok(Bytes::from(format!("{line}\n")))).await.map_err(|_| Gone)
}

async fn break_off(sender: &Sender) -> Result<(), Gone> {
    sender.send(Err(io::Error::other("the connection breaks"))).await.map_err(|_| Gone)
}
