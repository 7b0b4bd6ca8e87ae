//! The adapter and a server that behaves like one: whole stories, and the account of permissions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use per_node::adapters::kube::events::KubeEvents;
use per_node::adapters::kube::settings::Settings;
use per_node::domain::event_series::{Post, PostOutcome, SeriesBook, SeriesKey};
use per_node::domain::pod::{PodName, PodReference, PodUid};
use per_node::domain::refusal::Reason;
use per_node::domain::tally::Tally;
use per_node::domain::time::{Monotonic, Wall};
use per_node::ports::cluster::{Cluster, ClusterError};
use per_node::ports::event_sink::{EventSink, EventSinkError};

use crate::api_server::{ApiServer, Fault};
use crate::api_store::Phase;
use crate::harness::*;

const VOLUMES: &str = "GET /api/v1/persistentvolumes";

async fn served(server: &ApiServer) -> Harness {
    Harness::over(transport_over(&server.kubeconfig(), short_settings()).await)
}

async fn live(harness: &Harness) {
    harness.until("live", |cluster| cluster.watch_health().live).await;
}

/// The story of C21 and C22 on either kind of list.
async fn check_follows(refuses_streamed_lists: bool) {
    let server = ApiServer::start().await;
    server.behave(|behaviour| behaviour.refuses_streamed_lists = refuses_streamed_lists);
    server.store(|store| {
        for number in 0..250 {
            store.create_volume(&format!("other-{number}"), "other.example", "a");
        }
        store.create_volume("pv-a", DRIVER, "a");
    });
    let harness = served(&server).await;
    let _watching = harness.watch();
    live(&harness).await;
    assert!(harness.names("a"));
    server.store(|store| {
        store.create_volume("pv-b", DRIVER, "b");
        store.begin_deletion("pv-a");
    });
    harness.until("b named", |_| harness.names("b")).await;
    assert!(harness.names("a"));
    server.end_watches(true);
    let revision = server.store(|store| {
        store.delete_volume("pv-a");
        store.revision()
    });
    harness.until("a not named", |_| !harness.names("a")).await;
    assert!(harness.deletion_was_seen("a"), "a deletion in the gap of a chain is seen");
    let listed = harness.cluster.list().await.expect("a proof");
    assert_eq!((listed.revision.0, listed.handles), (revision, BTreeSet::from([handle_of("b")])));
    assert_eq!(harness.count("watch_list", "ok"), 1);
}

#[tokio::test]
async fn c21_c22_the_view_follows_a_server_that_streams_lists() {
    check_follows(false).await;
}

#[tokio::test]
async fn c21_c22_the_view_follows_a_server_that_pages_lists() {
    check_follows(true).await;
}

#[tokio::test]
async fn c22_a_history_that_was_compacted_in_the_gap_means_a_new_list() {
    let server = ApiServer::start().await;
    server.store(|store| store.create_volume("pv-a", DRIVER, "a"));
    let harness = served(&server).await;
    let _watching = harness.watch();
    live(&harness).await;
    server.behave(|behaviour| behaviour.away = true);
    server.store(|store| {
        store.delete_volume("pv-a");
        store.create_volume("pv-b", DRIVER, "b");
        store.compact();
    });
    assert!(harness.names("a"), "nobody has told");
    server.behave(|behaviour| behaviour.away = false);
    harness.until("listed anew", |_| harness.names("b")).await;
    assert!(!harness.names("a") && !harness.deletion_was_seen("a"));
}

#[tokio::test]
async fn c22_a_list_during_which_the_history_is_compacted_is_no_proof() {
    let server = ApiServer::start().await;
    server.behave(|behaviour| behaviour.refuses_streamed_lists = true);
    server.store(|store| {
        for number in 0..150 {
            store.create_volume(&format!("pv-{number}"), DRIVER, &format!("handle-{number}"));
        }
    });
    let harness = served(&server).await;
    assert_eq!(harness.cluster.list().await.expect("whole").handles.len(), 150);
    server.fail_next(&format!("{VOLUMES}?limit=100&continue"), 1, &Fault::Status(410, None));
    assert_eq!(harness.cluster.list().await, Err(ClusterError::Gone));
}

