//! The port [`Copies`] on the store's directories.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use rustix::fs::{AtFlags, FileType, Gid as FileGroup, Mode, RawDir, RenameFlags, StatxFlags};
use rustix::io::Errno;

use super::examine::{self, Examinations};
use super::failure::{Failure, Outcome, Step};
use super::removal::{self, Leftovers};
use super::store::{READ_DIRECTORY, StoreDirs, open_below, set_exact_mode};
use super::usage::UsageWalks;
use super::view::View;
use super::{blocking, descent, places, view};
use crate::domain::handle::Handle;
use crate::domain::mount_table::FileIdentity;
use crate::domain::trash::{CopyMark, TrashId};
use crate::domain::volume_request::Gid;
use crate::ports::copies::{
    Capacity, Copies, CopiesError, Counted, Deletion, Ensured, Examined, Listing, Measured, Usage,
};

/// Copies of one store.
#[derive(Clone)]
pub struct LinuxCopies {
    shared: Arc<Shared>,
    walks: UsageWalks,
    examinations: Examinations,
}

struct Shared {
    store: Arc<StoreDirs>,
    copy_mode: Mode,
    /// Counts directories that have no name yet.
    nameless: AtomicU64,
    stop: Arc<AtomicBool>,
}

/// A copy that is made while another of its name comes and goes is tried again this often.
const ENSURE_TRIES_MAX: u32 = 8;
/// Bytes of directory entries read at a time.
const BATCH_BYTES: usize = 16 * 1024;

impl LinuxCopies {
    /// `copy_mode` is the mode that every new copy gets exactly (C6).
    pub fn new(store: Arc<StoreDirs>, copy_mode: u32) -> LinuxCopies {
        let stop = Arc::new(AtomicBool::new(false));
        let walks = UsageWalks::new(Arc::clone(&store), Arc::clone(&stop));
        let examinations = Examinations::new(Arc::clone(&store));
        let copy_mode = Mode::from_raw_mode(copy_mode);
        let shared = Shared { store, copy_mode, nameless: AtomicU64::new(0), stop };
        LinuxCopies { shared: Arc::new(shared), walks, examinations }
    }

    /// Ends every walk, so that a shutdown waits for none (C42). What a removal has not deleted stays in the trash.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    async fn run<T: Send + 'static>(
        &self,
        about: PathBuf,
        job: impl FnOnce(&Shared) -> Outcome<T> + Send + 'static,
    ) -> Result<T, CopiesError> {
        let shared = Arc::clone(&self.shared);
        match blocking::run(move || job(&shared)).await {
            Ok(outcome) => outcome.map_err(|failure| failure.of_copy(&about)),
            Err(lost) => Err(CopiesError::Unknown(lost.at(&about))),
        }
    }

    fn copy_path(&self, handle: &Handle) -> PathBuf {
        self.shared.store.path().join("copies").join(handle.as_path())
    }

    fn trash_path(&self) -> PathBuf {
        self.shared.store.path().join("trash")
    }
}

