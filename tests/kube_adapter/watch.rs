//! The watch: what the view says as events come, and what keeps it from being trusted.

use std::time::Duration;

use per_node::adapters::kube::settings::Settings;
use per_node::domain::proof::Revision;
use per_node::ports::cluster::Cluster;
use serde_json::json;

use crate::harness::*;
use crate::mock_api::{Expected, MockApi, Push, Reply};

/// A mock whose streamed list has these handles at revision 20, and goes on as a watch that the test pushes to.
async fn watched(handles: &[&str]) -> (MockApi, Harness, Watching, Push) {
    watched_with(short_settings(), handles).await
}

async fn watched_with(settings: Settings, handles: &[&str]) -> (MockApi, Harness, Watching, Push) {
    let (expected, push) = streamed_list(20, handles);
    let api = MockApi::expecting([expected]).await;
    let harness = Harness::with_settings(&api, settings).await;
    let watching = harness.watch();
    harness.until("live", |cluster| cluster.watch_health().live).await;
    (api, harness, watching, push)
}

fn streamed_list(revision: u64, handles: &[&str]) -> (Expected, Push) {
    let (push, reply) = Reply::pushed();
    handles.iter().for_each(|handle| push.line(&added(handle, 5)));
    push.line(&initial_events_end(revision));
    (Expected::call(STREAMED, reply), push)
}

