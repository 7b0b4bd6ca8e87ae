//! The three pages over a real port, from sources that fail the test when a page goes beyond memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::doubles::{Stopped, Store, Watched};
use super::*;
use crate::domain::health::Room;
use crate::domain::kept::WhyEmptied;
use crate::domain::refusal::Reason;
use crate::domain::tally::{StoreRoom, SweepOutcome, WaitingFor};
use crate::domain::time::Monotonic;
use crate::ports::cluster::WatchHealth;
use crate::ports::copies::Counted;

/// A port with the pages on it.
struct Port {
    address: std::net::SocketAddr,
    tally: Arc<Tally>,
    readiness: Readiness,
    watched: Arc<Watched>,
    shutdown: CancellationToken,
    server: tokio::task::JoinHandle<()>,
}

async fn open(standalone: bool) -> Port {
    let tally = Arc::new(Tally::default());
    let readiness = Readiness::default();
    let watched = Arc::new(Watched(Mutex::new(WatchHealth::default())));
    let sources = Sources {
        tally: tally.clone(),
        copies: Arc::new(Store(Counted { copies: 2, bytes: 4096, unfinished: 1 })),
        clock: Arc::new(Stopped),
        cluster: (!standalone).then(|| watched.clone() as Arc<dyn Cluster>),
        readiness: readiness.clone(),
        started: Wall { unix_ms: 900_500 },
        copies_page: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(serve(listener, sources, shutdown.clone()));
    Port { address, tally, readiness, watched, shutdown, server }
}

impl Port {
    /// Status and body.
    async fn get(&self, path: &str) -> (u16, String) {
        let (head, body) = self.ask(path, "").await;
        (head[9..12].parse().expect("a status"), body)
    }

    /// Head and body, asked for with these header lines.
    async fn ask(&self, path: &str, headers: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("connect");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("write");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_ascii_lowercase(), body.to_owned())
    }

    /// The samples of `/metrics`, by name and labels.
    async fn metrics(&self) -> BTreeMap<String, f64> {
        let (status, page) = self.get("/metrics").await;
        assert_eq!(status, 200);
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| line.rsplit_once(' ').expect("a value"))
            .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
            .collect()
    }
}

#[tokio::test]
async fn c45_health_is_told_whatever_the_driver_waits_for() {
    let port = open(false).await;
    port.readiness.set("registration", Some("the kubelet has not registered the driver yet".to_owned()));
    assert_eq!(port.get("/healthz").await, (200, "ok\n".to_owned()));
}

#[tokio::test]
async fn c45_every_reason_for_not_being_ready_is_listed() {
    let port = open(true).await;
    port.readiness.set("store", Some("another process has the store".to_owned()));
    port.readiness.set("registration", Some("the kubelet has not registered the driver yet".to_owned()));
    let (status, text) = port.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(text.contains("not ready: another process has the store\n"), "{text}");
    assert!(text.contains("not ready: the kubelet has not registered the driver yet\n"), "{text}");
    assert_eq!(port.metrics().await["per_node_ready"], 0.0);

    port.readiness.set("store", None);
    port.readiness.set("registration", None);
    let (status, text) = port.get("/readyz").await;
    assert_eq!((status, text.lines().next()), (200, Some("ready")));
    assert_eq!(port.metrics().await["per_node_ready"], 1.0);
}

#[tokio::test]
async fn c21_removals_that_wait_for_a_person_are_told_and_do_not_make_the_driver_unready() {
    let port = open(false).await;
    for waiting in WaitingFor::ALL {
        port.tally.set_waiting(Some(waiting));
        let (status, text) = port.get("/readyz").await;
        assert_eq!(status, 200);
        assert!(text.contains(waiting.sentence()) && text.contains("per-node confirm"), "{text}");
        let metrics = port.metrics().await;
        for each in WaitingFor::ALL {
            let told = metrics[&format!("per_node_removals_waiting{{for=\"{}\"}}", each.as_str())];
            assert_eq!(told > 0.0, each == waiting);
        }
    }
    port.tally.set_waiting(None);
    assert!(!port.get("/readyz").await.1.contains("confirm"));
}

