//! Making the socket and knowing it again.
//!
//! It never removes a file that is no socket, a socket that somebody serves, or one that is not the one it made.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::path::SocketPath;

/// Nobody but the owner, root, can connect.
const SOCKET_MODE: u32 = 0o600;

/// Of a directory that had to be made for the socket.
const DIRECTORY_MODE: u32 = 0o750;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;

/// How often a socket that still answers is asked again before it counts as somebody else's. A predecessor that has
/// just let go of the store's lock may not have closed its socket yet.
const SERVED_TRIES: u32 = 10;

/// Between two of those.
const SERVED_WAIT_MS: u64 = 100;

/// Why the socket could not be made.
#[derive(Debug, Error)]
pub enum BindError {
    /// Something else is there, and it is not ours to remove (C42).
    #[error("{0} is there and is no socket; remove it or choose another path")]
    NotASocket(SocketPath),
    /// Another process answers there.
    #[error("another process serves {0}; stop it or choose another path")]
    Served(SocketPath),
    /// The system said no.
    #[error("could not {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which socket.
        path: SocketPath,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A socket that is listened on, and the file it is.
#[derive(Debug)]
pub struct Bound {
    /// Accepts connections.
    pub listener: UnixListener,
    /// Tells whether the socket is still in its place.
    pub file: SocketFile,
}

/// The socket's file, known by device and inode: at the same path a successor's may be. The kernel gives the inode to
/// nobody else as long as the listener is open.
#[derive(Debug, Clone)]
pub struct SocketFile {
    path: SocketPath,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Whether the path still leads to this socket. A directory that cannot be read counts as gone.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        fs::symlink_metadata(self.path.as_path()).is_ok_and(|found| self.is(&found))
    }

    /// Removes the socket where it is still this one, and says whether it did. Call it while the listener is open.
    ///
    /// # Errors
    /// What `unlink` said, apart from "not there".
    pub fn remove(&self) -> io::Result<bool> {
        if !self.is_in_place() {
            return Ok(false);
        }
        match fs::remove_file(self.path.as_path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where it was made.
    #[must_use]
    pub fn path(&self) -> &SocketPath {
        &self.path
    }

    fn is(&self, found: &Metadata) -> bool {
        (found.dev(), found.ino()) == (self.device, self.inode)
    }
}

/// Makes the directory that the socket is to be in, with its parents, where it is missing.
///
/// # Errors
/// [`BindError::Io`].
pub fn make_directory(path: &SocketPath) -> Result<(), BindError> {
    let Some(parent) = path.as_path().parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(parent).map_err(|source| BindError::Io {
        action: "make the directory of",
        path: path.clone(),
        source,
    })
}

/// Makes the socket and listens on it. A stale socket is replaced; the directory must be there.
///
/// # Errors
/// [`BindError`]. What it may leave is a stale socket that the next attempt replaces.
pub async fn bind(path: &SocketPath) -> Result<Bound, BindError> {
    let failed = |action: &'static str| {
        let path = path.clone();
        move |source| BindError::Io { action, path, source }
    };
    make_way(path).await?;
    let socket = UnixSocket::new_stream().map_err(failed("make a socket for"))?;
    // The file gets the mode that the socket has when it is bound. A chmod afterwards would leave an instant in which
    // others can connect, and the umask belongs to the whole process, which may be making a copy just now (C6).
    File::from(socket.as_fd().try_clone_to_owned().map_err(failed("set the mode of"))?)
        .set_permissions(Permissions::from_mode(SOCKET_MODE))
        .map_err(failed("set the mode of"))?;
    socket.bind(path.as_path()).map_err(failed("bind"))?;
    let listener = socket.listen(BACKLOG).map_err(failed("listen on"))?;
    let made = fs::symlink_metadata(path.as_path()).map_err(failed("look at"))?;
    let file = SocketFile { path: path.clone(), device: made.dev(), inode: made.ino() };
    Ok(Bound { listener, file })
}

/// Removes a stale socket. What is no socket, and a socket that answers, stays.
async fn make_way(path: &SocketPath) -> Result<(), BindError> {
    for _ in 0..SERVED_TRIES {
        let found = match fs::symlink_metadata(path.as_path()) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(BindError::Io { action: "look at", path: path.clone(), source }),
        };
        if !found.file_type().is_socket() {
            return Err(BindError::NotASocket(path.clone()));
        }
        match UnixStream::connect(path.as_path()).await {
            // Nobody listens any more: a process that was killed leaves its socket behind.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return remove_stale(path, &found),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // Connected, or not because too many wait: somebody is there.
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(SERVED_WAIT_MS)).await,
        }
    }
    Err(BindError::Served(path.clone()))
}

/// Removes the socket that was seen to be stale, and no other that has taken its place since.
fn remove_stale(path: &SocketPath, seen: &Metadata) -> Result<(), BindError> {
    let stale = SocketFile { path: path.clone(), device: seen.dev(), inode: seen.ino() };
    match stale.remove() {
        Ok(_) => Ok(()),
        Err(source) => Err(BindError::Io { action: "replace the stale socket", path: path.clone(), source }),
    }
}