/// Waits until the watch has delivered the revision.
async fn reached(harness: &Harness, revision: u64) {
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
async fn c22_a_stream_that_ends_goes_on_from_the_last_revision() {
    let (api, harness, _watching, first) = watched(&["a"]).await;
    first.line(&bookmark(30));
    reached(&harness, 30).await;
    let (second, reply) = Reply::pushed();
    let (third, third_reply) = Reply::pushed();
    api.then([Expected::call(&watch_from(30), reply), head_at(30)]);
    api.then([Expected::call(&watch_from(31), third_reply), head_at(35)]);
    drop(first);
    second.line(&deleted("a", 31));
    reached(&harness, 31).await;
    assert!(harness.deletion_was_seen("a"), "the chain is not broken by a reconnect");
    second.break_off();
    third.line(&bookmark(32));
    reached(&harness, 32).await;
    assert!(harness.live());
    assert_eq!((harness.count("watch", "ok"), harness.count("watch", "closed")), (1, 1));
    assert_eq!(harness.count("watch_list", "ok"), 1, "no second list was needed");
    assert_eq!(harness.count("head", "ok"), 2);
    api.verify();
}

#[tokio::test]
async fn c22_a_watch_that_is_broken_is_not_live() {
    let (api, harness, _watching, first) = watched(&["a"]).await;
    // The next stream is asked for and does not stand.
    api.then([Expected::call(&watch_from(20), Reply::never())]);
    first.break_off();
    api.all_called().await;
    let health = harness.cluster.watch_health();
    assert!(health.synced && !health.live);
    assert!(harness.names("a"), "what was named last stays named");
    api.verify();
}

#[tokio::test]
async fn c22_a_stream_of_a_history_that_was_put_back_is_none_of_the_chain() {
    let (api, harness, _watching, first) = watched(&["a"]).await;
    first.line(&bookmark(30));
    reached(&harness, 30).await;
    // The server takes the revision, and would be silent until its new history has passed it.
    let (_silent, reply) = Reply::pushed();
    let (expected, list) = streamed_list(27, &["a", "b"]);
    api.then([Expected::call(&watch_from(30), reply), head_at(26), expected]);
    drop(first);
    reached(&harness, 27).await;
    assert!(harness.names("b"), "what was made in the new history is seen");
    assert_eq!(harness.highest(), Some(30), "which the sweep compares with what it reads (C22 (c))");
    assert_eq!((harness.count("watch", "went_back"), harness.count("watch_list", "ok")), (1, 2));
    drop(list);
    api.verify();
}

#[tokio::test]
async fn c22_a_stream_whose_head_cannot_be_read_does_not_stand() {
    let (api, harness, _watching, first) = watched(&["a"]).await;
    let (_unlinked, reply) = Reply::pushed();
    let (linked, second_reply) = Reply::pushed();
    api.then([Expected::call(&watch_from(20), reply), Expected::call(HEAD, Reply::text(503, "busy"))]);
    api.then([Expected::call(&watch_from(20), second_reply), head_at(20)]);
    drop(first);
    linked.line(&bookmark(25));
    reached(&harness, 25).await;
    assert_eq!((harness.count("head", "server"), harness.count("head", "ok")), (1, 1));
    assert_eq!(harness.count("watch_list", "ok"), 1);
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
async fn c22_half_a_line_at_the_end_of_a_watch_is_no_event() {
    let (api, harness, _watching, first) = watched(&["a"]).await;
    let (second, reply) = Reply::pushed();
    api.then([Expected::call(&watch_from(20), reply), head_at(21)]);
    first.text(&deleted("a", 21).to_string());
    first.break_off();
    harness.until("live again", |_| harness.count("head", "ok") == 1 && harness.live()).await;
    assert!(harness.names("a"), "the event had not come whole");
    second.line(&deleted("a", 21));
    reached(&harness, 21).await;
    assert!(!harness.names("a") && harness.deletion_was_seen("a"));
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

/// What a watch that stood is told, and the list that follows: the view forgets nothing but is not live in between.
async fn check_relists(breaks_with: impl FnOnce(&MockApi, &Push), counted: (&str, &str)) {
    let (api, harness, _watching, first) = watched(&["a", "b"]).await;
    first.line(&deleted("a", 21));
    reached(&harness, 21).await;
    breaks_with(&api, &first);
    let (hold, gate) = Reply::pushed();
    api.then([Expected::call(STREAMED, gate)]);
    drop(first);
    api.all_called().await;
    assert!(!harness.live(), "not live until the new list is read");
    assert!(harness.names("b") && !harness.names("a"));
    hold.line(&added("c", 5));
    hold.line(&initial_events_end(40));
    harness.until("live", |cluster| cluster.watch_health().live).await;
    assert!(harness.names("c") && !harness.names("b"));
    assert!(harness.deletion_was_seen("a"), "what was seen stays seen");
    assert!(!harness.deletion_was_seen("b"), "vanished between two views, and not seen to go (C22 (d))");
    assert_eq!(harness.count(counted.0, counted.1), 1, "{:?}", harness.tally.api_calls());
    assert_eq!(harness.cluster.view().reached(), 40);
    api.verify();
}

#[tokio::test]
async fn c22_a_watch_that_is_told_410_lists_anew() {
    check_relists(|_, push| push.line(&event("ERROR", &status(410, "Expired"))), ("watch", "gone")).await;
}

#[tokio::test]
async fn c22_a_watch_that_cannot_go_on_from_its_revision_lists_anew() {
    let gone = |api: &MockApi, _: &Push| {
        api.then([Expected::call(&watch_from(21), Reply::json(410, &status(410, "Expired")))]);
    };
    check_relists(gone, ("watch", "gone")).await;
}

#[tokio::test]
async fn c22_an_undecodable_event_makes_the_view_unusable_until_the_next_list() {
    for spoiled in ["{\"type\":\"ADDED\",\"object\":{}}\n", "no json\n", "{\"type\":\"NEW\",\"object\":{}}\n"]
    {
        check_relists(|_, push| push.text(spoiled), ("watch", "undecodable")).await;
    }
}

#[tokio::test]
async fn c22_a_revision_that_goes_back_breaks_the_chain() {
    check_relists(|_, push| push.line(&bookmark(20)), ("watch", "went_back")).await;
    check_relists(|_, push| push.line(&deleted("b", 7)), ("watch", "went_back")).await;
}

#[tokio::test]
async fn c22_a_silent_watch_is_broken_and_listed_anew() {
    let settings = Settings { watch_idle_timeout: Duration::from_millis(400), ..short_settings() };
    let (api, harness, _watching, _first) = watched_with(settings, &["a"]).await;
    let (hold, gate) = Reply::pushed();
    api.then([Expected::call(STREAMED, gate)]);
    api.all_called().await;
    assert!(!harness.live());
    assert_eq!(harness.count("watch", "timeout"), 1);
    drop(hold);
    // The mock answers nothing more: what the watcher tries next is none of this test's.
    drop(_watching);
    api.verify();
}

#[tokio::test]
async fn c22_a_gap_longer_than_a_chain_allows_ends_in_a_new_list() {
    let settings = Settings { chain_gap_max: Duration::from_millis(400), ..short_settings() };
    let (api, harness, _watching, first) = watched_with(settings, &["a"]).await;
    let (hold, gate) = Reply::pushed();
    api.then([Expected::call(&watch_from(20), Reply::never()), Expected::call(STREAMED, gate)]);
    first.break_off();
    api.all_called().await;
    assert!(!harness.live());
    hold.line(&initial_events_end(40));
    harness.until("live", |cluster| cluster.watch_health().live).await;
    assert!(!harness.names("a") && !harness.deletion_was_seen("a"));
    api.verify();
}

#[tokio::test]
async fn c22_a_refused_watch_is_asked_for_again_within_the_gap() {
    let refusals = [
        (Reply::json(401, &status(401, "Unauthorized")), "unauthorized"),
        (Reply::json(403, &status(403, "Forbidden")), "forbidden"),
        (Reply::json(429, &status(429, "TooManyRequests")), "throttled"),
        (Reply::json(500, &status(500, "InternalError")), "server"),
        (Reply::text(503, "busy"), "server"),
    ];
    let (api, harness, _watching, first) = watched(&["a"]).await;
    let (again, reply) = Reply::pushed();
    let mut classes = Vec::new();
    for (refusal, class) in refusals {
        api.then([Expected::call(&watch_from(20), refusal)]);
        classes.push(class);
    }
    api.then([Expected::call(&watch_from(20), reply), head_at(20)]);
    drop(first);
    again.line(&bookmark(25));
    reached(&harness, 25).await;
    for class in classes {
        let expected = if class == "server" { 2 } else { 1 };
        assert_eq!(harness.count("watch", class), expected, "{class}");
    }
    assert_eq!(harness.count("watch_list", "ok"), 1);
    assert!(harness.live() && harness.names("a"));
    api.verify();
}

#[tokio::test]
async fn c22_a_server_that_asks_to_wait_longer_than_the_gap_ends_the_chain() {
    let settings = Settings { chain_gap_max: Duration::from_millis(400), ..short_settings() };
    let (api, harness, _watching, first) = watched_with(settings, &["a"]).await;
    let waits = Reply::json(429, &status(429, "TooManyRequests")).with_header("retry-after", "1");
    let (expected, _push) = streamed_list(40, &["a"]);
    api.then([Expected::call(&watch_from(20), waits), expected]);
    drop(first);
    harness.until("throttled", |_| harness.count("watch", "throttled") == 1).await;
    assert!(!harness.live());
    reached(&harness, 40).await;
    assert_eq!(harness.count("watch", "timeout"), 0, "no watch was asked for once the gap was too long");
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
