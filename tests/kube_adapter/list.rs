//! Full lists, the proof of C22: streamed, paged, and every way in which one is none.

use std::collections::BTreeSet;
use std::time::Duration;

use per_node::adapters::kube::settings::Settings;
use per_node::domain::proof::{ClusterUid, Revision};
use per_node::ports::cluster::{Cluster, ClusterError, NamedHandles};
use serde_json::{Value, json};

use crate::harness::*;
use crate::mock_api::{Expected, MockApi, Reply};

fn first_page(reply: Reply) -> Expected {
    Expected::call("GET /api/v1/persistentvolumes?limit=100", reply)
}

fn next_page(token: &str, reply: Reply) -> Expected {
    Expected::call(&format!("GET /api/v1/persistentvolumes?limit=100&continue={token}"), reply)
}

fn streamed(reply: Reply) -> Expected {
    Expected::call(STREAMED, reply)
}

/// The server does not know streamed lists, so that pages follow.
fn refused() -> Expected {
    streamed(Reply::json(422, &status(422, "Invalid")))
}

fn found(revision: u64, handles: &[&str]) -> Result<NamedHandles, ClusterError> {
    let handles = handles.iter().map(|handle| handle_of(handle)).collect::<BTreeSet<_>>();
    Ok(NamedHandles { revision: Revision(revision), handles })
}

/// One list of a server that answers like this.
async fn list_of(calls: Vec<Expected>) -> Result<NamedHandles, ClusterError> {
    list_with(short_settings(), calls).await
}

async fn list_with(settings: Settings, calls: Vec<Expected>) -> Result<NamedHandles, ClusterError> {
    let api = MockApi::expecting(calls).await;
    let harness = Harness::with_settings(&api, settings).await;
    let listed = harness.cluster.list().await;
    if let Ok(listed) = &listed {
        assert_eq!(harness.highest(), Some(listed.revision.0), "the revision counts as seen (C22 (c))");
    }
    assert_eq!(harness.count("proof_list", "ok"), u64::from(listed.is_ok()));
    api.verify();
    listed
}

/// A streamed list whose stream brings these lines and then ends.
async fn list_of_lines(lines: Vec<Value>) -> Result<NamedHandles, ClusterError> {
    list_of(vec![streamed(Reply::lines(lines))]).await
}

#[tokio::test]
async fn c22_a_streamed_list_holds_for_the_revision_of_its_last_bookmark() {
    let other = event("ADDED", &volume_of("other.example", "c", "uid-c", 7));
    let lines = vec![added("a", 5), other, bookmark(9), added("b", 3), initial_events_end(12)];
    assert_eq!(list_of_lines(lines).await, found(12, &["a", "b"]));
}

#[tokio::test]
async fn c22_a_change_during_a_streamed_list_is_part_of_it() {
    let edited = event("MODIFIED", &volume_of(DRIVER, "b2", "uid-b", 11));
    let lines = vec![added("a", 5), added("b", 6), deleted("a", 10), edited, initial_events_end(12)];
    assert_eq!(list_of_lines(lines).await, found(12, &["b2"]));
}

#[tokio::test]
async fn c22_a_stream_that_ends_before_its_bookmark_proves_nothing() {
    assert_eq!(list_of_lines(vec![added("a", 5), bookmark(9)]).await, Err(ClusterError::Cut));
    assert_eq!(list_of_lines(vec![]).await, Err(ClusterError::Cut));
}

#[tokio::test]
async fn c22_half_a_line_or_a_broken_connection_proves_nothing() {
    let half = format!("{}\n{{\"type\":\"ADDED\",\"obj", added("a", 5));
    assert_eq!(list_of(vec![streamed(Reply::broken(&half))]).await, Err(ClusterError::Cut));
    let (push, reply) = Reply::pushed();
    push.text(&half);
    drop(push);
    assert_eq!(list_of(vec![streamed(reply)]).await, Err(ClusterError::Cut));
    let all_but_the_newline = initial_events_end(12).to_string();
    assert_eq!(list_of(vec![streamed(Reply::broken(&all_but_the_newline))]).await, Err(ClusterError::Cut));
}

