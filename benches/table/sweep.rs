//! One pass of the sweep over many copies beside many PersistentVolumes: a tick that finds nothing to remove, and a pass that
//! removes one copy.
//!
//! A pass is a function of the driver's, so here it runs in this process, on the same adapters; the random delays by which
//! nodes keep apart are set to nothing, because they are no work.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use per_node::adapters::event_log::EventLog;
use per_node::adapters::kube::client::connect;
use per_node::adapters::kube::cluster::KubeCluster;
use per_node::adapters::kube::settings::{PAGE_ITEMS_MAX, Settings as KubeSettings};
use per_node::adapters::kube::transport::Transport;
use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::mounts::{Abilities, LinuxMounts};
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::target::resolve_kubelet_dir;
use per_node::adapters::system_clock::SystemClock;
use per_node::domain::handle::Handle;
use per_node::domain::signal::Signal;
use per_node::domain::tally::Tally;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::domain::use_cases::sweeper::Sweeper;
use per_node::ports::cluster::Cluster;
use serde::Deserialize;

use crate::Bench;
use crate::api::Api;
use crate::client::handle;
use crate::driver::DRIVER_NAME;
use crate::field::Field;
use crate::figure::{Figure, Line, Unit};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number, time};

const GOAL: Goal = Goal::AtMost(1.2);
/// Ticks come so fast here.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const EVENT_WINDOW: Duration = Duration::from_secs(600);
/// Until a view of the cluster must be there.
const SYNC_LIMIT: Duration = Duration::from_secs(120);
/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Steps that one removal may take.
const STEPS_MAX: usize = 100;

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "a pass of the sweep (run in this process, without its random delays)",
        "reading the directory of the copies, and one list of the same API server in pages of as many volumes",
    );
    let mut lines = [("a pass that removes a copy", Vec::new()), ("directory + list", Vec::new())];
    for &volumes in bench.sizes.volumes {
        let measured = measure(bench, volumes);
        let (copies, volumes_text) = (number(bench.sizes.copies), number(volumes));
        let limit = measured.limit.p50();
        let kinds = [("with nothing to remove", &measured.ticks), ("that removes one", &measured.removals)];
        for (kind, samples) in kinds {
            let what = format!("pass {kind}, {copies} copies, {volumes_text} volumes");
            let took = samples.p50();
            report.ratio(what, time(took), time(limit), took / limit, GOAL);
        }
        for ((_, points), seconds) in lines.iter_mut().zip([measured.removals.p50(), limit]) {
            points.push((volumes as f64, seconds));
        }
    }
    report.picture(Figure {
        name: "sweep",
        title: "A pass of the sweep by the cluster's PersistentVolumes",
        sizes: "PersistentVolumes",
        unit: Unit::Seconds,
        lines: lines.into_iter().map(|(name, points)| Line { name: name.into(), points }).collect(),
    });
}

#[derive(Default)]
struct Measured {
    ticks: Samples,
    removals: Samples,
    limit: Samples,
}

