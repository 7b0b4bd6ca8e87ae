//! Serving gRPC on a bound socket until told to stop, and stopping well (C42).

use std::io;
use std::time::Duration;

use futures_util::{Stream, stream};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::Server;

use super::bind::Bound;

/// How long calls in flight may take to end. The process promises to be gone within 5 s (C42); the rest is for what
/// comes after.
pub const DRAIN_MS: u64 = 4_500;

/// The pause after a connection could not be accepted. The usual reason, no descriptors left, does not go away by
/// asking again at once.
const ACCEPT_RETRY_MS: u64 = 50;

/// How the service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Every call that had begun was answered, and every task of its own had ended.
    Complete,
    /// Something was still running when the time was up. The journal of C16 is there for it.
    CutOff,
}

/// Serves `routes` until `shutdown`; then removes the socket if it is still ours, accepts no more, and waits at most
/// [`DRAIN_MS`] for calls in flight and for the tasks in `calls`, which outlive callers that went away (C16).
///
/// # Errors
/// What the transport said when it could not serve at all.
pub async fn serve(
    routes: Routes,
    bound: Bound,
    shutdown: CancellationToken,
    calls: TaskTracker,
) -> Result<Drain, tonic::transport::Error> {
    let Bound { listener, file } = bound;
    let stop = {
        let shutdown = shutdown.clone();
        async move {
            shutdown.cancelled().await;
            // Before the listener goes: as long as it is open no other socket can have its inode.
            if let Err(error) = file.remove() {
                tracing::warn!(socket = %file.path(), %error, "the socket could not be removed");
            }
        }
    };
    let service = async {
        Server::builder().add_routes(routes).serve_with_incoming_shutdown(accept(listener), stop).await?;
        calls.close();
        calls.wait().await;
        Ok(Drain::Complete)
    };
    let time_is_up = async {
        shutdown.cancelled().await;
        tokio::time::sleep(Duration::from_millis(DRAIN_MS)).await;
    };
    tokio::select! {
        ended = service => ended,
        () = time_is_up => Ok(Drain::CutOff),
    }
}

/// As [`serve`], on so many threads that do nothing else: a connection is accepted, read and answered without waking another
/// thread, and no other work of the driver's holds up an answer. All of them but one may block in a call.
///
/// # Errors
/// As [`serve`]; also that the threads could not start, or that the service has panicked.
pub async fn serve_apart(
    threads: usize,
    routes: Routes,
    bound: Bound,
    shutdown: CancellationToken,
    calls: TaskTracker,
) -> Result<Drain, ServeError> {
    let Bound { listener, file } = bound;
    // The listener belongs to the event loop that it was made in, and has to change to the other.
    let listener = listener.into_std()?;
    let threads = Threads::start(threads)?;
    let service = threads.handle.spawn(async {
        let listener = UnixListener::from_std(listener)?;
        Ok(serve(routes, Bound { listener, file }, shutdown, calls).await?)
    });
    service.await.unwrap_or_else(|error| Err(error.into()))
}

/// The threads of one socket, until dropped: then nobody waits for one that a call has blocked for ever.
struct Threads {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Threads {
    fn start(count: usize) -> io::Result<Threads> {
        let runtime =
            Builder::new_multi_thread().worker_threads(count).thread_name("csi").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Threads { runtime: Some(runtime), handle })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Why a socket is no longer served.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
    #[error("its threads cannot work: {0}")]
    Thread(#[from] io::Error),
    #[error("it has ended: {0}")]
    Ended(#[from] JoinError),
}

/// The connections. A failed `accept` is no reason to stop: the kubelet would lose the driver.
fn accept(listener: UnixListener) -> impl Stream<Item = io::Result<UnixStream>> {
    stream::unfold(listener, |listener| async move {
        loop {
            match listener.accept().await {
                Ok((connection, _)) => return Some((Ok(connection), listener)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(ACCEPT_RETRY_MS)).await;
                }
            }
        }
    })
}
