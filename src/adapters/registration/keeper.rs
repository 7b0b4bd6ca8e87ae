//! Keeps one registration socket in the kubelet's registry directory for as long as the driver lives.
//!
//! One socket after the other: each is served until the kubelet refuses the driver, until the socket is gone from the
//! directory, or until shutdown. It never has two sockets at a time (the kubelet would refuse the second) and never
//! removes one that is not its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::service::{Service, Told};
use super::state::{Phase, Watch};
use crate::adapters::socket::{self, Bound, SocketFile, SocketPath, SocketPathError};
use crate::proto::registration::registration_server::RegistrationServer;

/// The socket is named after the driver, and has an `@` in its name for the kubelet's sake: its client sends the socket's
/// path, with each `/` as `%2F`, as the HTTP/2 authority. An authority may have a `%` only before an `@`, and the HTTP/2
/// crate resets every stream that says otherwise, so without it no kubelet could ask anything.
pub const SOCKET_SUFFIX: &str = "@registration.sock";

/// News of the kubelet that may wait to be read.
const TOLD_MAX: usize = 8;

/// How fast things are looked at again.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Between two looks for the directory, and at the socket's place in it.
    pub look_every: Duration,
    /// The first pause after a failure; doubled by each further one.
    pub first_pause: Duration,
    /// The longest.
    pub longest_pause: Duration,
}

impl Default for Pace {
    /// A second, as the kubelet's own loop; failures up to two minutes, as its own backoff.
    fn default() -> Self {
        Self {
            look_every: Duration::from_secs(1),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(120),
        }
    }
}

/// What is registered, and where.
#[derive(Debug)]
pub struct Registration {
    /// The kubelet's registry directory as this process sees it.
    directory: PathBuf,
    socket: SocketPath,
    driver_name: String,
    endpoint: String,
    pace: Pace,
    phase: watch::Sender<Phase>,
}

/// Why a socket is no longer served.
enum End {
    Shutdown,
    /// It is not in its place: removed, or another one is there.
    Gone,
    Refused,
}

impl Registration {
    /// The registration of `driver_name`, whose CSI socket the kubelet finds at `endpoint`, in `directory`.
    ///
    /// # Errors
    /// Where no socket can have the resulting path.
    pub fn new(
        directory: &Path,
        driver_name: &str,
        endpoint: &SocketPath,
        pace: Pace,
    ) -> Result<Self, SocketPathError> {
        let path = directory.join(format!("{driver_name}{SOCKET_SUFFIX}"));
        Ok(Self {
            directory: directory.to_owned(),
            socket: SocketPath::parse(&path.to_string_lossy())?,
            driver_name: driver_name.to_owned(),
            endpoint: endpoint.to_string(),
            pace,
            phase: watch::Sender::new(Phase::Waiting),
        })
    }

    /// Tells how far it has come.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.phase.subscribe()
    }

    /// Runs until `shutdown`; the socket is gone then, so the kubelet knows that the driver is away. (Mounts wait
    /// while a driver is not registered. With a registered one that does not answer, the kubelet takes a failed
    /// NodeGetCapabilities for final and forgets the volume.)
    pub async fn run(self, shutdown: CancellationToken) {
        let mut pause = self.pace.first_pause;
        while !shutdown.is_cancelled() {
            if !self.wait_for_directory(&shutdown).await {
                return;
            }
            let end = match socket::bind(&self.socket).await {
                Ok(bound) => self.serve(bound, &shutdown, &mut pause).await,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "the registration socket could not be made");
                    self.set(Phase::NoSocket(chain(&error)));
                    End::Refused
                }
            };
            match end {
                End::Shutdown => return,
                End::Gone => {
                    tracing::warn!(socket = %self.socket, "the registration socket is gone; it is made again");
                }
                // A refused driver is not asked again at the same socket by kubelets before 1.36.3 (C43), and a new
                // one at once would only be refused again.
                End::Refused => {
                    sleep(pause, &shutdown).await;
                    pause = (pause * 2).min(self.pace.longest_pause);
                }
            }
        }
    }

    /// Serves one socket to its end.
    async fn serve(&self, bound: Bound, shutdown: &CancellationToken, pause: &mut Duration) -> End {
        self.set(Phase::Waiting);
        tracing::info!(socket = %self.socket, endpoint = self.endpoint, "waiting for the kubelet to register the driver");
        let file = bound.file.clone();
        let (told, news) = mpsc::channel(TOLD_MAX);
        let service =
            Service { driver_name: self.driver_name.clone(), endpoint: self.endpoint.clone(), told };
        let routes = Routes::new(RegistrationServer::new(service));
        let stop = shutdown.child_token();
        let mut server = tokio::spawn(socket::serve(routes, bound, stop.clone(), TaskTracker::new()));
        let end = tokio::select! {
            () = shutdown.cancelled() => End::Shutdown,
            end = self.follow(news, &file, pause) => end,
            // It ends by itself only when it cannot serve.
            _ = &mut server => return End::Refused,
        };
        stop.cancel();
        // The answer to the kubelet's last call is still on its way. Bounded by the drain.
        let _ = server.await;
        end
    }

    /// Listens to the kubelet and looks after the file.
    async fn follow(&self, mut news: mpsc::Receiver<Told>, file: &SocketFile, pause: &mut Duration) -> End {
        let mut look = tokio::time::interval(self.pace.look_every);
        loop {
            tokio::select! {
                told = news.recv() => match told {
                    Some(Ok(())) => {
                        tracing::info!("the kubelet has registered the driver");
                        *pause = self.pace.first_pause;
                        self.set(Phase::Registered);
                    }
                    Some(Err(why)) => {
                        tracing::warn!(why, "the kubelet could not register the driver; its socket is made anew");
                        self.set(Phase::Refused(why));
                        return End::Refused;
                    }
                    None => return End::Refused,
                },
                _ = look.tick() => {
                    if !file.is_in_place() {
                        self.set(Phase::Waiting);
                        return End::Gone;
                    }
                }
            }
        }
    }

    /// Waits until the directory is there; false on shutdown. It is never made: that is the kubelet's, and made by
    /// somebody else on a path that is not mounted it would hide a wrong manifest.
    async fn wait_for_directory(&self, shutdown: &CancellationToken) -> bool {
        let mut told = false;
        while !self.directory.is_dir() {
            if !told {
                tracing::warn!(
                    directory = %self.directory.display(),
                    "--registration-dir is not there; waiting for it: is --kubelet-dir the kubelet's --root-dir?"
                );
                self.set(Phase::NoDirectory);
                told = true;
            }
            sleep(self.pace.look_every, shutdown).await;
            if shutdown.is_cancelled() {
                return false;
            }
        }
        true
    }

    fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}

/// Sleeps, or less on shutdown.
async fn sleep(pause: Duration, shutdown: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = shutdown.cancelled() => {}
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
