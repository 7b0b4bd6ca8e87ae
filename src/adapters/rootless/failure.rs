//! From an I/O error to the ports' errors, by its kind, so that it means the same on every system. The errno that
//! a failure carries is the one of the system that the double runs on.

use std::io::{Error, ErrorKind};
use std::path::Path;

use crate::ports::copies::CopiesError;
use crate::ports::failure::Failure;
use crate::ports::mounts::MountsError;
use crate::ports::records::RecordsError;

pub fn failure(operation: &'static str, path: &Path, error: &Error) -> Failure {
    Failure { operation, path: path.to_owned(), errno: error.raw_os_error().unwrap_or_default() }
}

/// For a call about a target.
pub fn of_mount(operation: &'static str, path: &Path, error: &Error) -> MountsError {
    let failure = failure(operation, path, error);
    match error.kind() {
        ErrorKind::ResourceBusy => MountsError::Busy(failure),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::StaleNetworkFileHandle => {
            MountsError::Missing(failure)
        }
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => MountsError::Occupied(failure),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::OutOfMemory => {
            MountsError::Exhausted(failure)
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => MountsError::Denied(failure),
        ErrorKind::InvalidInput | ErrorKind::Unsupported => MountsError::Unsupported(failure),
        _ => MountsError::Io(failure),
    }
}

/// For a call about a path in the store.
pub fn of_copy(operation: &'static str, path: &Path, error: &Error) -> CopiesError {
    let failure = failure(operation, path, error);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => CopiesError::NoSpace(failure),
        ErrorKind::NotFound => CopiesError::Missing(failure),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => CopiesError::NotADirectory(failure),
        ErrorKind::ResourceBusy => CopiesError::MountPoint(failure),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => CopiesError::Denied(failure),
        ErrorKind::CrossesDevices => CopiesError::OtherMount(failure),
        _ => CopiesError::Io(failure),
    }
}

/// For a record.
pub fn of_record(path: &Path, error: &Error) -> RecordsError {
    let failure = failure("write", path, error);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => RecordsError::Full(failure),
        ErrorKind::ReadOnlyFilesystem => RecordsError::ReadOnly(failure),
        _ => RecordsError::Io(failure),
    }
}
