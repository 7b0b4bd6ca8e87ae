//! Events as they go over the wire, and what each answer means for a series.

use std::sync::Arc;
use std::time::Duration;

use per_node::adapters::kube::events::KubeEvents;
use per_node::adapters::kube::settings::Settings;
use per_node::domain::event_series::{Post, Series, SeriesBook, SeriesKey};
use per_node::domain::pod::{PodName, PodReference, PodUid, Subject};
use per_node::domain::refusal::Reason;
use per_node::domain::tally::Tally;
use per_node::domain::time::{Monotonic, Wall};
use per_node::ports::event_sink::{EventSink, EventSinkError};
use serde_json::{Value, json};

use crate::harness::{DRIVER, NODE, short_settings, status, transport};
use crate::mock_api::{Expected, MockApi, Reply};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const FIRST: Wall = Wall { unix_ms: 1_796_000_000_250 };

/// A series of a pod that was refused twice, 90 s apart.
fn series() -> Series {
    let name = PodName::parse("default", "example-0").expect("a name");
    let pod = PodReference { name, uid: PodUid::parse("pod-uid").expect("a uid") };
    let key = SeriesKey::new(pod, Reason::VolumeHeld, "volume a is held".into());
    let mut book = SeriesBook::new(Duration::from_secs(600), []);
    book.record(key.clone(), FIRST);
    book.record(key, Wall { unix_ms: FIRST.unix_ms + 90_000 });
    match book.next_post(Monotonic::default()) {
        Some(Post::Create(series) | Post::Patch(series)) => series,
        None => panic!("a new series is to be posted"),
    }
}

fn create(reply: Reply) -> Expected {
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": series().name.as_str(), "namespace": "default" },
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "example-0", "uid": "pod-uid",
        },
        "type": "Warning",
        "reason": "PerNodeVolumeHeld",
        "message": "volume a is held",
        "source": { "component": DRIVER, "host": NODE },
        "reportingComponent": DRIVER,
        "reportingInstance": NODE,
        "count": 2,
        "firstTimestamp": "2026-11-30T00:53:20Z",
        "lastTimestamp": "2026-11-30T00:54:50Z",
    });
    Expected::write("POST /api/v1/namespaces/default/events", JSON, event, reply)
}

fn patch(reply: Reply) -> Expected {
    let line = format!("PATCH /api/v1/namespaces/default/events/{}", series().name.as_str());
    Expected::write(&line, MERGE_PATCH, json!({ "count": 2, "lastTimestamp": "2026-11-30T00:54:50Z" }), reply)
}

/// What `kubectl describe node` finds: it asks for the node's name as its UID, and a node has no namespace.
#[tokio::test]
async fn c26_what_concerns_the_node_is_an_event_about_it() {
    let key = SeriesKey::new(Subject::Node(NODE.into()), Reason::SweepStopped, "stopped".into());
    let mut book = SeriesBook::new(Duration::from_secs(600), []);
    book.record(key, FIRST);
    let Some(Post::Create(series)) = book.next_post(Monotonic::default()) else { panic!("it is new") };
    assert!(series.name.as_str().starts_with(NODE));
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": series.name.as_str(), "namespace": "default" },
        "involvedObject": { "apiVersion": "v1", "kind": "Node", "name": NODE, "uid": NODE },
        "type": "Warning",
        "reason": "PerNodeSweepStopped",
        "message": "stopped",
        "source": { "component": DRIVER, "host": NODE },
        "reportingComponent": DRIVER,
        "reportingInstance": NODE,
        "count": 1,
        "firstTimestamp": "2026-11-30T00:53:20Z",
        "lastTimestamp": "2026-11-30T00:53:20Z",
    });
    let created = Reply::json(201, &event);
    let expected = Expected::write("POST /api/v1/namespaces/default/events", JSON, event, created);
    let api = MockApi::expecting([expected]).await;
    let transport = transport(&api, short_settings()).await;
    let sink = KubeEvents::new(transport, DRIVER, NODE, Arc::new(Tally::default()));
    assert_eq!(sink.create(&series).await, Ok(()));
    api.verify();
}

async fn post_with(settings: Settings, expected: Expected, patches: bool) -> Result<(), EventSinkError> {
    let api = MockApi::expecting([expected]).await;
    let tally = Arc::new(Tally::default());
    let sink = KubeEvents::new(transport(&api, settings).await, DRIVER, NODE, tally.clone());
    let posted = if patches { sink.patch(&series()).await } else { sink.create(&series()).await };
    assert_eq!(tally.api_calls().len(), 1, "each call is counted once");
    api.verify();
    posted
}

