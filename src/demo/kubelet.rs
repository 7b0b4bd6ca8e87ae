//! A small kubelet: it makes what the kubelet makes on disk, calls what the kubelet calls, and does after an
//! answer what the kubelet does. Each call goes over a connection of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tonic::transport::{Channel, Endpoint, Error};
use tonic::{Code, Status};

use crate::proto::csi::node_client::NodeClient;
use crate::proto::csi::node_service_capability::Type;
use crate::proto::csi::node_service_capability::rpc::Type as Rpc;
use crate::proto::csi::volume_capability::access_mode::Mode;
use crate::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume};
use crate::proto::csi::{
    NodeGetCapabilitiesRequest, NodePublishVolumeRequest, NodeUnpublishVolumeRequest, VolumeCapability,
};

/// A pod as far as a volume plugin hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub namespace: &'static str,
    pub name: &'static str,
    pub uid: String,
}

/// A PersistentVolume's access mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWriteMany,
    ReadWriteOncePod,
}

/// A PersistentVolume as far as the kubelet passes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    pub name: &'static str,
    pub handle: &'static str,
    pub access: Access,
}

/// What the driver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: Code,
    pub message: String,
    /// Whether anything was at the target after the answer.
    pub target_is_there: bool,
}

/// One node's kubelet.
#[derive(Debug)]
pub struct Kubelet {
    pub node: &'static str,
    pub dir: PathBuf,
    pub socket: PathBuf,
    pub driver: String,
}

impl Kubelet {
    /// Where the volume is to appear for the pod.
    pub fn target(&self, pod: &Pod, volume: &Volume) -> PathBuf {
        self.volume_dir(pod, volume).join("mount")
    }

    fn volume_dir(&self, pod: &Pod, volume: &Volume) -> PathBuf {
        self.dir.join("pods").join(&pod.uid).join("volumes/kubernetes.io~csi").join(volume.name)
    }

    /// Tries once to mount the volume for the pod.
    pub async fn mount(&self, pod: &Pod, volume: &Volume, readonly: bool) -> io::Result<Answer> {
        let directory = self.volume_dir(pod, volume);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("vol_data.json"), self.volume_data(volume))?;
        let answer = self.publish(pod, volume, readonly).await;
        let target = self.target(pod, volume);
        let target_is_there = fs::symlink_metadata(&target).is_ok();
        if let Err(status) = &answer
            && is_final(status.code())
        {
            // The kubelet forgets the volume now: no unpublish will ever come for it.
            fs::remove_file(directory.join("vol_data.json"))?;
            // Not empty where the driver left something; the caller has seen that already.
            let _ = fs::remove_dir(&directory);
        }
        Ok(Answer::of(answer, target_is_there))
    }

    /// Takes the volume away from the pod, which has ended.
    pub async fn unmount(&self, pod: &Pod, volume: &Volume) -> io::Result<Answer> {
        let target = self.target(pod, volume);
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume.handle.to_owned(),
            target_path: target.display().to_string(),
        };
        let answer = match self.connect().await {
            Ok(mut client) => client.node_unpublish_volume(request).await.map(drop),
            Err(error) => Err(unreachable_status(&error)),
        };
        let target_is_there = fs::symlink_metadata(&target).is_ok();
        if answer.is_ok() && !target_is_there {
            fs::remove_dir_all(self.dir.join("pods").join(&pod.uid))?;
        }
        Ok(Answer::of(answer, target_is_there))
    }

    /// Four questions for the capabilities and one publish, as the kubelet does for each further pod of a volume.
    async fn publish(&self, pod: &Pod, volume: &Volume, readonly: bool) -> Result<(), Status> {
        let mut can = Vec::new();
        for _ in 0..4 {
            can = self.capabilities().await?;
        }
        let mode = volume.access.on_the_wire(can.contains(&Rpc::SingleNodeMultiWriter));
        let mount = MountVolume::default();
        let request = NodePublishVolumeRequest {
            volume_id: volume.handle.to_owned(),
            target_path: self.target(pod, volume).display().to_string(),
            volume_capability: Some(VolumeCapability {
                access_type: Some(AccessType::Mount(mount)),
                access_mode: Some(AccessMode { mode: mode.into() }),
            }),
            readonly,
            volume_context: pod.context(),
            ..NodePublishVolumeRequest::default()
        };
        let mut client = self.connect().await.map_err(|error| unreachable_status(&error))?;
        client.node_publish_volume(request).await.map(drop)
    }

    async fn capabilities(&self) -> Result<Vec<Rpc>, Status> {
        let mut client = self.connect().await.map_err(|error| unreachable_status(&error))?;
        let answer = client.node_get_capabilities(NodeGetCapabilitiesRequest {}).await?.into_inner();
        let rpcs = answer.capabilities.iter().filter_map(|capability| match &capability.r#type {
            Some(Type::Rpc(rpc)) => Rpc::try_from(rpc.r#type).ok(),
            None => None,
        });
        Ok(rpcs.collect())
    }

    /// A connection of its own for each call, as the kubelet makes it.
    pub async fn connect(&self) -> Result<NodeClient<Channel>, Error> {
        let endpoint = Endpoint::try_from(format!("unix://{}", self.socket.display()))?;
        Ok(NodeClient::new(endpoint.connect().await?))
    }

    fn volume_data(&self, volume: &Volume) -> String {
        serde_json::json!({
            "attachmentID": "",
            "driverName": self.driver,
            "nodeName": self.node,
            "specVolID": volume.name,
            "volumeHandle": volume.handle,
            "volumeLifecycleMode": "Persistent",
        })
        .to_string()
    }
}