impl Shared {
    fn find(&self, handle: &Handle) -> Outcome<Option<FileIdentity>> {
        match rustix::fs::statat(self.store.copies(), handle.as_path(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Ok(Some(FileIdentity { device: stat.st_dev, inode: stat.st_ino }))
            }
            Ok(_) => Err(Failure { step: "find the copy", errno: Errno::NOTDIR }),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Failure { step: "stat", errno }),
        }
    }

    fn ensure(&self, handle: &Handle) -> Outcome<Ensured> {
        for _ in 0..ENSURE_TRIES_MAX {
            if let Some(identity) = self.find(handle)? {
                return Ok(Ensured { identity, made: false });
            }
            let name = format!("n{}", self.nameless.fetch_add(1, Ordering::Relaxed));
            match rustix::fs::mkdirat(self.store.trash(), &name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(Failure { step: "make", errno }),
            }
            match self.name_it(&name, handle) {
                Ok(identity) => return Ok(Ensured { identity, made: true }),
                Err(failure) => {
                    let _ = rustix::fs::unlinkat(self.store.trash(), &name, AtFlags::REMOVEDIR);
                    if failure.errno != Errno::EXIST {
                        return Err(failure);
                    }
                }
            }
        }
        Err(Failure { step: "make", errno: Errno::EXIST })
    }

    /// Gives a nameless directory its mode, then its name: it is seen under that only as it should be.
    fn name_it(&self, nameless: &str, handle: &Handle) -> Outcome<FileIdentity> {
        let (trash, copies) = (self.store.trash(), self.store.copies());
        let made = open_below(trash, nameless, READ_DIRECTORY, Mode::empty()).step("open the new")?;
        set_exact_mode(made.as_fd(), self.copy_mode)?;
        let stat = rustix::fs::fstat(&made).step("fstat")?;
        rustix::fs::renameat_with(trash, nameless, copies, handle.as_path(), RenameFlags::NOREPLACE)
            .step("rename to")?;
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino })
    }

    fn unmake(&self, handle: &Handle, identity: FileIdentity) -> Outcome<()> {
        match self.find(handle) {
            Ok(Some(found)) if found == identity => {}
            // Another copy, or a stranger under its name: not what this process made.
            Ok(_) | Err(Failure { errno: Errno::NOTDIR, .. }) => return Ok(()),
            Err(failure) => return Err(failure),
        }
        match rustix::fs::unlinkat(self.store.copies(), handle.as_path(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(Failure { step: "rmdir", errno }),
        }
    }

    fn set_group(&self, handle: &Handle, group: Gid) -> Outcome<()> {
        let copy =
            open_below(self.store.copies(), handle.as_path(), READ_DIRECTORY, Mode::empty()).step("open")?;
        let stat = rustix::fs::fstat(&copy).step("fstat")?;
        if stat.st_gid != group.0 {
            rustix::fs::fchown(&copy, None, Some(FileGroup::from_raw(group.0))).step("fchown")?;
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        let wanted = mode | Mode::RWXG | Mode::SGID;
        // After the owner: a change of it may clear the bit.
        if wanted != mode || stat.st_gid != group.0 {
            rustix::fs::fchmod(&copy, wanted).step("fchmod")?;
        }
        Ok(())
    }

    fn list(&self) -> Outcome<Listing> {
        let mut listing = Listing::default();
        for (name, kind) in entries(self.store.copies())? {
            let handle = name.to_str().ok().and_then(|name| Handle::parse(name).ok());
            match handle {
                Some(handle) if kind == FileType::Directory => listing.handles.push(handle),
                Some(_) | None => listing.strangers.push(name.to_string_lossy().into_owned()),
            }
        }
        listing.handles.sort();
        listing.strangers.sort();
        Ok(listing)
    }

    fn discard(&self, handle: &Handle, id: TrashId) -> Outcome<()> {
        self.find(handle)?.ok_or(Failure { step: "find the copy", errno: Errno::NOENT })?;
        self.refuse_mounts_on(handle)?;
        let (copies, trash) = (self.store.copies(), self.store.trash());
        rustix::fs::renameat_with(copies, handle.as_path(), trash, id.to_string(), RenameFlags::NOREPLACE)
            .step("rename to the trash")
    }

    fn restore(&self, id: TrashId, handle: &Handle) -> Outcome<()> {
        let (copies, trash) = (self.store.copies(), self.store.trash());
        rustix::fs::renameat_with(trash, id.to_string(), copies, handle.as_path(), RenameFlags::NOREPLACE)
            .step("rename to")
    }

    /// A rename would carry along what is mounted below a copy, and the removal would stop there for ever.
    fn refuse_mounts_on(&self, handle: &Handle) -> Outcome<()> {
        let View::Table(entries) = View::table()? else { return Ok(()) };
        let copy = places::joined(&view::path_of(self.store.copies())?, handle.as_str().as_bytes());
        let is_on = |point: &[u8]| point == copy || places::below(&copy, point).is_some();
        if entries.values().any(|entry| is_on(&entry.mount_point)) {
            return Err(Failure { step: "find nothing mounted on or below", errno: Errno::BUSY });
        }
        Ok(())
    }

    fn trash(&self) -> Outcome<Vec<TrashId>> {
        let names = entries(self.store.trash())?;
        let mut ids: Vec<TrashId> =
            names.iter().filter_map(|(name, _)| TrashId::parse(name.to_str().ok()?)).collect();
        ids.sort();
        Ok(ids)
    }

    fn delete(&self, directory: BorrowedFd<'_>, path: &Path, name: &str) -> Outcome<Deletion> {
        let name = CString::new(name).map_err(|_| Failure { step: "delete", errno: Errno::INVAL })?;
        let background = self.store.traffic().background();
        let stop = || {
            background.give_way();
            self.stop.load(Ordering::Relaxed)
        };
        let left = removal::remove(directory, &name, &stop)?;
        Ok(deletion(left, path))
    }

    fn mark(&self, handle: &Handle) -> Outcome<Option<CopyMark>> {
        if self.find(handle)?.is_none() {
            return Ok(None);
        }
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let found =
            rustix::fs::statx(self.store.copies(), handle.as_path(), AtFlags::SYMLINK_NOFOLLOW, wanted)
                .step("statx")?;
        let made = found.stx_btime;
        let made_ns = u64::try_from(made.tv_sec)
            .ok()
            .filter(|_| StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME))
            .map(|seconds| seconds.saturating_mul(1_000_000_000).saturating_add(u64::from(made.tv_nsec)));
        Ok(Some(CopyMark { inode: found.stx_ino, made_ns }))
    }

    fn settle(&self) -> Outcome<()> {
        rustix::fs::fsync(self.store.copies()).step("fsync")?;
        rustix::fs::fsync(self.store.trash()).step("fsync")
    }

    fn capacity(&self) -> Outcome<Capacity> {
        let stat = rustix::fs::fstatvfs(self.store.copies()).step("statvfs")?;
        Ok(examine::capacity(&stat))
    }
}

