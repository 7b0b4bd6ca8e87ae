//! Where a pod's volume is to be seen: the target path, the kubelet's directory it lies below, and what the
//! kubelet's layout says about the pod (C13, C18). Paths are compared as text; nothing is looked up here.

use std::cmp::Ordering;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::pod::PodUid;

/// The longest path the kernel takes, in bytes, its closing NUL left out.
pub const PATH_LENGTH_MAX: usize = 4095;
/// The longest name of one file, in bytes.
pub const NAME_LENGTH_MAX: usize = 255;

/// The directory that `--kubelet-dir` names, and where it really is (they differ where it is a symlink).
/// Mounts carry the real path, requests either; a [`TargetPath`] always carries the real one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletDir {
    configured: PathBuf,
    resolved: PathBuf,
}

/// An absolute path without `.` and `..`, in one spelling: no doubled or trailing slash, and below the
/// kubelet's directory with its real prefix.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetPath(PathBuf);

/// Why a string is no target path. The texts become event messages.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    #[error("the target path is empty")]
    Empty,
    #[error("the target path is not absolute; it must be one below --kubelet-dir")]
    NotAbsolute,
    #[error("the target path has a '..' component; it must be a plain one below --kubelet-dir")]
    ParentComponent,
    #[error("the target path has a NUL byte")]
    NulByte,
    #[error("the target path, or one name in it, is longer than the kernel takes")]
    TooLong,
    #[error(
        "the target path is not below {kubelet_dir}: let --kubelet-dir name the kubelet's root directory"
    )]
    NotBelowKubeletDir { kubelet_dir: String },
}

/// By its bytes: it has one spelling, and a `PathBuf` compares name by name, which shows among thousands of them.
impl Ord for TargetPath {
    fn cmp(&self, other: &TargetPath) -> Ordering {
        self.0.as_os_str().cmp(other.0.as_os_str())
    }
}

