//! One driver with its sockets and its loops, from a start until a shutdown: what `serve` runs once and the
//! demo twice. It wires and decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::lock::Mutex;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::adapters::console;
use crate::adapters::csi::{About, CsiService, SOCKET_THREADS};
use crate::adapters::http::{self, CopiesPage, PageKey, Readiness, Sources};
use crate::adapters::registration::{Phase, Registration, Watch};
use crate::adapters::socket::{
    self, BindError, Bound, Drain, ServeError, SocketFile, SocketPath, SocketPathError,
};
use crate::domain::signal::Signal;
use crate::domain::tally::Tally;
use crate::domain::use_cases::driver::{Driver, Ports, Settings};
use crate::domain::use_cases::sweeper::Sweeper;
use crate::ports::cluster::Cluster;
use crate::ports::mounts::MountsError;

/// How long refusals gather before they are written and posted: those of a burst at once, and no answer waits for its own.
const EVENTS_GATHER: Duration = Duration::from_millis(20);

/// How long the last of them may take to be written when the process ends.
const LAST_SAVE: Duration = Duration::from_millis(200);

/// How long the first count of the copies waits for the calls that come with a start.
const MEASURE_AFTER: Duration = Duration::from_secs(5);

/// How long the registration of a new store's driver waits for the marker. Without an API server the kubelet does not
/// get to know new volumes either, so nobody waits in vain for long.
const CLAIM_WITHIN: Duration = Duration::from_secs(10);
const CLAIM_RETRY: Duration = Duration::from_millis(500);

/// Between two looks whether the CSI socket is still where the kubelet looks for it. Seldom: each wakes an idle process.
const LOOK_AT_SOCKET_EVERY: Duration = Duration::from_secs(15);

/// How long the end of a service waits for its loops, which stop at their next pause.
const LOOPS_END_WITHIN: Duration = Duration::from_millis(500);

/// How the service is reached, and what it says of itself there.
pub struct Reach {
    pub node_id: String,
    /// Whether NodeGetVolumeHealth is served (C49).
    pub volume_health: bool,
    pub endpoint: SocketPath,
    /// `None`: somebody else registers the driver, or nobody.
    pub registration: Option<Registration>,
    /// `None`: no health, readiness and metrics.
    pub http: Option<TcpListener>,
    /// What opens `/copies` on that port; `None`: nothing does.
    pub copies_key: Option<PageKey>,
    /// The store whose socket takes a person's questions.
    pub console_in: Option<PathBuf>,
}

/// Why a service could not start or go on.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("the kernel's mounts cannot be read: {0}")]
    Mounts(MountsError),
    #[error("--endpoint: {0}")]
    Endpoint(BindError),
    #[error("--store: no socket for a person's questions can have its path there: {0}")]
    ConsolePath(SocketPathError),
    #[error("--store: {0}")]
    Console(BindError),
    #[error("the CSI socket is no longer served: {0}")]
    Csi(ServeError),
    #[error("the CSI socket {0} was removed by somebody: the next start makes it again")]
    SocketGone(SocketPath),
    #[error("the loop that drives {name} has ended")]
    LoopEnded { name: &'static str },
}

/// A driver that is ready to be served: its records agree with the kernel (C15, C16).
pub struct Service {
    driver: Arc<Driver>,
    sweeper: Option<Arc<Mutex<Sweeper>>>,
    ports: Ports,
}

impl Service {
    /// Makes the records agree with the kernel, and undoes what a killed process left. Nothing is served yet
    /// and nothing swept.
    pub async fn start(
        ports: Ports,
        settings: Settings,
        tally: Arc<Tally>,
        sweep_wanted: Arc<Signal>,
    ) -> Result<Service, ServiceError> {
        let driver = Arc::new(Driver::new(ports.clone(), settings, tally, sweep_wanted));
        driver.reconcile().await.map_err(ServiceError::Mounts)?;
        driver.forget_unused_trash().await;
        let sweeper = ports.cluster.clone().map(|cluster| {
            let sweeper = Sweeper::new(driver.clone(), cluster);
            Arc::new(Mutex::new(sweeper))
        });
        Ok(Service { driver, sweeper, ports })
    }

    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Serves until `shutdown`, then ends well within the five seconds of C42.
    pub async fn run(self, reach: Reach, shutdown: CancellationToken) -> Result<Drain, ServiceError> {
        let mut tasks = JoinSet::new();
        let ended = self.serve(reach, shutdown, &mut tasks).await;
        // A loop that still runs when the runtime goes would panic at its next pause.
        if tokio::time::timeout(LOOPS_END_WITHIN, tasks.shutdown()).await.is_err() {
            tracing::warn!("a loop is still at work; the next start goes on from there");
        }
        ended
    }

