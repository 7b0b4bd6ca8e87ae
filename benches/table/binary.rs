//! The driver as the image carries it: one static binary. Built here, and weighed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Bench;
use crate::report::{Goal, Report};

/// Named to cargo, so that the flags reach the binary alone and not the build scripts.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "x86_64-unknown-linux-gnu";
#[cfg(target_arch = "aarch64")]
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// In MiB.
const SIZE_GOAL: Goal = Goal::AtMost(9.0);
const IMAGE: &str = "per-node";

/// `PER_NODE_BINARY`, else the profile `dist` without the demo.
pub fn find_or_build() -> PathBuf {
    if let Some(path) = std::env::var_os("PER_NODE_BINARY") {
        return std::fs::canonicalize(path).expect("PER_NODE_BINARY is there");
    }
    println!("building the static binary ({TARGET}, profile dist)");
    let built = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "dist",
            "--no-default-features",
            "--bin",
            "per-node",
        ])
        .args(["--target", TARGET])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status();
    assert!(built.expect("cargo runs").success(), "the driver could not be built");
    let target_directory = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    target_directory.join(TARGET).join("dist/per-node")
}

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin("what is installed", "none; profile `dist`, static, stripped");
    let bytes = std::fs::metadata(&bench.binary).expect("the binary").len();
    report.figure_of("binary".into(), mebibytes(bytes), " MiB", Some(SIZE_GOAL));
    match image_bytes() {
        Some(bytes) => report.figure_of("image".into(), mebibytes(bytes), " MiB", Some(SIZE_GOAL)),
        None => report.missing("image", "not built here"),
    }
}

/// What buildah says of an image of that name, if there is one.
fn image_bytes() -> Option<u64> {
    let asked = Command::new("buildah").args(["images", "--json", IMAGE]).output().ok()?;
    let images: serde_json::Value = serde_json::from_slice(&asked.stdout).ok()?;
    let id = images[0]["id"].as_str()?.to_owned();
    let pushed = Command::new("buildah").args(["inspect", "--type", "image", &id]).output().ok()?;
    let inspected: serde_json::Value = serde_json::from_slice(&pushed.stdout).ok()?;
    // The manifest tells what travels: the configuration and the layers.
    let manifest: serde_json::Value = serde_json::from_str(inspected["Manifest"].as_str()?).ok()?;
    let layers = manifest["layers"].as_array()?.iter().map(|layer| layer["size"].as_u64());
    layers.sum::<Option<u64>>()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
