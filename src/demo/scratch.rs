//! The directory below which everything lies, removed at the end whatever the end is.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How many names are tried.
const NAMES_MAX: u32 = 100;

/// A directory of one's own below the system's temporary one. It is removed when this value is dropped, by the
/// process that made it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub fn make(purpose: &str) -> io::Result<Scratch> {
        let below = std::fs::canonicalize(std::env::temp_dir())?;
        let process = std::process::id();
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in 0..NAMES_MAX {
            let path = below.join(format!("{purpose}-{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("{} could not be removed: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ones_own_and_gone_when_dropped() {
        let (one, two) = (Scratch::make("per-node-test").unwrap(), Scratch::make("per-node-test").unwrap());
        let (path, other) = (one.path().to_owned(), two.path().to_owned());
        assert_ne!(path, other);
        std::fs::create_dir(path.join("below")).unwrap();
        drop(one);
        drop(two);
        assert!(!path.exists() && !other.exists());
    }
}