    async fn serve(
        self,
        reach: Reach,
        shutdown: CancellationToken,
        tasks: &mut JoinSet<&'static str>,
    ) -> Result<Drain, ServiceError> {
        let readiness = Readiness::default();
        readiness.set("socket", Some("the CSI socket is not served yet".to_owned()));
        let mut console_file = None;
        self.spawn_loops(tasks);
        if let Some(store) = &reach.console_in {
            let Bound { listener, file } = bind_console(store).await?;
            let (driver, sweeper) = (self.driver.clone(), self.sweeper.clone());
            tasks.spawn(async move {
                console::serve(listener, driver, sweeper).await;
                "a person's questions"
            });
            console_file = Some(file);
        }
        if let Some(listener) = reach.http {
            let sources = self.sources(readiness.clone(), reach.copies_key, &reach.node_id);
            let stop = shutdown.clone();
            tasks.spawn(async move {
                http::serve(listener, sources, stop).await;
                std::future::pending().await
            });
        }
        let about = About {
            driver_name: self.driver.settings().driver_name.clone(),
            node_id: reach.node_id,
            volume_health: reach.volume_health,
        };
        let csi = CsiService::new(self.driver.clone(), about, shutdown.clone());
        socket::make_directory(&reach.endpoint).map_err(ServiceError::Endpoint)?;
        let bound = socket::bind(&reach.endpoint).await.map_err(ServiceError::Endpoint)?;
        let csi_file = bound.file.clone();
        tracing::info!(socket = %reach.endpoint, "serving");
        let registration = match reach.registration {
            Some(registration) => {
                let phases = registration.watch();
                tell_phase(&phases.borrow(), &readiness);
                tasks.spawn(tell_phases(phases, readiness.clone()));
                let (driver, cluster) = (self.driver.clone(), self.ports.cluster.clone());
                let stop = shutdown.clone();
                Some(tokio::spawn(async move {
                    if let Some(cluster) = cluster {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            _ = tokio::time::timeout(CLAIM_WITHIN, claim(&driver, cluster.as_ref())) => {}
                        }
                    }
                    registration.run(stop).await;
                }))
            }
            None => None,
        };
        readiness.set("socket", None);
        let serve = socket::serve_apart(SOCKET_THREADS, csi.routes(), bound, shutdown.clone(), csi.calls());
        tokio::pin!(serve);
        let ended = tokio::select! {
            drained = &mut serve => drained.map_err(ServiceError::Csi),
            Some(name) = tasks.join_next() => {
                // A loop that panicked: the process starts anew rather than going on without it.
                shutdown.cancel();
                let _ = serve.await;
                Err(ServiceError::LoopEnded { name: name.unwrap_or("the driver's steps") })
            }
            () = until_gone(&csi_file, &shutdown) => {
                // No kubelet finds it any more, and only a new one would be found.
                shutdown.cancel();
                let _ = serve.await;
                Err(ServiceError::SocketGone(csi_file.path().clone()))
            }
        };
        shutdown.cancel();
        if let Some(registration) = registration {
            let _ = registration.await;
        }
        // What was refused in the last moments is told by the next process. On a disk that hangs it is not waited for (C42).
        let driver = self.driver.clone();
        let saved = tokio::spawn(async move { driver.save_series().await });
        if tokio::time::timeout(LAST_SAVE, saved).await.is_err() {
            tracing::warn!("the store is slow: what was refused last may be counted anew");
        }
        if let Some(file) = console_file
            && let Err(error) = file.remove()
        {
            tracing::warn!(socket = %file.path(), %error, "the socket for questions could not be removed");
        }
        ended
    }

    fn sources(&self, readiness: Readiness, key: Option<PageKey>, node_id: &str) -> Sources {
        let copies_page =
            key.map(|key| CopiesPage { driver: self.driver.clone(), node_id: node_id.to_owned(), key });
        Sources {
            started: self.ports.clock.wall(),
            copies_page,
            tally: self.driver.tally().clone(),
            copies: self.ports.copies.clone(),
            clock: self.ports.clock.clone(),
            cluster: self.ports.cluster.clone(),
            readiness,
        }
    }

    fn spawn_loops(&self, tasks: &mut JoinSet<&'static str>) {
        tasks.spawn(post_events(self.driver.clone()));
        tasks.spawn(drain_trash(self.driver.clone()));
        tasks.spawn(measure(self.driver.clone()));
        if let Some(sweeper) = &self.sweeper {
            tasks.spawn(sweep(self.driver.clone(), sweeper.clone()));
        }
    }
}

