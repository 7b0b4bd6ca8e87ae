//! The port `Copies` on plain directories.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;

use super::failure::{failure, of_copy};
use super::{COPIES, OWN_MODE, Rootless, TRASH, identity_of, measure, walk};
use crate::domain::handle::Handle;
use crate::domain::mount_table::{FileIdentity, Place};
use crate::domain::trash::{CopyMark, TrashId};
use crate::domain::volume_request::Gid;
use crate::ports::copies::{
    Capacity, Copies, CopiesError, Counted, Deletion, Ensured, Examined, Listing, Measured, Usage,
};

/// What a group gets on a copy's root: all, and its files are the group's too (C7).
const GROUP_BITS: u32 = 0o2070;

impl Rootless {
    fn found(&self, handle: &Handle) -> Result<Option<FileIdentity>, CopiesError> {
        let path = self.copy_path(handle);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(identity_of(&metadata))),
            Ok(_) => {
                let error = Error::from(ErrorKind::NotADirectory);
                Err(CopiesError::NotADirectory(failure("find a directory at", &path, &error)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_copy("look at", &path, &error)),
        }
    }

    /// Makes the copy without a name first: under its name it has its mode from the first instant (C6).
    fn make(&self, path: &Path, stage: &Path) -> Result<FileIdentity, CopiesError> {
        DirBuilder::new().mode(OWN_MODE).create(stage).map_err(|error| of_copy("mkdir", stage, &error))?;
        let named = std::fs::set_permissions(stage, Permissions::from_mode(self.copy_mode))
            .and_then(|()| std::fs::symlink_metadata(stage))
            .and_then(|metadata| std::fs::rename(stage, path).map(|()| identity_of(&metadata)));
        named.map_err(|error| {
            if let Err(left) = std::fs::remove_dir(stage) {
                tracing::warn!(path = %stage.display(), error = %left, "left in the trash until the next start");
            }
            of_copy("make", path, &error)
        })
    }

    fn statvfs(&self) -> Result<rustix::fs::StatVfs, CopiesError> {
        let at = |error: rustix::io::Errno| of_copy("statvfs", &self.store, &error.into());
        rustix::fs::statvfs(&self.store).map_err(at)
    }

