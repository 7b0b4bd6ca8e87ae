//! One node of the demonstration: a store, a kubelet's directory, the real service on a real socket, and the
//! small kubelet that calls it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ground::Ground;
use super::kubelet::{Kubelet, is_served};
use super::parts::{self, Parts};
use super::wait::until;
use crate::adapters::memory::{ApiServer, MemorySink, SteppedClock};
use crate::adapters::socket::{Drain, SocketPath};
use crate::domain::signal::Signal;
use crate::domain::tally::Tally;
use crate::domain::target::KubeletDir;
use crate::domain::use_cases::driver::{Brakes, Ports, Settings};
use crate::ports::mounts::MountsError;
use crate::service::{Reach, Service, ServiceError};

/// The driver's name, as the volumes give it.
pub const DRIVER: &str = "per-node.liken.sh";
/// What `--sweep-every` and `--event-window` are by default.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// A node that is up.
pub struct Node {
    pub name: &'static str,
    pub store: PathBuf,
    pub kubelet: Kubelet,
    pub ports: Ports,
    sweep_wanted: Arc<Signal>,
    tally: Arc<Tally>,
    service: JoinHandle<Result<Drain, ServiceError>>,
}

/// What all nodes share.
#[derive(Clone)]
pub struct Cluster {
    pub ground: Ground,
    pub api: ApiServer,
    pub clock: SteppedClock,
    pub shutdown: CancellationToken,
}

impl Node {
    /// Starts the node below `base`, and waits until it answers and knows its cluster.
    pub async fn start(name: &'static str, base: &Path, cluster: &Cluster) -> anyhow::Result<Node> {
        let base = base.join(name);
        let (store, dir, socket) = (base.join("store"), base.join("kubelet"), base.join("csi.sock"));
        std::fs::create_dir_all(&store)?;
        std::fs::create_dir_all(&dir)?;
        let kubelet_dir = KubeletDir::new(dir.clone(), dir.clone());
        let Parts { mounts, copies, records } = parts::open(&cluster.ground, &store, &kubelet_dir)?;
        let view = cluster.api.follow(DRIVER);
        let sweep_wanted = Arc::new(Signal::default());
        view.wake_on_deletion(sweep_wanted.clone());
        let ports = Ports {
            mounts,
            copies,
            records,
            clock: Arc::new(cluster.clock.restarted()),
            sink: Arc::new(MemorySink::new(&cluster.api)),
            cluster: Some(view),
        };
        let settings = Settings {
            driver_name: DRIVER.to_owned(),
            node_name: name.to_owned(),
            kubelet_dir,
            sweep_every: TEN_MINUTES,
            event_window: TEN_MINUTES,
            brakes: Brakes::default(),
        };
        let tally = Arc::new(Tally::default());
        let service = Service::start(ports.clone(), settings, tally.clone(), sweep_wanted.clone()).await?;
        let reach = Reach {
            node_id: name.to_owned(),
            volume_health: false,
            endpoint: SocketPath::parse(&socket.to_string_lossy()).context("the socket's path")?,
            registration: None,
            http: None,
            copies_key: None,
            console_in: None,
        };
        let service = tokio::spawn(service.run(reach, cluster.shutdown.clone()));
        ensure!(until(async || is_served(&socket).await).await, "{name} does not answer at its socket");
        // A copy that is made before the store knows its cluster would wait for a person's word (C22 (e)).
        ensure!(until(async || ports.records.marker().is_some()).await, "{name} does not find its cluster");
        let kubelet = Kubelet { node: name, dir, socket, driver: DRIVER.to_owned() };
        Ok(Node { name, store, kubelet, ports, sweep_wanted, tally, service })
    }

    /// The directory of copies, and one copy in it.
    pub fn copies(&self) -> PathBuf {
        self.store.join("copies")
    }

    pub fn has_copy(&self, handle: &str) -> bool {
        self.copies().join(handle).is_dir()
    }

    /// Whether no copy is left, in its place or in the trash.
    pub fn is_bare(&self) -> bool {
        let is_empty = |name: &str| {
            std::fs::read_dir(self.store.join(name)).is_ok_and(|mut entries| entries.next().is_none())
        };
        is_empty("copies") && is_empty("trash")
    }

    /// Asks for a pass of the sweep and waits until one has ended. A pass counts the copies when it begins, and
    /// begins when the one before has ended.
    pub async fn sweep(&self) -> bool {
        const NOT_COUNTED: u64 = u64::MAX;
        for _ in 0..2 {
            self.tally.copies.store(NOT_COUNTED, Ordering::Relaxed);
            self.sweep_wanted.raise();
            if !until(async || self.tally.copies.load(Ordering::Relaxed) != NOT_COUNTED).await {
                return false;
            }
        }
        true
    }

    /// How many mounts show a copy of this store at the target.
    pub async fn mounts_at(&self, target: &Path) -> Result<usize, MountsError> {
        let table = self.ports.mounts.table().await?;
        Ok(table.mounts.iter().filter(|mount| mount.mount_point == target).count())
    }

    /// Waits until the service has ended, once it was told to.
    pub async fn ended(self) -> anyhow::Result<()> {
        let drained = self.service.await.map_err(io::Error::other)?;
        drained.with_context(|| format!("the service of {}", self.name))?;
        Ok(())
    }
}