fn deletion(left: Leftovers, directory: &Path) -> Deletion {
    match left.first {
        None => Deletion::Done,
        Some((path, failure)) => {
            Deletion::Left { entries: left.entries, first: failure.at(&directory.join(path)) }
        }
    }
}

/// Names and kinds of everything in an open directory.
pub fn entries(directory: BorrowedFd<'_>) -> Outcome<Vec<(CString, FileType)>> {
    // A descriptor of its own: its position is nobody else's.
    let own = descent::open_root(directory, c".", true)?;
    let mut batch = vec![MaybeUninit::uninit(); BATCH_BYTES];
    let mut read = RawDir::new(&own, &mut batch);
    let mut found = Vec::new();
    while let Some(entry) = read.next() {
        let entry = entry.step("read")?;
        let (name, kind) = (entry.file_name(), entry.file_type());
        if name != c"." && name != c".." {
            let kind = if kind == FileType::Unknown { kind_of(directory, name) } else { kind };
            found.push((name.to_owned(), kind));
        }
    }
    Ok(found)
}

fn kind_of(directory: BorrowedFd<'_>, name: &CStr) -> FileType {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

#[async_trait]
impl Copies for LinuxCopies {
    async fn find(&self, handle: &Handle) -> Result<Option<FileIdentity>, CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.find(&about)).await
    }

    async fn ensure(&self, handle: &Handle) -> Result<Ensured, CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.ensure(&about)).await
    }

    async fn unmake(&self, handle: &Handle, identity: FileIdentity) -> Result<(), CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.unmake(&about, identity)).await
    }

    async fn set_group(&self, handle: &Handle, group: Gid) -> Result<(), CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.set_group(&about, group)).await
    }

    async fn list(&self) -> Result<Listing, CopiesError> {
        self.run(self.shared.store.path().join("copies"), Shared::list).await
    }

    async fn discard(&self, handle: &Handle, id: TrashId) -> Result<(), CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.discard(&about, id)).await?;
        self.walks.forget(handle);
        Ok(())
    }

    async fn trash(&self) -> Result<Vec<TrashId>, CopiesError> {
        self.run(self.trash_path(), Shared::trash).await
    }

    async fn restore(&self, id: TrashId, handle: &Handle) -> Result<(), CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.restore(id, &about)).await
    }

    async fn delete(&self, id: TrashId) -> Result<Deletion, CopiesError> {
        let (name, path) = (id.to_string(), self.trash_path());
        let job = {
            let path = path.clone();
            move |shared: &Shared| shared.delete(shared.store.trash(), &path, &name)
        };
        self.run(path.join(id.to_string()), job).await
    }

    async fn delete_in_place(&self, handle: &Handle) -> Result<Deletion, CopiesError> {
        let (about, path) = (handle.clone(), self.shared.store.path().join("copies"));
        let job = move |shared: &Shared| {
            shared.refuse_mounts_on(&about)?;
            shared.delete(shared.store.copies(), &path, about.as_str())
        };
        let deletion = self.run(self.copy_path(handle), job).await?;
        self.walks.forget(handle);
        Ok(deletion)
    }

    async fn mark(&self, handle: &Handle) -> Result<Option<CopyMark>, CopiesError> {
        let about = handle.clone();
        self.run(self.copy_path(handle), move |shared| shared.mark(&about)).await
    }

    async fn settle(&self) -> Result<(), CopiesError> {
        self.run(self.shared.store.path().to_owned(), Shared::settle).await
    }

    async fn usage(&self, handle: &Handle) -> Result<Usage, CopiesError> {
        self.walks.usage(handle).await.map_err(|failure| failure.of_copy(&self.copy_path(handle)))
    }

    async fn capacity(&self) -> Result<Capacity, CopiesError> {
        self.run(self.shared.store.path().to_owned(), Shared::capacity).await
    }

    async fn examine(&self, handle: &Handle) -> Result<Examined, CopiesError> {
        self.examinations.examine(handle, &self.copy_path(handle)).await
    }

    fn counted(&self) -> Counted {
        self.walks.counted()
    }

    fn measured(&self, handle: &Handle) -> Option<Measured> {
        self.walks.measured(handle)
    }
}
