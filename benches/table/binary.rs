//! The driver as the image carries it: one static binary. Built here, and weighed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    report.begin(
        "what is installed",
        "none; profile `dist`, static, stripped; of the image what is pushed, its layer compressed",
    );
    let bytes = std::fs::metadata(&bench.binary).expect("the binary").len();
    report.figure_of("binary".into(), mebibytes(bytes), " MiB", Some(SIZE_GOAL));
    match image_bytes(&bench.binary) {
        Some(bytes) => report.figure_of("image".into(), mebibytes(bytes), " MiB", Some(SIZE_GOAL)),
        None => report.missing("image", "not built: buildah is not here"),
    }
}

/// What travels of an image with this binary: layers, configuration and manifests, as they are pushed. None without buildah.
fn image_bytes(binary: &Path) -> Option<u64> {
    Command::new("buildah").arg("--version").output().ok()?;
    let scratch = tempfile::tempdir().expect("a directory");
    let path = |name: &str| scratch.path().join(name);
    std::fs::create_dir(path("context")).expect("a context");
    std::fs::copy(binary, path("context").join("per-node")).expect("the binary");
    let buildah = |arguments: &[&OsStr]| {
        let built = Command::new("buildah")
            .args(["--storage-driver", "vfs", "--root"])
            .arg(path("storage"))
            .arg("--runroot")
            .arg(path("running"))
            .args(arguments)
            .stdout(Stdio::null())
            .status();
        assert!(built.expect("buildah runs").success(), "buildah failed: {arguments:?}");
    };
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/Containerfile");
    let bud = ["bud", "--quiet", "--isolation", "chroot", "--tag", IMAGE, "--file"].map(OsStr::new);
    buildah(&[&bud[..], &[recipe.as_os_str(), path("context").as_os_str()]].concat());
    let layout = path("layout");
    let destination = format!("oci:{}:{IMAGE}", layout.display());
    buildah(&["push", "--quiet", IMAGE, &destination].map(OsStr::new));
    let blobs = std::fs::read_dir(layout.join("blobs/sha256")).expect("the image's parts");
    Some(blobs.map(|blob| blob.and_then(|blob| blob.metadata()).expect("a part").len()).sum())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