    /// Whether one of the double's own mounts lies on the copy or below it.
    fn refuse_mount_point(&self, path: &Path) -> Result<(), CopiesError> {
        match self.mount_file().live(&self.store).any(|(target, _)| target.starts_with(path)) {
            true => {
                let error = Error::from(ErrorKind::ResourceBusy);
                Err(CopiesError::MountPoint(failure("move away from under a mount", path, &error)))
            }
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Copies for Rootless {
    async fn find(&self, handle: &Handle) -> Result<Option<FileIdentity>, CopiesError> {
        self.found(handle)
    }

    async fn ensure(&self, handle: &Handle) -> Result<Ensured, CopiesError> {
        if let Some(identity) = self.found(handle)? {
            return Ok(Ensured { identity, made: false });
        }
        let identity = self.make(&self.copy_path(handle), &self.stage_path())?;
        Ok(Ensured { identity, made: true })
    }

    async fn unmake(&self, handle: &Handle, identity: FileIdentity) -> Result<(), CopiesError> {
        match self.found(handle) {
            Ok(Some(found)) if found == identity => {}
            // Another copy, or a stranger under its name: not what this process made.
            Ok(_) | Err(CopiesError::NotADirectory(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        let path = self.copy_path(handle);
        match std::fs::remove_dir(&path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) => Err(of_copy("rmdir", &path, &error)),
            Ok(()) => Ok(()),
        }
    }

    async fn set_group(&self, handle: &Handle, Gid(group): Gid) -> Result<(), CopiesError> {
        let path = self.copy_path(handle);
        let set = || {
            std::os::unix::fs::lchown(&path, None, Some(group))?;
            let mode = std::fs::symlink_metadata(&path)?.mode();
            std::fs::set_permissions(&path, Permissions::from_mode(mode | GROUP_BITS))
        };
        self.found(handle)?;
        set().map_err(|error| of_copy("set the group of", &path, &error))
    }

    async fn list(&self) -> Result<Listing, CopiesError> {
        let path = self.store.join(COPIES);
        let mut listing = Listing::default();
        for entry in std::fs::read_dir(&path).map_err(|error| of_copy("read", &path, &error))? {
            let entry = entry.map_err(|error| of_copy("read", &path, &error))?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            match name.to_str().and_then(|name| Handle::parse(name).ok()) {
                Some(handle) if is_directory => listing.handles.push(handle),
                Some(_) | None => listing.strangers.push(name.to_string_lossy().into_owned()),
            }
        }
        listing.handles.sort();
        listing.strangers.sort();
        Ok(listing)
    }

    async fn discard(&self, handle: &Handle, id: TrashId) -> Result<(), CopiesError> {
        let (path, trash) = (self.copy_path(handle), self.trash_path(id));
        // Missing is for rename(2) to say; a stranger under the name is none of the driver's (C25).
        self.found(handle)?;
        self.refuse_mount_point(&path)?;
        std::fs::rename(&path, &trash).map_err(|error| of_copy("rename", &path, &error))?;
        self.latest_walks().forget(handle);
        let followed = self.follow(&Place::Copy(handle.clone()), &Place::Trash(id));
        // The copy is in the trash; a mount that does not say so would let it be deleted under a pod.
        followed.map_err(|error| CopiesError::Unknown(failure("follow the copy into", &trash, &error)))
    }

    async fn trash(&self) -> Result<Vec<TrashId>, CopiesError> {
        let path = self.store.join(TRASH);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(|error| of_copy("read", &path, &error))? {
            let entry = entry.map_err(|error| of_copy("read", &path, &error))?;
            ids.extend(entry.file_name().to_str().and_then(TrashId::parse));
        }
        ids.sort();
        Ok(ids)
    }

    async fn restore(&self, id: TrashId, handle: &Handle) -> Result<(), CopiesError> {
        let (path, trash) = (self.copy_path(handle), self.trash_path(id));
        // Nobody makes copies beside this process, so that a look before the rename is as good as one within it.
        let rename = || match std::fs::symlink_metadata(&path) {
            Ok(_) => Err(Error::from(ErrorKind::AlreadyExists)),
            Err(_) => std::fs::rename(&trash, &path),
        };
        rename().map_err(|error| of_copy("rename to", &path, &error))?;
        let followed = self.follow(&Place::Trash(id), &Place::Copy(handle.clone()));
        followed.map_err(|error| CopiesError::Unknown(failure("follow the copy to", &path, &error)))
    }

    async fn delete(&self, id: TrashId) -> Result<Deletion, CopiesError> {
        Ok(walk::delete_tree(&self.trash_path(id)))
    }

    async fn delete_in_place(&self, handle: &Handle) -> Result<Deletion, CopiesError> {
        let path = self.copy_path(handle);
        self.refuse_mount_point(&path)?;
        self.latest_walks().forget(handle);
        Ok(walk::delete_tree(&path))
    }

    async fn mark(&self, handle: &Handle) -> Result<Option<CopyMark>, CopiesError> {
        let Some(found) = self.found(handle)? else { return Ok(None) };
        let path = self.copy_path(handle);
        let metadata = std::fs::symlink_metadata(&path).map_err(|error| of_copy("look at", &path, &error))?;
        let made = metadata.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_ns = made.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Ok(Some(CopyMark { inode: found.inode, made_ns }))
    }

    async fn settle(&self) -> Result<(), CopiesError> {
        for directory in [COPIES, TRASH] {
            let path = self.store.join(directory);
            let synced = File::open(&path).and_then(|directory| directory.sync_all());
            synced.map_err(|error| of_copy("fsync", &path, &error))?;
        }
        Ok(())
    }

    async fn usage(&self, handle: &Handle) -> Result<Usage, CopiesError> {
        let path = self.copy_path(handle);
        let usage = measure::measure_tree(&path).map_err(|error| of_copy("measure", &path, &error))?;
        self.latest_walks().put(handle, usage);
        Ok(usage)
    }

    async fn capacity(&self) -> Result<Capacity, CopiesError> {
        Ok(capacity(&self.statvfs()?))
    }

    async fn examine(&self, handle: &Handle) -> Result<Examined, CopiesError> {
        let copy = match self.found(handle) {
            Err(CopiesError::NotADirectory(_)) => None,
            found => found?,
        };
        let copies = self.store.join(COPIES);
        let store =
            std::fs::symlink_metadata(&copies).map_err(|error| of_copy("look at", &copies, &error))?;
        let stat = self.statvfs()?;
        let read_only = stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
        Ok(Examined { copy, store_device: store.dev(), read_only, capacity: capacity(&stat) })
    }

    fn counted(&self) -> Counted {
        self.latest_walks().sum()
    }

    fn measured(&self, handle: &Handle) -> Option<Measured> {
        self.latest_walks().of(handle)
    }
}

fn capacity(stat: &rustix::fs::StatVfs) -> Capacity {
    Capacity {
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_inodes: stat.f_files,
        available_inodes: stat.f_favail,
    }
}
