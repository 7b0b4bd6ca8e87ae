//! What the fake API server answers: faults first, then who asks, then the routes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, request::Parts};
use axum::response::Response;
use serde_json::{Value, json};

use crate::api_server::{Fault, Shared};
use crate::api_store::{Page, Phase};
use crate::api_watch::{self, WatchRequest};

const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One request.
pub async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let line = format!("{} {}", parts.method, parts.uri);
    let (fault, late_by) = {
        let mut inner = shared.lock();
        inner.requests += 1;
        let behaviour = &mut inner.behaviour;
        let at = behaviour.faults.iter().position(|(begin, _)| line.starts_with(begin.as_str()));
        let fault = at.and_then(|at| behaviour.faults.remove(at)).map(|(_, fault)| fault);
        let fault = if behaviour.away { Some(Fault::Break) } else { fault.or(behaviour.fails.clone()) };
        (fault, behaviour.late_by)
    };
    if !late_by.is_zero() {
        tokio::time::sleep(late_by).await;
    }
    match fault {
        None => {}
        Some(Fault::Status(code, retry_after)) => return failure(code, "Injected", &json!({}), retry_after),
        Some(Fault::Break) => return broken(),
        Some(Fault::Hang) => return std::future::pending().await,
    }
    let expected = shared.lock().behaviour.token.clone().map(|token| format!("Bearer {token}"));
    let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    if expected.is_some() && authorization != expected.as_deref() {
        return failure(401, "Unauthorized", &json!({}), None);
    }
    route(&shared, &parts, &body)
}

fn route(shared: &Arc<Shared>, parts: &Parts, body: &Bytes) -> Response {
    let segments: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    let parsed = || serde_json::from_slice::<Value>(body).unwrap_or_default();
    let query = Query::of(parts);
    let account = |verb: &str, resource: &str| {
        shared.lock().used.insert((verb.to_owned(), resource.to_owned()));
    };
    match (&parts.method, segments.as_slice()) {
        (&Method::GET, ["api", "v1", "persistentvolumes"]) if query.get("watch") == Some("true") => {
            account("watch", "persistentvolumes");
            watch_volumes(shared, &query)
        }
        (&Method::GET, ["api", "v1", "persistentvolumes"]) => {
            account("list", "persistentvolumes");
            list_volumes(shared, &query)
        }
        // What a person does to volumes; no account is kept of that.
        (&Method::POST, ["api", "v1", "persistentvolumes"]) => create_volume(shared, &parsed()),
        (&Method::DELETE, ["api", "v1", "persistentvolumes", name]) => {
            let deleted = shared.lock().store.delete_volume(name);
            shared.wake.send_modify(|wake| wake.changes += 1);
            deleted.map_or_else(|| not_found("persistentvolumes"), |volume| answer(200, &volume.render()))
        }
        (&Method::GET, ["api", "v1", "namespaces", name]) => {
            account("get", &format!("namespaces/{name}"));
            let inner = shared.lock();
            inner.store.namespace(name).map_or_else(
                || not_found("namespaces"),
                |(uid, _)| {
                    answer(200, &json!({ "kind": "Namespace", "metadata": { "name": name, "uid": uid } }))
                },
            )
        }
        (&Method::GET, ["api", "v1", "events"]) => {
            answer(200, &json!({ "items": shared.lock().store.events() }))
        }
        (&Method::POST, ["api", "v1", "namespaces", namespace, "events"]) => {
            account("create", "events");
            create_event(shared, namespace, parsed())
        }
        (&Method::PATCH, ["api", "v1", "namespaces", namespace, "events", name]) => {
            account("patch", "events");
            let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
            if content_type != Some("application/merge-patch+json") {
                return failure(415, "UnsupportedMediaType", &json!({}), None);
            }
            let patched = shared.lock().store.patch_event(namespace, name, &parsed());
            patched.map_or_else(|| not_found("events"), |event| answer(200, &event))
        }
        (method, _) => {
            account(&method.as_str().to_lowercase(), parts.uri.path());
            failure(403, "Forbidden", &json!({}), None)
        }
    }
}

fn list_volumes(shared: &Arc<Shared>, query: &Query) -> Response {
    let limit = query.get("limit").and_then(|limit| limit.parse().ok());
    let page = match query.get("continue") {
        None => Some(shared.lock().store.list(limit)),
        Some(token) => shared.lock().store.continue_list(token, limit),
    };
    page.map_or_else(|| failure(410, "Expired", &json!({}), None), |page| render_page(&page))
}

