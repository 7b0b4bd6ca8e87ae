//! What keeps the driver from starting: one clear line that names the flag, and a status that is not 0 (C44).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

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

#[tokio::test]
async fn c42_a_file_that_is_no_socket_stays_as_it_is() {
    let host = Host::start().await;
    fs::write(host.socket(), "data").expect("write");
    let mut driver = host.spawn(host.serve(), "driver.log");
    assert!(!driver.ends().await.success());
    assert_eq!(fs::read(host.socket()).expect("read"), b"data");
    assert!(Path::new(&host.path("store")).is_dir());
}