#[tokio::test]
async fn c22_a_restored_backup_shows_as_a_list_below_the_highest_revision() {
    let server = ApiServer::start().await;
    let backup = server.store(|store| store.clone());
    server.store(|store| store.advance(500));
    let harness = served(&server).await;
    let _watching = harness.watch();
    live(&harness).await;
    let before = harness.highest().expect("a revision");
    server.restore(backup);
    server.end_watches(false);
    let listed = harness.cluster.list().await.expect("whole");
    assert!(listed.revision.0 < before);
    assert_eq!(harness.highest(), Some(before), "the highest revision does not go back by itself (C22 (c))");
}

#[tokio::test]
async fn c41_an_outage_ends_and_the_view_is_live_again() {
    let server = ApiServer::start().await;
    server.behave(|behaviour| behaviour.away = true);
    server.store(|store| store.create_volume("pv-a", DRIVER, "a"));
    let harness = served(&server).await;
    let _watching = harness.watch();
    harness.until("refused", |_| harness.count("watch_list", "unreachable") > 2).await;
    assert!(!harness.cluster.watch_health().synced);
    server.behave(|behaviour| behaviour.away = false);
    live(&harness).await;
    assert!(harness.names("a"));
}

#[tokio::test]
async fn c41_a_server_that_hangs_is_given_up_and_asked_again() {
    let server = ApiServer::start().await;
    server.fail_next(VOLUMES, 2, &Fault::Hang);
    let settings = Settings { answer_timeout: Duration::from_millis(400), ..short_settings() };
    let harness = Harness::over(transport_over(&server.kubeconfig(), settings).await);
    let watching = harness.watch();
    harness.until("live", |cluster| cluster.watch_health().live).await;
    assert!(harness.count("watch_list", "timeout") >= 2);
    // However often it begins anew, one watch stands.
    for _ in 0..3 {
        harness.cluster.start_over();
        live(&harness).await;
    }
    harness.until("one watch", |_| server.standing_watches() == 1).await;
    drop(watching);
    harness.until("no watch", |_| server.standing_watches() == 0).await;
}

#[tokio::test]
async fn c48_a_multitude_of_other_drivers_volumes_leaves_nothing_behind() {
    for refuses_streamed_lists in [false, true] {
        let server = ApiServer::start().await;
        server.behave(|behaviour| behaviour.refuses_streamed_lists = refuses_streamed_lists);
        server.store(|store| {
            for number in 0..2_000 {
                store.create_volume(&format!("other-{number}"), "other.example", &format!("h-{number}"));
            }
            store.create_volume("pv-a", DRIVER, "a");
        });
        let harness = served(&server).await;
        let _watching = harness.watch();
        live(&harness).await;
        assert_eq!(harness.cluster.watch_health().volumes, 2_001);
        assert_eq!(harness.cluster.view().kept_count(), 1);
        assert_eq!(harness.cluster.list().await.expect("whole").handles.len(), 1);
    }
}

