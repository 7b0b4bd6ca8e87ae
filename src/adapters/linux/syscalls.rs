//! The kernel calls that neither rustix nor nix wraps: `mount_setattr`, `statmount`, `listmount`, and the two
//! btrfs ioctls that clear a snapshot's read-only property. And one setting of the C library's allocator.
//!
//! This is the one file of the crate with `unsafe` of its own. It never decides anything: it hands memory it owns to
//! the kernel, checks the length of what comes back, and parses that with ordinary slices.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, Result};

/// `MOUNT_ATTR_*` bits as `mount_setattr` takes them and `statmount` answers them.
pub mod attr {
    pub const RDONLY: u64 = 0x01;
    pub const NOSUID: u64 = 0x02;
    pub const NODEV: u64 = 0x04;
    pub const NOEXEC: u64 = 0x08;
    /// The field that holds the access-time policy; zero in it is `relatime`.
    pub const ATIME_FIELD: u64 = 0x70;
    pub const NOATIME: u64 = 0x10;
    pub const STRICTATIME: u64 = 0x20;
    pub const NODIRATIME: u64 = 0x80;
}

/// Propagation types, the same numbers for `mount_setattr` and in `statmount`'s answer.
pub mod propagation {
    pub const PRIVATE: u64 = 1 << 18;
    pub const SLAVE: u64 = 1 << 19;
    pub const SHARED: u64 = 1 << 20;
}

/// What `mount_setattr` changes on a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AttrChange {
    pub set: u64,
    pub clear: u64,
    /// One of [`propagation`], or 0 to leave it.
    pub propagation: u64,
    /// Only for id-mapped mounts, which this driver makes none of.
    userns_fd: u64,
}

impl AttrChange {
    /// A change of flags and, where not 0, of propagation.
    pub fn new(set: u64, clear: u64, propagation: u64) -> Self {
        Self { set, clear, propagation, userns_fd: 0 }
    }
}

/// Changes the mount that `mount` is the root of (and that mount alone).
pub fn mount_setattr(mount: impl AsFd, change: AttrChange) -> Result<()> {
    // SAFETY: the path is a static NUL-terminated string, `change` is a live `repr(C)` struct of exactly the size
    // given, and the kernel keeps neither pointer after the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const change,
            size_of::<AttrChange>(),
        )
    };
    checked(answer).map(drop)
}

/// What `statmount` says of one mount, by its unique id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountStatus {
    pub id: u64,
    pub parent: u64,
    /// The device of the superblock, as mountinfo prints it (on btrfs not what stat says of its files).
    pub device: (u32, u32),
    /// [`attr`] bits of the mount (not of the superblock).
    pub attributes: u64,
    /// [`propagation`] bits.
    pub propagation: u64,
    /// The directory of the file system that the mount shows, `//deleted` at its end when that is gone.
    pub root: Vec<u8>,
    /// The mount point as this process reaches it; empty when it cannot.
    pub mount_point: Vec<u8>,
}

/// `struct mnt_id_req`, first published version.
#[repr(C)]
struct MountIdRequest {
    size: u32,
    spare: u32,
    mount_id: u64,
    param: u64,
}

const MOUNT_ID_REQUEST_BYTES: u32 = size_of::<MountIdRequest>() as u32;
/// `statmount` and `listmount` have one number on every architecture, counted from the table's base; libc does not
/// name them yet, so they are counted from their neighbour.
pub const SYS_STATMOUNT: libc::c_long = libc::SYS_mount_setattr + 15;
pub const SYS_LISTMOUNT: libc::c_long = libc::SYS_mount_setattr + 16;

const STATMOUNT_SB_BASIC: u64 = 0x01;
const STATMOUNT_MNT_BASIC: u64 = 0x02;
const STATMOUNT_MNT_ROOT: u64 = 0x08;
const STATMOUNT_MNT_POINT: u64 = 0x10;
const STATMOUNT_WANTED: u64 =
    STATMOUNT_SB_BASIC | STATMOUNT_MNT_BASIC | STATMOUNT_MNT_ROOT | STATMOUNT_MNT_POINT;

