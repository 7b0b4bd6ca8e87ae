//! Connections to an HTTP port, bounded in number and in time: the plugin's can be reached from every pod of the
//! cluster, and descriptors that it holds are missing where volumes are published.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Connections at a time. More wait until one of these ends.
pub(super) const CONNECTIONS_MAX: usize = 64;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_MS: u64 = 50;

/// A listener that keeps to the bounds.
pub struct Bounded {
    listener: TcpListener,
    life: Duration,
    room: Arc<Semaphore>,
}

/// A connection that keeps to them.
pub struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _room: OwnedSemaphorePermit,
}

impl Bounded {
    /// Connections of `listener`, each for `life` at most: whoever keeps one open longer connects again.
    #[must_use]
    pub fn new(listener: TcpListener, life: Duration) -> Self {
        Self { listener, life, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let accepted = match self.room.clone().acquire_owned().await {
                Ok(room) => self.listener.accept().await.map(|accepted| (accepted, room)),
                // Nobody closes it.
                Err(closed) => Err(io::Error::other(closed)),
            };
            match accepted {
                Ok(((stream, address), room)) => {
                    let end = Box::pin(tokio::time::sleep(self.life));
                    return (Connection { stream, end, _room: room }, address);
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection to the HTTP port could not be accepted");
                    tokio::time::sleep(Duration::from_millis(ACCEPT_RETRY_MS)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connection {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
