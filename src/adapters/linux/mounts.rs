//! The port [`Mounts`] on the kernel. Each call is one blocking job: it runs to its end even when its caller is gone.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::attach::{self, Route, StagingPlace};
use super::failure::{Failure, Outcome, Step};
use super::index::{self, Index, Seen};
use super::places::Place;
use super::store::{NAME_DIRECTORY, StoreDirs, open_below};
use super::target::{self, OpenTarget};
use super::{blocking, detach, look};
use crate::domain::handle::Handle;
use crate::domain::mount_options::MountOptions;
use crate::domain::mount_table::{FileIdentity, MountTable, StoreMount, TargetView};
use crate::domain::target::{KubeletDir, TargetPath};
use crate::domain::trash::TrashId;
use crate::ports::mounts::{Mounts, MountsError};

/// Which of the newer calls to use; what the kernel lacks is never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    pub route: Route,
    /// `statmount`, `listmount` and unique mount ids (6.8), and with them mount events (6.15) where they are allowed.
    pub mount_events: bool,
}

impl Abilities {
    /// What this kernel can do.
    pub fn found() -> Abilities {
        Abilities { route: attach::route(), mount_events: super::view::has_statmount() }
    }
}

/// Attaching, detaching and looking, for one store and one kubelet directory.
#[derive(Clone)]
pub struct LinuxMounts {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<StoreDirs>,
    kubelet_dir: KubeletDir,
    abilities: Abilities,
    index: Mutex<Index>,
    /// Counts staging directories, so that no two attaches share one.
    stages: AtomicU64,
}

/// The mode of a target directory; the mount on it hides it.
const TARGET_MODE: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP);
/// What the kubelet writes beside a target, and removes when it forgets the volume.
pub(super) const VOLUME_DATA: &std::ffi::CStr = c"vol_data.json";

impl LinuxMounts {
    pub fn new(store: Arc<StoreDirs>, kubelet_dir: KubeletDir, abilities: Abilities) -> LinuxMounts {
        let index = Mutex::new(Index::new(&store, abilities.mount_events));
        LinuxMounts {
            shared: Arc::new(Shared { store, kubelet_dir, abilities, index, stages: AtomicU64::new(0) }),
        }
    }

    /// Whether "which mounts show a copy" is answered from mount events rather than by reading the whole table.
    pub fn is_watching(&self) -> bool {
        self.shared.index().is_watching()
    }

    async fn run<T: Send + 'static>(
        &self,
        about: &Path,
        job: impl FnOnce(&Shared) -> Outcome<T> + Send + 'static,
    ) -> Result<T, MountsError> {
        let shared = Arc::clone(&self.shared);
        let job = move || {
            let _call = shared.store.traffic().call();
            job(&shared)
        };
        match blocking::run(job).await {
            Ok(outcome) => outcome.map_err(|failure| failure.of_mount(about)),
            Err(lost) => Err(MountsError::Unknown(lost.at(about))),
        }
    }
}

