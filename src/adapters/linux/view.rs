//! The kernel's answers about mounts, from `statmount` where there is one and from mountinfo where not.
//!
//! Ids of the two are different numbers (unique for ever, or reused), so a [`View`] is asked only with ids that were
//! got through it. Nothing here opens what is mounted or asks its file system: a FUSE mount that nobody serves must
//! not hang a look at it.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::mountinfo::{self, MountLine};
use super::places::{self, StoreRoots};
use super::syscalls::{self, MountStatus, attr, propagation};
use crate::domain::mount_options::{AccessTime, MountFlags};
use crate::domain::mount_table::FileIdentity;

/// One mount, whichever way the kernel told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    pub id: u64,
    pub parent: u64,
    pub device: (u32, u32),
    pub root: Vec<u8>,
    pub mount_point: Vec<u8>,
    /// [`attr`] bits.
    pub attributes: u64,
    pub shared: bool,
}

impl MountEntry {
    /// The flags in the domain's words.
    pub fn flags(&self) -> MountFlags {
        let has = |bit: u64| self.attributes & bit != 0;
        let access_time = match self.attributes & attr::ATIME_FIELD {
            attr::NOATIME => AccessTime::Never,
            attr::STRICTATIME => AccessTime::Strict,
            // Zero is relatime; the kernel has no further value here.
            _ => AccessTime::Relative,
        };
        MountFlags {
            read_only: has(attr::RDONLY),
            no_exec: has(attr::NOEXEC),
            no_suid: has(attr::NOSUID),
            no_dev: has(attr::NODEV),
            no_dir_access_time: has(attr::NODIRATIME),
            access_time,
        }
    }
}

/// What `statx` says of one name without asking the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    pub kind: FileType,
    /// Equal for the copy and every mount of it.
    pub identity: FileIdentity,
    pub mount_root: bool,
    /// Of the mount that the name leads to, in the numbering of the view it was got through.
    pub mount_id: u64,
}

/// Where questions about single mounts go.
#[derive(Debug)]
pub enum View {
    /// To `statmount`, one at a time.
    Kernel,
    /// To a table read once.
    Table(HashMap<u64, MountEntry>),
}

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8).
const STATX_MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// More mounts than this on one mount point are a loop in what the kernel said, or somebody's mischief.
pub const STACK_MOUNTS_MAX: usize = 4096;

/// Ids of one `listmount` call.
const LIST_IDS: usize = 1024;
/// A list that grows faster than it is read is given up after this many calls (four million mounts).
const LIST_CALLS_MAX: u32 = 4096;

impl View {
    /// The cheapest view that this kernel has.
    pub fn quick(statmount: bool) -> Outcome<View> {
        if statmount { Ok(View::Kernel) } else { View::table() }
    }

    /// A fresh read of the whole of mountinfo.
    pub fn table() -> Outcome<View> {
        let lines = mountinfo::read().step("read mountinfo for")?;
        Ok(View::Table(lines.into_iter().map(|line| (line.id, line.into())).collect()))
    }

    /// The mount with that id; `None` when it is gone.
    pub fn entry(&self, id: u64) -> Outcome<Option<MountEntry>> {
        match self {
            View::Kernel => match syscalls::statmount(id) {
                Ok(status) => Ok(Some(status.into())),
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(Failure { step: "statmount", errno }),
            },
            View::Table(entries) => Ok(entries.get(&id).cloned()),
        }
    }

    /// Looks at `name` in `directory` (at the directory itself where `name` is empty) without following a last
    /// symlink; `None` where there is none.
    pub fn glance(&self, directory: impl AsFd, name: &CStr) -> Outcome<Option<Glance>> {
        let id = match self {
            View::Kernel => STATX_MNT_ID_UNIQUE,
            View::Table(_) => StatxFlags::MNT_ID,
        };
        glance(directory.as_fd(), name, id)
    }

    /// Everything mounted below the mount `above`, and more where the view is a table.
    pub fn below(self, above: u64) -> Outcome<HashMap<u64, MountEntry>> {
        match self {
            View::Table(entries) => Ok(entries),
            View::Kernel => {
                let mut entries = HashMap::new();
                for id in list_below(above)? {
                    entries.extend(View::Kernel.entry(id)?.map(|entry| (id, entry)));
                }
                Ok(entries)
            }
        }
    }

