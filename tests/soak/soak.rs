//! One case's node and driver: its picture after the first pod, and the comparison after the last one.

use std::time::{Duration, Instant};

use crate::api_server::ApiServer;
use crate::api_store::Phase;
use crate::node::{DRIVER, Driver, Node, runtime};
use crate::picture::Picture;
use crate::{pods, size};

/// How long a case waits for what must happen. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// For how long a driver must not have changed to be at rest: some sweeps long, and longer than its idle threads stay.
const REST: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// What resident memory may grow by, however long it goes on: what a development build's allocator keeps of the memory that
/// 64 calls at once took. One KiB that is lost with each pod would show in the long run.
const RSS_GROWTH_MAX_KIB: u64 = 16 * 1024;

/// A volume that every case has, for a pod before and a pod after everything else.
const FIRST: &str = "first";

pub struct Soak {
    name: &'static str,
    pub node: Node,
    driver: Driver,
    before: Picture,
    began: Instant,
}

/// How long the same refusal counts as the same event.
fn event_window() -> Duration {
    size(Duration::from_secs(4), Duration::from_secs(60))
}

/// A node in a cluster, without a driver.
pub fn node() -> Node {
    let node = Node::in_a_cluster(&[FIRST]);
    api(&node).store(|store| store.set_namespace("example", Some(Phase::Active)));
    node
}

pub fn api(node: &Node) -> &ApiServer {
    node.api.as_ref().expect("the node is in a cluster")
}

/// Volumes of the driver in the node's cluster, each named like its handle.
pub fn create_volumes(node: &Node, handles: &[String]) {
    api(node).store(|store| {
        for handle in handles {
            store.create_volume(handle, DRIVER, handle).expect("a new volume");
        }
    });
}

/// These words with a number each.
pub fn numbered(word: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{word}-{number}")).collect()
}

/// Waits until `what_is_wrong` answers nothing more.
#[track_caller]
pub fn eventually(mut what_is_wrong: impl FnMut() -> Vec<String>) {
    let began = Instant::now();
    loop {
        let wrong = what_is_wrong();
        if wrong.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it stays so:\n{}", wrong.join("\n"));
        std::thread::sleep(LOOK_EVERY);
    }
}

impl Soak {
    /// Starts a driver that sweeps every second, and pictures it after its first pod.
    pub fn begin(name: &'static str, node: Node) -> Soak {
        let began = Instant::now();
        let window = format!("{}s", event_window().as_secs());
        let flags = [("PER_NODE_SWEEP_EVERY", "1s"), ("PER_NODE_EVENT_WINDOW", &window)];
        let driver = node.start_with(&flags);
        node.wait_marked();
        runtime().block_on(one_pod(&node));
        let before = at_rest(&node, &driver);
        Soak { name, node, driver, before, began }
    }

    /// Takes what was done so far for the first pod's.
    pub fn begun_again(self) -> Soak {
        let cold_rss_kib = self.before.rss_kib;
        self.end_event_series();
        let before = at_rest(&self.node, &self.driver);
        println!(
            "{}: the first time took {} KiB more",
            self.name,
            before.rss_kib.saturating_sub(cold_rss_kib)
        );
        Soak { before, ..self }
    }

    /// Series that are past their window go with the next refusal.
    fn end_event_series(&self) {
        std::thread::sleep(event_window());
        runtime().block_on(one_pod(&self.node));
    }

    /// What the driver has now.
    pub fn picture(&self) -> Picture {
        Picture::take(&self.node, &self.driver)
    }

    /// Deletes the driver's volumes but the first, and waits until their copies are gone.
    pub fn delete_volumes(&self) {
        api(&self.node).store(|store| {
            let own = store.volumes().filter(|volume| volume.driver == DRIVER && volume.name != FIRST);
            let names: Vec<String> = own.map(|volume| volume.name.clone()).collect();
            names.iter().for_each(|name| drop(store.delete_volume(name)));
        });
        eventually(|| self.node.names("copies").into_iter().filter(|copy| copy != FIRST).collect());
    }

    /// Deletes what is left of the volumes, and waits until the driver is at rest as it was at the beginning. Prints the
    /// figures, or fails with the difference.
    pub fn end(self) {
        self.delete_volumes();
        self.end_event_series();
        eventually(|| self.picture().difference(&self.before, RSS_GROWTH_MAX_KIB));
        let (before, after) = (&self.before, self.picture());
        println!(
            "{}: {} s; descriptors {} before, {} after; threads {}, {}; resident KiB {}, {}, at most {}",
            self.name,
            self.began.elapsed().as_secs(),
            before.descriptors,
            after.descriptors,
            before.threads,
            after.threads,
            before.rss_kib,
            after.rss_kib,
            after.rss_peak_kib,
        );
    }
}

/// A pod that runs, and another one that may not.
async fn one_pod(node: &Node) {
    pods::start(node, FIRST, "first-pod").await;
    pods::refused(node, FIRST, "first-rival").await;
    pods::end(node, FIRST, "first-pod").await;
}

/// The picture of a driver at rest, with the most threads and memory that it had in that time.
fn at_rest(node: &Node, driver: &Driver) -> Picture {
    let mut seen = Picture::take(node, driver);
    let mut since = Instant::now();
    eventually(|| {
        let now = Picture::take(node, driver);
        if !now.has_the_same(&seen) {
            since = Instant::now();
            seen = now;
            return vec!["the driver is not at rest".to_owned()];
        }
        seen.threads = seen.threads.max(now.threads);
        seen.rss_kib = seen.rss_kib.max(now.rss_kib);
        if since.elapsed() < REST { vec!["the driver is not at rest for long".to_owned()] } else { vec![] }
    });
    seen
}
