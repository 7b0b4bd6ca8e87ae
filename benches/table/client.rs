//! A kubelet's calls, by tonic's client: a fresh connection for each.

use std::path::{Path, PathBuf};

use per_node::proto::csi::node_client::NodeClient;
use per_node::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
use per_node::proto::csi::{
    NodeGetCapabilitiesRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeUnpublishVolumeRequest, VolumeCapability, volume_usage,
};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// What a kubelet asks before a publish.
const CAPABILITY_CALLS: usize = 4;

/// The handle of a number.
pub fn handle(number: usize) -> String {
    format!("bench-{number}")
}

/// One side: its socket, and the directory below which its targets are.
#[derive(Clone)]
pub struct Side {
    url: String,
    socket: PathBuf,
    targets: PathBuf,
}

/// A pod and its volume.
#[derive(Clone)]
pub struct Target {
    pub handle: String,
    uid: String,
    pub path: String,
}

impl Side {
    pub fn new(socket: &Path, targets: &Path) -> Side {
        let (socket, targets) = (socket.to_owned(), targets.to_owned());
        Side { url: format!("unix://{}", socket.display()), socket, targets }
    }

    /// What the Go client calls it.
    pub fn argument(&self, name: &str) -> String {
        format!("{name}={}={}", self.socket.display(), self.targets.display())
    }

    /// The target of a pod, whose parent is made here as the kubelet makes it.
    pub fn target(&self, volume: usize, pod: usize) -> Target {
        let (handle, uid) = (handle(volume), format!("00000000-0000-4000-8000-{pod:012}"));
        let parent = self.targets.join(format!("pods/{uid}/volumes/kubernetes.io~csi/{handle}"));
        std::fs::create_dir_all(&parent).expect("the target's parent");
        // The kubelet's note that it knows the volume, without which a start takes the mount for a leftover (C16).
        std::fs::write(parent.join("vol_data.json"), "{}").expect("the kubelet's note");
        Target { handle, uid, path: parent.join("mount").to_str().expect("UTF-8").to_owned() }
    }

    async fn node(&self) -> Result<NodeClient<Channel>, Status> {
        let endpoint = Endpoint::from_shared(self.url.clone()).expect("an address");
        let channel = endpoint.connect().await;
        channel.map(NodeClient::new).map_err(|error| Status::unavailable(error.to_string()))
    }

    /// The call that does nothing.
    pub async fn no_op(&self) -> Result<(), Status> {
        self.node().await?.node_get_capabilities(NodeGetCapabilitiesRequest {}).await.map(drop)
    }

    /// What a kubelet does to mount a pod's volume.
    pub async fn mount(&self, target: &Target) {
        for _ in 0..CAPABILITY_CALLS {
            self.no_op().await.expect("capabilities");
        }
        self.publish(target).await.expect("a publish");
    }

    pub async fn publish(&self, target: &Target) -> Result<(), Status> {
        let mount = AccessType::Mount(MountVolume::default());
        let access_mode = Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() });
        let pod = |field: &str, value: &str| (format!("csi.storage.k8s.io/pod.{field}"), value.to_owned());
        let request = NodePublishVolumeRequest {
            volume_id: target.handle.clone(),
            target_path: target.path.clone(),
            volume_capability: Some(VolumeCapability { access_type: Some(mount), access_mode }),
            volume_context: [pod("name", "pod"), pod("namespace", "default"), pod("uid", &target.uid)].into(),
            ..NodePublishVolumeRequest::default()
        };
        self.node().await?.node_publish_volume(request).await.map(drop)
    }

    pub async fn unpublish(&self, target: &Target) {
        let Target { handle, path, .. } = target.clone();
        let request = NodeUnpublishVolumeRequest { volume_id: handle, target_path: path };
        let mut node = self.node().await.expect("a connection");
        node.node_unpublish_volume(request).await.expect("an unpublish");
    }

    /// How many inodes the copy has, as far as they are counted.
    pub async fn used_inodes(&self, target: &Target) -> i64 {
        let Target { handle, path, .. } = target.clone();
        let request = NodeGetVolumeStatsRequest {
            volume_id: handle,
            volume_path: path,
            ..NodeGetVolumeStatsRequest::default()
        };
        let mut node = self.node().await.expect("a connection");
        let answer = node.node_get_volume_stats(request).await.expect("statistics").into_inner();
        let inodes = answer.usage.iter().find(|usage| usage.unit == i32::from(volume_usage::Unit::Inodes));
        inodes.expect("inodes are told").used
    }
}