    /// The mounts stacked at the place that `top` is the topmost mount of, from the top down.
    pub fn stack(&self, top: u64) -> Outcome<Vec<MountEntry>> {
        let mut stack = Vec::new();
        let mut next = Some(top);
        while let Some(id) = next {
            if stack.len() >= STACK_MOUNTS_MAX {
                return Err(Failure { step: "count the mounts on", errno: Errno::LOOP });
            }
            let Some(entry) = self.entry(id)? else { break };
            // The mount below lies in the stack when this one is mounted on its root, which is when both have the
            // same mount point. Lines are never counted: propagation can show one bind twice.
            let below = self.entry(entry.parent)?.filter(|parent| parent.id != entry.id);
            next = below.filter(|parent| parent.mount_point == entry.mount_point).map(|parent| parent.id);
            stack.push(entry);
        }
        Ok(stack)
    }

    /// The roots of the store's two directories as mounts name them: R of C15's rule. `store` is the open store.
    pub fn store_roots(&self, store: BorrowedFd<'_>) -> Outcome<StoreRoots> {
        roots_on(&self.mount_of(store)?, store)
    }

    /// The mount that an open directory lies on.
    pub fn mount_of(&self, directory: BorrowedFd<'_>) -> Outcome<MountEntry> {
        let gone = Failure { step: "find the mount of", errno: Errno::NOENT };
        let glance = self.glance(directory, c"")?.ok_or(gone)?;
        self.entry(glance.mount_id)?.ok_or(gone)
    }
}

/// The same where the mount that the store lies on is at hand.
pub fn roots_on(mount: &MountEntry, store: BorrowedFd<'_>) -> Outcome<StoreRoots> {
    let path = path_of(store)?;
    let rest = places::below(&mount.mount_point, &path).unwrap_or_default();
    let root = places::joined(&mount.root, rest);
    Ok(StoreRoots {
        device: mount.device,
        copies: places::joined(&root, b"copies"),
        trash: places::joined(&root, b"trash"),
        copies_path: places::joined(&path, b"copies"),
        covers: Vec::new(),
    })
}

/// Unique ids of all mounts below the mount `above`, which may be [`syscalls::LISTMOUNT_ROOT`]. Only for
/// [`View::Kernel`].
pub fn list_below(above: u64) -> Outcome<Vec<u64>> {
    let mut all = Vec::new();
    let mut page = vec![0u64; LIST_IDS];
    for _ in 0..LIST_CALLS_MAX {
        let last = all.last().copied().unwrap_or(0);
        let count = syscalls::listmount(above, last, &mut page).step("listmount for")?;
        all.extend_from_slice(&page[..count]);
        if count < page.len() {
            return Ok(all);
        }
    }
    Err(Failure { step: "come to an end of listmount for", errno: Errno::AGAIN })
}

/// The path of an open file or directory as this process reaches it.
pub fn path_of(open: BorrowedFd<'_>) -> Outcome<Vec<u8>> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd()));
    Ok(link.step("readlink")?.as_os_str().as_bytes().to_vec())
}

/// Whether something is mounted at `name` in `directory`. Asks for no list of mounts, whatever the kernel.
pub fn is_mount_root(directory: BorrowedFd<'_>, name: &CStr) -> Outcome<bool> {
    Ok(glance(directory, name, StatxFlags::MNT_ID)?.is_some_and(|glance| glance.mount_root))
}

fn glance(directory: BorrowedFd<'_>, name: &CStr, id: StatxFlags) -> Outcome<Option<Glance>> {
    // DONT_SYNC: the answer of a network or FUSE server is not waited for.
    let flags =
        AtFlags::STATX_DONT_SYNC | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    let mask = StatxFlags::TYPE | StatxFlags::INO | id;
    let answer = match rustix::fs::statx(directory, name, flags, mask) {
        Ok(answer) => answer,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(Failure { step: "statx", errno }),
    };
    if answer.stx_mask & id.bits() == 0 || !answer.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) {
        return Err(Failure { step: "statx", errno: Errno::NOSYS });
    }
    Ok(Some(Glance {
        kind: FileType::from_raw_mode(answer.stx_mode.into()),
        identity: FileIdentity {
            device: rustix::fs::makedev(answer.stx_dev_major, answer.stx_dev_minor),
            inode: answer.stx_ino,
        },
        mount_root: answer.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        mount_id: answer.stx_mnt_id,
    }))
}

/// Whether this kernel answers `statmount`, `listmount` and unique ids (6.8). One without the others is of no use.
pub fn has_statmount() -> bool {
    let own = glance(CWD, c".", STATX_MNT_ID_UNIQUE).ok().flatten();
    own.is_some_and(|own| syscalls::statmount(own.mount_id).is_ok())
        && syscalls::listmount(syscalls::LISTMOUNT_ROOT, 0, &mut [0]).is_ok()
}

