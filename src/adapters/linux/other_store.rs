//! Whether pods on this node still use another store: its disk was covered, moved away, or `--store` names another directory
//! since. A plugin that served the new one would give those volumes' next pods empty copies beside the ones in use (C12), and
//! could never unmount these, for it knows nothing of them (C17). So it does not start (C44).
//!
//! A target counts where the kubelet's note beside it names this driver, and a mount on it shows what is a copy of that volume in
//! some store (`…/copies/HANDLE`) and none shows a place in this one. It reads what the kernel and the kubelet say, and changes
//! nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;

use super::failure::Outcome;
use super::index;
use super::mounts::VOLUME_DATA;
use super::store::{StoreDirs, open_below};
use super::target;
use super::view::{MountEntry, View};
use crate::domain::target::{KubeletDir, TargetPath};

/// This much of the kubelet's note is read; it has some 300 bytes.
const VOLUME_DATA_BYTES_MAX: u64 = 64 * 1024;

/// A pod's target that shows a copy of another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strange {
    pub target: PathBuf,
    /// The copy, from the root of its file system.
    pub shown: PathBuf,
}

/// The part of the kubelet's note that is looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeData {
    driver_name: String,
    volume_handle: String,
}

/// The first such target, in the order of their paths.
pub fn find(store: &StoreDirs, kubelet_dir: &KubeletDir, driver_name: &str) -> Outcome<Option<Strange>> {
    // One reading for both questions: what goes between two would look like another store's.
    let view = View::table()?;
    let own = index::seen_in(&view, store.root())?;
    let View::Table(entries) = &view else { return Ok(None) };
    let own: HashSet<&[u8]> = own.mounts.iter().map(|(mounted, _)| mounted.mount_point.as_slice()).collect();
    let mut of_pods: BTreeMap<PathBuf, Vec<&MountEntry>> = BTreeMap::new();
    for entry in entries.values().filter(|entry| !own.contains(entry.mount_point.as_slice())) {
        let point = path_of(&entry.mount_point);
        if TargetPath::from_mount_point(point.clone()).pod_uid(kubelet_dir).is_some() {
            of_pods.entry(point).or_default().push(entry);
        }
    }
    for (point, stack) in of_pods {
        let Some(note) = volume_data(kubelet_dir, &point)? else { continue };
        let copy = Path::new("copies").join(&note.volume_handle);
        let shown = stack.iter().map(|entry| path_of(&entry.root)).find(|root| root.ends_with(&copy));
        if let Some(shown) = shown.filter(|_| note.driver_name == driver_name) {
            return Ok(Some(Strange { target: point, shown }));
        }
    }
    Ok(None)
}

/// `None` where the kubelet wrote none, or something else: then this is nothing of ours.
fn volume_data(kubelet_dir: &KubeletDir, target: &Path) -> Outcome<Option<VolumeData>> {
    let target = TargetPath::from_mount_point(target.to_owned());
    let Some(open) = target::open(kubelet_dir, &target)? else { return Ok(None) };
    // A pipe of that name would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = open_below(open.parent(), VOLUME_DATA, flags, Mode::empty()) else { return Ok(None) };
    let mut text = Vec::new();
    let read = File::from(file).take(VOLUME_DATA_BYTES_MAX).read_to_end(&mut text);
    Ok(read.ok().and_then(|_| serde_json::from_slice(&text).ok()))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}
