//! The kubelet's own client library: a small Go program beside this file, built into the cache directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::samples::Samples;

/// What a client measured of one side.
#[derive(Default)]
pub struct Times {
    pub mount: Samples,
    pub unmount: Samples,
}

/// The program. Go itself knows what of it is built already.
pub fn build() -> PathBuf {
    let cache = match std::env::var_os("PER_NODE_CACHE") {
        Some(directory) => PathBuf::from(directory),
        None => {
            PathBuf::from(std::env::var_os("HOME").expect("HOME or PER_NODE_CACHE")).join(".cache/per-node")
        }
    };
    std::fs::create_dir_all(&cache).expect("the cache directory");
    let program = cache.join("bench-kubelet");
    let built = Command::new("go")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/table/kubelet"))
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(&program)
        .arg(".")
        .status();
    assert!(built.expect("go runs").success(), "the Go client could not be built");
    program
}

/// Lets it mount and unmount the volumes from `first` on, in turns on both sides; answers what the first and what the
/// second took, without the first `warm_up` rounds.
pub fn run(program: &Path, warm_up: usize, rounds: usize, first: usize, sides: [String; 2]) -> [Times; 2] {
    let output = Command::new(program)
        .args([(warm_up + rounds).to_string(), first.to_string()])
        .args(&sides)
        .stderr(Stdio::inherit())
        .output()
        .expect("the Go client runs");
    assert!(output.status.success(), "the Go client failed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    sides.map(|side| {
        let name = side.split('=').next().expect("a name");
        let of = |kind: &str| {
            let wanted = format!("{name} {kind} ");
            let mut samples = Samples::default();
            for line in text.lines().filter_map(|line| line.strip_prefix(&wanted)).skip(warm_up) {
                samples.push(Duration::from_nanos(line.parse().expect("nanoseconds")));
            }
            samples
        };
        Times { mount: of("mount"), unmount: of("unmount") }
    })
}
