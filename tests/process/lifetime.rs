//! Stopping, dying, and being followed.

use std::fs;

use nix::sys::signal::Signal;
use tonic::Code;

use super::api_server::ApiServer;
use super::api_store::Phase;
use super::host::{Host, eventually, sockets_in};
use super::watcher::{Did, PluginWatcher, Script};

#[tokio::test]
async fn c42_told_to_end_it_ends_with_0_and_leaves_mounts() {
    let host = Host::start().await;
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut driver = host.start_driver().await;
        host.publish("example-store", "u1").await.expect("published");
        driver.signal(signal);
        let status = driver.ends().await;
        assert!(status.success(), "{signal}: {status}\n{}", driver.log());
        assert_eq!(host.socket_inode(), None, "its socket went with it");
        assert_eq!(host.mounts_at("u1"), 1, "and the pod keeps its volume");
    }
}

#[tokio::test]
async fn c42_where_its_socket_is_removed_it_ends_to_be_started_again() {
    let host = Host::start().await;
    let mut driver = host.start_driver().await;
    host.publish("example-store", "u1").await.expect("published");
    fs::remove_file(host.socket()).expect("somebody tidies up");
    assert_eq!(driver.ends().await.code(), Some(1));
    let log = driver.log();
    assert!(log.contains("csi.sock was removed by somebody"), "{log}");
    assert_eq!(host.mounts_at("u1"), 1, "the pod keeps its volume");
    let _driver = host.start_driver().await;
    host.unpublish("example-store", "u1").await.expect("unpublished");
}

#[tokio::test]
async fn c40_killed_and_started_again_it_knows_who_holds_what() {
    let host = Host::start().await;
    let mut driver = host.start_driver().await;
    host.publish("example-store", "u1").await.expect("published");
    driver.signal(Signal::SIGKILL);
    driver.ends().await;
    assert!(host.socket_inode().is_some(), "a stale socket is left");
    let _driver = host.start_driver().await;
    let refused = host.publish("example-store", "u2").await.expect_err("held");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("example/name-u1"), "{refused:?}");
    host.publish("example-store", "u1").await.expect("the kubelet's publish after a restart");
    assert_eq!(host.mounts_at("u1"), 1);
    host.unpublish("example-store", "u1").await.expect("unpublished");
    assert_eq!(host.mounts_at("u1"), 0);
    host.publish("example-store", "u2").await.expect("and the next pod has it");
}

#[tokio::test]
async fn c40_a_second_process_waits_for_the_first_and_then_takes_over() {
    let host = Host::start().await;
    let mut first = host.start_driver().await;
    host.publish("example-store", "u1").await.expect("published");
    let socket = host.socket_inode();
    let mut second = host.spawn(host.serve(), "second.log");
    eventually(|| second.log().contains("waiting for it to end")).await;
    assert_eq!(host.socket_inode(), socket, "the socket is still the first one's");
    host.publish("example-store", "u1").await.expect("which serves as before");
    first.signal(Signal::SIGTERM);
    assert!(first.ends().await.success());
    host.is_served().await;
    let refused = host.publish("example-store", "u2").await.expect_err("held");
    assert!(refused.message().contains("example/name-u1"), "{refused:?}");
    assert!(second.is_running());
}

#[tokio::test]
async fn c42_told_to_end_while_it_waits_it_ends_with_0() {
    let host = Host::start().await;
    let mut first = host.start_driver().await;
    let mut second = host.spawn(host.serve(), "second.log");
    eventually(|| second.log().contains("waiting for it to end")).await;
    second.signal(Signal::SIGTERM);
    assert!(second.ends().await.success());
    assert!(first.is_running() && host.socket_inode().is_some());
}

#[tokio::test]
async fn c32_what_was_refused_just_before_the_end_is_told_by_the_next_process() {
    let api = ApiServer::start().await;
    api.store(|store| store.set_namespace("example", Some(Phase::Active)));
    api.behave(|behaviour| behaviour.away = true);
    let host = Host::start().await;
    fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
    let serve = || {
        let mut command = host.serve();
        command.env_remove("PER_NODE_STANDALONE").env("PER_NODE_KUBECONFIG", host.path("kubeconfig"));
        command
    };
    let mut driver = host.spawn(serve(), "first.log");
    host.is_served().await;
    const REFUSALS: u64 = 5;
    for _ in 0..REFUSALS {
        host.publish("Bad Handle", "u1").await.expect_err("refused");
    }
    driver.signal(Signal::SIGTERM);
    assert!(driver.ends().await.success());
    assert_eq!(api.events().len(), 0);
    api.behave(|behaviour| behaviour.away = false);
    let _next = host.spawn(serve(), "second.log");
    eventually(|| !api.events().is_empty()).await;
    assert_eq!(api.events()[0]["count"], REFUSALS);
}

#[tokio::test]
async fn c43_the_kubelet_takes_the_driver_in_and_lets_it_go() {
    let host = Host::start().await;
    let registry = host.path("kubelet/plugins_registry");
    let mut kubelet = PluginWatcher::start(&registry, &Script::default());
    let mut command = host.serve();
    command
        .env("PER_NODE_REGISTRATION_DIR", &registry)
        .env("PER_NODE_KUBELET_ENDPOINT", "unix:///on/the/host.sock");
    let mut driver = host.spawn(command, "driver.log");
    let Did::Registered(info) = kubelet.next().await else { panic!("not registered") };
    assert_eq!((info.name.as_str(), info.endpoint.as_str()), ("per-node.liken.sh", "/on/the/host.sock"));
    host.publish("example-store", "u1").await.expect("it serves by the time it is registered");
    assert!(kubelet.is_quiet(), "it is asked once");
    driver.signal(Signal::SIGTERM);
    assert!(driver.ends().await.success());
    assert_eq!(kubelet.next().await, Did::Deregistered);
    assert_eq!(sockets_in(&registry), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn c43_without_a_registration_directory_nothing_is_registered() {
    let host = Host::start().await;
    let _driver = host.start_driver().await;
    host.publish("example-store", "u1").await.expect("it serves");
    assert_eq!(sockets_in(&host.path("kubelet/plugins_registry")), Vec::<std::path::PathBuf>::new());
}
