//! One node as its kernel and its disk show it, and the plugin's pod on it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::api::api;
use super::cluster::cluster;

/// A node of the cluster.
pub struct Node {
    /// Its name in Kubernetes.
    pub name: &'static str,
    /// The DaemonSet that runs the plugin there.
    pub daemon_set: &'static str,
    /// The kubelet's directory as the node sees it.
    kubelet_dir: PathBuf,
    /// The node's disk from outside: what it sees as `/var`.
    var: PathBuf,
    /// The store below `/var/lib`.
    store: &'static str,
    /// Where the harness keeps the id of the node's first process.
    pid_file: PathBuf,
}

/// One line of a node's mount table.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Which directory of the file system it shows.
    pub root: String,
    /// Where.
    pub target: String,
    /// Its own options, such as `ro,noexec,relatime`.
    pub options: String,
}

impl Node {
    pub(super) fn new(state_dir: &Path, name: &'static str, kubelet: &str, store: &'static str) -> Self {
        Self {
            name,
            daemon_set: store,
            kubelet_dir: Path::new("/var/lib").join(kubelet),
            var: state_dir.join(name).join("var"),
            store,
            pid_file: state_dir.join("pids").join(name),
        }
    }

    /// The same node as an installation of another name sees it: another DaemonSet, another store.
    pub fn with_installation(&self, name: &'static str) -> Self {
        Self {
            name: self.name,
            daemon_set: name,
            kubelet_dir: self.kubelet_dir.clone(),
            var: self.var.clone(),
            store: name,
            pid_file: self.pid_file.clone(),
        }
    }

