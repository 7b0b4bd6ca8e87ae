//! The driver's own decisions over a real HTTP connection: what is removed, what stays, what is told on a pod.
//!
//! Mounts, store and clock are the in-memory twins; the API server is the fake that stores and watches.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use per_node::adapters::kube::cluster::KubeCluster;
use per_node::adapters::kube::events::KubeEvents;
use per_node::adapters::memory::{MemoryCopies, MemoryMounts, MemoryRecords, Node, SteppedClock};
use per_node::domain::pod::PodInfo;
use per_node::domain::signal::Signal;
use per_node::domain::sweep::PROOF_LIST_VOLUMES_MAX;
use per_node::domain::tally::{SweepOutcome, Tally, WaitingFor};
use per_node::domain::target::KubeletDir;
use per_node::domain::time::Wall;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::domain::use_cases::sweeper::Sweeper;
use per_node::domain::volume_request::{
    AccessMode, AccessType, PublishRequest, UnpublishRequest, VolumeCapability,
};
use per_node::ports::cluster::Cluster;

use crate::api_server::{ApiServer, Fault};
use crate::api_store::Phase;
use crate::harness::*;

const KUBELET: &str = "/var/lib/kubelet";
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// One node with the driver on it, stepped by hand.
struct Rig {
    node: Node,
    clock: SteppedClock,
    harness: Harness,
    driver: Arc<Driver>,
    sweeper: Sweeper,
    _watching: Watching,
}

impl Rig {
    /// A new node whose store is empty, and whose first pass has written the marker.
    async fn start(server: &ApiServer) -> Self {
        let node = Node::new("/var/lib/per-node");
        let clock = SteppedClock::at(Wall { unix_ms: 1_796_000_000_000 });
        let mut rig = Self::on(server, node, clock).await;
        rig.pass().await;
        rig
    }

    /// A process that starts on the node.
    async fn on(server: &ApiServer, node: Node, clock: SteppedClock) -> Self {
        let transport = transport_over(&server.kubeconfig(), short_settings()).await;
        let (tally, sweep_wanted) = (Arc::new(Tally::default()), Arc::new(Signal::default()));
        let clock = clock.restarted();
        let cluster = Arc::new(KubeCluster::new(
            transport.clone(),
            DRIVER,
            Arc::new(clock.clone()),
            sweep_wanted.clone(),
            tally.clone(),
        ));
        let ports = Ports {
            mounts: Arc::new(MemoryMounts::new(&node)),
            copies: Arc::new(MemoryCopies::new(&node)),
            records: Arc::new(MemoryRecords::open(&node)),
            clock: Arc::new(clock.clone()),
            sink: Arc::new(KubeEvents::new(transport, DRIVER, NODE, tally.clone())),
            cluster: Some(cluster.clone()),
        };
        let settings = Settings {
            driver_name: DRIVER.into(),
            node_name: "node-1".to_owned(),
            kubelet_dir: KubeletDir::new(PathBuf::from(KUBELET), PathBuf::from(KUBELET)),
            sweep_every: SWEEP_EVERY,
            event_window: Duration::from_secs(600),
            brakes: Brakes::default(),
        };
        let driver = Arc::new(Driver::new(ports, settings, tally.clone(), sweep_wanted.clone()));
        driver.reconcile().await.expect("mounts are read");
        let sweeper = Sweeper::new(driver.clone(), cluster.clone());
        let harness = Harness { cluster, tally, sweep_wanted };
        let watching = harness.watch();
        harness.until("live", |cluster| cluster.watch_health().live).await;
        Self { node, clock, harness, driver, sweeper, _watching: watching }
    }

    fn target(pod: &str) -> String {
        format!("{KUBELET}/pods/uid-{pod}/volumes/kubernetes.io~csi/v/mount")
    }

    async fn publish(&self, handle: &str, pod: &str) -> bool {
        let target_path = Self::target(pod);
        // The kubelet makes the directory above the target and keeps its own note there.
        let volume = PathBuf::from(&target_path).parent().expect("a parent").to_owned();
        self.node.make_directory(&volume);
        self.node.make_file(volume.join("vol_data.json"));
        let pod = PodInfo {
            uid: Some(format!("uid-{pod}")),
            namespace: Some("default".into()),
            name: Some(pod.into()),
        };
        let access_type = Some(AccessType::Mount { flags: Vec::new(), volume_mount_group: String::new() });
        let access_mode = Some(AccessMode::MultiNodeMultiWriter as i32);
        let capability = Some(VolumeCapability { access_type, access_mode });
        let request =
            PublishRequest { volume_id: handle.into(), target_path, capability, readonly: false, pod };
        self.driver.publish(&request).await.is_ok()
    }