fn render_page(page: &Page) -> Response {
    let items: Vec<Value> = page.volumes.iter().map(|volume| volume.render()).collect();
    let metadata = json!({
        "resourceVersion": page.revision.to_string(), "continue": page.token.clone().unwrap_or_default(),
    });
    answer(
        200,
        &json!({ "kind": "PersistentVolumeList", "apiVersion": "v1", "metadata": metadata, "items": items }),
    )
}

fn watch_volumes(shared: &Arc<Shared>, query: &Query) -> Response {
    let streamed = query.get("sendInitialEvents") == Some("true");
    let revision = query.get("resourceVersion").unwrap_or_default();
    // As kube-apiserver validates: a streamed list must say what it must match, and only that may.
    if streamed != (query.get("resourceVersionMatch") == Some("NotOlderThan")) {
        return failure(422, "Invalid", &json!({}), None);
    }
    if streamed && shared.lock().behaviour.refuses_streamed_lists {
        return failure(422, "Invalid", &json!({}), None);
    }
    let from = match (streamed, revision.parse()) {
        (true, Err(_)) if revision.is_empty() => None,
        (false, Ok(revision)) => Some(revision),
        _ => return failure(400, "BadRequest", &json!({}), None),
    };
    let request = WatchRequest {
        from,
        bookmarks: query.get("allowWatchBookmarks") == Some("true"),
        lasts: Duration::from_secs(
            query.get("timeoutSeconds").and_then(|text| text.parse().ok()).unwrap_or(1800),
        ),
    };
    api_watch::answer(shared.clone(), request)
}

fn create_volume(shared: &Arc<Shared>, object: &Value) -> Response {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, driver, handle) =
        (text("/metadata/name"), text("/spec/csi/driver"), text("/spec/csi/volumeHandle"));
    if name.is_empty() || driver.is_empty() || handle.is_empty() {
        return failure(422, "Invalid", &json!({}), None);
    }
    let created = shared.lock().store.create_volume(&name, &driver, &handle);
    shared.wake.send_modify(|wake| wake.changes += 1);
    created.map_or_else(
        || failure(409, "AlreadyExists", &json!({}), None),
        |volume| answer(201, &volume.render()),
    )
}

fn create_event(shared: &Arc<Shared>, namespace: &str, event: Value) -> Response {
    let mut inner = shared.lock();
    match inner.store.namespace(namespace) {
        None => return not_found("namespaces"),
        Some((_, Phase::Terminating)) => {
            let cause =
                json!({ "causes": [{ "reason": "NamespaceTerminating", "field": "metadata.namespace" }] });
            return failure(403, "Forbidden", &cause, None);
        }
        Some((_, Phase::Active)) => {}
    }
    let name = event.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_dns = !name.is_empty()
        && name.len() <= 253
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-');
    // Without an eventTime the one thing that is checked besides: the involved object lives in the event's namespace.
    let in_namespace = event.pointer("/involvedObject/namespace").and_then(Value::as_str) == Some(namespace);
    if !is_dns || !in_namespace || !event["count"].is_u64() {
        return failure(422, "Invalid", &json!({}), None);
    }
    if inner.store.create_event(namespace, &name, event.clone()) {
        answer(201, &event)
    } else {
        failure(409, "AlreadyExists", &json!({ "kind": "events", "name": name }), None)
    }
}

fn not_found(resource: &str) -> Response {
    failure(404, "NotFound", &json!({ "kind": resource }), None)
}

/// A `v1.Status`.
pub(crate) fn status_of(code: u16, reason: &str, details: &Value) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
            "message": "told by the fake API server", "details": details })
}

fn failure(code: u16, reason: &str, details: &Value, retry_after: Option<u64>) -> Response {
    let mut response = answer(code, &status_of(code, reason, details));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}

fn answer(code: u16, body: &Value) -> Response {
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}

fn broken() -> Response {
    let pieces = [Err::<Bytes, _>(io::Error::other("the connection breaks"))];
    Response::new(Body::from_stream(tokio_stream::iter(pieces)))
}

/// The parameters of a request, unescaped.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), unescaped(value))).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn unescaped(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