#[tokio::test]
async fn c22_an_undecodable_object_in_a_stream_proves_nothing() {
    for spoiled in [
        json!({ "type": "ADDED", "object": { "metadata": {} } }),
        json!({ "type": "ADDED" }),
        json!({ "type": "MOVED", "object": volume("a", 5) }),
        json!("ADDED"),
    ] {
        let lines = vec![added("a", 5), spoiled.clone(), initial_events_end(12)];
        let listed = list_of_lines(lines).await;
        assert!(matches!(listed, Err(ClusterError::Undecodable { .. })), "{spoiled}: {listed:?}");
    }
}

#[tokio::test]
async fn c22_an_error_event_in_a_stream_proves_nothing() {
    let error = |code, reason| event("ERROR", &status(code, reason));
    let listed = list_of_lines(vec![added("a", 5), error(410, "Expired"), initial_events_end(12)]).await;
    assert_eq!(listed, Err(ClusterError::Gone));
    let listed = list_of_lines(vec![error(500, "InternalError")]).await;
    assert_eq!(listed, Err(ClusterError::Server { status: 500 }));
}

#[tokio::test]
async fn c22_a_silent_stream_proves_nothing() {
    let settings = Settings { watch_idle_timeout: Duration::from_millis(400), ..short_settings() };
    let (push, reply) = Reply::pushed();
    push.line(&added("a", 5));
    assert_eq!(list_with(settings, vec![streamed(reply)]).await, Err(ClusterError::TimedOut));
}