    /// The number with which the harness knows the node.
    pub fn number(&self) -> &'static str {
        &self.name["node-".len()..]
    }

    /// The store, from outside.
    pub fn store(&self) -> PathBuf {
        self.var.join("lib").join(self.store)
    }

    /// The store, as the node sees it.
    pub fn store_path(&self) -> String {
        format!("/var/lib/{}", self.store)
    }

    /// A path of the node through its own mounts, where something is mounted over its disk.
    pub fn inside(&self, path: &str) -> PathBuf {
        let record = std::fs::read_to_string(&self.pid_file).expect("the node runs");
        let init = record.split(' ').next().unwrap_or_default();
        PathBuf::from(format!("/proc/{init}/root{path}"))
    }

    /// A handle's copy, from outside.
    pub fn copy(&self, handle: &str) -> PathBuf {
        self.store().join("copies").join(handle)
    }

    /// What a file of a copy holds; nothing where there is no such file.
    pub fn read(&self, handle: &str, file: &str) -> Option<String> {
        std::fs::read_to_string(self.copy(handle).join(file)).ok()
    }

    /// The kubelet's directory, from outside.
    pub fn kubelet_dir(&self) -> PathBuf {
        self.var.join("lib").join(self.kubelet_dir.file_name().expect("a name"))
    }

    /// A path below the node's `/var`, from outside.
    pub fn outside(&self, path: &str) -> PathBuf {
        self.var.join(Path::new(path).strip_prefix("/var").expect("all that is kept is below /var"))
    }

    /// The mount table of the node (not the plugin's: what the plugin mounts must arrive here).
    pub fn mounts(&self) -> Vec<Mount> {
        let Ok(record) = std::fs::read_to_string(&self.pid_file) else { return Vec::new() };
        let init = record.split(' ').next().unwrap_or_default();
        let Ok(table) = std::fs::read(format!("/proc/{init}/mountinfo")) else { return Vec::new() };
        String::from_utf8_lossy(&table).lines().filter_map(parse_mount).collect()
    }

    /// The mounts that show a handle's copy, or something in it, at a pod's target.
    pub fn mounts_of(&self, handle: &str) -> Vec<Mount> {
        let copy = format!("/{}/copies/{handle}", self.store);
        let pods = self.kubelet_dir.join("pods");
        self.mounts()
            .into_iter()
            .filter(|mount| Path::new(&mount.target).starts_with(&pods))
            .filter(|mount| {
                mount
                    .root
                    .split_once(&copy)
                    .is_some_and(|(_, below)| below.is_empty() || below.starts_with('/'))
            })
            .collect()
    }

    /// The plugin's pod on this node that is not on its way out.
    pub fn plugin(&self) -> Option<Value> {
        let selector = format!("labelSelector=app.kubernetes.io%2Finstance%3D{}", self.daemon_set);
        api()
            .items(&format!("/api/v1/namespaces/per-node/pods?{selector}"))
            .into_iter()
            .find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    }

    /// A page of the plugin (`metrics`, `readyz`), as the API server's proxy brings it to a person; nothing where the plugin does
    /// not answer, or answers that it is not ready.
    pub fn plugin_page(&self, page: &str) -> Option<String> {
        let pod = self.plugin()?;
        let name = pod["metadata"]["name"].as_str()?;
        let port = pod["spec"]["containers"][0]["ports"][0]["containerPort"].as_u64()?;
        api().text(&format!("/api/v1/namespaces/per-node/pods/{name}:{port}/proxy/{page}"))
    }

    /// A number on the plugin's metrics page; 0 where it has no such line.
    pub fn plugin_metric(&self, name_and_labels: &str) -> u64 {
        let page = self.plugin_page("metrics").unwrap_or_default();
        let value = page.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }

    /// What the plugin's container has logged since it was started.
    pub fn plugin_log(&self) -> String {
        let Some(name) = self.plugin().and_then(|pod| Some(pod["metadata"]["name"].as_str()?.to_owned()))
        else {
            return String::new();
        };
        api().text(&format!("/api/v1/namespaces/per-node/pods/{name}/log")).unwrap_or_default()
    }

    /// The id of the plugin's process, as the test's own process namespace counts: the one that serves this node's store in this
    /// cluster, whose plugins have its network (another cluster may run beside it, with the same stores).
    pub fn plugin_process(&self) -> Option<u32> {
        let network = std::fs::read_link("/proc/self/ns/net").expect("a network namespace");
        let serving = format!("--store=/var/lib/{}\0", self.store);
        std::fs::read_dir("/proc").expect("proc").filter_map(Result::ok).find_map(|process| {
            let command_line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command_line = String::from_utf8_lossy(&command_line);
            let serves = command_line.starts_with("/per-node\0serve\0") && command_line.contains(&serving);
            let is_of_this_cluster =
                || std::fs::read_link(process.path().join("ns/net")).is_ok_and(|its| its == network);
            if serves && is_of_this_cluster() { process.file_name().to_str()?.parse().ok() } else { None }
        })
    }

    /// Ends the node's kubelet or containerd with a signal, and waits until it has ended.
    pub fn stop(&self, service: &str, signal: &str) {
        cluster().call(&["stop_process", &format!("{service}-{}", self.number()), signal]);
    }

    /// Starts it again.
    pub fn start(&self, service: &str) {
        cluster().call(&[&format!("start_{service}"), self.number()]);
    }

    /// Every process and every mount of the node is gone at once; its disk stays.
    pub fn cut_power(&self) {
        cluster().call(&["cut_power", self.number()]);
    }

    /// The node comes up again after that.
    pub fn boot(&self) {
        cluster().call(&["boot", self.number()]);
    }

    /// Whether the kubelet knows the driver.
    pub fn driver_is_registered(&self) -> bool {
        api()
            .get(&format!("/apis/storage.k8s.io/v1/csinodes/{}", self.name))
            .is_some_and(|node| node["spec"]["drivers"].to_string().contains("per-node.liken.sh"))
    }
}

/// `36 35 98:0 /root /target options …`; `None` for a line that is none.
fn parse_mount(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(3);
    Some(Mount { root: fields.next()?.into(), target: fields.next()?.into(), options: fields.next()?.into() })
}
