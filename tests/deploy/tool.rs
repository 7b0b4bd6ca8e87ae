//! The tools as `tests/deploy/build-tools` has built them, and running one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The chart's directory.
pub fn chart() -> PathBuf {
    repository().join("deploy/chart")
}

/// The directory of each tool, by its name; builds what this machine has not built yet.
fn built() -> &'static BTreeMap<String, PathBuf> {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output =
            Command::new(repository().join("tests/deploy/build-tools")).output().expect("build-tools runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let name_of = |directory: &Path| {
            let name = directory.file_name().and_then(OsStr::to_str).expect("NAME-VERSION");
            name.split_once('-').expect("NAME-VERSION").0.to_owned()
        };
        let directories = String::from_utf8_lossy(&output.stdout).into_owned();
        directories.lines().map(PathBuf::from).map(|directory| (name_of(&directory), directory)).collect()
    })
}

/// Runs a tool. `Err` has what it said against it.
pub fn run<A: AsRef<OsStr>>(tool: &str, arguments: impl IntoIterator<Item = A>) -> Result<String, String> {
    let home = tempfile::tempdir().expect("a directory");
    let output = Command::new(built()[tool].join(tool))
        .args(arguments)
        // What a person has configured is not asked, and no cluster is found.
        .env("HOME", home.path())
        .env("HELM_KUBECONTEXT", "none")
        .env("KUBECONFIG", "/dev/null")
        .output()
        .expect("the tool runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(said(&output.stderr) + &said(&output.stdout))
    }
}
