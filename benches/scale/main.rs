//! What deletions cost a large cluster, and what a large cluster costs the plugin. Started by `benches/scale/run`, which has
//! a kube-apiserver running; prints a table.
//!
//! Every plugin stands for a node. Copies are laid into the stores by hand: the API server cannot tell the difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const DRIVER: &str = "per-node.liken.sh";
/// Connections that create objects at the same time.
const AT_ONCE: usize = 64;
/// What a cluster of this size has; nothing here asks for them.
const NODES: usize = 1000;
/// Between two deletions: longer than between two bookmarks, which the later one would otherwise come before.
const BETWEEN_DELETIONS: Duration = Duration::from_secs(150);
/// Between two writes of something else, as leases and pods are written all the time: the head never stands still.
const BETWEEN_WRITES: Duration = Duration::from_millis(100);
/// Of rest, in which requests are counted.
const REST: Duration = Duration::from_secs(60);
/// Longer than that no removal may take.
const GIVE_UP: Duration = Duration::from_secs(600);

fn main() {
    // `cargo clippy` and `cargo bench` without a name build this too; without a cluster it has nothing to do.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [scratch, numbers @ ..] = arguments.as_slice() else {
        println!("run benches/scale/run");
        return;
    };
    let numbers: Vec<usize> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let [foreign, own, plugins, deletions] = numbers.as_slice() else { panic!("four numbers are wanted") };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(Path::new(scratch), [*foreign, *own, *plugins, *deletions]));
}

async fn measure(scratch: &Path, [foreign, own, plugins, deletions]: [usize; 4]) {
    assert!(deletions < own, "there are as many volumes of ours as are deleted, and one more");
    let client = Client::try_default().await.expect("the API server of KUBECONFIG");
    let began = Instant::now();
    create_nodes(&client).await;
    create_volumes(&client, foreign, own).await;
    println!("{} volumes and {NODES} nodes created in {} s", foreign + own, began.elapsed().as_secs());

    tokio::spawn(keep_writing(client.clone()));
    let mut running: Vec<Plugin> = Vec::new();
    for number in 0..plugins {
        running.push(Plugin::start(scratch, number));
    }
    for plugin in &running {
        plugin.becomes_ready().await;
        (0..deletions).for_each(|number| plugin.lay_copy(&handle(number)));
    }
    let before = Requests::read(&client).await;
    tokio::time::sleep(REST).await;
    let at_rest = Requests::read(&client).await.since(&before);

    let before = Requests::read(&client).await;
    let (heads, full) = (calls_of(&running, "head").await, calls_of(&running, "proof_list").await);
    let seconds = delete(&client, &running, deletions).await;
    let requests = Requests::read(&client).await.since(&before);
    let heads = calls_of(&running, "head").await - heads;
    let full = calls_of(&running, "proof_list").await - full;

    let of = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
    let each = |count: f64| count / (plugins * deletions) as f64;
    println!("\n{plugins} plugins, {} PersistentVolumes, {own} of them of this driver", foreign + own);
    println!("deletion to copy gone, s: p50 {:.1}, p99 {:.1}, longest {:.1}", of(0.5), of(0.99), of(1.0));
    println!("for each deletion and node, by the plugins' count:");
    println!("  {:.2} reads of the head, {:.2} lists of all volumes", each(heads as f64), each(full as f64));
    println!("for each deletion and node, by the API server's count: {}", requests.each(plugins * deletions));
    println!(
        "for each node in {} s of rest, by the API server's count: {}",
        REST.as_secs(),
        at_rest.each(plugins)
    );
    for plugin in &running {
        let (rest, peak) = plugin.memory_kib();
        println!(
            "plugin {}, MiB: {:.1} resident, {:.1} at most",
            plugin.number,
            rest / 1024.0,
            peak / 1024.0
        );
    }
}

/// Writes one and the same object for ever.
async fn keep_writing(client: Client) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    for number in 0_u64.. {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "noise" },
            "data": { "number": number.to_string() },
        });
        let patch = Patch::Apply(object);
        api.patch("noise", &PatchParams::apply("scale"), &patch).await.expect("written");
        tokio::time::sleep(BETWEEN_WRITES).await;
    }
}

