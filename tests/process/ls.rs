//! `per-node ls`: the same as the serving process tells, beside it and without it, and nothing is changed by it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::host::Host;

async fn ls(host: &Host, arguments: &[&str]) -> Output {
    let mut command = host.inside();
    command.args([env!("CARGO_BIN_EXE_per-node"), "ls", "--kubelet-dir"]).arg(host.path("kubelet"));
    command.arg("--store").arg(host.path("store")).args(arguments);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .await
        .expect("it runs")
}

async fn table(host: &Host, arguments: &[&str]) -> String {
    let output = ls(host, arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

async fn json(host: &Host) -> Value {
    serde_json::from_str(&table(host, &["-o", "json"]).await).expect("JSON")
}

/// Everything below the store, with what would change if it were written to.
fn state(directory: &Path, into: &mut BTreeMap<String, (u32, i64, i64, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("read") {
        let path = entry.expect("an entry").path();
        let found = fs::symlink_metadata(&path).expect("stat");
        let bytes = if found.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        into.insert(path.display().to_string(), (found.mode(), found.ctime(), found.ctime_nsec(), bytes));
        if found.is_dir() {
            state(&path, into);
        }
    }
}

#[tokio::test]
async fn c40_ls_tells_who_holds_what_beside_the_serving_process_and_without_it_and_changes_nothing() {
    let host = Host::start().await;
    let mut driver = host.start_driver().await;
    host.publish("held", "u1").await.expect("published");
    host.publish("free", "u2").await.expect("published");
    host.unpublish("free", "u2").await.expect("unpublished");
    fs::write(host.path("store/copies/free/file"), [1; 10_000]).expect("write");
    for serving in [true, false] {
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        state(&host.path("store"), &mut before);
        let told = json(&host).await;
        let text = table(&host, &["--sizes"]).await;
        state(&host.path("store"), &mut after);
        assert_eq!(before, after, "serving: {serving}");
        let copies = told["copies"].as_array().expect("copies");
        let handles: Vec<_> = copies.iter().map(|copy| copy["handle"].as_str().expect("a handle")).collect();
        assert_eq!(handles, ["free", "held"], "serving: {serving}");
        let holder = &copies[1]["holders"][0];
        assert_eq!((&holder["pod"], &holder["uid"]), (&"name-u1".into(), &"u1".into()), "{told}");
        assert!(holder["since"].is_string() && copies[0]["bytes"].is_null(), "{told}");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["HANDLE", "SIZE", "INODES", "HOLDER", "SINCE"]);
        assert_eq!((lines[1][0], lines[1][2], lines[1][3]), ("free", "2", "-"), "{text}");
        assert_eq!((lines[2][0], lines[2][2], lines[2][3]), ("held", "1", "example/name-u1"), "{text}");
        if serving {
            driver.signal(Signal::SIGKILL);
            driver.ends().await;
        }
    }
    let one = table(&host, &["held"]).await;
    assert_eq!(one.lines().count(), 2, "{one}");
}

#[tokio::test]
async fn c15_a_record_whose_mount_is_gone_holds_nothing_in_ls() {
    let host = Host::start().await;
    let mut driver = host.start_driver().await;
    host.publish("data", "u1").await.expect("published");
    driver.signal(Signal::SIGKILL);
    driver.ends().await;
    let mut unmount = host.inside();
    let unmounted = unmount.arg("umount").arg(host.target("u1")).status().await.expect("umount runs");
    assert!(unmounted.success());
    let told = json(&host).await;
    assert_eq!(told["copies"][0]["holders"], Value::Array(Vec::new()), "{told}");
}

#[tokio::test]
async fn c44_ls_of_what_is_no_store_is_one_line_that_names_the_flag() {
    let host = Host::start().await;
    let output = ls(&host, &[]).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{told}");
    assert!(told.starts_with("per-node: --store: no store that can be looked at"), "{told}");
    assert!(fs::read_dir(host.path("store")).expect("read").next().is_none(), "nothing was made there");
}