/// Offsets in `struct statmount`.
mod offset {
    pub const MASK: usize = 8;
    pub const SB_DEV_MAJOR: usize = 16;
    pub const SB_DEV_MINOR: usize = 20;
    pub const MNT_ID: usize = 40;
    pub const MNT_PARENT_ID: usize = 48;
    pub const MNT_ATTR: usize = 64;
    pub const MNT_PROPAGATION: usize = 72;
    pub const MNT_ROOT: usize = 104;
    pub const MNT_POINT: usize = 108;
    /// The strings begin here; the offsets above are relative to it.
    pub const STRINGS: usize = 512;
}

/// First size of `statmount`'s answer, in 8-byte words: room for two paths of PATH_MAX each is rarely needed.
const STATMOUNT_FIRST_WORDS: usize = 256;
/// Roots of 200 KB were seen in the wild; past this the kernel itself gives up.
const STATMOUNT_MAX_WORDS: usize = 1 << 20;

/// The pseudo id that stands for the root of the caller's namespace in [`listmount`].
pub const LISTMOUNT_ROOT: u64 = u64::MAX;

/// Asks the kernel about one mount by its unique id; ENOENT when there is none (any more).
pub fn statmount(mount_id: u64) -> Result<MountStatus> {
    let request =
        MountIdRequest { size: MOUNT_ID_REQUEST_BYTES, spare: 0, mount_id, param: STATMOUNT_WANTED };
    let mut words = STATMOUNT_FIRST_WORDS;
    loop {
        let mut answer = vec![0u64; words];
        // SAFETY: the request is a live `repr(C)` struct that carries its own size; the answer is owned, 8-byte
        // aligned memory of exactly the length given, zeroed, so that whatever the kernel leaves out reads as 0.
        let outcome = unsafe {
            libc::syscall(SYS_STATMOUNT, &raw const request, answer.as_mut_ptr(), words * size_of::<u64>(), 0)
        };
        match checked(outcome) {
            Ok(_) => return parse_statmount(&words_to_bytes(&answer)),
            Err(Errno::OVERFLOW) if words < STATMOUNT_MAX_WORDS => words *= 8,
            Err(other) => return Err(other),
        }
    }
}

/// Lists unique ids of all mounts below the mount `above` (its children and theirs), after `last` (0 at first), into
/// `ids`. Fewer than fit mean that the list is at its end.
pub fn listmount(above: u64, last: u64, ids: &mut [u64]) -> Result<usize> {
    let request = MountIdRequest { size: MOUNT_ID_REQUEST_BYTES, spare: 0, mount_id: above, param: last };
    // SAFETY: as above; the kernel writes at most `ids.len()` ids of 8 bytes.
    let count = unsafe { libc::syscall(SYS_LISTMOUNT, &raw const request, ids.as_mut_ptr(), ids.len(), 0) };
    checked(count).map(|count| (count as usize).min(ids.len()))
}

/// `BTRFS_IOC_SUBVOL_GETFLAGS` and `_SETFLAGS`: `_IOR(0x94, 25, u64)` and `_IOW(0x94, 26, u64)` in the encoding of
/// x86, arm and risc-v. Elsewhere the ioctl fails with ENOTTY and the snapshot is reported as undeletable.
pub const BTRFS_SUBVOLUME_GET_FLAGS: u64 = 0x8008_9419;
pub const BTRFS_SUBVOLUME_SET_FLAGS: u64 = 0x4008_941a;
const BTRFS_SUBVOLUME_READ_ONLY: u64 = 1 << 1;

/// Clears the read-only property of the btrfs subvolume whose root `directory` is; true when it was set.
pub fn clear_subvolume_read_only(directory: impl AsFd) -> Result<bool> {
    let descriptor = directory.as_fd().as_raw_fd();
    let mut flags = 0u64;
    // SAFETY: both requests transfer exactly one u64 through a pointer to a live u64.
    checked(unsafe { libc::ioctl(descriptor, BTRFS_SUBVOLUME_GET_FLAGS as _, &raw mut flags) }.into())?;
    if flags & BTRFS_SUBVOLUME_READ_ONLY == 0 {
        return Ok(false);
    }
    flags &= !BTRFS_SUBVOLUME_READ_ONLY;
    // SAFETY: as above.
    checked(unsafe { libc::ioctl(descriptor, BTRFS_SUBVOLUME_SET_FLAGS as _, &raw const flags) }.into())?;
    Ok(true)
}

