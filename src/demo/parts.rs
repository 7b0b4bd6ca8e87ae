//! The three ports of a node's disk, on the ground that was found.

use std::path::Path;
use std::sync::Arc;

use super::ground::Ground;
use crate::adapters::rootless::Rootless;
use crate::domain::target::KubeletDir;
use crate::ports::copies::Copies;
use crate::ports::mounts::Mounts;
use crate::ports::records::Records;

/// What `--copy-mode` is by default.
const COPY_MODE: u32 = 0o777;

pub struct Parts {
    pub mounts: Arc<dyn Mounts>,
    pub copies: Arc<dyn Copies>,
    pub records: Arc<dyn Records>,
}

/// Opens the store.
pub fn open(ground: &Ground, store: &Path, kubelet_dir: &KubeletDir) -> anyhow::Result<Parts> {
    match ground {
        Ground::Real(_) => real(store, kubelet_dir),
        Ground::Double { .. } => {
            let double = Arc::new(Rootless::open(store, COPY_MODE)?);
            Ok(Parts { mounts: double.clone(), copies: double.clone(), records: double })
        }
    }
}

#[cfg(target_os = "linux")]
fn real(store: &Path, kubelet_dir: &KubeletDir) -> anyhow::Result<Parts> {
    use crate::adapters::linux::copies::LinuxCopies;
    use crate::adapters::linux::mounts::{Abilities, LinuxMounts};
    use crate::adapters::linux::records::SlotRecords;
    use crate::adapters::linux::store::StoreDirs;
    let failed = |failure: crate::adapters::linux::failure::Failure| anyhow::Error::msg(failure.at(store));
    let dirs = Arc::new(StoreDirs::open(store).map_err(failed)?);
    let records = SlotRecords::open(&dirs).map_err(failed)?;
    Ok(Parts {
        mounts: Arc::new(LinuxMounts::new(dirs.clone(), kubelet_dir.clone(), Abilities::found())),
        copies: Arc::new(LinuxCopies::new(dirs, COPY_MODE)),
        records: Arc::new(records),
    })
}

/// Elsewhere no ground is real.
#[cfg(not(target_os = "linux"))]
fn real(_store: &Path, _kubelet_dir: &KubeletDir) -> anyhow::Result<Parts> {
    anyhow::bail!("real mounts need Linux")
}