#[tokio::test]
async fn c27_removals_that_wait_for_the_watch_are_told() {
    let port = open(false).await;
    port.tally.removals_searching.store(3, Ordering::Relaxed);
    assert!(port.get("/readyz").await.1.contains("3 removals wait until the watch"));
    assert_eq!(port.metrics().await["per_node_removals_searching"], 3.0);
    port.tally.removals_searching.store(0, Ordering::Relaxed);
    assert!(!port.get("/readyz").await.1.contains("removals"));
}

#[tokio::test]
async fn c26_a_stopped_sweep_and_what_is_kept_are_told() {
    let port = open(false).await;
    assert!(!port.get("/readyz").await.1.contains("sweep-limit"));
    port.tally.over_limit.store(12, Ordering::Relaxed);
    port.tally.kept_oldest_ms.store(1_500, Ordering::Relaxed);
    port.tally.emptied(WhyEmptied::Space);
    let notes = port.get("/readyz").await.1;
    assert!(notes.contains("per-node confirm") && notes.contains("12 copies wait"), "{notes}");
    let metrics = port.metrics().await;
    assert_eq!(metrics["per_node_removals_waiting{for=\"sweep_limit\"}"], 1.0);
    assert_eq!(metrics["per_node_sweep_over_limit"], 12.0);
    assert_eq!(metrics["per_node_trash_kept_oldest_seconds"], 1.5);
    assert_eq!(metrics["per_node_trash_kept_emptied_total{why=\"space\"}"], 1.0);
    // A doubt whose copies these are comes first.
    port.tally.set_waiting(Some(WaitingFor::MarkerDiffers));
    assert_eq!(port.metrics().await["per_node_removals_waiting{for=\"sweep_limit\"}"], 0.0);
}

#[tokio::test]
async fn c41_an_api_server_that_is_away_is_told_and_is_no_reason() {
    let port = open(false).await;
    let (status, text) = port.get("/readyz").await;
    assert_eq!(status, 200);
    assert!(text.contains("have not been read yet"), "{text}");
    port.watched.0.lock().expect("lock").synced = true;
    assert!(port.get("/readyz").await.1.contains("is interrupted"));
    port.watched.0.lock().expect("lock").live = true;
    assert_eq!(port.get("/readyz").await.1, "ready\n");
}

#[tokio::test]
async fn c45_metrics_have_the_numbers_under_names_with_their_units() {
    let port = open(false).await;
    port.tally.answered("NodePublishVolume", "OK");
    port.tally.answered("NodePublishVolume", "OK");
    port.tally.answered("NodePublishVolume", "FAILED_PRECONDITION");
    port.tally.refused(Reason::VolumeHeld);
    port.tally.swept(SweepOutcome::Removed);
    port.tally.sync_failed("forbidden");
    port.tally.api_called("watch", "gone");
    port.tally.copies.store(3, Ordering::Relaxed);
    port.tally.events_queued.store(5, Ordering::Relaxed);
    port.tally.events_dropped.store(6, Ordering::Relaxed);
    *port.watched.0.lock().expect("lock") = WatchHealth {
        synced: true,
        live: true,
        last_sync: Some(Monotonic(Duration::from_secs(88))),
        ..WatchHealth::default()
    };
    let metrics = port.metrics().await;
    for (name, value) in [
        ("per_node_calls_total{method=\"NodePublishVolume\",code=\"OK\"}", 2.0),
        ("per_node_calls_total{method=\"NodePublishVolume\",code=\"FAILED_PRECONDITION\"}", 1.0),
        ("per_node_refusals_total{reason=\"PerNodeVolumeHeld\"}", 1.0),
        ("per_node_refusals_total{reason=\"PerNodeVolumeRefused\"}", 0.0),
        ("per_node_sweep_decisions_total{outcome=\"removed\"}", 1.0),
        ("per_node_sweep_decisions_total{outcome=\"no_proof\"}", 0.0),
        ("per_node_sync_failures_total{why=\"forbidden\"}", 1.0),
        ("per_node_api_calls_total{call=\"watch\",end=\"gone\"}", 1.0),
        ("per_node_copies", 3.0),
        ("per_node_copies_bytes", 4096.0),
        ("per_node_copies_unfinished_walks", 1.0),
        ("per_node_last_sync_timestamp_seconds", 988.0),
        ("process_start_time_seconds", 900.5),
        ("per_node_watch_live", 1.0),
        ("per_node_events_queued", 5.0),
        ("per_node_events_dropped_total", 6.0),
    ] {
        assert_eq!(metrics.get(name), Some(&value), "{name} in {metrics:#?}");
    }
}

