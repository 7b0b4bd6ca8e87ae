//! NodeGetVolumeHealth as a client of CSI 1.13 sees it, with the flag and without (C49).

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, errno};
use per_node::domain::health::MESSAGE_BYTES_MAX;
use per_node::proto::csi::node_service_capability::rpc;
use per_node::proto::csi::{NodeGetVolumeHealthRequest, VolumeHealth, VolumeHealthErrorType};
use prost::Message;
use tonic::{Code, Status};

use super::calls::declared;
use super::raw;
use super::rig::{KUBELET_DIR, Rig, handle, soon};

fn request(volume_id: &str, path: &str) -> NodeGetVolumeHealthRequest {
    NodeGetVolumeHealthRequest {
        volume_id: volume_id.to_owned(),
        volume_publish_path: path.to_owned(),
        ..Default::default()
    }
}

async fn health(rig: &Rig, volume_id: &str, path: &str) -> Result<VolumeHealth, Status> {
    let answer = rig.node().await.node_get_volume_health(request(volume_id, path)).await?;
    Ok(answer.into_inner().volume_health.expect("CSI: REQUIRED"))
}

/// Status and reason of everything that is wrong.
async fn told(rig: &Rig, volume_id: &str, path: &str) -> Vec<(VolumeHealthErrorType, String)> {
    let health = health(rig, volume_id, path).await.expect("an answer");
    assert_eq!(health.volume_id, volume_id, "CSI: REQUIRED");
    let entries = health.health_statuses.into_iter();
    entries.map(|entry| (entry.status(), entry.reason)).collect()
}

async fn published(rig: &Rig) -> String {
    let request = rig.request("example-store", "u1");
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    target
}

#[tokio::test]
async fn c49_the_capability_is_declared_with_the_flag_alone() {
    let (with, without) = (Rig::start_with_health().await, Rig::start().await);
    let mut expected = declared(&without).await;
    assert!(!expected.contains(&rpc::Type::GetVolumeHealth));
    expected.push(rpc::Type::GetVolumeHealth);
    assert_eq!(declared(&with).await, expected);
}

#[tokio::test]
async fn c49_without_the_flag_the_call_is_unimplemented_and_asks_nobody() {
    let rig = Rig::start().await;
    let target = published(&rig).await;
    rig.node.gate().take_calls();
    for (volume_id, path) in [("example-store", target.as_str()), ("", "")] {
        let status = health(&rig, volume_id, path).await.expect_err("unserved");
        assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    }
    assert_eq!(rig.node.gate().take_calls(), []);
}

#[tokio::test]
async fn c49_an_empty_list_is_healthy() {
    let rig = Rig::start_with_health().await;
    let target = published(&rig).await;
    for (volume_id, path) in [
        ("example-store", target.as_str()),
        ("example-store", ""),
        ("other", ""),
        ("Bad/Handle", ""),
        ("Bad/Handle", &target),
        ("other", &target),
        ("example-store", "some/path"),
        ("example-store", "/etc"),
        ("example-store", "/var/lib/kubelet/a\0b"),
        ("example-store", KUBELET_DIR),
    ] {
        assert_eq!(told(&rig, volume_id, path).await, [], "{volume_id} {path}");
    }
}

#[tokio::test]
async fn c49_each_severity_reaches_the_client() {
    let rig = Rig::start_with_health().await;
    let target = published(&rig).await;
    rig.node.write(&target, "big", &[0; 400 * 1024]).expect("written");
    rig.node.set_available_bytes(4096);
    let degraded = told(&rig, "example-store", &target).await;
    let is_degraded = |entry: &(VolumeHealthErrorType, String)| entry.0 == VolumeHealthErrorType::Degraded;
    assert!(degraded.len() == 2 && degraded.iter().all(is_degraded), "{degraded:?}");
    rig.node.set_available_bytes(1 << 30);
    rig.node.set_read_only(true);
    let read_only = (VolumeHealthErrorType::Inaccessible, "StoreReadOnly".to_owned());
    assert_eq!(told(&rig, "example-store", &target).await, [read_only]);
    rig.node.set_read_only(false);
    assert!(rig.node.remove_copy(&handle("example-store")));
    let gone = (VolumeHealthErrorType::DataLoss, "CopyGone".to_owned());
    assert_eq!(told(&rig, "example-store", &target).await, [gone]);
}

#[tokio::test]
async fn c49_a_refused_pod_is_not_told_of_the_holders_trouble() {
    let rig = Rig::start_with_health().await;
    published(&rig).await;
    let second = rig.request("example-store", "u2");
    let target = second.target_path.clone();
    rig.publish(second).await.expect_err("held");
    assert!(rig.node.remove_copy(&handle("example-store")));
    assert_eq!(told(&rig, "example-store", &target).await, []);
    assert_eq!(told(&rig, "example-store", "").await, []);
}

#[tokio::test]
async fn c49_a_failing_store_is_a_condition_and_a_failing_look_an_error() {
    let rig = Rig::start_with_health().await;
    let target = published(&rig).await;
    let io = || Fault::Before(KernelFault::Errno(errno::EIO));
    rig.node.gate().script(NodeCall::Examine, io());
    let entries = health(&rig, "example-store", &target).await.expect("an answer").health_statuses;
    assert_eq!((entries.len(), entries[0].reason.as_str()), (1, "StoreFailing"));
    let message = &entries[0].message;
    assert!(message.contains("Input/output error") && message.len() <= MESSAGE_BYTES_MAX, "{message}");
    rig.node.gate().script(NodeCall::Look, io());
    let status = health(&rig, "example-store", &target).await.expect_err("nothing is known");
    assert_eq!((status.code(), status.details().len()), (Code::Internal, 0), "{status:?}");
    let status = health(&rig, "", &target).await.expect_err("no id");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
}

#[tokio::test]
async fn c49_an_answer_says_the_same_again_while_nothing_changes() {
    let rig = Rig::start_with_health().await;
    let target = published(&rig).await;
    assert!(rig.node.remove_copy(&handle("example-store")));
    rig.node.set_read_only(true);
    let first = health(&rig, "example-store", &target).await.expect("an answer");
    assert_eq!(first.health_statuses.len(), 2);
    rig.node.set_available_bytes(512 << 20);
    assert_eq!(health(&rig, "example-store", &target).await.expect("an answer"), first);
}

#[tokio::test]
async fn c49_a_request_of_a_later_csi_is_answered() {
    let rig = Rig::start_with_health().await;
    let mut bytes = request("example-store", "").encode_to_vec();
    // Field 15, a string that this CSI does not know.
    bytes.extend([15 << 3 | 2, 3, b'n', b'e', b'w']);
    let path = "/csi.v1.Node/NodeGetVolumeHealth";
    soon(raw::call(rig.connect().await, path, bytes)).await.expect("answered");
}
