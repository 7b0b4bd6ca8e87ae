//! What went wrong inside this adapter: the step, and what the kernel said to it.
//!
//! It stays in here. Each port's error is made from it in one place, by class of errno; a class is never guessed
//! from the step.

use std::path::Path;

use rustix::io::Errno;

use crate::ports::copies::CopiesError;
use crate::ports::failure::Failure as PortFailure;
use crate::ports::mounts::MountsError;

/// A step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What was tried, in words that a path can follow.
    pub step: &'static str,
    pub errno: Errno,
}

/// The result of a step.
pub type Outcome<T> = Result<T, Failure>;

/// Names the step that an error came from.
pub trait Step<T> {
    fn step(self, step: &'static str) -> Outcome<T>;
}

impl<T> Step<T> for Result<T, Errno> {
    fn step(self, step: &'static str) -> Outcome<T> {
        self.map_err(|errno| Failure { step, errno })
    }
}

impl<T> Step<T> for std::io::Result<T> {
    fn step(self, step: &'static str) -> Outcome<T> {
        self.map_err(|error| Failure { step, errno: Errno::from_io_error(&error).unwrap_or(Errno::IO) })
    }
}

impl<T> Step<T> for nix::Result<T> {
    fn step(self, step: &'static str) -> Outcome<T> {
        self.map_err(|errno| Failure { step, errno: Errno::from_raw_os_error(errno as i32) })
    }
}

impl Failure {
    /// The failure as ports carry it, with the path that the caller knows it by.
    pub fn at(self, path: &Path) -> PortFailure {
        PortFailure { operation: self.step, path: path.to_owned(), errno: self.errno.raw_os_error() }
    }

    /// For a call about `path`, one of the kernel's mounts or a target.
    pub fn of_mount(self, path: &Path) -> MountsError {
        let failure = self.at(path);
        match self.errno {
            Errno::BUSY => MountsError::Busy(failure),
            Errno::NOENT | Errno::NOTDIR | Errno::STALE => MountsError::Missing(failure),
            Errno::EXIST | Errno::NOTEMPTY | Errno::LOOP => MountsError::Occupied(failure),
            Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::MFILE | Errno::NFILE => {
                MountsError::Exhausted(failure)
            }
            Errno::PERM | Errno::ACCESS | Errno::ROFS => MountsError::Denied(failure),
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS => MountsError::Unsupported(failure),
            _ => MountsError::Io(failure),
        }
    }

    /// For a call about `path` in the store.
    pub fn of_copy(self, path: &Path) -> CopiesError {
        let failure = self.at(path);
        match self.errno {
            Errno::NOSPC | Errno::DQUOT => CopiesError::NoSpace(failure),
            Errno::NOENT => CopiesError::Missing(failure),
            Errno::NOTDIR | Errno::EXIST | Errno::LOOP => CopiesError::NotADirectory(failure),
            Errno::BUSY => CopiesError::MountPoint(failure),
            Errno::PERM | Errno::ACCESS | Errno::ROFS => CopiesError::Denied(failure),
            Errno::XDEV => CopiesError::OtherMount(failure),
            _ => CopiesError::Io(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_step_path_and_errno_and_nothing_that_changes() {
        let failure = Failure { step: "move_mount", errno: Errno::BUSY };
        let text = failure.of_mount(Path::new("/t")).to_string();
        assert_eq!(text, "move_mount /t: Device or resource busy (os error 16)");
    }

    #[test]
    fn each_errno_has_its_class() {
        let mount = |errno| Failure { step: "x", errno }.of_mount(Path::new("/t"));
        assert!(matches!(mount(Errno::NOTDIR), MountsError::Missing(_)));
        assert!(matches!(mount(Errno::LOOP), MountsError::Occupied(_)));
        assert!(matches!(mount(Errno::MFILE), MountsError::Exhausted(_)));
        assert!(matches!(mount(Errno::ROFS), MountsError::Denied(_)));
        assert!(matches!(mount(Errno::NOSYS), MountsError::Unsupported(_)));
        assert!(matches!(mount(Errno::IO), MountsError::Io(_)));
        let copy = |errno| Failure { step: "x", errno }.of_copy(Path::new("/s"));
        assert!(matches!(copy(Errno::DQUOT), CopiesError::NoSpace(_)));
        assert!(matches!(copy(Errno::NOENT), CopiesError::Missing(_)));
        assert!(matches!(copy(Errno::NOTDIR), CopiesError::NotADirectory(_)));
        assert!(matches!(copy(Errno::BUSY), CopiesError::MountPoint(_)));
        assert!(matches!(copy(Errno::PERM), CopiesError::Denied(_)));
        assert!(matches!(copy(Errno::XDEV), CopiesError::OtherMount(_)));
        assert!(matches!(copy(Errno::IO), CopiesError::Io(_)));
    }
}
