//! The port `Mounts` on symlinks and the table of mounts.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, FileType, Metadata};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use async_trait::async_trait;

use super::failure::{failure, of_mount};
use super::mount_file::{Attached, MountFile, spelled};
use super::{Rootless, identity_of};
use crate::domain::handle::Handle;
use crate::domain::mount_options::{AccessTime, MountFlags, MountOptions};
use crate::domain::mount_table::{
    FileIdentity, Layer, MountStack, MountTable, Place, StoreMount, TargetView,
};
use crate::domain::target::TargetPath;
use crate::domain::trash::TrashId;
use crate::ports::mounts::{Mounts, MountsError};

/// The mode of a target directory; what is mounted on it hides it.
const TARGET_MODE: u32 = 0o750;
/// What the kubelet writes beside a target, and removes when it forgets the volume.
const VOLUME_DATA: &str = "vol_data.json";

impl Rootless {
    fn view(&self, table: &MountFile, target: &Path) -> io::Result<TargetView> {
        let layers = table.on(&self.store, target);
        if let Some(top) = layers.last() {
            let shown = |layer: &Attached| Layer { shown: layer.shown(&self.store), flags: layer.flags };
            let visible = top.identity;
            return Ok(TargetView::Mounted(MountStack {
                layers: layers.iter().map(shown).collect(),
                visible,
            }));
        }
        match what_is_at(target)? {
            None => Ok(TargetView::Absent),
            Some(found) if found.is_dir() => {
                Ok(TargetView::Directory { empty: std::fs::read_dir(target)?.next().is_none() })
            }
            Some(_) => Ok(TargetView::NotADirectory),
        }
    }

    fn store_mounts(&self) -> Vec<StoreMount> {
        let table = self.mount_file();
        let mut mounts = Vec::new();
        for (target, layers) in table.live(&self.store) {
            for shown in layers.iter().filter_map(|layer| layer.shown(&self.store)) {
                mounts.push(StoreMount { mount_point: target.to_owned(), shown });
            }
        }
        mounts
    }

    /// The table is written before the symlink is there: a table without its symlink says nothing, a symlink
    /// without its table would be a stranger's.
    fn put_on(&self, table: &mut MountFile, target: &Path, mount: Attached) -> Result<(), MountsError> {
        let at = |operation| move |error: Error| of_mount(operation, target, &error);
        if table.above(&self.store, target).is_some() || target.starts_with(&self.store) {
            return Err(MountsError::Unsupported(failure("mount below a mount", target, &nothing())));
        }
        check_way(target)?;
        let below = table.on(&self.store, target).to_vec();
        let leads_to = self.store.join(&mount.place);
        if below.is_empty() {
            check_bare(target)?;
        }
        let layers = below.iter().cloned().chain([mount]).collect();
        table.set(target, layers).map_err(at("write the table for"))?;
        let made = if below.is_empty() {
            std::fs::remove_dir(target).map_err(at("rmdir")).and_then(|()| {
                symlink(&leads_to, target).map_err(|error| {
                    let back = make_directory(target);
                    back.err().map_or(of_mount("symlink", target, &error), |error| {
                        MountsError::Unknown(failure("bring back", target, &error))
                    })
                })
            })
        } else {
            relink(&leads_to, target).map_err(at("symlink"))
        };
        if made.is_err() {
            table
                .set(target, below)
                .map_err(|error| MountsError::Unknown(failure("take back the table for", target, &error)))?;
        }
        made
    }

