//! A target path, opened the way every mount call here needs it: its parent held, its last component a name.
//!
//! Below the kubelet's directory no symlink is followed; the directory itself is resolved once, at start. The last
//! component is never followed, wherever the target is (C17, C18).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::failure::{Failure, Outcome, Step};
use super::places;
use super::store::open_below;
use super::view;
use crate::domain::target::{KubeletDir, TargetPath};

/// A place for a mount.
#[derive(Debug)]
pub struct OpenTarget {
    parent: OwnedFd,
    name: CString,
}

const DIRECTORY_PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

/// Resolves the kubelet's directory once, symlinks in it included.
pub fn resolve_kubelet_dir(configured: &Path) -> Outcome<KubeletDir> {
    let resolved = std::fs::canonicalize(configured).step("resolve")?;
    Ok(KubeletDir::new(configured.to_owned(), resolved))
}

/// Opens the parent of `target`; `None` where there is none.
pub fn open(kubelet_dir: &KubeletDir, target: &TargetPath) -> Outcome<Option<OpenTarget>> {
    let Some((parent, name)) = split(target.as_path()) else { return Ok(None) };
    // Elsewhere than below the kubelet's directory only an unpublish comes here, and it acts on nothing that is not
    // ours; there a symlink on the way may be an older spelling of the kubelet's directory.
    let resolve = if target.is_below(kubelet_dir) {
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
    } else {
        ResolveFlags::NO_MAGICLINKS
    };
    match rustix::fs::openat2(CWD, parent, DIRECTORY_PATH, Mode::empty(), resolve) {
        Ok(parent) => Ok(Some(OpenTarget { parent, name })),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
        Err(errno) => Err(Failure { step: "open the parent of", errno }),
    }
}

impl OpenTarget {
    pub fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// The whole path without symlinks, as mountinfo prints mount points.
    pub fn path(&self) -> Outcome<Vec<u8>> {
        Ok(places::joined(&view::path_of(self.parent())?, self.name.to_bytes()))
    }

    /// A path for calls that take no descriptor: the held parent, and the name in it.
    pub fn call_path(&self) -> Vec<u8> {
        let mut path = format!("/proc/self/fd/{}/", self.parent.as_raw_fd()).into_bytes();
        path.extend_from_slice(self.name.to_bytes());
        path
    }

    /// Opens the target itself, O_PATH: that asks no file system anything. While it is open the target is busy.
    pub fn open_directory(&self) -> Outcome<OwnedFd> {
        open_below(self.parent(), &self.name, DIRECTORY_PATH | OFlags::NOFOLLOW, Mode::empty()).step("open")
    }
}

/// The parent and the last component of an absolute path; `None` for the root, for `.` and `..` at the end, and for
/// bytes that no file name has.
fn split(target: &Path) -> Option<(&Path, CString)> {
    let parent = target.is_absolute().then(|| target.parent()).flatten()?;
    match target.components().next_back()? {
        Component::Normal(name) => Some((parent, CString::new(name.as_bytes()).ok()?)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn made() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(scratch.path()).unwrap();
        std::fs::create_dir_all(real.join("real/pods/p")).unwrap();
        symlink("real", real.join("link")).unwrap();
        symlink("p", real.join("real/pods/q")).unwrap();
        (scratch, real)
    }

    fn opened(kubelet_dir: &Path, target: &Path) -> Outcome<Option<OpenTarget>> {
        let kubelet_dir = resolve_kubelet_dir(kubelet_dir).unwrap();
        open(&kubelet_dir, &TargetPath::parse(target.to_str().unwrap(), &kubelet_dir).unwrap())
    }

    fn path_through(kubelet_dir: &Path, target: &Path) -> Vec<u8> {
        opened(kubelet_dir, target).unwrap().unwrap().path().unwrap()
    }

    #[test]
    fn c18_the_kubelet_directory_may_be_a_symlink_and_both_spellings_lead_to_one_place() {
        let (_scratch, real) = made();
        for spelling in ["link", "real"] {
            let path = path_through(&real.join("link"), &real.join(spelling).join("pods/p/mount"));
            assert_eq!(path, real.join("real/pods/p/mount").as_os_str().as_bytes());
        }
    }

    #[test]
    fn c18_below_the_kubelet_directory_no_symlink_is_followed() {
        let (_scratch, real) = made();
        let error = opened(&real.join("link"), &real.join("link/pods/q/mount")).unwrap_err();
        assert_eq!(error.errno, Errno::LOOP);
    }

    #[test]
    fn c17_a_target_whose_parent_is_gone_is_absent() {
        let (_scratch, real) = made();
        std::fs::write(real.join("real/file"), "").unwrap();
        for absent in ["real/pods/none/mount", "real/file/mount", "none/mount", "/"] {
            assert!(opened(&real.join("real"), &real.join(absent)).unwrap().is_none(), "{absent}");
        }
    }

    #[test]
    fn c17_elsewhere_the_parent_may_be_reached_through_a_symlink() {
        let (_scratch, real) = made();
        let path = path_through(&real.join("real/pods/p"), &real.join("link/pods/q/mount"));
        assert_eq!(path, real.join("real/pods/p/mount").as_os_str().as_bytes());
    }

    #[test]
    fn c17_the_last_component_is_never_followed() {
        let (_scratch, real) = made();
        let open = opened(&real.join("real"), &real.join("real/pods/q")).unwrap().unwrap();
        assert_eq!(open.path().unwrap(), real.join("real/pods/q").as_os_str().as_bytes());
        assert_eq!(open.open_directory().unwrap_err().errno, Errno::NOTDIR);
    }
}
