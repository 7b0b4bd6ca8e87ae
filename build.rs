//! Compiles `proto/` into Rust with a protobuf compiler that is itself a crate, so that a fresh machine needs no
//! `protoc`. It never touches anything outside `OUT_DIR`.

use std::error::Error;

/// The files, by their path below `proto/`.
const FILES: [&str; 2] = ["csi.proto", "pluginregistration.proto"];

/// The messages with something in them that no log may show (C47). Their `Debug` is `src/proto/redact.rs`, which
/// fails to compile when one is missing there, as the generated one would be missing here.
const REDACTED: [&str; 8] = [
    "csi.v1.VolumeCapability.MountVolume",
    "csi.v1.NodeStageVolumeRequest",
    "csi.v1.NodePublishVolumeRequest",
    "csi.v1.NodeExpandVolumeRequest",
    "csi.v1.NodeGetStorageHealthRequest",
    "csi.v1.CreateVolumeRequest",
    "csi.v1.DeleteVolumeRequest",
    "csi.v1.ValidateVolumeCapabilitiesRequest",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo::rerun-if-changed=proto/{file}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure()
        // Ordered, so that one request is always seen in one order.
        .btree_map(".")
        .skip_debug(REDACTED)
        // Ours answers INVALID_ARGUMENT for bytes that are no message of that type.
        .codec_path("crate::proto::codec::CsiCodec")
        .compile_fds(descriptors)?;
    Ok(())
}