async fn bind_console(store: &std::path::Path) -> Result<Bound, ServiceError> {
    let path = console::socket_path(store);
    let path = SocketPath::parse(&path.to_string_lossy()).map_err(ServiceError::ConsolePath)?;
    socket::bind(&path).await.map_err(ServiceError::Console)
}

/// Has the marker of a new store written, so that the pods which wait for this driver find it there (C22 (e)).
async fn claim(driver: &Driver, cluster: &dyn Cluster) {
    let mut told = String::new();
    while driver.store_is_new().await {
        if let Err(error) = driver.check_marker(cluster).await {
            let why = error.to_string();
            if why != told {
                tracing::info!(error = why, "a new store waits for its marker");
                told = why;
            }
            tokio::time::sleep(CLAIM_RETRY).await;
        }
    }
}

/// Waits for the signal, and not longer than `delay`. Says whether it was raised.
async fn wait(signal: &Signal, delay: Option<Duration>) -> bool {
    let over = async {
        match delay {
            Some(delay) => tokio::time::sleep(delay).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = signal.wait() => true,
        () = over => false,
    }
}

async fn post_events(driver: Arc<Driver>) -> &'static str {
    loop {
        let delay = driver.step_events().await;
        if wait(driver.events_wanted(), delay).await {
            tokio::time::sleep(EVENTS_GATHER).await;
        }
    }
}

async fn drain_trash(driver: Arc<Driver>) -> &'static str {
    loop {
        driver.drain_trash().await;
        let mut left = driver.settings().sweep_every;
        // Between two ticks pods may fill the disk, and kept copies are to go before that hurts anybody.
        while !left.is_zero() {
            let span = driver.look_at_room_every().map_or(left, |span| span.min(left));
            if wait(driver.trash_wanted(), Some(span)).await {
                break;
            }
            left -= span;
            driver.make_room().await;
        }
    }
}

/// For the metrics alone, so it comes after everything a pod may wait for at a start.
async fn measure(driver: Arc<Driver>) -> &'static str {
    loop {
        tokio::time::sleep(MEASURE_AFTER).await;
        driver.measure_copies().await;
        tokio::time::sleep(driver.settings().sweep_every).await;
    }
}

async fn sweep(driver: Arc<Driver>, sweeper: Arc<Mutex<Sweeper>>) -> &'static str {
    loop {
        let delay = sweeper.lock().await.step().await;
        wait(driver.sweep_wanted(), Some(delay)).await;
    }
}

/// Waits until the socket is not in its place; for ever once the service is told to end, which takes it away.
async fn until_gone(file: &SocketFile, shutdown: &CancellationToken) {
    loop {
        tokio::time::sleep(LOOK_AT_SOCKET_EVERY).await;
        if shutdown.is_cancelled() {
            std::future::pending::<()>().await;
        }
        if !file.is_in_place() {
            return;
        }
    }
}

fn tell_phase(phase: &Phase, readiness: &Readiness) {
    readiness.set("registration", (!phase.is_ready()).then(|| phase.to_string()));
}

async fn tell_phases(mut phases: Watch, readiness: Readiness) -> &'static str {
    loop {
        tell_phase(&phases.borrow_and_update().clone(), &readiness);
        if phases.changed().await.is_err() {
            // The registration has ended, as it does at a shutdown.
            std::future::pending::<()>().await;
        }
    }
}
