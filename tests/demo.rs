//! `per-node demo` as a person runs it: the built binary, on every ground that this machine has, as this user
//! and as one without privilege.

#![cfg(feature = "demo")]
#![allow(clippy::disallowed_types, reason = "the bans are the core's; this suite starts the binary")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// The user and group that nobody's files are: on Debian and everywhere else.
const NOBODY: u32 = 65534;

/// Everything that the demo must have said, whatever its ground.
const SAID: [&str; 10] = [
    "1. A person writes a volume and a claim",
    "node-one  example/web-1    writes notes.txt                   \"web-1 was here\"",
    "Mounts at the pod's target: 1.",
    "node-one  example/web-2    mounts example-store               FAILED_PRECONDITION",
    "Warning  PerNodeVolumeHeld  5s (x3 over 2m)  per-node.liken.sh",
    "node-two  example/web-3    reads notes.txt                    no file: the copy is empty",
    "node-one  example/typo     mounts Example_Store               INVALID_ARGUMENT",
    "Warning  PerNodeVolumeRefused  5s   per-node.liken.sh",
    "node-two  the driver       sweeps                             example/db-0 holds its copy: kept",
    "All 12 steps were as promised",
];

/// A directory for temporary files that is this test's own, so that what is left in it can be seen.
struct Temporary(tempfile::TempDir);

impl Temporary {
    fn new() -> Temporary {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        Temporary(directory)
    }

    fn left(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn demo(temporary: &Temporary, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_per-node"));
    command.arg("demo").args(flags).env("TMPDIR", temporary.0.path()).stdin(Stdio::null());
    command
}

#[track_caller]
fn assert_played(output: &Output, temporary: &Temporary) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaints}", output.status);
    assert_eq!(complaints, "");
    for line in SAID {
        assert!(said.contains(line), "not said: {line}\n{said}");
    }
    assert!(!said.contains("NOT AS PROMISED"), "{said}");
    let longest = said.lines().max_by_key(|line| line.chars().count()).unwrap();
    assert!(longest.chars().count() <= 100, "too long for a terminal: {longest}");
    assert_eq!(temporary.left(), [] as [PathBuf; 0], "left behind");
    said
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    tempfile::tempdir().unwrap().path().metadata().unwrap().uid() == 0
}

#[test]
fn the_demo_keeps_every_promise_on_the_best_ground_there_is() {
    let temporary = Temporary::new();
    let said = assert_played(&demo(&temporary, &[]).output().unwrap(), &temporary);
    let is_real = said.contains("mounts             real bind mounts");
    assert_eq!(is_real, said.contains("Read-only file system (os error 30)"), "{said}");
    assert_eq!(is_real, !said.contains("Not shown:"), "{said}");
    if cfg!(target_os = "linux") && is_root() {
        assert!(is_real, "root can mount, and the demo does not:\n{said}");
    }
}

#[test]
fn the_demo_keeps_every_promise_on_the_rootless_double_and_says_what_it_cannot_show() {
    let temporary = Temporary::new();
    let said = assert_played(&demo(&temporary, &["--rootless"]).output().unwrap(), &temporary);
    assert!(said.contains("mounts             the rootless double"), "{said}");
    assert!(said.contains("Not shown: the rootless double writes read-only down"), "{said}");
    assert!(said.contains("It cannot show:"), "{said}");
}