    /// A copy that went to another place of the store is shown there by the mounts that showed it, as the kernel
    /// does it.
    pub(super) fn follow(&self, from: &Place, to: &Place) -> io::Result<()> {
        let (from, to) = (spelled(from), spelled(to));
        let mut table = self.mount_file();
        let shows = |(target, layers): (&Path, &[Attached])| {
            layers.iter().any(|layer| layer.place == from).then(|| (target.to_owned(), layers.to_vec()))
        };
        let moved: Vec<_> = table.live(&self.store).filter_map(shows).collect();
        for (target, mut layers) in moved {
            layers.iter_mut().filter(|layer| layer.place == from).for_each(|layer| layer.place = to.clone());
            let top = layers.last().map(|top| self.store.join(&top.place));
            table.set(&target, layers)?;
            if let Some(top) = top {
                relink(&top, &target)?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Mounts for Rootless {
    async fn look(&self, target: &TargetPath) -> Result<TargetView, MountsError> {
        let path = target.as_path();
        self.view(&self.mount_file(), path).map_err(|error| of_mount("look at", path, &error))
    }

    async fn showing(
        &self,
        handle: &Handle,
        trashed: &BTreeSet<TrashId>,
    ) -> Result<Vec<StoreMount>, MountsError> {
        let mut mounts = self.store_mounts();
        mounts.retain(|mount| mount.shown.belongs_to(handle, trashed));
        Ok(mounts)
    }

    async fn table(&self) -> Result<MountTable, MountsError> {
        Ok(MountTable { mounts: self.store_mounts() })
    }

    async fn make_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        check_way(target.as_path())?;
        make_directory(target.as_path()).map_err(|error| of_mount("mkdir", target.as_path(), &error))
    }

    async fn attach(
        &self,
        handle: &Handle,
        copy: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Result<(), MountsError> {
        let path = self.copy_path(handle);
        let found =
            std::fs::symlink_metadata(&path).map_err(|error| of_mount("open the copy at", &path, &error))?;
        if identity_of(&found) != copy || !found.is_dir() {
            return Err(MountsError::Missing(failure("find the same copy at", &path, &nothing())));
        }
        let place = spelled(&Place::Copy(handle.clone()));
        let mount = Attached { place, identity: copy, flags: flags_of(options) };
        self.put_on(&mut self.mount_file(), target.as_path(), mount)
    }

    async fn detach(&self, target: &TargetPath) -> Result<(), MountsError> {
        let target = target.as_path();
        let mut table = self.mount_file();
        if table.on(&self.store, target).is_empty() {
            return Ok(());
        }
        std::fs::remove_file(target).map_err(|error| of_mount("unlink", target, &error))?;
        make_directory(target).map_err(|error| of_mount("bring back", target, &error))?;
        // Without its symlink the entry says nothing already; a table that cannot be written is no failure.
        if let Err(error) = table.set(target, Vec::new()) {
            tracing::warn!(target_path = %target.display(), %error, "the table keeps a mount that is gone");
        }
        Ok(())
    }

    async fn remove_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        let path = target.as_path();
        if !self.mount_file().on(&self.store, path).is_empty() {
            return Err(MountsError::Busy(failure("rmdir", path, &nothing())));
        }
        match std::fs::remove_dir(path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            // A file in its place is something in the way; a file in its parent's is a target that is not there.
            Err(error) if error.kind() == ErrorKind::NotADirectory => match what_is_at(path) {
                Ok(None) => Ok(()),
                Ok(Some(_)) | Err(_) => Err(MountsError::Occupied(failure("rmdir", path, &error))),
            },
            Err(error) => Err(of_mount("rmdir", path, &error)),
        }
    }

    async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, MountsError> {
        let Some(parent) = target.as_path().parent() else { return Ok(false) };
        let is_there = |path: &Path| what_is_at(path).map_err(|error| of_mount("look at", path, &error));
        if !is_there(parent)?.is_some_and(|found| found.is_dir()) {
            return Ok(false);
        }
        Ok(is_there(&parent.join(VOLUME_DATA))?.is_none())
    }
}

/// What is at a path, its end not followed; `None` also where its parent is missing or no directory.
fn what_is_at(path: &Path) -> io::Result<Option<FileType>> {
    match std::fs::symlink_metadata(path).map(|metadata: Metadata| metadata.file_type()) {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename)
}

/// On the way to a target no symlink is followed (C18): its parent is where its path says.
fn check_way(target: &Path) -> Result<(), MountsError> {
    let Some(parent) = target.parent() else { return Ok(()) };
    match std::fs::canonicalize(parent) {
        Ok(real) if real == parent => Ok(()),
        Ok(_) => Err(MountsError::Occupied(failure("follow a symlink to", target, &nothing()))),
        Err(error) => Err(of_mount("open the parent of", target, &error)),
    }
}

/// Whether a target can carry its first mount.
fn check_bare(target: &Path) -> Result<(), MountsError> {
    match what_is_at(target).map_err(|error| of_mount("look at", target, &error))? {
        Some(found) if found.is_dir() => Ok(()),
        Some(found) if found.is_symlink() => {
            Err(MountsError::Occupied(failure("mount on the symlink", target, &nothing())))
        }
        Some(_) | None => Err(MountsError::Missing(failure("find the directory", target, &nothing()))),
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(TARGET_MODE).create(path)
}

fn relink(leads_to: &Path, target: &Path) -> io::Result<()> {
    std::fs::remove_file(target)?;
    symlink(leads_to, target)
}

/// A failure that no system call told.
fn nothing() -> Error {
    ErrorKind::Other.into()
}

/// The flags that a mount of the store would have: what is asked, else what a mount has by default.
fn flags_of(options: &MountOptions) -> MountFlags {
    MountFlags {
        read_only: options.read_only.unwrap_or(false),
        no_exec: options.no_exec.unwrap_or(false),
        no_suid: options.no_suid.unwrap_or(false),
        no_dev: options.no_dev.unwrap_or(false),
        no_dir_access_time: options.no_dir_access_time.unwrap_or(false),
        access_time: options.access_time.unwrap_or(AccessTime::Relative),
    }
}
