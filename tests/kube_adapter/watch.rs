//! The watch: what the view says as events come.

use per_node::adapters::kube::settings::Settings;
use per_node::domain::proof::Revision;
use per_node::ports::cluster::Cluster;
use serde_json::json;

use crate::harness::*;
use crate::mock_api::{Expected, MockApi, Push, Reply};

/// A mock whose streamed list has these handles at revision 20, and goes on as a watch that the test pushes to.
pub async fn watched(handles: &[&str]) -> (MockApi, Harness, Watching, Push) {
    watched_with(short_settings(), handles).await
}

pub async fn watched_with(settings: Settings, handles: &[&str]) -> (MockApi, Harness, Watching, Push) {
    let (expected, push) = streamed_list(20, handles);
    let api = MockApi::expecting([expected]).await;
    let harness = Harness::with_settings(&api, settings).await;
    let watching = harness.watch();
    harness.until("live", |cluster| cluster.watch_health().live).await;
    (api, harness, watching, push)
}

pub fn streamed_list(revision: u64, handles: &[&str]) -> (Expected, Push) {
    let (push, reply) = Reply::pushed();
    handles.iter().for_each(|handle| push.line(&added(handle, 5)));
    push.line(&initial_events_end(revision));
    (Expected::call(STREAMED, reply), push)
}

/// Waits until the watch has delivered the revision.
pub async fn reached(harness: &Harness, revision: u64) {
    harness.until("at the revision", |cluster| cluster.view().reached() == revision).await;
}

#[tokio::test]
async fn c21_before_the_first_list_the_view_is_not_synced() {
    let (push, reply) = Reply::pushed();
    let api = MockApi::expecting([Expected::call(STREAMED, reply)]).await;
    let harness = Harness::of(&api).await;
    let _watching = harness.watch();
    push.line(&added("a", 5));
    api.all_called().await;
    let health = harness.cluster.watch_health();
    assert!(!health.synced && !health.live && health.highest.is_none() && health.last_sync.is_none());
    assert!(!harness.sweep_wanted.take());
    push.line(&initial_events_end(20));
    harness.until("synced", |cluster| cluster.watch_health().synced).await;
    assert!(harness.cluster.watch_health().last_sync.is_some());
    assert_eq!(harness.highest(), Some(20));
    assert!(harness.sweep_wanted.take(), "the first list wakes the sweeper");
    api.verify();
}

#[tokio::test]
async fn c21_the_view_follows_volumes_as_they_come_change_and_go() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    assert!(harness.names("a") && !harness.names("b"));
    push.line(&added("b", 21));
    push.line(&event("MODIFIED", &volume("a", 22)));
    reached(&harness, 22).await;
    assert!(harness.names("a") && harness.names("b"));
    harness.sweep_wanted.take();
    push.line(&deleted("a", 23));
    reached(&harness, 23).await;
    assert!(!harness.names("a") && harness.names("b"));
    assert!(harness.deletion_was_seen("a") && !harness.deletion_was_seen("b"));
    assert!(harness.sweep_wanted.take(), "a deletion wakes the sweeper");
    assert_eq!(harness.highest(), Some(23));
    api.verify();
}

#[tokio::test]
async fn c21_a_terminating_volume_still_names_its_handle() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    let mut terminating = volume("a", 21);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-11-29T16:00:00Z");
    push.line(&event("MODIFIED", &terminating));
    reached(&harness, 21).await;
    assert!(harness.names("a") && !harness.deletion_was_seen("a"));
    api.verify();
}

#[tokio::test]
async fn c21_a_handle_stays_named_while_a_second_volume_names_it() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    push.line(&event("ADDED", &volume_of(DRIVER, "a", "uid-second", 21)));
    reached(&harness, 21).await;
    harness.sweep_wanted.take();
    push.line(&deleted("a", 22));
    reached(&harness, 22).await;
    assert!(harness.names("a") && !harness.deletion_was_seen("a") && !harness.sweep_wanted.take());
    push.line(&event("DELETED", &volume_of(DRIVER, "a", "uid-second", 23)));
    reached(&harness, 23).await;
    assert!(!harness.names("a") && harness.deletion_was_seen("a") && harness.sweep_wanted.take());
    api.verify();
}

#[tokio::test]
async fn c22_a_handle_named_anew_was_not_seen_deleted() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    push.line(&deleted("a", 21));
    push.line(&event("ADDED", &volume_of(DRIVER, "a", "uid-new", 22)));
    reached(&harness, 22).await;
    assert!(harness.names("a") && !harness.deletion_was_seen("a"));
    api.verify();
}

#[tokio::test]
async fn c48_of_other_drivers_the_watch_keeps_nothing() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    for number in 0..5000 {
        let uid = format!("uid-other-{number}");
        push.line(&event("ADDED", &volume_of("other.example", "a", &uid, 21 + number)));
    }
    reached(&harness, 5020).await;
    assert_eq!(harness.cluster.view().kept_count(), 1);
    push.line(&event("DELETED", &volume_of("other.example", "a", "uid-other-1", 6000)));
    reached(&harness, 6000).await;
    assert!(harness.names("a") && !harness.deletion_was_seen("a"), "another driver's handle is not ours");
    api.verify();
}