fn measure(bench: &Bench, volumes: usize) -> Measured {
    let field = Field::new();
    // Ours are those that stay, and those that go.
    let ours = bench.sizes.copies + bench.sizes.sweeps;
    let api = Api::start(&field, ours);
    api.create_foreign(u64::try_from(volumes.saturating_sub(ours)).expect("not that many"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(passes(&field, &api, bench.sizes.copies..ours))
}

/// A tick, a removal and the limit for each of the copies that go.
async fn passes(field: &Field, api: &Api, going: std::ops::Range<usize>) -> Measured {
    let mut node = Node::start(field, api.kubeconfig()).await;
    // The first tick finds an empty store and writes its marker.
    node.sweeper.step().await;
    for number in 0..going.end {
        std::fs::create_dir(field.copy(&handle(number))).expect("a copy");
    }
    let connection = connect(Some(api.kubeconfig()), &KubeSettings::default()).await.expect("a client");
    let mut measured = Measured::default();
    for number in going.clone() {
        tokio::time::sleep(SWEEP_EVERY + LOOK_EVERY).await;
        let began = Instant::now();
        node.sweeper.step().await;
        measured.ticks.push(began.elapsed());

        api.delete(&handle(number));
        measured.removals.push(node.remove(field, &handle(number)).await);

        let began = Instant::now();
        let entries = std::fs::read_dir(field.path("store/copies")).expect("the copies").count();
        assert!(entries >= going.start, "only the deleted copies went");
        list(&connection.client).await;
        measured.limit.push(began.elapsed());
    }
    node.watch.abort();
    measured
}

/// The driver's parts that sweep.
struct Node {
    cluster: Arc<KubeCluster>,
    sweeper: Sweeper,
    watch: tokio::task::JoinHandle<()>,
}

impl Node {
    async fn start(field: &Field, kubeconfig: &Path) -> Node {
        let settings = KubeSettings {
            proof_jitter: Duration::ZERO,
            proof_jitter_per_volume: Duration::ZERO,
            ..KubeSettings::default()
        };
        let connection = connect(Some(kubeconfig), &settings).await.expect("a client");
        let (tally, wanted) = (Arc::new(Tally::default()), Arc::new(Signal::default()));
        let clock = Arc::new(SystemClock::default());
        let transport = Transport::new(connection, settings);
        let cluster = KubeCluster::new(transport, DRIVER_NAME, clock.clone(), wanted.clone(), tally.clone());
        let cluster = Arc::new(cluster);
        let store = Arc::new(StoreDirs::open(&field.path("store")).expect("a store"));
        let kubelet_dir = resolve_kubelet_dir(&field.path("kubelet")).expect("a kubelet directory");
        let ports = Ports {
            mounts: Arc::new(LinuxMounts::new(store.clone(), kubelet_dir.clone(), Abilities::found())),
            copies: Arc::new(LinuxCopies::new(store.clone(), 0o777)),
            records: Arc::new(SlotRecords::open(&store).expect("records")),
            clock,
            sink: Arc::new(EventLog),
            cluster: Some(cluster.clone()),
        };
        let settings = Settings {
            driver_name: DRIVER_NAME.to_owned(),
            node_name: "node".to_owned(),
            kubelet_dir,
            sweep_every: SWEEP_EVERY,
            event_window: EVENT_WINDOW,
            brakes: Brakes::default(),
        };
        let driver = Arc::new(Driver::new(ports, settings, tally, wanted));
        driver.reconcile().await.expect("the mounts are read");
        let watcher = cluster.watcher();
        let watch = tokio::spawn(async move { watcher.run().await });
        let node = Node { sweeper: Sweeper::new(driver, cluster.clone()), cluster, watch };
        node.until("the view is there", |cluster| cluster.watch_health().synced).await;
        node
    }

    async fn until(&self, what: &str, is_so: impl Fn(&KubeCluster) -> bool) {
        let began = Instant::now();
        while !is_so(&self.cluster) {
            assert!(began.elapsed() < SYNC_LIMIT, "{what}: not within {SYNC_LIMIT:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The work of all steps until the copy is gone; what they wait for between them is not counted.
    async fn remove(&mut self, field: &Field, handle: &str) -> Duration {
        let parsed = Handle::parse(handle).expect("a handle");
        self.until("the deletion is seen", |cluster| cluster.deletion_was_seen(&parsed)).await;
        let mut took = Duration::ZERO;
        for _ in 0..STEPS_MAX {
            let began = Instant::now();
            self.sweeper.step().await;
            took += began.elapsed();
            if !field.copy(handle).exists() {
                return took;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!("{handle} stays");
    }
}

/// One list of all volumes, of which nothing is kept.
async fn list(client: &kube::Client) {
    #[derive(Deserialize)]
    struct Page {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "continue")]
        token: String,
    }
    let mut token = String::new();
    loop {
        let path = format!("/api/v1/persistentvolumes?limit={PAGE_ITEMS_MAX}&continue={token}");
        let path = if token.is_empty() { path.trim_end_matches("&continue=") } else { &path };
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        let page: Page = client.request(request).await.expect("a page");
        token = page.metadata.token;
        if token.is_empty() {
            return;
        }
    }
}
