//! The bytes on the wire against bytes written by hand from the field numbers of CSI 1.13, so that a slip in
//! `proto/` is seen here and not by a kubelet.

use std::collections::BTreeMap;
use std::fmt::Debug;

use prost::Message;

use super::csi::volume_capability::access_mode::Mode;
use super::csi::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use super::csi::*;
use super::registration::{PluginInfo, RegistrationStatus};

/// One string, bytes or message field: key with wire type 2, length, content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).expect("short in these tests")];
    bytes.extend_from_slice(content);
    bytes
}

/// One bool, enum or small integer field: key with wire type 0, value.
fn varint(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// One entry of a `map<string, string>`.
fn entry(number: u8, key: &str, value: &str) -> Vec<u8> {
    field(number, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
}

/// The message reads as these bytes and these bytes read as the message.
fn same<M: Message + Default + PartialEq + Debug>(message: &M, bytes: &[Vec<u8>]) {
    let bytes = bytes.concat();
    assert_eq!(message.encode_to_vec(), bytes, "{message:?}");
    assert_eq!(&M::decode(bytes.as_slice()).expect("decodes"), message);
}

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn mount_capability() -> (VolumeCapability, Vec<u8>) {
    let mount = MountVolume {
        fs_type: "ext4".to_owned(),
        mount_flags: vec!["ro".to_owned(), "noexec".to_owned()],
        volume_mount_group: "2000".to_owned(),
    };
    let capability = VolumeCapability {
        access_type: Some(AccessType::Mount(mount)),
        access_mode: Some(AccessMode { mode: Mode::SingleNodeMultiWriter.into() }),
    };
    let mount = [field(1, b"ext4"), field(2, b"ro"), field(2, b"noexec"), field(3, b"2000")].concat();
    (capability, [field(2, &mount), field(3, &varint(1, 7))].concat())
}

#[test]
fn a_publish_reads_as_the_kubelet_writes_it() {
    let (capability, capability_bytes) = mount_capability();
    let request = NodePublishVolumeRequest {
        volume_id: "h".to_owned(),
        publish_context: map("p", "1"),
        staging_target_path: "/s".to_owned(),
        target_path: "/t".to_owned(),
        volume_capability: Some(capability),
        readonly: true,
        secrets: map("k", "v"),
        volume_context: map("c", "2"),
    };
    let bytes = [
        field(1, b"h"),
        entry(2, "p", "1"),
        field(3, b"/s"),
        field(4, b"/t"),
        field(5, &capability_bytes),
        varint(6, 1),
        entry(7, "k", "v"),
        entry(8, "c", "2"),
    ];
    same(&request, &bytes);
}

#[test]
fn a_block_capability_is_field_one() {
    let capability =
        VolumeCapability { access_type: Some(AccessType::Block(BlockVolume {})), access_mode: None };
    same(&capability, &[field(1, b"")]);
}

#[test]
fn the_other_node_requests_have_the_numbers_of_the_specification() {
    let (capability, capability_bytes) = mount_capability();
    same(
        &NodeUnpublishVolumeRequest { volume_id: "h".to_owned(), target_path: "/t".to_owned() },
        &[field(1, b"h"), field(2, b"/t")],
    );
    same(
        &NodeGetVolumeStatsRequest {
            volume_id: "h".to_owned(),
            volume_path: "/t".to_owned(),
            staging_target_path: "/s".to_owned(),
        },
        &[field(1, b"h"), field(2, b"/t"), field(3, b"/s")],
    );
    same(
        &NodeStageVolumeRequest {
            volume_id: "h".to_owned(),
            publish_context: map("p", "1"),
            staging_target_path: "/s".to_owned(),
            volume_capability: Some(capability.clone()),
            secrets: map("k", "v"),
            volume_context: map("c", "2"),
        },
        &[
            field(1, b"h"),
            entry(2, "p", "1"),
            field(3, b"/s"),
            field(4, &capability_bytes),
            entry(5, "k", "v"),
            entry(6, "c", "2"),
        ],
    );
    same(
        &NodeUnstageVolumeRequest { volume_id: "h".to_owned(), staging_target_path: "/s".to_owned() },
        &[field(1, b"h"), field(2, b"/s")],
    );
    same(
        &NodeExpandVolumeRequest {
            volume_id: "h".to_owned(),
            volume_path: "/t".to_owned(),
            capacity_range: Some(CapacityRange { required_bytes: 1, limit_bytes: 2 }),
            staging_target_path: "/s".to_owned(),
            volume_capability: Some(capability),
            secrets: map("k", "v"),
        },
        &[
            field(1, b"h"),
            field(2, b"/t"),
            field(3, &[varint(1, 1), varint(2, 2)].concat()),
            field(4, b"/s"),
            field(5, &capability_bytes),
            entry(6, "k", "v"),
        ],
    );
    same(
        &NodeGetVolumeHealthRequest {
            volume_id: "h".to_owned(),
            volume_publish_path: "/t".to_owned(),
            staging_target_path: "/s".to_owned(),
        },
        &[field(1, b"h"), field(2, b"/t"), field(3, b"/s")],
    );
}

#[test]
fn the_answers_have_the_numbers_of_the_specification() {
    use node_service_capability::rpc::Type as Rpc;
    let bytes = VolumeUsage { available: 1, total: 2, used: 3, unit: volume_usage::Unit::Bytes.into() };
    same(
        &NodeGetVolumeStatsResponse { usage: vec![bytes] },
        &[field(1, &[varint(1, 1), varint(2, 2), varint(3, 3), varint(4, 1)].concat())],
    );
    let capability = |rpc: Rpc| NodeServiceCapability {
        r#type: Some(node_service_capability::Type::Rpc(node_service_capability::Rpc { r#type: rpc.into() })),
    };
    let expected = |value: u8| field(1, &field(1, &varint(1, value)));
    same(
        &NodeGetCapabilitiesResponse {
            capabilities: [
                Rpc::StageUnstageVolume,
                Rpc::GetVolumeStats,
                Rpc::ExpandVolume,
                Rpc::SingleNodeMultiWriter,
                Rpc::VolumeMountGroup,
                Rpc::GetVolumeHealth,
                Rpc::GetStorageHealth,
            ]
            .map(capability)
            .to_vec(),
        },
        &[1, 2, 3, 5, 6, 7, 8].map(expected),
    );
    same(
        &NodeGetInfoResponse {
            node_id: "n".to_owned(),
            max_volumes_per_node: 9,
            accessible_topology: Some(Topology { segments: map("z", "a") }),
        },
        &[field(1, b"n"), varint(2, 9), field(3, &entry(1, "z", "a"))],
    );
    same(
        &GetPluginInfoResponse {
            name: "d".to_owned(),
            vendor_version: "1".to_owned(),
            manifest: map("m", "x"),
        },
        &[field(1, b"d"), field(2, b"1"), entry(3, "m", "x")],
    );
    // A BoolValue is a message of its own: `true` is not the bare byte, and `false` is there, but empty.
    same(&ProbeResponse { ready: Some(true) }, &[field(1, &varint(1, 1))]);
    same(&ProbeResponse { ready: Some(false) }, &[field(1, b"")]);
    same(&ProbeResponse { ready: None }, &[]);
}

#[test]
fn volume_health_has_the_numbers_of_the_binding() {
    let entry = volume_health::VolumeHealthEntry {
        status: VolumeHealthErrorType::DataLoss.into(),
        reason: "r".to_owned(),
        message: "m".to_owned(),
    };
    let health = VolumeHealth { volume_id: "h".to_owned(), health_statuses: vec![entry] };
    let entry_bytes = [varint(1, 3), field(2, b"r"), field(3, b"m")].concat();
    same(
        &NodeGetVolumeHealthResponse { volume_health: Some(health) },
        &[field(1, &[field(1, b"h"), field(2, &entry_bytes)].concat())],
    );
}

#[test]
fn registration_has_the_numbers_of_the_kubelet() {
    same(
        &PluginInfo {
            r#type: "CSIPlugin".to_owned(),
            name: "d".to_owned(),
            endpoint: "/e".to_owned(),
            supported_versions: vec!["1.0.0".to_owned()],
        },
        &[field(1, b"CSIPlugin"), field(2, b"d"), field(3, b"/e"), field(4, b"1.0.0")],
    );
    same(
        &RegistrationStatus { plugin_registered: true, error: "why".to_owned() },
        &[varint(1, 1), field(2, b"why")],
    );
}

#[test]
fn a_field_from_a_later_csi_is_passed_over() {
    let bytes = [field(1, b"h"), field(2, b"/t"), field(15, b"new")].concat();
    let request = NodeUnpublishVolumeRequest::decode(bytes.as_slice()).expect("decodes");
    assert_eq!((request.volume_id.as_str(), request.target_path.as_str()), ("h", "/t"));
}

#[test]
fn a_string_that_is_no_utf8_is_no_message() {
    assert!(NodeUnpublishVolumeRequest::decode(field(1, b"\xff\xfe").as_slice()).is_err());
}