/// Has all threads allocate from at most that many heaps. Glibc otherwise makes up to eight for each processor, and keeps
/// in each what its busiest moment took. Other C libraries have one anyway.
pub fn limit_heaps(heaps: u8) {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes two numbers. A refusal, which glibc does not give, would leave things as they are.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, heaps.into());
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = heaps;
}

/// How soon the disk serves a thread, where its scheduler looks at that: the classes of `ioprio_set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    /// As the thread's priority says.
    Usual = 0,
    /// When nobody else wants anything.
    Idle = 3,
}

const IOPRIO_WHO_PROCESS: libc::c_int = 1;
const IOPRIO_CLASS_SHIFT: u32 = 13;

/// Puts the calling thread into the class. It needs no privilege, neither there nor back.
pub fn set_io_class(class: IoClass) -> Result<()> {
    let priority = (class as u32) << IOPRIO_CLASS_SHIFT;
    // SAFETY: the call takes three numbers.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, priority) };
    checked(answer).map(drop)
}

/// The class of the calling thread.
#[cfg(test)]
pub fn io_class() -> Result<u32> {
    // SAFETY: the call takes two numbers.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
    checked(answer).map(|priority| (priority as u32) >> IOPRIO_CLASS_SHIFT)
}

fn checked(answer: libc::c_long) -> Result<libc::c_long> {
    if answer < 0 {
        let raw = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(raw));
    }
    Ok(answer)
}

fn words_to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn parse_statmount(answer: &[u8]) -> Result<MountStatus> {
    // A kernel that leaves out what was asked for is one this parser does not know: EPROTO, never a guess.
    if u64_at(answer, offset::MASK)? & STATMOUNT_WANTED != STATMOUNT_WANTED {
        return Err(Errno::PROTO);
    }
    Ok(MountStatus {
        id: u64_at(answer, offset::MNT_ID)?,
        parent: u64_at(answer, offset::MNT_PARENT_ID)?,
        device: (u32_at(answer, offset::SB_DEV_MAJOR)?, u32_at(answer, offset::SB_DEV_MINOR)?),
        attributes: u64_at(answer, offset::MNT_ATTR)?,
        propagation: u64_at(answer, offset::MNT_PROPAGATION)?,
        root: string_at(answer, u32_at(answer, offset::MNT_ROOT)?)?,
        mount_point: string_at(answer, u32_at(answer, offset::MNT_POINT)?)?,
    })
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    let field = bytes.get(at..at + 8).ok_or(Errno::PROTO)?;
    Ok(u64::from_ne_bytes(field.try_into().map_err(|_| Errno::PROTO)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let field = bytes.get(at..at + 4).ok_or(Errno::PROTO)?;
    Ok(u32::from_ne_bytes(field.try_into().map_err(|_| Errno::PROTO)?))
}

fn string_at(bytes: &[u8], at: u32) -> Result<Vec<u8>> {
    let rest = bytes.get(offset::STRINGS + at as usize..).ok_or(Errno::PROTO)?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or(Errno::PROTO)?;
    Ok(rest[..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_with(mask: u64, strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; offset::STRINGS];
        bytes[offset::MASK..offset::MASK + 8].copy_from_slice(&mask.to_ne_bytes());
        bytes[offset::MNT_POINT..offset::MNT_POINT + 4].copy_from_slice(&3u32.to_ne_bytes());
        bytes.extend_from_slice(strings);
        bytes
    }

    #[test]
    fn strings_are_found_by_their_offsets() {
        let status = parse_statmount(&answer_with(STATMOUNT_WANTED, b"/r\0/m\0")).unwrap();
        assert_eq!((status.root, status.mount_point), (b"/r".to_vec(), b"/m".to_vec()));
    }

    #[test]
    fn an_answer_that_lacks_a_field_is_no_answer() {
        assert_eq!(parse_statmount(&answer_with(STATMOUNT_MNT_BASIC, b"/r\0/m\0")), Err(Errno::PROTO));
    }

    #[test]
    fn a_string_that_runs_out_of_the_answer_is_no_answer() {
        assert_eq!(parse_statmount(&answer_with(STATMOUNT_WANTED, b"/r\0/m")), Err(Errno::PROTO));
        assert_eq!(parse_statmount(&answer_with(STATMOUNT_WANTED, b"")), Err(Errno::PROTO));
        assert_eq!(parse_statmount(b"short"), Err(Errno::PROTO));
    }
}
