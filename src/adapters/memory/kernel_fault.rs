//! Which port error an errno is, by the classes that the ports name.

use std::path::Path;

use crate::ports::copies::CopiesError;
use crate::ports::failure::Failure;
use crate::ports::mounts::MountsError;
use crate::ports::records::RecordsError;

/// Errno numbers as Linux has them; this adapter names no system crate.
pub mod errno {
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EIO: i32 = 5;
    pub const ENOMEM: i32 = 12;
    pub const EACCES: i32 = 13;
    pub const EBUSY: i32 = 16;
    pub const EEXIST: i32 = 17;
    pub const EXDEV: i32 = 18;
    pub const ENOTDIR: i32 = 20;
    pub const EINVAL: i32 = 22;
    pub const ENFILE: i32 = 23;
    pub const EMFILE: i32 = 24;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
    pub const ENOSYS: i32 = 38;
    pub const ENOTEMPTY: i32 = 39;
    pub const ELOOP: i32 = 40;
    pub const EMSGSIZE: i32 = 90;
    pub const EOPNOTSUPP: i32 = 95;
    pub const ESTALE: i32 = 116;
    pub const EDQUOT: i32 = 122;
}

/// What a kernel call can be told to end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFault {
    Errno(i32),
    /// The call is lost on the way: the port's `Unknown`.
    Lost,
}

/// A failure of `operation` on `path`.
pub(super) fn failure(operation: &'static str, path: &Path, errno: i32) -> Failure {
    Failure { operation, path: path.to_owned(), errno }
}

pub(super) fn mounts_error(failure: Failure) -> MountsError {
    match failure.errno {
        errno::EBUSY => MountsError::Busy(failure),
        errno::ENOENT | errno::ENOTDIR | errno::ESTALE => MountsError::Missing(failure),
        errno::EEXIST | errno::ENOTEMPTY | errno::ELOOP => MountsError::Occupied(failure),
        errno::ENOSPC | errno::EDQUOT | errno::ENOMEM | errno::EMFILE | errno::ENFILE => {
            MountsError::Exhausted(failure)
        }
        errno::EPERM | errno::EACCES | errno::EROFS => MountsError::Denied(failure),
        errno::EINVAL | errno::EOPNOTSUPP | errno::ENOSYS => MountsError::Unsupported(failure),
        _ => MountsError::Io(failure),
    }
}

pub(super) fn copies_error(failure: Failure) -> CopiesError {
    match failure.errno {
        errno::ENOSPC | errno::EDQUOT => CopiesError::NoSpace(failure),
        errno::ENOENT => CopiesError::Missing(failure),
        errno::ENOTDIR | errno::EEXIST | errno::ELOOP => CopiesError::NotADirectory(failure),
        errno::EBUSY => CopiesError::MountPoint(failure),
        errno::EPERM | errno::EACCES | errno::EROFS => CopiesError::Denied(failure),
        errno::EXDEV => CopiesError::OtherMount(failure),
        _ => CopiesError::Io(failure),
    }
}

pub(super) fn records_error(failure: Failure) -> RecordsError {
    match failure.errno {
        errno::ENOSPC => RecordsError::Full(failure),
        errno::EMSGSIZE => RecordsError::TooLarge(failure),
        errno::EROFS => RecordsError::ReadOnly(failure),
        _ => RecordsError::Io(failure),
    }
}

/// The error of a fault, given the classes of a port and its `Unknown`.
pub(super) fn of_fault<P>(
    fault: KernelFault,
    operation: &'static str,
    path: &Path,
    class: impl Fn(Failure) -> P,
    unknown: impl Fn(Failure) -> P,
) -> P {
    match fault {
        KernelFault::Errno(errno) => class(failure(operation, path, errno)),
        KernelFault::Lost => unknown(failure(operation, path, 0)),
    }
}
