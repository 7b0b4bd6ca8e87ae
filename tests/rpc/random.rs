//! Requests that nobody thought of: whatever comes over the socket is answered, no call is lost in a bug, a publish
//! that is not OK leaves nothing, and the next caller is served.

use std::sync::OnceLock;

use per_node::proto::csi::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use per_node::proto::csi::{NodePublishVolumeRequest, VolumeCapability};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tonic::{Code, Status};

use super::raw;
use super::rig::{KUBELET_DIR, Rig, soon};

/// One runtime for the cases of this file.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"))
}

/// Texts near what is valid, and texts far from it.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => "[a-z0-9.-]{0,12}",
        1 => "[a-z0-9]{250,260}",
        1 => ".{0,20}",
        3 => Just("example-store".to_owned()),
        1 => Just("\0".to_owned()),
    ]
}

fn target() -> impl Strategy<Value = String> {
    let below = |rest: String| format!("{KUBELET_DIR}/{rest}");
    prop_oneof![
        4 => Just(below("pods/u1/volumes/kubernetes.io~csi/pv/mount".to_owned())),
        1 => "[a-z./]{0,30}".prop_map(below),
        1 => "/?(\\.\\.|[a-z]{1,3}|/|\n| ){0,10}",
        1 => text(),
    ]
}

fn capability() -> impl Strategy<Value = VolumeCapability> {
    let flag = prop_oneof![6 => "(ro|noexec|nosuid,nodev|noatime)", 1 => "[a-z,]{0,9}", 1 => text()];
    let group = prop_oneof![3 => Just(String::new()), 2 => "[0-9]{1,12}", 1 => text()];
    let mount = (text(), vec(flag, 0..4), group);
    let mount = mount.prop_map(|(fs_type, mount_flags, volume_mount_group)| {
        AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group })
    });
    let access_type = prop_oneof![8 => mount, 1 => Just(AccessType::Block(BlockVolume {}))];
    let mode = prop_oneof![4 => 0..9i32, 1 => any::<i32>()].prop_map(|mode| AccessMode { mode });
    (prop::option::weighted(0.9, access_type), prop::option::weighted(0.9, mode))
        .prop_map(|(access_type, access_mode)| VolumeCapability { access_type, access_mode })
}

fn request() -> impl Strategy<Value = NodePublishVolumeRequest> {
    let key = prop_oneof![
        Just("csi.storage.k8s.io/pod.uid".to_owned()),
        Just("csi.storage.k8s.io/pod.name".to_owned()),
        Just("csi.storage.k8s.io/pod.namespace".to_owned()),
        text(),
    ];
    let context = btree_map(key, text(), 0..5);
    (text(), target(), text(), prop::option::weighted(0.9, capability()), any::<bool>(), context).prop_map(
        |(volume_id, target_path, staging_target_path, volume_capability, readonly, volume_context)| {
            NodePublishVolumeRequest {
                volume_id,
                target_path,
                staging_target_path,
                volume_capability,
                readonly,
                publish_context: volume_context.clone(),
                secrets: volume_context.clone(),
                volume_context,
            }
        },
    )
}

/// The codes that a driver in order may answer.
fn is_in_order(status: &Status) -> bool {
    let codes = [Code::InvalidArgument, Code::Internal, Code::Aborted, Code::NotFound];
    codes.contains(&status.code()) && !status.message().is_empty() && !status.message().contains("bug")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c16_a_random_publish_is_published_or_leaves_nothing(request in request()) {
        runtime().block_on(async {
            let rig = Rig::start().await;
            rig.target("u1");
            let (volume_id, path) = (request.volume_id.clone(), request.target_path.clone());
            match soon(rig.publish(request.clone())).await {
                Ok(()) => {
                    assert_eq!(rig.mounts(), 1);
                    soon(rig.publish(request)).await.expect("again (C11)");
                    assert_eq!(rig.mounts(), 1);
                    soon(rig.unpublish(&volume_id, &path)).await.expect("unpublished");
                    assert_eq!(rig.mounts(), 0);
                }
                Err(status) => {
                    assert!(is_in_order(&status), "{status:?}");
                    rig.is_untouched("a refused publish");
                }
            }
            rig.shutdown.cancel();
        });
    }

    #[test]
    fn random_bytes_are_answered(bytes in vec(any::<u8>(), 0..200)) {
        runtime().block_on(async {
            let rig = Rig::start().await;
            for path in [
                "/csi.v1.Node/NodePublishVolume",
                "/csi.v1.Node/NodeUnpublishVolume",
                "/csi.v1.Node/NodeGetVolumeStats",
            ] {
                if let Err(status) = soon(raw::call(rig.connect().await, path, bytes.clone())).await {
                    assert!(is_in_order(&status), "{path}: {status:?}");
                }
            }
            rig.is_untouched("random bytes");
            rig.shutdown.cancel();
        });
    }
}

#[tokio::test]
async fn what_is_no_grpc_at_all_harms_nobody_else() {
    let rig = Rig::start().await;
    for junk in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\0\0\0\0\0\0\0\0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"",
    ] {
        let mut stream = UnixStream::connect(rig.socket()).await.expect("connect");
        stream.write_all(junk).await.expect("write");
        stream.shutdown().await.expect("that is all");
        let mut answer = Vec::new();
        // Ended by the driver, in whatever way; never left hanging.
        let _ = soon(stream.read_to_end(&mut answer)).await;
        rig.publish(rig.request("example-store", "u1")).await.expect("the next caller is served");
    }
}
