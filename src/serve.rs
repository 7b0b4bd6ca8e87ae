//! `per-node serve`: the production adapters, put together in the order that keeps the promises. Rights are given up
//! before the first thread; nothing is looked at in the store before its lock is held; the socket comes last.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use per_node::adapters::cli::{Seccomp, ServeConfig};
use per_node::adapters::event_log::EventLog;
use per_node::adapters::http::PageKey;
use per_node::adapters::kube::client::connect;
use per_node::adapters::kube::cluster::KubeCluster;
use per_node::adapters::kube::events::KubeEvents;
use per_node::adapters::kube::transport::Transport;
use per_node::adapters::kube::watcher::Watcher;
use per_node::adapters::linux::confine::confine;
use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::leftovers;
use per_node::adapters::linux::lock::StoreLock;
use per_node::adapters::linux::mounts::{Abilities, LinuxMounts};
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::self_check;
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::syscall_filter;
use per_node::adapters::linux::syscalls::limit_heaps;
use per_node::adapters::registration::{Pace, Registration};
use per_node::adapters::socket::{Drain, SocketPath};
use per_node::adapters::system_clock::SystemClock;
use per_node::domain::signal::Signal;
use per_node::domain::tally::Tally;
use per_node::domain::target::KubeletDir;
use per_node::domain::use_cases::driver::{Brakes, Ports, Settings};
use per_node::ports::clock::Clock;
use per_node::ports::cluster::Cluster;
use per_node::ports::event_sink::EventSink;
use per_node::ports::in_place;
use per_node::service::{Reach, Service};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Between two tries for the store's lock.
const LOCK_RETRY: Duration = Duration::from_millis(100);
/// What the runtime may still wait for when all is done: blocking calls on a file system that hangs.
const RUNTIME_END: Duration = Duration::from_millis(100);
/// Threads that carry RPCs and loops. One that makes a system call hands its other tasks on for that long.
const WORKER_THREADS: usize = 2;
/// How long a thread that was needed for that waits for the next time. The waiting ones take turns, so whoever makes a
/// few calls a second keeps all that a burst has left which fit into this time, with their stacks.
const IDLE_THREAD_STAYS: Duration = Duration::from_secs(1);
/// Heaps that all threads share. Few of them allocate at the same moment, however many a burst of pods calls for.
const HEAPS_MAX: u8 = 1;