#[tokio::test]
async fn c45_a_driver_that_never_synced_claims_no_time() {
    let metrics = open(false).await.metrics().await;
    assert!(!metrics.contains_key("per_node_last_sync_timestamp_seconds"));
    let metrics = open(true).await.metrics().await;
    assert!(!metrics.contains_key("per_node_watch_live"));
}

#[tokio::test]
async fn c45_every_family_is_described_once_and_every_sample_has_its_family() {
    let (_, page) = open(false).await.get("/metrics").await;
    let types: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut names: Vec<_> = types.iter().map(|line| line.split(' ').next().expect("a name")).collect();
    names.sort_unstable();
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let sample = line.split(['{', ' ']).next().expect("a name");
        assert!(names.contains(&sample), "{sample}");
    }
}

#[tokio::test]
async fn c45_metrics_are_written_as_whoever_asks_can_read_them() {
    let port = open(false).await;
    port.tally.answered("NodePublishVolume", "OK");
    let (head, page) = port.ask("/metrics", "").await;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(page.contains("# TYPE per_node_calls_total counter\n") && !page.contains("# EOF"), "{page}");
    let both = "Accept: application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5\r\n";
    let (head, page) = port.ask("/metrics", both).await;
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.contains("# TYPE per_node_calls counter\n") && page.ends_with("# EOF\n"), "{page}");
}

#[tokio::test]
async fn c45_the_stores_space_is_told_as_far_as_it_is_known() {
    let port = open(true).await;
    let told = |metrics: &BTreeMap<String, f64>| {
        let names = ["capacity_bytes", "available_bytes", "inodes", "inodes_available"];
        names.map(|name| metrics.get(&format!("per_node_store_{name}")).copied())
    };
    assert_eq!(told(&port.metrics().await), [None; 4]);
    let bytes = Room { available: 10, total: 4096 };
    port.tally.set_room(Some(StoreRoom { bytes, inodes: Room { available: 0, total: 7 } }));
    assert_eq!(told(&port.metrics().await), [Some(4096.0), Some(10.0), Some(7.0), Some(0.0)]);
    port.tally.set_room(Some(StoreRoom { bytes, inodes: Room::default() }));
    assert_eq!(told(&port.metrics().await), [Some(4096.0), Some(10.0), None, None]);
    port.tally.set_room(None);
    assert_eq!(told(&port.metrics().await), [None; 4]);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_nothing_can_be_changed() {
    let port = open(true).await;
    assert_eq!(port.get("/").await.0, 404);
    let mut stream = TcpStream::connect(port.address).await.expect("connect");
    stream.write_all(b"POST /readyz HTTP/1.0\r\n\r\n").await.expect("write");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    assert!(answer.contains("405"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn silent_connections_do_not_keep_others_out_for_ever() {
    let port = open(true).await;
    let mut silent = Vec::new();
    for _ in 0..super::listener::CONNECTIONS_MAX {
        silent.push(TcpStream::connect(port.address).await.expect("connect"));
    }
    assert_eq!(port.get("/healthz").await.0, 200);
    let mut rest = Vec::new();
    silent[0].read_to_end(&mut rest).await.expect("it was ended from the other side");
}

#[tokio::test(start_paused = true)]
async fn c42_a_silent_connection_does_not_hold_up_a_shutdown() {
    let port = open(true).await;
    let mut silent = TcpStream::connect(port.address).await.expect("connect");
    silent.write_all(b"GET /healthz HTTP/1.1\r\n").await.expect("write");
    assert_eq!(port.get("/healthz").await.0, 200);
    let told = tokio::time::Instant::now();
    port.shutdown.cancel();
    port.server.await.expect("joins");
    // The clock is paused: this is what was slept, not what it took.
    assert_eq!(told.elapsed().as_millis() / 100, u128::from(super::DRAIN_MS) / 100);
}

#[tokio::test]
async fn c42_a_shutdown_ends_the_port() {
    let port = open(true).await;
    assert_eq!(port.get("/healthz").await.0, 200);
    port.shutdown.cancel();
    port.server.await.expect("joins");
}