impl PartialOrd for TargetPath {
    fn partial_cmp(&self, other: &TargetPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TargetPath {
    fn eq(&self, other: &TargetPath) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for TargetPath {}

impl KubeletDir {
    pub fn new(configured: PathBuf, resolved: PathBuf) -> KubeletDir {
        KubeletDir { configured, resolved }
    }

    /// The directory by its real path.
    pub fn path(&self) -> &Path {
        &self.resolved
    }
}

impl TargetPath {
    /// Reads a target path as an unpublish may name it: any absolute path.
    pub fn parse(raw: &str, kubelet_dir: &KubeletDir) -> Result<TargetPath, TargetError> {
        if raw.is_empty() {
            return Err(TargetError::Empty);
        }
        if raw.contains('\0') {
            return Err(TargetError::NulByte);
        }
        if raw.len() > PATH_LENGTH_MAX {
            return Err(TargetError::TooLong);
        }
        let path = Path::new(raw);
        if !path.is_absolute() {
            return Err(TargetError::NotAbsolute);
        }
        let mut spelled = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => return Err(TargetError::ParentComponent),
                Component::Normal(name) if name.len() > NAME_LENGTH_MAX => return Err(TargetError::TooLong),
                Component::RootDir | Component::Normal(_) => spelled.push(component),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        match spelled.strip_prefix(&kubelet_dir.configured) {
            Ok(rest) if !rest.as_os_str().is_empty() => Ok(TargetPath(kubelet_dir.resolved.join(rest))),
            Ok(_) => Ok(TargetPath(kubelet_dir.resolved.clone())),
            Err(_) => Ok(TargetPath(spelled)),
        }
    }

    /// Reads a target path as a publish must name it: below the kubelet's directory (C18).
    pub fn parse_for_publish(raw: &str, kubelet_dir: &KubeletDir) -> Result<TargetPath, TargetError> {
        let target = TargetPath::parse(raw, kubelet_dir)?;
        if target.is_below(kubelet_dir) {
            return Ok(target);
        }
        let kubelet_dir = kubelet_dir.configured.display().to_string();
        Err(TargetError::NotBelowKubeletDir { kubelet_dir })
    }

    /// A mount point as the kernel names it.
    pub fn from_mount_point(path: PathBuf) -> TargetPath {
        TargetPath(path)
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Strictly below: the directory itself is no target.
    pub fn is_below(&self, kubelet_dir: &KubeletDir) -> bool {
        self.0.strip_prefix(&kubelet_dir.resolved).is_ok_and(|rest| !rest.as_os_str().is_empty())
    }

    /// Whether the kubelet keeps its own binds of parts of volumes here (`pods/UID/volume-subpaths/…`).
    /// Such a bind shows a copy or a part of it, but is nobody's target.
    pub fn is_subpath_bind(&self, kubelet_dir: &KubeletDir) -> bool {
        self.names_below(kubelet_dir)
            .is_some_and(|names| names.len() > 3 && names[0] == "pods" && names[2] == "volume-subpaths")
    }

    /// The pod's UID, where the path has the kubelet's shape `pods/UID/volumes/kubernetes.io~csi/PV/mount`.
    pub fn pod_uid(&self, kubelet_dir: &KubeletDir) -> Option<PodUid> {
        let names = self.names_below(kubelet_dir)?;
        match names.as_slice() {
            ["pods", uid, "volumes", "kubernetes.io~csi", _, "mount"] => PodUid::parse(uid),
            _ => None,
        }
    }

    fn names_below(&self, kubelet_dir: &KubeletDir) -> Option<Vec<&str>> {
        let rest = self.0.strip_prefix(&kubelet_dir.resolved).ok()?;
        rest.iter().map(|name| name.to_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubelet() -> KubeletDir {
        KubeletDir::new("/var/lib/kubelet".into(), "/data/kubelet".into())
    }

    #[track_caller]
    fn check(raw: &str, expect: Result<&str, TargetError>) {
        let got = TargetPath::parse_for_publish(raw, &kubelet());
        assert_eq!(got.map(|t| t.0), expect.map(PathBuf::from), "{raw:?}");
    }

    #[test]
    fn c18_a_target_below_the_kubelet_directory_gets_its_real_path() {
        check("/var/lib/kubelet/pods/u/mount", Ok("/data/kubelet/pods/u/mount"));
        check("/data/kubelet/pods/u/mount", Ok("/data/kubelet/pods/u/mount"));
        check("/var//lib/./kubelet/x/", Ok("/data/kubelet/x"));
    }

    #[test]
    fn c18_other_targets_are_refused_and_the_flag_is_named() {
        let outside = TargetError::NotBelowKubeletDir { kubelet_dir: "/var/lib/kubelet".into() };
        assert!(outside.to_string().contains("--kubelet-dir"));
        for raw in ["/var/lib/kubelet", "/var/lib/kubelets/x", "/", "/mnt/x", "/data/kubelet/"] {
            check(raw, Err(outside.clone()));
        }
        check("", Err(TargetError::Empty));
        check("var/lib/kubelet/x", Err(TargetError::NotAbsolute));
        check("/var/lib/kubelet/../x", Err(TargetError::ParentComponent));
        for error in [TargetError::NotAbsolute, TargetError::ParentComponent] {
            assert!(error.to_string().contains("--kubelet-dir"), "{error}");
        }
        check("/var/lib/kubelet/a\0b", Err(TargetError::NulByte));
        check(&format!("/var/lib/kubelet/{}", "a".repeat(256)), Err(TargetError::TooLong));
        check(&format!("/var/lib/kubelet{}", "/a".repeat(2100)), Err(TargetError::TooLong));
    }

    #[test]
    fn c18_a_path_may_be_as_long_as_the_kernel_takes_it() {
        let name = "a".repeat(NAME_LENGTH_MAX);
        check(&format!("/var/lib/kubelet/{name}"), Ok(&format!("/data/kubelet/{name}")));
        let longest = format!("/var/lib/kubelet/{}", "a/".repeat(PATH_LENGTH_MAX));
        let parse = |length: usize| TargetPath::parse(&longest[..length], &kubelet()).map(|_| ());
        assert_eq!(parse(PATH_LENGTH_MAX), Ok(()));
        assert_eq!(parse(PATH_LENGTH_MAX + 1), Err(TargetError::TooLong));
    }

    #[test]
    fn c17_the_kubelet_directory_itself_gets_its_real_path_and_nothing_more() {
        let target = TargetPath::parse("/var/lib/kubelet/", &kubelet()).unwrap();
        assert_eq!(target.as_path().as_os_str(), "/data/kubelet");
    }

    #[test]
    fn c15_the_kubelets_own_binds_lie_below_a_pods_subpaths() {
        let is_bind = |raw: &str| TargetPath::parse(raw, &kubelet()).unwrap().is_subpath_bind(&kubelet());
        assert!(is_bind("/var/lib/kubelet/pods/u/volume-subpaths/pv/container/0"));
        for other in ["pods/u/volume-subpaths", "pods/u/volumes/pv/mount", "plugins/u/volume-subpaths/pv/c/0"]
        {
            assert!(!is_bind(&format!("/var/lib/kubelet/{other}")), "{other}");
        }
    }

    #[test]
    fn c13_the_uid_is_read_from_the_kubelets_shape_alone() {
        let uid = |raw: &str| TargetPath::parse(raw, &kubelet()).unwrap().pod_uid(&kubelet());
        assert_eq!(uid("/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~csi/pv/mount"), PodUid::parse("u-1"));
        assert_eq!(uid("/data/kubelet/pods/u-1/volumes/kubernetes.io~csi/pv/mount"), PodUid::parse("u-1"));
        assert_eq!(uid("/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~csi/pv"), None);
        assert_eq!(uid("/elsewhere/pods/u-1/volumes/kubernetes.io~csi/pv/mount"), None);
        assert_eq!(uid("/var/lib/kubelet/target"), None);
    }
}
