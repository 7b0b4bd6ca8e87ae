//! Builds csi-sanity from the Go module beside this file, once, into the cache directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The tool, as `go.mod` names it.
const PACKAGE: &str = "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity";

/// The module that gives its version.
const MODULE: &str = "github.com/kubernetes-csi/csi-test/v5 ";

/// The program, built if this machine has not built that version yet.
pub fn csi_sanity() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sanity");
    let version = version(&module);
    let cache = cache_directory();
    std::fs::create_dir_all(&cache).expect("the cache directory");
    let program = cache.join(format!("csi-sanity-{version}"));
    if program.exists() {
        return program;
    }
    // Two builds at a time end with two names; the last rename wins, and both are whole.
    let fresh = cache.join(format!("csi-sanity-{version}.{}", std::process::id()));
    let built = Command::new("go")
        .current_dir(&module)
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(&fresh)
        .arg(PACKAGE)
        .status()
        .expect("go runs");
    assert!(built.success(), "csi-sanity could not be built");
    std::fs::rename(&fresh, &program).expect("rename");
    program
}

fn version(module: &Path) -> String {
    let go_mod = std::fs::read_to_string(module.join("go.mod")).expect("go.mod");
    let mut lines = go_mod.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix(MODULE)).expect("go.mod requires csi-test");
    line.split_whitespace().next().expect("a version").to_owned()
}

/// `PER_NODE_CACHE`, else below the home directory.
fn cache_directory() -> PathBuf {
    match std::env::var_os("PER_NODE_CACHE") {
        Some(directory) => PathBuf::from(directory),
        None => {
            PathBuf::from(std::env::var_os("HOME").expect("HOME or PER_NODE_CACHE")).join(".cache/per-node")
        }
    }
}