impl Pod {
    /// What the kubelet says of the pod, because the CSIDriver object asks for it.
    fn context(&self) -> BTreeMap<String, String> {
        let said = [
            ("csi.storage.k8s.io/pod.name", self.name),
            ("csi.storage.k8s.io/pod.namespace", self.namespace),
            ("csi.storage.k8s.io/pod.uid", &self.uid),
            ("csi.storage.k8s.io/serviceAccount.name", "default"),
            ("csi.storage.k8s.io/ephemeral", "false"),
        ];
        said.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }
}

impl Access {
    /// The CSI access mode that the kubelet sends. Only a driver that declares `SINGLE_NODE_MULTI_WRITER` hears
    /// of a ReadWriteOncePod claim (C4).
    fn on_the_wire(self, driver_tells_writers_apart: bool) -> Mode {
        match (self, driver_tells_writers_apart) {
            (Access::ReadWriteMany, _) => Mode::MultiNodeMultiWriter,
            (Access::ReadWriteOncePod, true) => Mode::SingleNodeSingleWriter,
            (Access::ReadWriteOncePod, false) => Mode::SingleNodeWriter,
        }
    }
}

impl Answer {
    fn of(answer: Result<(), Status>, target_is_there: bool) -> Answer {
        let (code, message) = match answer {
            Ok(()) => (Code::Ok, String::new()),
            Err(status) => (status.code(), status.message().to_owned()),
        };
        Answer { code, message, target_is_there }
    }

    /// The code as the CSI specification spells it.
    pub fn code_name(&self) -> &'static str {
        match self.code {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// Whether the kubelet takes a code for the last word, cleans up by itself and sends no unpublish.
pub fn is_final(code: Code) -> bool {
    !matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Unavailable
            | Code::ResourceExhausted
            | Code::Aborted
    )
}

fn unreachable_status(error: &Error) -> Status {
    Status::unavailable(format!("the socket is not reached: {error}"))
}

/// Whether the driver answers at the socket.
pub async fn is_served(socket: &Path) -> bool {
    let kubelet = Kubelet { node: "", dir: PathBuf::new(), socket: socket.to_owned(), driver: String::new() };
    kubelet.connect().await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        Pod { namespace: "example", name: "web-1", uid: "u-1".into() }
    }

    fn kubelet() -> Kubelet {
        let (dir, socket) = ("/k".into(), "/nowhere/csi.sock".into());
        Kubelet { node: "n", dir, socket, driver: "d".into() }
    }

    #[test]
    fn a_target_has_the_kubelets_shape() {
        let volume = Volume { name: "pv", handle: "h", access: Access::ReadWriteMany };
        let expect = "/k/pods/u-1/volumes/kubernetes.io~csi/pv/mount";
        assert_eq!(kubelet().target(&pod(), &volume), PathBuf::from(expect));
        assert_eq!(pod().context()["csi.storage.k8s.io/pod.uid"], "u-1");
    }

    #[test]
    fn c04_read_write_once_pod_is_told_apart_only_where_the_driver_says_so() {
        assert_eq!(Access::ReadWriteOncePod.on_the_wire(true), Mode::SingleNodeSingleWriter);
        assert_eq!(Access::ReadWriteOncePod.on_the_wire(false), Mode::SingleNodeWriter);
        assert_eq!(Access::ReadWriteMany.on_the_wire(true), Mode::MultiNodeMultiWriter);
    }

    #[test]
    fn the_codes_after_which_the_kubelet_comes_again_are_five() {
        let again: Vec<i32> = (0..17).filter(|&code| !is_final(Code::from(code))).collect();
        assert_eq!(again, [1, 4, 8, 10, 14]);
    }
}
