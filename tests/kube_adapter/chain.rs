//! The chain of watch streams: what links two of them, and what breaks it so that nothing is proved until a new list.

use std::time::Duration;

use per_node::adapters::kube::settings::Settings;
use per_node::ports::cluster::Cluster;

use crate::harness::*;
use crate::mock_api::{Expected, MockApi, Push, Reply};
use crate::watch::{reached, streamed_list, watched, watched_with};

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
    assert!(harness.cluster.watch_health().went_back && harness.sweep_wanted.take());
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
