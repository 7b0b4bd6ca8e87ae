//! A publish as C10 to C16 ask for it, and nothing else: what any driver has to do that keeps them. The driver's own adapters make
//! the steps; nobody decides, takes turns, counts or logs.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::mounts::{Abilities, LinuxMounts};
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::handle::Handle;
use per_node::domain::holds::{Makes, TargetRecord, TargetState};
use per_node::domain::mount_options::MountOptions;
use per_node::domain::target::{KubeletDir, TargetPath};
use per_node::ports::copies::Copies;
use per_node::ports::in_place;
use per_node::ports::mounts::Mounts;
use per_node::ports::records::Records;
use per_node::proto::csi;
use tonic::Status;

use crate::bare::{Work, failed};

/// The kind of that server.
pub const STEPS: &str = "steps";

const COPY_MODE: u32 = 0o777;

pub struct Steps {
    mounts: LinuxMounts,
    copies: LinuxCopies,
    records: SlotRecords,
    kubelet_dir: KubeletDir,
}

impl Steps {
    pub fn new(root: &Path) -> Steps {
        let path = root.join("steps-store");
        std::fs::create_dir(&path).expect("a store");
        let store = Arc::new(StoreDirs::open(&path).expect("the store"));
        let directory = root.join(STEPS);
        let resolved = std::fs::canonicalize(&directory).expect("the kubelet's directory");
        let kubelet_dir = KubeletDir::new(directory, resolved);
        Steps {
            records: SlotRecords::open(&store).expect("the records"),
            copies: LinuxCopies::new(store.clone(), COPY_MODE),
            mounts: LinuxMounts::new(store, kubelet_dir.clone(), Abilities::found()),
            kubelet_dir,
        }
    }

    async fn make(&self, handle: &Handle, target: &TargetPath) -> Result<(), Status> {
        let target_is_there = self.mounts.look(target).await.map_err(failed)?.is_there();
        let trashed = self.records.trashed(handle);
        self.mounts.showing(handle, &trashed).await.map_err(failed)?;
        let found = self.copies.find(handle).await.map_err(failed)?;
        let makes = Makes { copy: found.is_none(), target: !target_is_there };
        let journal = TargetRecord {
            target: target.clone(),
            handle: handle.clone(),
            uid: None,
            pod: None,
            readonly: false,
            state: TargetState::Attaching(makes),
            since: None,
        };
        self.records.put_target(&journal).await.map_err(failed)?;
        let copy = self.copies.ensure(handle).await.map_err(failed)?;
        self.mounts.make_target(target).await.map_err(failed)?;
        let options = MountOptions::default();
        self.mounts.attach(handle, copy.identity, target, &options).await.map_err(failed)?;
        self.mounts.look(target).await.map_err(failed)?;
        let held = TargetRecord { state: TargetState::Held, ..journal };
        self.records.put_target(&held).await.map_err(failed)
    }

    async fn undo(&self, target: &TargetPath) -> Result<(), Status> {
        self.mounts.look(target).await.map_err(failed)?;
        self.mounts.detach(target).await.map_err(failed)?;
        self.mounts.remove_target(target).await.map_err(failed)?;
        self.records.drop_target(target).await.map_err(failed)
    }
}

#[async_trait]
impl Work for Steps {
    async fn publish(&self, request: csi::NodePublishVolumeRequest) -> Result<(), Status> {
        let handle = Handle::parse(&request.volume_id).map_err(failed)?;
        let target =
            TargetPath::parse_for_publish(&request.target_path, &self.kubelet_dir).map_err(failed)?;
        in_place::scope(self.make(&handle, &target)).await
    }

    async fn unpublish(&self, request: csi::NodeUnpublishVolumeRequest) -> Result<(), Status> {
        let target = TargetPath::parse(&request.target_path, &self.kubelet_dir).map_err(failed)?;
        in_place::scope(self.undo(&target)).await
    }
}
