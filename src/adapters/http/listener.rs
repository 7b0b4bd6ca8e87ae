//! HTTP/1 on a port, its connections bounded in number and in time: the plugin's can be reached from every pod of the
//! cluster, and descriptors that it holds are missing where volumes are published.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at a time. More wait until one of these ends.
pub(super) const CONNECTIONS_MAX: usize = 64;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_MS: u64 = 50;

/// Serves until `shutdown`, and then until what is being answered is. Each connection lives for `life` at most: whoever keeps
/// one open longer connects again.
pub async fn serve(listener: &TcpListener, router: &Router, life: Duration, shutdown: &CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    loop {
        let accept = async {
            let permit = permit(&room).await?;
            listener.accept().await.map(|(stream, _)| (permit, stream))
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept => accepted,
        };
        match accepted {
            Ok((permit, stream)) => {
                let answered = answer(stream, router.clone(), shutdown.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    if tokio::time::timeout(life, answered).await.is_err() {
                        tracing::debug!("a connection to the HTTP port was open for too long");
                    }
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the HTTP port could not be accepted");
                tokio::time::sleep(Duration::from_millis(ACCEPT_RETRY_MS)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// A place for one more connection, once there is one.
async fn permit(room: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    // Nobody closes it.
    room.clone().acquire_owned().await.map_err(io::Error::other)
}

/// Answers what one connection asks, one request after the other; after the shutdown it ends with the answer that it is at.
async fn answer(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the HTTP port broke off");
    }
}
