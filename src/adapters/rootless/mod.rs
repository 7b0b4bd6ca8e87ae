//! A double of the kernel's mounts, and a plain store, that need no privilege and no Linux: what a laptop runs.
//!
//! A "mount" is a symlink: the target directory is replaced by a symlink to the copy, and a table in the store
//! says what it shows, with which flags. So a pod's files are found where a pod looks for them, a restart finds
//! every mount again, and the symlink is the truth: where it is gone or leads elsewhere, nothing is mounted.
//!
//! What the double cannot show, and never claims to:
//! - flags are written down and not enforced: `ro` refuses no write, `noexec` no program;
//! - nobody is ever busy: a mount goes although a process works in it;
//! - nothing is mounted below a target or on a target that is not empty, and nothing propagates;
//! - only its own mounts are seen: an operator's bind keeps no copy from being removed;
//! - on a crash its records are as old as the last rename, and on a full disk they cannot be written (C16);
//! - one look and one change are not one step to others on the node: a target may be absent for an instant.
//!
//! Calls do plain file work on the caller's thread. Whoever opens a store holds its lock (C40); nothing here
//! takes it.

mod copies;
mod failure;
mod measure;
mod mount_file;
mod mounts;
mod record_file;
mod records;
mod walk;

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::domain::handle::Handle;
use crate::domain::mount_table::FileIdentity;
use crate::domain::trash::TrashId;
use measure::Walks;
use mount_file::MountFile;
use record_file::RecordFile;

const COPIES: &str = "copies";
const TRASH: &str = "trash";
const HOLDS: &str = "holds";
/// The table of mounts, below `holds/` where no pod can write.
const MOUNT_FILE: &str = "mounts.json";
const RECORD_FILE: &str = "records.json";

/// The driver's own directories are nobody else's (C6).
const OWN_MODE: u32 = 0o700;

/// Why a store cannot be used.
#[derive(Debug, Error)]
#[error("{step} {}", .path.display())]
pub struct OpenError {
    pub step: &'static str,
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

/// One node's mounts and store. It implements the ports `Mounts`, `Copies` and `Records`.
#[derive(Debug)]
pub struct Rootless {
    store: PathBuf,
    copy_mode: u32,
    mounts: Mutex<MountFile>,
    records: Mutex<RecordFile>,
    walks: Mutex<Walks>,
    /// Counts directories that have no name yet, so that no two are one.
    stages: AtomicU64,
}

impl Rootless {
    /// Opens the store at `store`, an existing directory, and makes what is missing in it. New copies get exactly
    /// the mode `copy_mode`.
    pub fn open(store: &Path, copy_mode: u32) -> Result<Rootless, OpenError> {
        let at = |step, path: &Path| {
            let path = path.to_owned();
            move |source| OpenError { step, path, source }
        };
        let store = std::fs::canonicalize(store).map_err(at("cannot resolve", store))?;
        for name in [COPIES, TRASH, HOLDS] {
            let path = store.join(name);
            own_directory(&path).map_err(at("cannot make", &path))?;
        }
        let trash = store.join(TRASH);
        let last_trash = clear_stages(&trash).map_err(at("cannot read", &trash))?;
        let holds = store.join(HOLDS);
        let mounts =
            MountFile::load(holds.join(MOUNT_FILE)).map_err(at("cannot read the mounts in", &holds))?;
        let records = RecordFile::load(holds.join(RECORD_FILE), last_trash)
            .map_err(at("cannot read the records in", &holds))?;
        Ok(Rootless {
            store,
            copy_mode,
            mounts: Mutex::new(mounts),
            records: Mutex::new(records),
            walks: Mutex::default(),
            stages: AtomicU64::new(0),
        })
    }

    /// Where the store really is.
    pub fn store(&self) -> &Path {
        &self.store
    }

    fn copy_path(&self, handle: &Handle) -> PathBuf {
        self.store.join(COPIES).join(handle.as_path())
    }

    fn trash_path(&self, id: TrashId) -> PathBuf {
        self.store.join(TRASH).join(id.to_string())
    }

    fn stage_path(&self) -> PathBuf {
        self.store.join(TRASH).join(format!("n{}", self.stages.fetch_add(1, Ordering::Relaxed)))
    }

    fn mount_file(&self) -> MutexGuard<'_, MountFile> {
        self.mounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_file(&self) -> MutexGuard<'_, RecordFile> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latest_walks(&self) -> MutexGuard<'_, Walks> {
        self.walks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(OWN_MODE).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if !std::fs::symlink_metadata(path)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    std::fs::set_permissions(path, Permissions::from_mode(OWN_MODE))
}

/// Removes directories that never became a copy; answers the highest id in the trash, so that none is used twice.
fn clear_stages(trash: &Path) -> io::Result<u64> {
    let mut last = 0;
    for entry in std::fs::read_dir(trash)? {
        let entry = entry?;
        match entry.file_name().to_str().and_then(TrashId::parse) {
            Some(TrashId(id)) => last = last.max(id),
            None => {
                let gone = std::fs::remove_dir(entry.path());
                if let Err(error) = gone {
                    tracing::warn!(path = %entry.path().display(), %error, "left in the trash: not the driver's");
                }
            }
        }
    }
    Ok(last)
}

fn identity_of(metadata: &std::fs::Metadata) -> FileIdentity {
    FileIdentity { device: metadata.dev(), inode: metadata.ino() }
}

/// Writes a file whole or not at all: a reader finds the old text or the new.
fn replace_file(path: &Path, text: &[u8], durable: bool) -> io::Result<()> {
    use std::io::Write;
    let fresh = path.with_extension("new");
    let mut file = std::fs::File::create(&fresh)?;
    file.write_all(text)?;
    if durable {
        file.sync_all()?;
    }
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests;
