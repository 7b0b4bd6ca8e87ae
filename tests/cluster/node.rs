//! One node as its kernel and its disk show it, and the plugin's pod on it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::api::api;

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

    /// The number with which the harness knows the node.
    pub fn number(&self) -> &'static str {
        &self.name["node-".len()..]
    }

    /// The store, from outside.
    pub fn store(&self) -> PathBuf {
        self.var.join("lib").join(self.store)
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
        let selector = format!("labelSelector=app.kubernetes.io%2Fname%3D{}", self.daemon_set);
        api()
            .items(&format!("/api/v1/namespaces/per-node/pods?{selector}"))
            .into_iter()
            .find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
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