/// One create that is answered like this.
async fn created(reply: Reply) -> Result<(), EventSinkError> {
    post_with(short_settings(), create(reply), false).await
}

/// One patch that is answered like this.
async fn patched(reply: Reply) -> Result<(), EventSinkError> {
    post_with(short_settings(), patch(reply), true).await
}

fn refused(code: u16, reason: &str, details: &Value) -> Reply {
    let mut body = status(code, reason);
    body["details"] = details.clone();
    Reply::json(code, &body)
}

#[tokio::test]
async fn c30_an_event_is_created_as_kubectl_describe_pod_looks_for_it() {
    assert_eq!(created(Reply::json(201, &json!({ "kind": "Event" }))).await, Ok(()));
}

#[tokio::test]
async fn c31_c32_a_repeat_patches_the_absolute_count_and_the_last_time() {
    assert_eq!(patched(Reply::json(200, &json!({ "kind": "Event" }))).await, Ok(()));
}

#[tokio::test]
async fn c32_a_success_whose_body_breaks_off_is_a_success() {
    assert_eq!(created(Reply::broken("{\"kind\":")).await, Ok(()));
}

#[tokio::test]
async fn c32_a_create_that_finds_an_event_says_so() {
    assert_eq!(
        created(refused(409, "AlreadyExists", &json!(null))).await,
        Err(EventSinkError::AlreadyExists)
    );
}

#[tokio::test]
async fn c32_a_patch_that_finds_nothing_says_so() {
    let missing = refused(404, "NotFound", &json!({ "name": "x", "kind": "events" }));
    assert_eq!(patched(missing).await, Err(EventSinkError::NotFound));
}

#[tokio::test]
async fn c32_a_namespace_that_terminates_or_is_gone_ends_the_series() {
    let cause = json!({ "causes": [{ "reason": "NamespaceTerminating", "field": "metadata.namespace" }] });
    let gone = json!({ "name": "default", "kind": "namespaces" });
    assert_eq!(created(refused(403, "Forbidden", &cause)).await, Err(EventSinkError::NamespaceGone));
    assert_eq!(created(refused(404, "NotFound", &gone)).await, Err(EventSinkError::NamespaceGone));
    assert_eq!(patched(refused(404, "NotFound", &gone)).await, Err(EventSinkError::NamespaceGone));
}

#[tokio::test]
async fn c32_what_passes_by_itself_is_to_be_tried_again() {
    for reply in [
        Reply::json(401, &status(401, "Unauthorized")),
        Reply::json(403, &status(403, "Forbidden")),
        Reply::json(409, &status(409, "Conflict")),
        Reply::json(408, &status(408, "Timeout")),
        Reply::json(500, &status(500, "InternalError")),
        Reply::text(503, ""),
        // No API server says that of a create: something else answers.
        Reply::text(404, "<html>"),
    ] {
        let posted = created(reply).await;
        assert!(matches!(posted, Err(EventSinkError::Retry { retry_after: None, .. })), "{posted:?}");
    }
    let settings = Settings { answer_timeout: Duration::from_millis(400), ..short_settings() };
    let posted = post_with(settings, patch(Reply::never()), true).await;
    assert!(matches!(posted, Err(EventSinkError::Retry { .. })), "{posted:?}");
}

#[tokio::test]
async fn c32_a_server_that_asks_to_wait_is_passed_on() {
    let waits = Reply::json(429, &status(429, "TooManyRequests")).with_header("retry-after", "3");
    let posted = patched(waits).await;
    let three = Some(Duration::from_secs(3));
    assert!(
        matches!(&posted, Err(EventSinkError::Retry { retry_after, .. }) if *retry_after == three),
        "{posted:?}"
    );
}

#[tokio::test]
async fn c32_what_will_never_be_taken_is_rejected_for_good() {
    for code in [400, 405, 413, 415, 422] {
        let posted = created(Reply::json(code, &status(code, "Invalid"))).await;
        assert_eq!(posted, Err(EventSinkError::Rejected { status: code }));
    }
}

#[tokio::test]
async fn c47_no_answer_of_the_server_is_quoted_in_an_error() {
    for code in [400, 401, 403, 409, 429, 500] {
        let posted = created(Reply::json(code, &status(code, "SECRET MESSAGE"))).await;
        let error = posted.expect_err("refused");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
}
