//! Where a socket is: an absolute path short enough for the kernel, parsed once at the edge.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What `sockaddr_un` can hold on Linux, less its closing NUL.
pub const PATH_MAX_BYTES: usize = 107;

/// The path of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPath(PathBuf);

/// Why a text names no unix socket. The text of each says what to write instead; the caller names the flag.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SocketPathError {
    /// There is nothing.
    #[error("is empty; give unix:///path/to/csi.sock")]
    Empty,
    /// Another scheme, such as `tcp://`.
    #[error("{0:?} is not a unix socket; give unix:///path/to/csi.sock")]
    NotUnix(String),
    /// A relative path, `unix://host/path` among them: the directory a process starts in must not matter.
    #[error("{0:?} is not an absolute path; give unix:///path/to/csi.sock, with three slashes")]
    Relative(String),
    /// A path that can only be a directory.
    #[error("{0:?} names a directory; give the path of the socket in it")]
    Directory(String),
    /// A byte that no path can have.
    #[error("{0:?} has a NUL byte")]
    Nul(String),
    /// Longer than the kernel allows.
    #[error("{path:?} has {bytes} bytes; the path of a unix socket has {PATH_MAX_BYTES} at most")]
    TooLong {
        /// The path.
        path: String,
        /// Its length.
        bytes: usize,
    },
}

impl SocketPath {
    /// Reads `unix:///path`, `unix:/path` or a bare absolute path.
    ///
    /// # Errors
    /// [`SocketPathError`] says what is wrong with it.
    pub fn parse(endpoint: &str) -> Result<Self, SocketPathError> {
        if endpoint.is_empty() {
            return Err(SocketPathError::Empty);
        }
        let path = match endpoint.strip_prefix("unix:") {
            Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
            None if endpoint.contains("://") => return Err(SocketPathError::NotUnix(endpoint.to_owned())),
            None => endpoint,
        };
        if path.is_empty() {
            return Err(SocketPathError::Empty);
        }
        if path.contains('\0') {
            return Err(SocketPathError::Nul(path.to_owned()));
        }
        if !path.starts_with('/') {
            return Err(SocketPathError::Relative(endpoint.to_owned()));
        }
        if path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") {
            return Err(SocketPathError::Directory(path.to_owned()));
        }
        if path.len() > PATH_MAX_BYTES {
            return Err(SocketPathError::TooLong { path: path.to_owned(), bytes: path.len() });
        }
        Ok(Self(PathBuf::from(path)))
    }

    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c44_an_endpoint_is_a_unix_url_or_a_bare_path() {
        for endpoint in ["unix:///run/a/csi.sock", "unix:/run/a/csi.sock", "/run/a/csi.sock"] {
            let parsed = SocketPath::parse(endpoint).expect(endpoint);
            assert_eq!(parsed.as_path(), Path::new("/run/a/csi.sock"), "{endpoint}");
            assert_eq!(parsed.to_string(), "/run/a/csi.sock");
        }
    }

    #[test]
    fn c44_an_endpoint_that_is_no_unix_socket_says_so() {
        let says = |endpoint: &str| SocketPath::parse(endpoint).expect_err(endpoint);
        assert_eq!(says(""), SocketPathError::Empty);
        assert_eq!(says("unix://"), SocketPathError::Empty);
        assert_eq!(says("unix:"), SocketPathError::Empty);
        assert_eq!(says("tcp://0.0.0.0:1"), SocketPathError::NotUnix("tcp://0.0.0.0:1".to_owned()));
        assert_eq!(says("unix://csi.sock"), SocketPathError::Relative("unix://csi.sock".to_owned()));
        assert_eq!(says("csi.sock"), SocketPathError::Relative("csi.sock".to_owned()));
        assert_eq!(says("/run/"), SocketPathError::Directory("/run/".to_owned()));
        assert_eq!(says("/run/.."), SocketPathError::Directory("/run/..".to_owned()));
        assert_eq!(says("/a\0b"), SocketPathError::Nul("/a\0b".to_owned()));
    }

    #[test]
    fn c44_a_path_of_107_bytes_fits_and_one_more_is_refused_with_both_numbers() {
        let fits = format!("/{}", "a".repeat(PATH_MAX_BYTES - 1));
        assert!(SocketPath::parse(&fits).is_ok());
        let error = SocketPath::parse(&format!("unix://{fits}b")).expect_err("too long").to_string();
        assert!(error.contains("108 bytes") && error.contains("107 at most"), "{error}");
    }
}
