//! What keeps the driver from starting: one clear line that names the flag, and a status that is not 0 (C44).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::signal::Signal;
use tokio::process::Command;

use super::host::Host;

type Change = fn(&Host, &mut Command);

/// What is wrong, the words of the line, and how it is made wrong.
const CASES: [(&str, &[&str], Change); 13] = [
    ("no node id", &["--node-id", "NODE_NAME"], |_, command| {
        command.env_remove("NODE_NAME");
    }),
    ("copies told to nobody in particular", &["--http-copies", "--pod-uid", "POD_UID"], |_, command| {
        command.env("PER_NODE_HTTP_COPIES", "true").env_remove("POD_UID");
    }),
    ("an endpoint that is no unix socket", &["--endpoint", "tcp://"], |_, command| {
        command.env("CSI_ENDPOINT", "tcp://127.0.0.1:1");
    }),
    ("an endpoint too long for a socket", &["--endpoint", "107"], |host, command| {
        let long = format!("unix://{}/{}", host.path("kubelet").display(), "n".repeat(120));
        command.env("CSI_ENDPOINT", long);
    }),
    ("a file where the socket should be", &["--endpoint", "no socket"], |host, _| {
        fs::write(host.socket(), "data").expect("write");
    }),
    ("no store", &["--store"], |host, command| {
        command.env("PER_NODE_STORE", host.path("missing"));
    }),
    ("a file for a store", &["--store"], |host, command| {
        fs::write(host.path("file"), "data").expect("write");
        command.env("PER_NODE_STORE", host.path("file"));
    }),
    ("a relative store", &["--store"], |_, command| {
        command.env("PER_NODE_STORE", "store");
    }),
    ("the root for a store", &["--store"], |_, command| {
        command.env("PER_NODE_STORE", "/");
    }),
    ("a store that is no mount", &["--store"], |_, command| {
        command.env("PER_NODE_STORE_MOUNT_REQUIRED", "true");
    }),
    ("no kubelet directory", &["--kubelet-dir"], |host, command| {
        command.env("PER_NODE_KUBELET_DIR", host.path("missing"));
    }),
    (
        "pods on another disk by a symlink",
        &["--kubelet-dir", "pods is a symlink", "bind-mount"],
        |host, _| {
            fs::create_dir(host.path("elsewhere")).expect("mkdir");
            symlink(host.path("elsewhere"), host.path("kubelet/pods")).expect("symlink");
        },
    ),
    ("a kubelet directory that is not shared", &["--kubelet-dir", "shared"], |host, command| {
        command.env_remove("PER_NODE_STANDALONE").env("PER_NODE_KUBELET_DIR", host.path("private"));
        fs::create_dir(host.path("private")).expect("mkdir");
    }),
];

#[tokio::test]
async fn c44_what_is_wrong_is_one_line_that_names_the_flag() {
    for (what, words, change) in CASES {
        let host = Host::start().await;
        let mut command = host.serve();
        change(&host, &mut command);
        let mut driver = host.spawn(command, "driver.log");
        let status = driver.ends().await;
        let log = driver.log();
        assert!(!status.success(), "{what}: {log}");
        let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("per-node: ")).collect();
        assert_eq!(lines.len(), 1, "{what}: {log}");
        assert!(words.iter().all(|word| lines[0].contains(word)), "{what}: {log}");
        assert!(!log.contains("panicked"), "{what}: {log}");
    }
}

/// The note that a kubelet leaves beside a pod's target.
fn note(host: &Host, pod: &str, driver: &str, handle: &str) {
    let note = format!(r#"{{"driverName":"{driver}","volumeHandle":"{handle}","specVolID":"pv"}}"#);
    fs::write(host.target(pod).with_file_name("vol_data.json"), note).expect("write");
}

#[tokio::test]
async fn c44_a_store_is_not_served_while_a_pod_uses_the_one_that_was_there_before() {
    let host = Host::start().await;
    let mut first = host.start_driver().await;
    host.publish("data", "u1").await.expect("published");
    note(&host, "u1", "per-node.liken.sh", "data");
    first.signal(Signal::SIGTERM);
    assert!(first.ends().await.success());

    fs::create_dir(host.path("other")).expect("mkdir");
    let elsewhere = || {
        let mut command = host.serve();
        command.env("PER_NODE_STORE", host.path("other"));
        command
    };
    let mut other = host.spawn(elsewhere(), "other.log");
    assert!(!other.ends().await.success());
    let log = other.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("per-node: ")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let target = host.target("u1").display().to_string();
    for word in ["--store", "another store", "/store/copies/data ", &format!("umount {target}")] {
        assert!(lines[0].contains(word), "{word}: {log}");
    }
    assert_eq!(host.mounts_at("u1"), 1, "the pod keeps what it has");

    // What another driver publishes is that one's business, and so is a directory that is no copy of the volume.
    for (driver, handle) in [("other.example", "data"), ("per-node.liken.sh", "dat")] {
        note(&host, "u1", driver, handle);
        let mut other = host.spawn(elsewhere(), "other.log");
        host.is_served().await;
        other.signal(Signal::SIGTERM);
        assert!(other.ends().await.success(), "{driver} {handle}");
    }

    note(&host, "u1", "per-node.liken.sh", "data");
    let _first = host.start_driver().await;
    host.unpublish("data", "u1").await.expect("the old store is in its place again");
    assert_eq!(host.mounts_at("u1"), 0);
}

#[tokio::test]
async fn c42_a_file_that_is_no_socket_stays_as_it_is() {
    let host = Host::start().await;
    fs::write(host.socket(), "data").expect("write");
    let mut driver = host.spawn(host.serve(), "driver.log");
    assert!(!driver.ends().await.success());
    assert_eq!(fs::read(host.socket()).expect("read"), b"data");
    assert!(Path::new(&host.path("store")).is_dir());
}