    async fn unpublish(&self, handle: &str, pod: &str) {
        let request = UnpublishRequest { volume_id: handle.into(), target_path: Self::target(pod) };
        self.driver.unpublish(&request).await.expect("unpublished");
    }

    /// One pass of the sweep, and of the trash.
    async fn pass(&mut self) {
        self.sweeper.step().await;
        self.driver.drain_trash().await;
    }

    /// A pass that is a tick.
    async fn tick(&mut self) {
        self.clock.advance(SWEEP_EVERY);
        self.pass().await;
    }

    fn has(&self, handle: &str) -> bool {
        self.node.copy(&handle_of(handle)).is_some()
    }

    fn swept(&self, outcome: SweepOutcome) -> u64 {
        self.harness.tally.sweeps(outcome)
    }

    /// Waits until the watch has told that nobody names the handle.
    async fn unnamed(&self, handle: &str) {
        self.harness.until("unnamed", |_| !self.harness.names(handle)).await;
    }
}

/// A server with one volume, and a node where a pod has been and gone.
async fn with_a_copy() -> (ApiServer, Rig) {
    let server = ApiServer::start().await;
    server.store(|store| store.create_volume("pv-a", DRIVER, "a"));
    let rig = Rig::start(&server).await;
    assert!(rig.publish("a", "pod-1").await);
    rig.unpublish("a", "pod-1").await;
    assert!(rig.has("a"));
    (server, rig)
}

#[tokio::test]
async fn c20_c21_the_copy_goes_with_its_volume_once_nobody_holds_it() {
    let (server, mut rig) = with_a_copy().await;
    rig.tick().await;
    assert!(rig.has("a"), "the volume names it");
    assert!(rig.publish("a", "pod-2").await);
    server.store(|store| store.delete_volume("pv-a"));
    rig.unnamed("a").await;
    rig.pass().await;
    assert!(rig.has("a") && rig.swept(SweepOutcome::InUse) == 1, "pod-2 holds it");
    rig.unpublish("a", "pod-2").await;
    assert!(rig.harness.sweep_wanted.take(), "the last holder of an orphan leaves");
    rig.pass().await;
    assert!(!rig.has("a") && rig.swept(SweepOutcome::Removed) == 1);
}

#[tokio::test]
async fn c21_a_terminating_volume_keeps_the_copy() {
    let (server, mut rig) = with_a_copy().await;
    let revision = server.store(|store| store.begin_deletion("pv-a").expect("a volume").revision);
    rig.harness.until("told", |cluster| cluster.view().reached() == revision).await;
    rig.tick().await;
    rig.tick().await;
    assert!(rig.has("a"));
}

#[tokio::test]
async fn c22_c41_without_a_complete_answer_the_copy_stays() {
    let (server, mut rig) = with_a_copy().await;
    server.store(|store| store.delete_volume("pv-a"));
    rig.unnamed("a").await;
    for fault in
        [Fault::Status(401, None), Fault::Status(403, None), Fault::Status(429, Some(1)), Fault::Break]
    {
        server.fail_next("GET /api/v1/persistentvolumes", 1, &fault);
        let before = rig.swept(SweepOutcome::NoProof);
        rig.pass().await;
        assert!(rig.has("a") && rig.swept(SweepOutcome::NoProof) == before + 1, "{fault:?}");
    }
    let told: Vec<&str> = rig.harness.tally.sync_failures().into_keys().collect();
    assert!(told.len() >= 4, "a counter says why: {told:?}");
    rig.pass().await;
    assert!(!rig.has("a"));
}

#[tokio::test]
async fn c27_in_a_large_cluster_the_watch_is_the_proof_and_nothing_is_listed() {
    let server = ApiServer::start().await;
    server.store(|store| {
        store.create_volume("pv-a", DRIVER, "a");
        for number in 0..PROOF_LIST_VOLUMES_MAX {
            store.create_volume(&format!("other-{number}"), "other.example", &format!("o-{number}"));
        }
    });
    let mut rig = Rig::start(&server).await;
    assert!(rig.publish("a", "pod-1").await);
    rig.unpublish("a", "pod-1").await;
    server.store(|store| store.delete_volume("pv-a"));
    rig.unnamed("a").await;
    // The head moves on, and no event of the watch says so.
    server.store(|store| store.advance(5));
    rig.pass().await;
    assert!(rig.has("a"), "the watch has not passed the head");
    // Any event of a later revision is as good as a bookmark.
    let later =
        server.store(|store| store.create_volume("later", "other.example", "l").expect("new").revision);
    rig.harness.until("told", |cluster| cluster.view().reached() >= later).await;
    rig.pass().await;
    assert!(!rig.has("a") && rig.swept(SweepOutcome::Removed) == 1);
    assert_eq!((rig.harness.count("proof_list", "ok"), rig.harness.count("watch_list", "ok")), (0, 1));
}

