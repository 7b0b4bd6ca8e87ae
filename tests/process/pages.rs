//! The pages of the running binary, and an API server that is away.

use std::fs;

use super::host::{Host, free_port, page, page_if_served, page_with};

#[tokio::test]
async fn c45_health_readiness_and_metrics_are_on_one_port() {
    let host = Host::start().await;
    let address = free_port();
    let mut command = host.serve();
    command.env("PER_NODE_HTTP", address.to_string());
    let _driver = host.spawn(command, "driver.log");
    host.is_served().await;
    host.publish("example-store", "u1").await.expect("published");
    host.publish("example-store", "u2").await.expect_err("held");
    assert!(page(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    let ready = page(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("standalone"), "{ready}");
    let metrics = page(address, "/metrics").await;
    for line in [
        "per_node_calls_total{method=\"NodePublishVolume\",code=\"OK\"} 1",
        "per_node_calls_total{method=\"NodePublishVolume\",code=\"FAILED_PRECONDITION\"} 1",
        "per_node_refusals_total{reason=\"PerNodeVolumeHeld\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// A rollout goes on when a pod is ready: one that will not get its socket must never have said so.
#[tokio::test]
async fn c45_it_is_not_ready_before_its_socket_is_served() {
    let host = Host::start().await;
    let _first = host.start_driver().await;
    fs::create_dir(host.path("other")).expect("mkdir");
    let address = free_port();
    let mut command = host.serve();
    command.env("PER_NODE_HTTP", address.to_string()).env("PER_NODE_STORE", host.path("other"));
    let mut second = host.spawn(command, "second.log");
    let mut seen = 0;
    while second.is_running() {
        if let Some(page) = page_if_served(address, "/readyz").await {
            assert!(page.starts_with("HTTP/1.1 503") && page.contains("socket is not served yet"), "{page}");
            seen += 1;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert!(seen > 0, "it was never asked: {}", second.log());
    assert!(second.log().contains("another process serves"), "{}", second.log());
}

#[tokio::test]
async fn c45_copies_are_told_to_those_who_know_the_pods_uid_and_no_name_inside_one() {
    let host = Host::start().await;
    let address = free_port();
    let mut command = host.serve();
    command
        .env("PER_NODE_HTTP", address.to_string())
        .env("PER_NODE_HTTP_COPIES", "true")
        .env("POD_UID", "the-pods-uid");
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    host.publish("example-store", "u1").await.expect("published");
    let inside = host.seen(&host.target("u1")).join("name-inside");
    fs::create_dir_all(inside.join("name-further-inside")).expect("mkdir");
    let unasked = page(address, "/copies").await;
    assert!(unasked.starts_with("HTTP/1.1 403") && !unasked.contains("example-store"), "{unasked}");
    let told = page_with(address, "/copies", &[("X-Per-Node-Pod-Uid", "the-pods-uid")]).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    for word in
        ["\"handle\":\"example-store\"", "\"pod\":\"name-u1\"", "\"since\":\"20", "\"node\":\"node-1\""]
    {
        assert!(told.contains(word), "{word} in {told}");
    }
    assert!(!told.contains("inside"), "{told}");
    assert!(!driver.log().contains("the-pods-uid"), "{}", driver.log());
}

#[tokio::test]
async fn c41_without_an_api_server_it_serves_and_stays() {
    let host = Host::start().await;
    let nobody = free_port();
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster: {{server: 'http://{nobody}'}}\nusers:\n- name: u\n  user: {{}}\n"
    );
    fs::write(host.path("kubeconfig"), config).expect("write");
    let address = free_port();
    let mut command = host.serve();
    command
        .env_remove("PER_NODE_STANDALONE")
        .env("PER_NODE_KUBECONFIG", host.path("kubeconfig"))
        .env("PER_NODE_HTTP", address.to_string());
    let mut driver = host.spawn(command, "driver.log");
    host.is_served().await;
    host.publish("example-store", "u1").await.expect("published");
    host.publish("example-store", "u2").await.expect_err("held");
    host.unpublish("example-store", "u1").await.expect("unpublished");
    let ready = page(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("have not been read"), "{ready}");
    assert!(host.path("store/copies/example-store").is_dir(), "nothing was swept");
    assert!(driver.is_running());
    driver.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(driver.ends().await.success(), "{}", driver.log());
}