#[tokio::test]
async fn c22_a_list_that_never_ends_is_given_up() {
    let settings = Settings { list_timeout: Duration::from_millis(400), ..short_settings() };
    let (push, reply) = Reply::pushed();
    let endless = tokio::spawn(async move {
        for revision in 1.. {
            push.line(&bookmark(revision));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(list_with(settings, vec![streamed(reply)]).await, Err(ClusterError::TimedOut));
    endless.abort();
}

#[tokio::test]
async fn c22_a_paged_list_is_read_to_its_last_page() {
    let other = volume_of("other.example", "c", "uid-c", 7);
    let calls = vec![
        refused(),
        first_page(Reply::json(200, &page(40, Some("t+/=1"), &[volume("a", 5), other]))),
        next_page("t%2B%2F%3D1", Reply::json(200, &page(40, Some("t2"), &[]))),
        next_page("t2", Reply::json(200, &page(40, None, &[volume("b", 6)]))),
    ];
    assert_eq!(list_of(calls).await, found(40, &["a", "b"]));
}

#[tokio::test]
async fn a_server_that_refuses_streamed_lists_is_not_asked_for_one_again() {
    for (code, reason) in [(422, "Invalid"), (400, "BadRequest")] {
        let api = MockApi::expecting([
            streamed(Reply::json(code, &status(code, reason))),
            first_page(Reply::json(200, &page(40, None, &[volume("a", 5)]))),
            first_page(Reply::json(200, &page(41, None, &[volume("a", 5)]))),
        ])
        .await;
        let harness = Harness::of(&api).await;
        assert_eq!(harness.cluster.list().await, found(40, &["a"]));
        assert_eq!(harness.cluster.list().await, found(41, &["a"]));
        api.verify();
    }
}

#[tokio::test]
async fn streams_that_break_twice_in_a_row_give_way_to_pages() {
    let api = MockApi::expecting([
        streamed(Reply::broken("")),
        streamed(Reply::lines([added("a", 5), initial_events_end(12)])),
        streamed(Reply::broken("")),
        streamed(Reply::broken("{")),
        first_page(Reply::json(200, &page(40, None, &[]))),
    ])
    .await;
    let harness = Harness::of(&api).await;
    assert_eq!(harness.cluster.list().await, Err(ClusterError::Cut));
    assert_eq!(harness.cluster.list().await, found(12, &["a"]));
    assert_eq!(harness.cluster.list().await, Err(ClusterError::Cut));
    assert_eq!(harness.cluster.list().await, Err(ClusterError::Cut));
    assert_eq!(harness.cluster.list().await, found(40, &[]));
    api.verify();
}

#[tokio::test]
async fn c22_a_continued_list_that_meets_410_is_no_proof() {
    let calls = vec![
        refused(),
        first_page(Reply::json(200, &page(40, Some("t1"), &[volume("a", 5)]))),
        next_page("t1", Reply::json(410, &status(410, "Expired"))),
    ];
    assert_eq!(list_of(calls).await, Err(ClusterError::Gone));
}

#[tokio::test]
async fn c22_pages_of_different_revisions_are_no_list() {
    let calls = vec![
        refused(),
        first_page(Reply::json(200, &page(40, Some("t1"), &[]))),
        next_page("t1", Reply::json(200, &page(41, None, &[]))),
    ];
    let listed = list_of(calls).await;
    assert!(matches!(listed, Err(ClusterError::Undecodable { .. })), "{listed:?}");
}

#[tokio::test]
async fn c22_an_undecodable_page_or_object_proves_nothing() {
    let ours_without_handle = json!({ "metadata": { "uid": "u" }, "spec": { "csi": { "driver": DRIVER } } });
    for body in [
        "<html>".to_owned(),
        "{}".to_owned(),
        json!({ "metadata": { "resourceVersion": "x" }, "items": [] }).to_string(),
        page(40, None, &[json!({})]).to_string(),
        page(40, None, &[ours_without_handle]).to_string(),
        page(40, None, &[volume("a", 5)]).to_string()[..200].to_owned(),
    ] {
        let listed = list_of(vec![refused(), first_page(Reply::text(200, &body))]).await;
        assert!(matches!(listed, Err(ClusterError::Undecodable { .. })), "{body}: {listed:?}");
    }
}

#[tokio::test]
async fn c22_a_page_that_breaks_off_or_comes_too_slowly_proves_nothing() {
    let beginning = &page(40, None, &[volume("a", 5)]).to_string()[..100];
    let listed = list_of(vec![refused(), first_page(Reply::broken(beginning))]).await;
    assert_eq!(listed, Err(ClusterError::Cut));
    let settings = Settings { body_timeout: Duration::from_millis(400), ..short_settings() };
    let (push, slow) = Reply::pushed();
    push.text(beginning);
    assert_eq!(list_with(settings, vec![refused(), first_page(slow)]).await, Err(ClusterError::TimedOut));
}

#[tokio::test]
async fn c22_every_refusal_of_a_list_has_its_class_and_is_not_repeated() {
    let throttled = |seconds| ClusterError::Throttled { retry_after: Some(Duration::from_secs(seconds)) };
    let cases = [
        (Reply::json(401, &status(401, "Unauthorized")), ClusterError::Unauthorized),
        (
            Reply::json(403, &status(403, "Forbidden")),
            ClusterError::Forbidden { what: "to list and watch persistentvolumes" },
        ),
        (Reply::json(404, &status(404, "NotFound")), ClusterError::Server { status: 404 }),
        (Reply::json(429, &status(429, "TooManyRequests")).with_header("retry-after", "9"), throttled(9)),
        (Reply::text(429, ""), ClusterError::Throttled { retry_after: None }),
        (Reply::json(500, &status(500, "InternalError")), ClusterError::Server { status: 500 }),
        (Reply::text(503, "upstream"), ClusterError::Server { status: 503 }),
        (Reply::json(504, &status(504, "Timeout")), ClusterError::Server { status: 504 }),
    ];
    for (reply, expected) in cases {
        assert_eq!(list_of(vec![streamed(reply)]).await, Err(expected));
    }
}

#[tokio::test]
async fn c41_a_server_that_takes_the_call_and_never_answers_is_given_up() {
    let settings = Settings { answer_timeout: Duration::from_millis(400), ..short_settings() };
    assert_eq!(list_with(settings, vec![streamed(Reply::never())]).await, Err(ClusterError::TimedOut));
}

#[tokio::test]
async fn c41_a_server_that_is_away_is_told_with_its_cause() {
    let api = MockApi::expecting([]).await;
    let harness = Harness::of(&api).await;
    let server = api.url().to_string();
    api.verify();
    // The port is closed now: the listener went with the mock.
    tokio::task::yield_now().await;
    let listed = loop {
        match harness.cluster.list().await {
            // The aborted server may still have taken this one.
            Err(ClusterError::Cut) => {}
            other => break other,
        }
    };
    assert!(
        matches!(&listed, Err(ClusterError::Unreachable { why }) if why.starts_with(&server) && why.contains("Connect")),
        "{listed:?}"
    );
}

#[tokio::test]
async fn c48_pages_of_huge_objects_are_asked_for_in_smaller_ones() {
    let mut huge = volume_of("other.example", "c", "uid-c", 7);
    huge["metadata"]["annotations"] = json!({ "note": "x".repeat(9 * 1024 * 1024) });
    let smaller = |limit| {
        Expected::call(
            &format!("GET /api/v1/persistentvolumes?limit={limit}"),
            Reply::json(200, &page(40, None, &[volume("a", 5)])),
        )
    };
    let calls = vec![
        refused(),
        first_page(Reply::json(200, &page(40, Some("t"), &[huge.clone(), huge]))),
        smaller(50),
    ];
    assert_eq!(list_of(calls).await, found(40, &["a"]));
}

#[tokio::test]
async fn c22_the_cluster_is_known_by_the_uid_of_kube_system() {
    let line = "GET /api/v1/namespaces/kube-system";
    let namespace =
        |uid: Value| json!({ "kind": "Namespace", "metadata": { "name": "kube-system", "uid": uid } });
    let api = MockApi::expecting([
        Expected::call(line, Reply::json(200, &namespace(json!("uid-1")))),
        Expected::call(line, Reply::json(200, &namespace(json!("")))),
        Expected::call(line, Reply::text(200, "{")),
        Expected::call(line, Reply::json(403, &status(403, "Forbidden"))),
    ])
    .await;
    let harness = Harness::of(&api).await;
    assert_eq!(harness.cluster.cluster_uid().await, Ok(ClusterUid("uid-1".into())));
    assert!(matches!(harness.cluster.cluster_uid().await, Err(ClusterError::Undecodable { .. })));
    assert!(matches!(harness.cluster.cluster_uid().await, Err(ClusterError::Undecodable { .. })));
    let forbidden = ClusterError::Forbidden { what: "to get the namespace kube-system" };
    assert_eq!(harness.cluster.cluster_uid().await, Err(forbidden));
    api.verify();
}

#[tokio::test]
async fn c22_the_head_is_the_revision_of_a_list_of_one() {
    let api = MockApi::expecting([head_at(427)]).await;
    let harness = Harness::of(&api).await;
    assert_eq!(harness.cluster.head().await, Ok(Revision(427)));
    assert_eq!(harness.highest(), Some(427), "the revision counts as seen (C22 (c))");
    assert_eq!(harness.count("head", "ok"), 1);
    api.verify();
}

#[tokio::test]
async fn c22_a_head_that_cannot_be_read_is_an_error_of_its_class() {
    let answers = [
        (Reply::json(403, &status(403, "Forbidden")), "forbidden"),
        (Reply::json(410, &status(410, "Expired")), "gone"),
        (Reply::json(500, &status(500, "InternalError")), "server"),
        (Reply::json(200, &json!({ "metadata": {}, "items": [] })), "undecodable"),
        (Reply::json(200, &json!({ "metadata": { "resourceVersion": "" }, "items": [] })), "undecodable"),
        (Reply::text(200, "no json"), "undecodable"),
    ];
    for (reply, class) in answers {
        let api = MockApi::expecting([Expected::call(HEAD, reply)]).await;
        let harness = Harness::of(&api).await;
        let error = harness.cluster.head().await.expect_err(class);
        assert_eq!(error.word(), class);
        assert_eq!((harness.count("head", class), harness.highest()), (1, None));
        api.verify();
    }
}