#[tokio::test]
async fn c31_c32_a_series_survives_an_expired_event_and_a_lost_answer() {
    let server = ApiServer::start().await;
    let transport = transport_over(&server.kubeconfig(), short_settings()).await;
    let sink = KubeEvents::new(transport, DRIVER, NODE, Arc::new(Tally::default()));
    let name = PodName::parse("default", "example-0").expect("a name");
    let pod = PodReference { name, uid: PodUid::parse("uid").expect("a uid") };
    let key = SeriesKey::new(pod, Reason::VolumeHeld, "held".into());
    let mut book = SeriesBook::new(Duration::from_secs(600), []);
    let counts = || server.events().iter().map(|event| event["count"].as_u64()).collect::<Vec<_>>();

    book.record(key.clone(), Wall { unix_ms: 1_000_000 });
    assert_eq!(post(&sink, &mut book).await, Ok(()));
    assert_eq!(counts(), [Some(1)]);
    book.record(key.clone(), Wall { unix_ms: 1_002_000 });
    assert_eq!(post(&sink, &mut book).await, Ok(()));
    assert_eq!(counts(), [Some(2)]);
    assert_eq!(server.events()[0]["lastTimestamp"], "1970-01-01T00:16:42Z");

    // The event's hour is over: the patch finds nothing, and the event comes anew with its count and first time.
    server.store(|store| store.expire_events());
    book.record(key.clone(), Wall { unix_ms: 1_003_000 });
    assert_eq!(post(&sink, &mut book).await, Err(EventSinkError::NotFound));
    assert_eq!(post(&sink, &mut book).await, Ok(()));
    assert_eq!(counts(), [Some(3)]);
    assert_eq!(server.events()[0]["firstTimestamp"], "1970-01-01T00:16:40Z");

    // A process that does not know that its create arrived creates again, and is told to patch.
    let series = book.next_post(Monotonic::default());
    assert!(series.is_none(), "everything is posted");
    let mut forgetful = SeriesBook::new(Duration::from_secs(600), []);
    forgetful.record(key, Wall { unix_ms: 1_000_000 });
    assert_eq!(post(&sink, &mut forgetful).await, Err(EventSinkError::AlreadyExists));
    assert_eq!(post(&sink, &mut forgetful).await, Ok(()));
    assert_eq!(server.events().len(), 1);

    server.store(|store| store.set_namespace("default", Some(Phase::Terminating)));
    book.record(
        SeriesKey::new(
            PodReference {
                name: PodName::parse("default", "example-1").expect("a name"),
                uid: PodUid::parse("uid-1").expect("a uid"),
            },
            Reason::VolumeRefused,
            "wrong".into(),
        ),
        Wall { unix_ms: 1_004_000 },
    );
    assert_eq!(post(&sink, &mut book).await, Err(EventSinkError::NamespaceGone));
}

/// Posts what is due and lets the book know.
async fn post(sink: &KubeEvents, book: &mut SeriesBook) -> Result<(), EventSinkError> {
    let (series, posted) = match book.next_post(Monotonic::default()).expect("something is due") {
        Post::Create(series) => (series.clone(), sink.create(&series).await),
        Post::Patch(series) => (series.clone(), sink.patch(&series).await),
    };
    let outcome = match &posted {
        Ok(()) => PostOutcome::Taken,
        Err(EventSinkError::AlreadyExists) => PostOutcome::AlreadyThere,
        Err(EventSinkError::NotFound) => PostOutcome::Gone,
        Err(EventSinkError::NamespaceGone | EventSinkError::Rejected { .. }) => PostOutcome::Ended,
        Err(EventSinkError::Retry { retry_after, .. }) => PostOutcome::Retry { after: *retry_after },
    };
    book.settle(&series, outcome, Monotonic::default());
    posted
}

#[tokio::test]
async fn c32_c47_a_token_is_sent_and_no_other_permission_is_used() {
    let server = ApiServer::start().await;
    server.behave(|behaviour| behaviour.token = Some("SECRET-TOKEN".into()));
    let harness = served(&server).await;
    server.behave(|behaviour| behaviour.refuses_streamed_lists = true);
    let _watching = harness.watch();
    live(&harness).await;
    harness.cluster.list().await.expect("whole");
    harness.cluster.cluster_uid().await.expect("a uid");
    let used = |verb: &str, resource: &str| (verb.to_owned(), resource.to_owned());
    let expected = [
        used("get", "namespaces/kube-system"),
        used("list", "persistentvolumes"),
        used("watch", "persistentvolumes"),
    ];
    assert_eq!(server.used(), BTreeSet::from(expected));
    server.behave(|behaviour| behaviour.token = Some("another".into()));
    assert_eq!(harness.cluster.list().await, Err(ClusterError::Unauthorized));
}