impl Shared {
    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        // A panic under the lock leaves at worst an index that is rebuilt at the next change.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, target: &TargetPath) -> Outcome<Option<OpenTarget>> {
        target::open(&self.kubelet_dir, target)
    }

    fn open_parent(&self, target: &TargetPath) -> Outcome<OpenTarget> {
        self.open(target)?.ok_or(Failure { step: "open the parent of", errno: Errno::NOENT })
    }

    fn look(&self, target: &TargetPath) -> Outcome<TargetView> {
        let Some(open) = self.open(target)? else { return Ok(TargetView::Absent) };
        let (view, roots) = self.index().roots(&self.store)?;
        look::look(&view, &open, &roots)
    }

    fn attach(
        &self,
        handle: &Handle,
        identity: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Outcome<()> {
        let copy = self.open_copy(handle, identity)?;
        let target = self.open_parent(target)?;
        let stage = format!("s{}", self.stages.fetch_add(1, Ordering::Relaxed));
        let staging = StagingPlace { trash: self.store.trash(), name: &stage };
        attach::attach(self.abilities.route, copy.as_fd(), &target, options, staging)
    }

    /// Opens the copy by its name and makes sure that it is the one that was decided about.
    fn open_copy(&self, handle: &Handle, identity: FileIdentity) -> Outcome<OwnedFd> {
        let copy = open_below(self.store.copies(), handle.as_path(), NAME_DIRECTORY, Mode::empty())
            .step("open the copy for")?;
        let found = rustix::fs::fstat(&copy).step("fstat the copy for")?;
        if (FileIdentity { device: found.st_dev, inode: found.st_ino }) != identity {
            return Err(Failure { step: "find the same copy for", errno: Errno::STALE });
        }
        Ok(copy)
    }

    fn make_target(&self, target: &TargetPath) -> Outcome<()> {
        let open = self.open_parent(target)?;
        rustix::fs::mkdirat(open.parent(), open.name(), TARGET_MODE).step("mkdir")
    }

    fn remove_target(&self, target: &TargetPath) -> Outcome<()> {
        let Some(open) = self.open(target)? else { return Ok(()) };
        match rustix::fs::unlinkat(open.parent(), open.name(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // A file or a symlink in its place is something else in the way, not something missing.
            Err(Errno::NOTDIR) => Err(Failure { step: "rmdir", errno: Errno::EXIST }),
            Err(errno) => Err(Failure { step: "rmdir", errno }),
        }
    }

    fn is_forgotten(&self, target: &TargetPath) -> Outcome<bool> {
        let Some(open) = self.open(target)? else { return Ok(false) };
        match rustix::fs::statat(open.parent(), VOLUME_DATA, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => Err(Failure { step: "look for vol_data.json beside", errno }),
        }
    }
}

#[async_trait]
impl Mounts for LinuxMounts {
    async fn look(&self, target: &TargetPath) -> Result<TargetView, MountsError> {
        let at = target.clone();
        self.run(target.as_path(), move |shared| shared.look(&at)).await
    }

    async fn showing(
        &self,
        handle: &Handle,
        trashed: &BTreeSet<TrashId>,
    ) -> Result<Vec<StoreMount>, MountsError> {
        let path = self.shared.store.path().join("copies").join(handle.as_path());
        let (handle, trashed) = (handle.clone(), trashed.clone());
        let belongs =
            move |place: &Place| place.shown().is_some_and(|shown| shown.belongs_to(&handle, &trashed));
        let seen = self.run(&path, |shared| shared.index().showing(&shared.store, belongs)).await?;
        Ok(store_mounts(seen))
    }

    async fn table(&self) -> Result<MountTable, MountsError> {
        let path = self.shared.store.path().to_owned();
        let seen = self.run(&path, |shared| index::seen_afresh(shared.store.root())).await?;
        Ok(MountTable { mounts: store_mounts(seen) })
    }

    async fn make_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        let at = target.clone();
        self.run(target.as_path(), move |shared| shared.make_target(&at)).await
    }

    async fn attach(
        &self,
        handle: &Handle,
        copy: FileIdentity,
        target: &TargetPath,
        options: &MountOptions,
    ) -> Result<(), MountsError> {
        let (handle, at, options) = (handle.clone(), target.clone(), *options);
        self.run(target.as_path(), move |shared| shared.attach(&handle, copy, &at, &options)).await
    }

    async fn detach(&self, target: &TargetPath) -> Result<(), MountsError> {
        let at = target.clone();
        let job = move |shared: &Shared| match shared.open(&at)? {
            Some(open) => detach::detach(&open, shared.abilities.mount_events),
            None => Ok(()),
        };
        self.run(target.as_path(), job).await
    }

    async fn remove_target(&self, target: &TargetPath) -> Result<(), MountsError> {
        let at = target.clone();
        self.run(target.as_path(), move |shared| shared.remove_target(&at)).await
    }

    async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, MountsError> {
        let at = target.clone();
        self.run(target.as_path(), move |shared| shared.is_forgotten(&at)).await
    }
}

fn store_mounts(seen: Seen) -> Vec<StoreMount> {
    use std::os::unix::ffi::OsStringExt;
    let mount = |(entry, place): (super::view::MountEntry, super::places::Place)| {
        let mount_point = std::ffi::OsString::from_vec(entry.mount_point).into();
        Some(StoreMount { mount_point, shown: place.shown()? })
    };
    let mut mounts: Vec<StoreMount> = seen.mounts.into_iter().filter_map(mount).collect();
    // The kernel's order differs between the two ways of asking; the same mounts give the same answer.
    mounts.sort_by(|a, b| {
        let points = a.mount_point.as_os_str().cmp(b.mount_point.as_os_str());
        points.then_with(|| a.shown.place.cmp(&b.shown.place))
    });
    mounts
}
