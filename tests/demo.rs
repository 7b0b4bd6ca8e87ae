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

#[tokio::test]
async fn a_demo_that_stays_takes_calls_and_ends_at_a_signal_with_nothing_left() {
    use per_node::proto::csi::identity_client::IdentityClient;
    for flags in [&[][..], &["--rootless"]] {
        let temporary = Temporary::new();
        let (mut child, _out, said) = left_serving(&temporary, flags);
        let sockets: Vec<&str> = said.lines().filter_map(|line| line.split("unix://").nth(1)).collect();
        assert_eq!(sockets.len(), 2, "{said}");
        for socket in sockets {
            let endpoint = tonic::transport::Endpoint::try_from(format!("unix://{socket}")).unwrap();
            let mut client = IdentityClient::new(endpoint.connect().await.unwrap());
            let info = client.get_plugin_info(per_node::proto::csi::GetPluginInfoRequest {}).await.unwrap();
            assert_eq!(info.into_inner().name, "per-node.liken.sh");
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