#[tokio::test]
async fn c22_bookmarks_move_the_revision_and_may_repeat_it() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    push.line(&bookmark(30));
    push.line(&bookmark(30));
    push.line(&bookmark(31));
    reached(&harness, 31).await;
    assert!(harness.live() && harness.names("a"));
    assert_eq!(harness.highest(), Some(31));
    api.verify();
}

#[tokio::test]
async fn c22_the_view_tells_how_far_it_is_complete_and_what_a_list_would_cost() {
    let (api, harness, _watching, push) = watched(&["a", "b"]).await;
    let health = harness.cluster.watch_health();
    assert_eq!((health.reached, health.bookmarks, health.volumes), (Some(Revision(20)), 0, 2));
    push.line(&bookmark(20));
    push.line(&deleted("a", 24));
    push.line(&bookmark(31));
    reached(&harness, 31).await;
    let health = harness.cluster.watch_health();
    assert_eq!((health.reached, health.bookmarks), (Some(Revision(31)), 2));
    // A head that was read is not what the watch has delivered.
    api.then([head_at(40)]);
    assert_eq!(harness.cluster.head().await, Ok(Revision(40)));
    let health = harness.cluster.watch_health();
    assert_eq!((health.reached, health.highest), (Some(Revision(31)), Some(Revision(40))));
    harness.cluster.start_over();
    assert_eq!(harness.cluster.watch_health().reached, None);
    drop(_watching);
    api.verify();
}

#[tokio::test]
async fn c22_events_that_come_byte_by_byte_are_read_whole() {
    let (api, harness, _watching, push) = watched(&["a"]).await;
    for byte in format!("{}\n{}\n", added("b", 21), deleted("a", 22)).chars() {
        push.text(&byte.to_string());
    }
    reached(&harness, 22).await;
    assert!(harness.names("b") && !harness.names("a"));
    api.verify();
}

#[tokio::test]
async fn c41_a_list_that_fails_is_tried_again_with_pauses() {
    let (expected, push) = streamed_list(20, &["a"]);
    let api = MockApi::expecting([
        Expected::call(STREAMED, Reply::json(401, &status(401, "Unauthorized"))),
        Expected::call(STREAMED, Reply::json(403, &status(403, "Forbidden"))),
        Expected::call(STREAMED, Reply::json(500, &status(500, "InternalError"))),
        Expected::call(STREAMED, Reply::json(410, &status(410, "Expired"))),
        Expected::call(STREAMED, Reply::json(429, &status(429, "TooManyRequests"))),
        expected,
    ])
    .await;
    let harness = Harness::of(&api).await;
    let _watching = harness.watch();
    harness.until("live", |cluster| cluster.watch_health().live).await;
    for class in ["unauthorized", "forbidden", "server", "gone", "throttled", "ok"] {
        assert_eq!(harness.count("watch_list", class), 1, "{class}");
    }
    push.line(&bookmark(21));
    reached(&harness, 21).await;
    api.verify();
}

#[tokio::test]
async fn c22_where_lists_are_paged_the_watch_goes_on_from_the_lists_own_revision() {
    let (push, reply) = Reply::pushed();
    let api = MockApi::expecting([
        Expected::call(STREAMED, Reply::json(422, &status(422, "Invalid"))),
        Expected::call(
            "GET /api/v1/persistentvolumes?limit=100",
            Reply::json(200, &page(40, Some("t"), &[volume("a", 5)])),
        ),
        Expected::call(
            "GET /api/v1/persistentvolumes?limit=100&continue=t",
            Reply::json(200, &page(40, None, &[volume("b", 6)])),
        ),
        Expected::call(&watch_from(40), reply),
        head_at(40),
    ])
    .await;
    let harness = Harness::of(&api).await;
    let _watching = harness.watch();
    harness.until("live", |cluster| cluster.watch_health().live).await;
    assert!(harness.names("a") && harness.names("b"));
    push.line(&deleted("a", 41));
    reached(&harness, 41).await;
    assert!(harness.deletion_was_seen("a"));
    api.verify();
}

#[tokio::test]
async fn c22_started_over_the_view_is_empty_until_a_new_list_is_read() {
    let (api, harness, _watching, first) = watched(&["a", "b"]).await;
    first.line(&deleted("a", 21));
    reached(&harness, 21).await;
    let (second, reply) = Reply::pushed();
    api.then([Expected::call(STREAMED, reply)]);
    harness.cluster.start_over();
    let health = harness.cluster.watch_health();
    assert!(!health.synced && !health.live && health.highest.is_none());
    assert!(!harness.deletion_was_seen("a"), "that was seen in a history that is given up");
    api.all_called().await;
    // What the old stream still says is not taken in.
    first.line(&bookmark(500));
    second.line(&added("b", 3));
    second.line(&initial_events_end(9));
    harness.until("live", |cluster| cluster.watch_health().live).await;
    assert_eq!(harness.highest(), Some(9), "a lower revision is fine in a new history");
    assert!(harness.names("b") && !harness.names("a"));
    second.line(&bookmark(10));
    reached(&harness, 10).await;
    api.verify();
}