#[test]
fn a_demo_that_cannot_begin_says_why_in_one_line_and_fails() {
    let temporary = Temporary::new();
    let output = demo(&temporary, &[]).env("TMPDIR", temporary.0.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.starts_with("per-node demo: no temporary directory"), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

/// As root this test also plays as a user without privilege; as anybody else the first test did that.
#[test]
fn the_demo_needs_no_root() {
    use std::os::unix::process::CommandExt;
    if !is_root() {
        return;
    }
    // Nobody may enter the build's directories, so the program is copied to where they may.
    let program = tempfile::tempdir().unwrap();
    open_up(program.path());
    let own = program.path().join("per-node");
    std::fs::copy(env!("CARGO_BIN_EXE_per-node"), &own).unwrap();
    for flags in [&["demo"][..], &["demo", "--rootless"]] {
        let temporary = Temporary::new();
        let mut command = Command::new(&own);
        command.args(flags).env("TMPDIR", temporary.0.path()).stdin(Stdio::null());
        let output = command.current_dir("/").uid(NOBODY).gid(NOBODY).output().unwrap();
        let said = assert_played(&output, &temporary);
        assert!(!said.contains("in a mount namespace"), "nobody cannot enter one:\n{said}");
    }
}

fn open_up(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A demo that was told to stay, up to the line that says how it is ended.
fn left_serving(temporary: &Temporary, flags: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = demo(temporary, &[&["--serve"], flags].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C ends it.") {
        assert_ne!(out.read_line(&mut said).unwrap(), 0, "it ended:\n{said}");
    }
    (child, out, said)
}

/// Publishes a volume as any CSI client would, for a pod that it does not name.
async fn publish(socket: &str, target: &Path) {
    use per_node::proto::csi::volume_capability::access_mode::Mode;
    use per_node::proto::csi::volume_capability::{AccessMode, AccessType, MountVolume};
    use per_node::proto::csi::{NodePublishVolumeRequest, VolumeCapability, node_client::NodeClient};
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    let endpoint = tonic::transport::Endpoint::try_from(format!("unix://{socket}")).unwrap();
    let request = NodePublishVolumeRequest {
        volume_id: "example-store".to_owned(),
        target_path: target.display().to_string(),
        volume_capability: Some(VolumeCapability {
            access_type: Some(AccessType::Mount(MountVolume::default())),
            access_mode: Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() }),
        }),
        ..NodePublishVolumeRequest::default()
    };
    NodeClient::new(endpoint.connect().await.unwrap()).node_publish_volume(request).await.unwrap();
}

/// Lists a directory, in the namespace of the demo where it has one, by the command that it printed.
fn listed(said: &str, directory: &Path) -> String {
    let nsenter = said.lines().find_map(|line| line.trim().strip_prefix("nsenter ")?.strip_suffix(" -- sh"));
    let mut list = match nsenter {
        Some(flags) => {
            let mut nsenter = Command::new("nsenter");
            nsenter.args(flags.split(' ')).arg("--").arg("ls");
            nsenter
        }
        None => Command::new("ls"),
    };
    // The slash has a symlink followed.
    let output = list.arg(directory.join("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// It ends while a volume is mounted, and takes the mount along.
#[tokio::test]
async fn a_demo_that_stays_takes_calls_and_ends_at_a_signal_with_nothing_left() {
    for flags in [&[][..], &["--rootless"]] {
        let temporary = Temporary::new();
        let (mut child, _out, said) = left_serving(&temporary, flags);
        let after = |word: &str| said.lines().filter_map(|line| line.split(word).nth(1)).collect::<Vec<_>>();
        let (sockets, kubelets, copies) = (after("unix://"), after("targets  below "), after("copies   "));
        assert_eq!((sockets.len(), kubelets.len(), copies.len()), (2, 2, 2), "{said}");
        for node in 0..2 {
            let target = Path::new(kubelets[node]).join("any/target");
            publish(sockets[node], &target).await;
            std::fs::write(Path::new(copies[node]).join("example-store/seen"), "").unwrap();
            assert_eq!(listed(&said, &target), "seen\n");
        }
        let is_real = said.contains("mounts             real bind mounts");
        let enter = format!("nsenter --target {} ", child.id());
        assert_eq!(is_real, said.contains(&enter), "{said}");
        let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(ended.success());
        assert!(child.wait().unwrap().success());
        assert_eq!(temporary.left(), [] as [PathBuf; 0]);
    }
}