impl From<MountStatus> for MountEntry {
    fn from(status: MountStatus) -> Self {
        MountEntry {
            id: status.id,
            parent: status.parent,
            device: status.device,
            root: status.root,
            mount_point: status.mount_point,
            attributes: status.attributes,
            shared: status.propagation & propagation::SHARED != 0,
        }
    }
}

impl From<MountLine> for MountEntry {
    fn from(line: MountLine) -> Self {
        MountEntry {
            attributes: attributes_of(&line),
            id: line.id,
            parent: line.parent,
            device: line.device,
            root: line.root,
            mount_point: line.mount_point,
            shared: line.shared.is_some(),
        }
    }
}

/// Field 6 of a mountinfo line as attribute bits. A line without an access-time word is `strictatime`.
fn attributes_of(line: &MountLine) -> u64 {
    let access_time = if line.has_option("noatime") {
        attr::NOATIME
    } else if line.has_option("relatime") {
        0
    } else {
        attr::STRICTATIME
    };
    [
        ("ro", attr::RDONLY),
        ("nosuid", attr::NOSUID),
        ("nodev", attr::NODEV),
        ("noexec", attr::NOEXEC),
        ("nodiratime", attr::NODIRATIME),
    ]
    .into_iter()
    .filter(|(option, _)| line.has_option(option))
    .fold(access_time, |bits, (_, bit)| bits | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, parent: u64, mount_point: &str) -> (u64, MountEntry) {
        let entry = MountEntry {
            id,
            parent,
            device: (0, 1),
            root: b"/".to_vec(),
            mount_point: mount_point.into(),
            attributes: 0,
            shared: false,
        };
        (id, entry)
    }

    fn ids(view: &View, top: u64) -> Vec<u64> {
        view.stack(top).unwrap().iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn a_stack_is_the_mounts_on_one_mount_point_from_the_top() {
        let view = View::Table(HashMap::from([
            entry(1, 1, "/"),
            entry(2, 1, "/k"),
            entry(3, 2, "/k/t"),
            entry(4, 3, "/k/t"),
            entry(5, 4, "/k/t"),
        ]));
        assert_eq!(ids(&view, 5), [5, 4, 3]);
        assert_eq!(ids(&view, 2), [2]);
        assert_eq!(ids(&view, 1), [1]);
        assert_eq!(ids(&view, 9), [0u64; 0]);
    }

    #[test]
    fn c11_the_second_line_of_one_propagated_bind_is_no_part_of_the_stack() {
        // A kubelet directory bound on itself below a shared parent: the bind at /k/t is shown for both.
        let view = View::Table(HashMap::from([
            entry(1, 1, "/"),
            entry(2, 1, "/k"),
            entry(3, 1, "/k/t"),
            entry(4, 2, "/k/t"),
        ]));
        assert_eq!(ids(&view, 4), [4]);
    }

    #[test]
    fn a_loop_in_the_table_is_an_error() {
        let view = View::Table(HashMap::from([entry(1, 2, "/t"), entry(2, 1, "/t")]));
        assert_eq!(view.stack(1).unwrap_err().errno, Errno::LOOP);
    }

    #[test]
    fn flags_are_read_from_field_six() {
        let flags = |options: &str| {
            let line = format!("1 2 0:3 / /m {options} - tmpfs none rw");
            MountEntry::from(mountinfo::parse(line.as_bytes()).unwrap().remove(0)).attributes
        };
        assert_eq!(flags("rw,relatime"), 0);
        assert_eq!(flags("rw"), attr::STRICTATIME);
        assert_eq!(
            flags("ro,nosuid,nodev,noexec,noatime,nodiratime"),
            attr::RDONLY | attr::NOSUID | attr::NODEV | attr::NOEXEC | attr::NOATIME | attr::NODIRATIME
        );
    }

    #[test]
    fn both_views_tell_the_same_of_this_process_root() {
        if !has_statmount() {
            eprintln!("this kernel has no statmount: there is one view only");
            return;
        }
        let told = [View::Kernel, View::table().unwrap()].map(|view| {
            let id = view.glance(CWD, c"/").unwrap().unwrap().mount_id;
            let entry = view.entry(id).unwrap().unwrap();
            (entry.device, entry.root, entry.mount_point, entry.attributes, entry.shared)
        });
        assert_eq!(told[0], told[1]);
    }
}
