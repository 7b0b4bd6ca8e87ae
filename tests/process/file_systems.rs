//! The binary with its store on each file system, as a kubelet with a symlinked directory drives it: a publish, what the pod
//! writes, an unpublish, and the sweep that removes the copy when its volume is gone.

use std::fs;
use std::os::unix::fs::symlink;

use nix::unistd::Uid;

use super::api_server::ApiServer;
use super::file_system::FileSystem;
use super::host::{Host, PATIENCE, eventually, free_port, page};

/// A node whose store lies on a new file system of that kind.
async fn host_on(file_system: FileSystem) -> Host {
    let host = Host::start().await;
    fs::create_dir(host.path("room")).expect("mkdir");
    let make = file_system.mount_new(&host.path("room"), &host.path("store"), "400M");
    let made = host.inside().arg(make.get_program()).args(make.get_args()).output().await;
    let output = made.expect("nsenter runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    host
}

async fn whole_life_on(file_system: FileSystem) {
    if !Uid::effective().is_root() && file_system != FileSystem::Tmpfs {
        let required = std::env::var_os("PER_NODE_REQUIRE_ROOT").is_some_and(|value| value == "1");
        assert!(!required, "PER_NODE_REQUIRE_ROOT=1, and this is not root");
        eprintln!("{}: only root may mount it", file_system.name());
        return;
    }
    let api = ApiServer::start().await;
    api.store(|store| store.create_volume("pv", "per-node.liken.sh", "example-store"));
    let host = host_on(file_system).await;
    symlink("kubelet", host.path("kubelet-link")).expect("symlink");
    symlink("store", host.path("store-link")).expect("symlink");
    fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
    let mut command = host.serve();
    command
        .env_remove("PER_NODE_STANDALONE")
        .env("PER_NODE_KUBECONFIG", host.path("kubeconfig"))
        .env("PER_NODE_KUBELET_DIR", host.path("kubelet-link"))
        .env("PER_NODE_STORE", host.path("store-link"))
        .env("PER_NODE_STORE_MOUNT_REQUIRED", "true");
    let address = free_port();
    command.env("PER_NODE_HTTP", address.to_string());
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    // A store is a cluster's once its API server has answered while the store was empty (C22): no kubelet calls before.
    let marker = host.seen(&host.path("store/holds/marker"));
    eventually(|| fs::read(&marker).is_ok_and(|record| names_the_driver(&record))).await;
    // Only a deletion that the watch sees is carried out at once.
    let read = async { while page(address, "/readyz").await.contains("have not been read") {} };
    tokio::time::timeout(PATIENCE, read).await.expect("the volumes are read");
    // By the kubelet's own spelling, and by the one without the symlink.
    let mut request = host.request("example-store", "u1");
    request.target_path = request.target_path.replace("/kubelet/", "/kubelet-link/");
    host.node().await.node_publish_volume(request).await.expect("published");
    assert_eq!(host.mounts_at("u1"), 1);
    fs::write(host.seen(&host.target("u1")).join("file"), "the pod's").expect("the pod writes");
    let copy = host.seen(&host.path("store/copies/example-store"));
    assert_eq!(fs::read_to_string(copy.join("file")).expect("it is in the copy"), "the pod's");
    host.publish("example-store", "u2").await.expect_err("held");
    host.unpublish("example-store", "u1").await.expect("unpublished");
    assert_eq!((host.mounts_at("u1"), copy.join("file").exists()), (0, true));
    api.store(|store| store.delete_volume("pv"));
    let trash = host.seen(&host.path("store/trash"));
    eventually(|| !copy.exists() && fs::read_dir(&trash).expect("read").next().is_none()).await;
    assert!(!driver.log().contains("ERROR"), "{}", driver.log());
}

fn names_the_driver(record: &[u8]) -> bool {
    let name = b"per-node.liken.sh";
    record.windows(name.len()).any(|bytes| bytes == name)
}

#[tokio::test]
async fn c20_a_whole_life_on_tmpfs() {
    whole_life_on(FileSystem::Tmpfs).await;
}

#[tokio::test]
async fn c20_a_whole_life_on_ext4() {
    whole_life_on(FileSystem::Ext4).await;
}

#[tokio::test]
async fn c20_a_whole_life_on_xfs() {
    whole_life_on(FileSystem::Xfs).await;
}

#[tokio::test]
async fn c20_a_whole_life_on_btrfs() {
    whole_life_on(FileSystem::Btrfs).await;
}

#[tokio::test]
async fn c20_a_whole_life_on_overlay() {
    whole_life_on(FileSystem::Overlay).await;
}
