//! What the driver says of itself, and the calls that it does not serve.

use per_node::proto::csi::node_service_capability::{Type, rpc};
use per_node::proto::csi::*;
use tonic::{Code, Status};

use super::raw;
use super::rig::{DRIVER, NODE_ID, Rig};

#[tokio::test]
async fn c45_identity_touches_neither_disk_nor_api() {
    let rig = Rig::start().await;
    let mut identity = rig.identity().await;
    let info = identity.get_plugin_info(GetPluginInfoRequest {}).await.expect("info").into_inner();
    assert_eq!((info.name.as_str(), info.vendor_version.as_str()), (DRIVER, env!("CARGO_PKG_VERSION")));
    let can = identity.get_plugin_capabilities(GetPluginCapabilitiesRequest {}).await.expect("capabilities");
    assert_eq!(can.into_inner().capabilities, []);
    let probe = identity.probe(ProbeRequest {}).await.expect("probe").into_inner();
    assert_eq!(probe.ready, Some(true));
    assert_eq!(rig.node.gate().take_calls(), []);
    assert_eq!(rig.api.cluster_gate().take_calls(), []);
}

/// The capabilities of the node service.
pub async fn declared(rig: &Rig) -> Vec<rpc::Type> {
    let mut node = rig.node().await;
    let answer = node.node_get_capabilities(NodeGetCapabilitiesRequest {}).await.expect("capabilities");
    let types = answer.into_inner().capabilities.into_iter().map(|capability| {
        match capability.r#type.expect("a type") {
            Type::Rpc(rpc) => rpc.r#type(),
        }
    });
    types.collect()
}

#[tokio::test]
async fn c04_the_node_declares_what_it_does_and_nothing_else() {
    let rig = Rig::start().await;
    let expected = [rpc::Type::GetVolumeStats, rpc::Type::SingleNodeMultiWriter, rpc::Type::VolumeMountGroup];
    assert_eq!(declared(&rig).await, expected);
    let mut node = rig.node().await;
    let info = node.node_get_info(NodeGetInfoRequest {}).await.expect("info").into_inner();
    assert_eq!(info, NodeGetInfoResponse { node_id: NODE_ID.to_owned(), ..Default::default() });
    assert_eq!(rig.node.gate().take_calls(), []);
}

#[track_caller]
fn is_unserved(what: &str, status: &Status) {
    assert_eq!(status.code(), Code::Unimplemented, "{what}: {status:?}");
    assert!(status.message().starts_with("per-node does not serve"), "{what}: {status:?}");
    assert!(status.details().is_empty(), "{what}: {status:?}");
}

#[tokio::test]
async fn c04_the_other_node_calls_are_unimplemented() {
    let rig = Rig::start().await;
    let mut node = rig.node().await;
    let stage = NodeStageVolumeRequest { volume_id: "a".to_owned(), ..Default::default() };
    is_unserved("stage", &node.node_stage_volume(stage).await.expect_err("stage"));
    let unstage = NodeUnstageVolumeRequest { volume_id: "a".to_owned(), ..Default::default() };
    is_unserved("unstage", &node.node_unstage_volume(unstage).await.expect_err("unstage"));
    let expand = NodeExpandVolumeRequest { volume_id: "a".to_owned(), ..Default::default() };
    is_unserved("expand", &node.node_expand_volume(expand).await.expect_err("expand"));
    let health = NodeGetVolumeHealthRequest { volume_id: "a".to_owned(), ..Default::default() };
    is_unserved("health", &node.node_get_volume_health(health).await.expect_err("health"));
    let storage = NodeGetStorageHealthRequest::default();
    is_unserved("storage health", &node.node_get_storage_health(storage).await.expect_err("storage health"));
    rig.is_untouched("a call that is not served");
}

#[tokio::test]
async fn c02_every_other_service_is_unimplemented() {
    let rig = Rig::start().await;
    for path in [
        "/csi.v1.Controller/CreateVolume",
        "/csi.v1.Controller/DeleteVolume",
        "/csi.v1.Controller/ControllerGetCapabilities",
        "/csi.v1.Controller/ControllerPublishVolume",
        "/csi.v1.GroupController/GroupControllerGetCapabilities",
        "/csi.v1.SnapshotMetadata/GetMetadataAllocated",
        "/csi.v1.Node/NodeDoSomethingNew",
        "/csi.v1.Identity/Nobody",
        "/csi.v0.Node/NodePublishVolume",
        "/grpc.health.v1.Health/Check",
        "/",
    ] {
        let answer = raw::call(rig.connect().await, path, Vec::new()).await;
        is_unserved(path, &answer.expect_err(path));
    }
}