/// Serves until SIGTERM or SIGINT.
pub fn run(config: ServeConfig) -> Result<()> {
    let endpoint = SocketPath::parse(&config.endpoint).context("--endpoint")?;
    let kubelet_endpoint = SocketPath::parse(&config.kubelet_endpoint).context("--kubelet-endpoint")?;
    let registration = match &config.registration_dir {
        Some(directory) => {
            let made = Registration::new(directory, &config.driver_name, &kubelet_endpoint, Pace::default());
            Some(made.context("--registration-dir")?)
        }
        None => None,
    };
    let (kubelet_dir, not_shared) = self_check::check_kubelet_dir(&config.kubelet_dir)?;
    match not_shared {
        Some(warning) if config.standalone => tracing::warn!("{warning}"),
        Some(error) => return Err(error.into()),
        None => {}
    }
    self_check::check_store(&config.store, config.store_mount_required)?;
    limit_heaps(HEAPS_MAX);
    confine()?;
    match config.seccomp {
        Seccomp::On => syscall_filter::install().context("--seccomp: no filter (off starts without)")?,
        Seccomp::Off => tracing::warn!("--seccomp=off: this process may make any system call"),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_keep_alive(IDLE_THREAD_STAYS)
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    let ended = runtime.block_on(serve(&config, kubelet_dir, endpoint, registration));
    runtime.shutdown_timeout(RUNTIME_END);
    ended
}

async fn serve(
    config: &ServeConfig,
    kubelet_dir: KubeletDir,
    endpoint: SocketPath,
    registration: Option<Registration>,
) -> Result<()> {
    let shutdown = CancellationToken::new();
    cancel_on_signals(shutdown.clone())?;
    let store = StoreDirs::open(&config.store)
        .map_err(|failure| anyhow!("--store: {}", failure.at(&config.store)))?;
    let Some(_lock) = wait_for_lock(&store, &shutdown).await? else { return Ok(()) };
    self_check::check_open_store(&store)?;
    self_check::check_pods(&store, &kubelet_dir, &config.driver_name)?;
    // Only now: the process before this one had the port until it gave up the lock.
    let http = TcpListener::bind(config.http).await.with_context(|| format!("--http {}", config.http))?;
    let left = leftovers::clear(&store).map_err(|failure| {
        anyhow!("--store: what a killed process left cannot be cleared: {}", failure.at(store.path()))
    })?;
    if left > 0 {
        tracing::warn!(left, "unfinished directories in the trash resist; the next start tries again");
    }
    let store = Arc::new(store);
    let records = SlotRecords::open(&store)
        .map_err(|failure| anyhow!("--store: the records cannot be opened: {}", failure.at(store.path())))?;
    let tally = Arc::new(Tally::default());
    let sweep_wanted = Arc::new(Signal::default());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let outside = Outside::reach(config, clock.clone(), sweep_wanted.clone(), tally.clone()).await?;
    let copies = LinuxCopies::new(store.clone(), config.copy_mode);
    let ports = Ports {
        mounts: Arc::new(LinuxMounts::new(store.clone(), kubelet_dir.clone(), Abilities::found())),
        copies: Arc::new(copies.clone()),
        records: Arc::new(records),
        clock,
        sink: outside.sink,
        cluster: outside.cluster,
    };
    let settings = Settings {
        driver_name: config.driver_name.clone(),
        node_name: config.node_id.clone(),
        kubelet_dir,
        sweep_every: config.sweep_every,
        event_window: config.event_window,
        brakes: Brakes { trash_for: config.trash_for, sweep_limit: config.sweep_limit },
    };
    // Nothing else is to be done meanwhile.
    let service = in_place::scope(Service::start(ports, settings, tally, sweep_wanted)).await?;
    let watch = outside.watcher.map(|watcher| tokio::spawn(async move { watcher.run().await }));
    let reach = Reach {
        node_id: config.node_id.clone(),
        volume_health: config.volume_health,
        endpoint,
        registration,
        http: Some(http),
        copies_key: config.copies_key.as_deref().and_then(PageKey::new),
        console_in: Some(store.path().to_owned()),
    };
    let drained = service.run(reach, shutdown).await;
    copies.stop();
    if let Some(watch) = watch {
        watch.abort();
        let _ = watch.await;
    }
    match drained? {
        Drain::Complete => tracing::info!("ended; mounts stay"),
        Drain::CutOff => tracing::warn!("ended with calls in flight; the next start settles them"),
    }
    Ok(())
}

/// The API server, or what stands in for it.
struct Outside {
    sink: Arc<dyn EventSink>,
    cluster: Option<Arc<dyn Cluster>>,
    watcher: Option<Watcher>,
}

impl Outside {
    async fn reach(
        config: &ServeConfig,
        clock: Arc<dyn Clock>,
        sweep_wanted: Arc<Signal>,
        tally: Arc<Tally>,
    ) -> Result<Outside> {
        if config.standalone {
            return Ok(Outside { sink: Arc::new(EventLog), cluster: None, watcher: None });
        }
        let settings = per_node::adapters::kube::settings::Settings::default();
        let connection = connect(config.kubeconfig.as_deref(), &settings).await?;
        let transport = Transport::new(connection, settings);
        let sink = KubeEvents::new(transport.clone(), &config.driver_name, &config.node_id, tally.clone());
        let cluster = KubeCluster::new(transport, &config.driver_name, clock, sweep_wanted, tally);
        let watcher = cluster.watcher();
        Ok(Outside { sink: Arc::new(sink), cluster: Some(Arc::new(cluster)), watcher: Some(watcher) })
    }
}

/// `None` where the process is told to end while it waits.
async fn wait_for_lock(store: &StoreDirs, shutdown: &CancellationToken) -> Result<Option<StoreLock>> {
    let mut told = false;
    loop {
        let taken = StoreLock::try_take(store.root());
        if let Some(lock) = taken.map_err(|failure| anyhow!("--store: {}", failure.at(store.path())))? {
            return Ok(Some(lock));
        }
        if !told {
            tracing::info!(store = %store.path().display(), "another process works on the store; waiting for it to end");
            told = true;
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOCK_RETRY) => {}
        }
    }
}

fn cancel_on_signals(shutdown: CancellationToken) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be caught")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be caught")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to end: no new calls, those in flight are finished");
        shutdown.cancel();
    });
    Ok(())
}
