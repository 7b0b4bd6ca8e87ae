//! Compiles `proto/` into Rust with a protobuf compiler that is itself a crate, so that a fresh machine needs no
//! `protoc`, and has the static binary linked small. It never touches anything outside `OUT_DIR`.

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
    pack_relocations();
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

/// A static binary that may be loaded anywhere has a relocation for each pointer in its tables: packed they are a twentieth of
/// the size. Only where the C library that is linked in is known to read them so (glibc from 2.36 on).
fn pack_relocations() {
    let is = |name: &str, wanted: &str| std::env::var(name).is_ok_and(|value| value == wanted);
    let is_static = std::env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|feature| feature == "crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && is_static {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