/// Deletes volumes one after the other, and answers how long each copy stayed after that, sorted.
async fn delete(client: &Client, plugins: &[Plugin], deletions: usize) -> Vec<f64> {
    let api: Api<PersistentVolume> = Api::all(client.clone());
    let mut watching = tokio::task::JoinSet::new();
    for number in 0..deletions {
        api.delete(&handle(number), &DeleteParams::default()).await.expect("deleted");
        for plugin in plugins {
            let copy = plugin.copy(&handle(number));
            watching.spawn(async move { time_until_gone(&copy).await });
        }
        tokio::time::sleep(BETWEEN_DELETIONS).await;
    }
    let mut seconds: Vec<f64> = Vec::new();
    while let Some(time) = watching.join_next().await {
        seconds.push(time.expect("no copy stays").as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn handle(number: usize) -> String {
    format!("own-{number}")
}

async fn create_nodes(client: &Client) {
    let api: &Api<Node> = &Api::all(client.clone());
    let create = |number: usize| async move {
        let node =
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": format!("node-{number}") } });
        let node = serde_json::from_value(node).expect("a node");
        api.create(&PostParams::default(), &node).await.expect("created");
    };
    stream::iter(0..NODES).map(create).buffer_unordered(AT_ONCE).collect::<()>().await;
}

async fn create_volumes(client: &Client, foreign: usize, own: usize) {
    let api: &Api<PersistentVolume> = &Api::all(client.clone());
    let create = |number: usize| async move {
        let (name, driver) = match number.checked_sub(own) {
            None => (handle(number), DRIVER),
            Some(number) => (format!("other-{number}"), "other.example"),
        };
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": name, "annotations": { "pv.kubernetes.io/provisioned-by": driver } },
            "spec": {
                "storageClassName": "some", "accessModes": ["ReadWriteMany"], "capacity": { "storage": "1Gi" },
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": { "namespace": "default", "name": name },
                "csi": { "driver": driver, "volumeHandle": name },
            },
        });
        let volume = serde_json::from_value(volume).expect("a volume");
        api.create(&PostParams::default(), &volume).await.expect("created");
    };
    stream::iter(0..foreign + own).map(create).buffer_unordered(AT_ONCE).collect::<()>().await;
}

async fn time_until_gone(copy: &Path) -> Duration {
    let began = Instant::now();
    while copy.exists() {
        assert!(began.elapsed() < GIVE_UP, "{} stays", copy.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

/// One node's plugin. Ends with its value.
struct Plugin {
    number: usize,
    store: PathBuf,
    log: PathBuf,
    port: u16,
    process: Child,
}

impl Plugin {
    fn start(scratch: &Path, number: usize) -> Plugin {
        let base = scratch.join(format!("node-{number}"));
        let (store, kubelet, log) = (base.join("store"), base.join("kubelet"), base.join("log"));
        fs::create_dir_all(&store).expect("a store");
        fs::create_dir_all(&kubelet).expect("a kubelet directory");
        mount([Path::new("--bind"), &kubelet, &kubelet]);
        mount([Path::new("--make-shared"), &kubelet]);
        let port = 19_800 + u16::try_from(number).expect("few plugins");
        let process = Command::new(std::env::var_os("PER_NODE_BINARY").expect("PER_NODE_BINARY"))
            .arg("serve")
            .arg(format!("--node-id=node-{number}"))
            .arg("--registration-dir=")
            .arg(format!("--http=127.0.0.1:{port}"))
            .arg(format!("--store={}", store.display()))
            .arg(format!("--kubelet-dir={}", kubelet.display()))
            .arg(format!("--endpoint=unix://{}", base.join("csi.sock").display()))
            .arg(format!("--kubeconfig={}", std::env::var("KUBECONFIG").expect("KUBECONFIG")))
            .stderr(fs::File::create(&log).expect("a log"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the plugin starts");
        Plugin { number, store, log, port, process }
    }

    /// Its watch has synced and its first tick is over, so that the store is this cluster's.
    async fn becomes_ready(&self) {
        let began = Instant::now();
        loop {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if log.contains("this store is now that cluster's") {
                return;
            }
            assert!(
                began.elapsed() < GIVE_UP,
                "plugin {} on {} does not sync: {log}",
                self.number,
                self.port
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn metrics(&self) -> String {
        let mut stream =
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.expect("it serves --http");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.expect("asked");
        let mut page = String::new();
        stream.read_to_string(&mut page).await.expect("answered");
        page
    }

    fn copy(&self, handle: &str) -> PathBuf {
        self.store.join("copies").join(handle)
    }

    fn lay_copy(&self, handle: &str) {
        fs::create_dir(self.copy(handle)).expect("a copy");
        fs::write(self.copy(handle).join("data"), handle).expect("data");
    }

    /// Resident memory now and at most, in KiB.
    fn memory_kib(&self) -> (f64, f64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
            line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
        };
        (of("VmRSS"), of("VmHWM"))
    }
}

fn mount<const N: usize>(arguments: [&Path; N]) {
    assert!(Command::new("mount").args(arguments).status().expect("mount").success());
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the API server has answered so far, by its own count. This program lists, watches and gets nothing itself.
#[derive(Debug, Default)]
struct Requests {
    lists: f64,
    watches: f64,
    namespaces: f64,
}

impl Requests {
    async fn read(client: &Client) -> Requests {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        let page = client.request_text(request).await.expect("the API server's metrics");
        let count = |resource: &str, verb: &str| {
            let lines = page.lines().filter(|line| line.starts_with("apiserver_request_total{"));
            let lines = lines.filter(|line| {
                line.contains(&format!("resource=\"{resource}\""))
                    && line.contains(&format!("verb=\"{verb}\""))
            });
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        Requests {
            lists: count("persistentvolumes", "LIST"),
            watches: count("persistentvolumes", "WATCH"),
            namespaces: count("namespaces", "GET"),
        }
    }

    fn each(&self, of: usize) -> String {
        let each = |count: f64| count / of as f64;
        let (lists, watches, namespaces) = (each(self.lists), each(self.watches), each(self.namespaces));
        format!("{lists:.2} LIST and {watches:.2} WATCH of volumes, {namespaces:.2} GET of the namespace")
    }

    fn since(&self, before: &Requests) -> Requests {
        Requests {
            lists: self.lists - before.lists,
            watches: self.watches - before.watches,
            namespaces: self.namespaces - before.namespaces,
        }
    }
}

/// Calls of one kind that a plugin has made, by its own count.
async fn calls_of(plugins: &[Plugin], kind: &str) -> u64 {
    let mut sum = 0;
    for plugin in plugins {
        let page = plugin.metrics().await;
        let lines = page.lines().filter(|line| line.starts_with("per_node_api_calls_total{"));
        let lines = lines.filter(|line| line.contains(&format!("call=\"{kind}\"")));
        sum += lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>();
    }
    sum
}
