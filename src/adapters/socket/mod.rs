//! The unix sockets that the process serves: the CSI socket and the kubelet's registration socket.
//!
//! Shared by the inbound adapters that need one, so that both keep the same promises (C42): a stale socket is
//! replaced, a file that is no socket is not, nobody but root can connect, and at exit only a socket of our own is
//! removed. It never makes any other file in that directory (CSI forbids it), and it knows nothing of what is said
//! over the socket.

mod bind;
mod path;
mod serve;

pub use bind::{BindError, Bound, SocketFile, bind, make_directory};
pub use path::{PATH_MAX_BYTES, SocketPath, SocketPathError};
pub use serve::{DRAIN_MS, Drain, ServeError, serve, serve_apart};

#[cfg(test)]
mod tests;