#[tokio::test]
async fn c22_a_deletion_in_an_outage_waits_for_a_second_tick() {
    let (server, mut rig) = with_a_copy().await;
    server.behave(|behaviour| behaviour.away = true);
    rig.harness.until("not live", |cluster| !cluster.watch_health().live).await;
    server.store(|store| {
        store.delete_volume("pv-a");
        store.compact();
    });
    rig.pass().await;
    assert!(rig.has("a"), "nobody answers");
    server.behave(|behaviour| behaviour.away = false);
    rig.harness.until("listed", |cluster| cluster.watch_health().live && !rig.harness.names("a")).await;
    rig.tick().await;
    assert!(rig.has("a") && rig.swept(SweepOutcome::SecondTick) == 1, "vanished, and not seen to go");
    rig.pass().await;
    assert!(rig.has("a"), "a pass between two ticks is no second tick");
    rig.tick().await;
    assert!(!rig.has("a"));
}

#[tokio::test]
async fn c22_a_restored_etcd_removes_nothing_until_a_person_confirms() {
    let server = ApiServer::start().await;
    // The backup knows nothing of the volume.
    let backup = server.store(|store| store.clone());
    server.store(|store| {
        store.advance(1000);
        store.create_volume("pv-a", DRIVER, "a");
    });
    let mut rig = Rig::start(&server).await;
    assert!(rig.publish("a", "pod-1").await);
    rig.unpublish("a", "pod-1").await;
    rig.pass().await;
    server.restore(backup);
    server.behave(|behaviour| behaviour.away = true);
    rig.harness.until("not live", |cluster| !cluster.watch_health().live).await;
    server.behave(|behaviour| behaviour.away = false);
    // The watch goes on from a revision that the server has not reached, and is told nothing, as real ones are.
    rig.harness.until("live", |cluster| cluster.watch_health().live).await;
    rig.tick().await;
    assert!(rig.has("a"));
    // A new process lists, and finds nobody who names it; the highest revision that was seen is in the store.
    let mut rig = Rig::on(&server, rig.node.clone(), rig.clock.clone()).await;
    assert!(!rig.harness.names("a"));
    for _ in 0..3 {
        rig.tick().await;
        assert!(rig.has("a") && rig.sweeper.waiting() == Some(WaitingFor::Revision));
    }
    rig.sweeper.confirm(None).await.expect("confirmed");
    assert!(rig.has("a"), "confirming removes nothing");
    rig.harness.until("begun anew", |cluster| cluster.watch_health().live).await;
    rig.tick().await;
    rig.tick().await;
    assert!(!rig.has("a"));
}

#[tokio::test]
async fn c31_c32_an_outage_of_the_api_server_loses_no_count() {
    let server = ApiServer::start().await;
    let rig = Rig::start(&server).await;
    assert!(rig.publish("a", "holder").await);
    assert!(!rig.publish("a", "waiter").await);
    rig.driver.step_events().await;
    server.behave(|behaviour| behaviour.away = true);
    for _ in 0..3 {
        rig.clock.advance(Duration::from_secs(20));
        assert!(!rig.publish("a", "waiter").await);
        rig.driver.step_events().await;
    }
    server.behave(|behaviour| behaviour.away = false);
    rig.clock.advance(Duration::from_secs(60));
    // A process that starts now goes on with the count.
    let rig = Rig::on(&server, rig.node.clone(), rig.clock.clone()).await;
    rig.driver.step_events().await;
    let events = server.events();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((&events[0]["count"], &events[0]["reason"]), (&4.into(), &"PerNodeVolumeHeld".into()));
    assert_eq!(events[0]["firstTimestamp"], "2026-11-30T00:53:20Z");
    assert_eq!(events[0]["lastTimestamp"], "2026-11-30T00:54:20Z");
    assert!(!rig.publish("a", "waiter").await);
    rig.driver.step_events().await;
    assert_eq!(server.events()[0]["count"], 5);
}

#[tokio::test]
async fn c32_a_namespace_that_goes_ends_its_series() {
    let server = ApiServer::start().await;
    let rig = Rig::start(&server).await;
    assert!(rig.publish("a", "holder").await);
    server.store(|store| store.set_namespace("default", Some(Phase::Terminating)));
    assert!(!rig.publish("a", "waiter").await);
    assert_eq!(rig.driver.step_events().await, None, "nothing is left to be posted");
    assert!(server.events().is_empty());
    assert_eq!(rig.harness.count("event_create", "namespace_ending"), 1);
}
