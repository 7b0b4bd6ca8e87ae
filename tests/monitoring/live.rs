//! A plugin that runs, scraped by a Prometheus that runs: the metrics are well made, the rules pass their cases, every panel has
//! data, no alert stirs while all is well, and the one for a plugin that is gone does once it is.

use std::fs;
use std::net::SocketAddr;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::api_server::ApiServer;
use super::dashboard::{Query, queries};
use super::host::{Driver, Host, eventually, free_port, page};
use super::prometheus::{Prometheus, promtool, promtool_on};
use super::rules::{CASES, RULES, alerts};

/// Memory has room, and counts its inodes, whatever the disk does.
const ROOMY: &str = "/dev/shm";

/// A plugin with an API server, and a volume that a pod holds.
struct Plugin {
    address: SocketAddr,
    driver: Driver,
    _host: Host,
    _store: TempDir,
    _api: ApiServer,
}

impl Plugin {
    async fn start() -> Plugin {
        let (host, store, api) =
            (Host::start().await, TempDir::new_in(ROOMY).expect("a directory"), ApiServer::start().await);
        api.store(|store| store.create_volume("pv", "per-node.liken.sh", "example-store"));
        fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
        let address = free_port();
        let mut command = host.serve();
        command
            .env_remove("PER_NODE_STANDALONE")
            .env("PER_NODE_STORE", store.path())
            .env("PER_NODE_KUBECONFIG", host.path("kubeconfig"))
            .env("PER_NODE_HTTP", address.to_string());
        let driver = host.spawn(command, "driver.log");
        host.is_served().await;
        // Without a kubelet to register with, the driver does not wait for its store's marker (C22 (e)).
        let marker = store.path().join("holds/marker");
        let names_us = |text: Vec<u8>| String::from_utf8_lossy(&text).contains("per-node.liken.sh");
        eventually(|| fs::read(&marker).is_ok_and(names_us)).await;
        host.publish("example-store", "u1").await.expect("published");
        Plugin { address, driver, _host: host, _store: store, _api: api }
    }

    async fn metrics(&self) -> String {
        let answer = page(self.address, "/metrics").await;
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }
}

#[tokio::test]
#[ignore = "needs Debian's prometheus"]
async fn promtool_has_nothing_to_say_against_the_metrics() {
    let plugin = Plugin::start().await;
    let page = plugin.metrics().await;
    assert_eq!(promtool_on(&["check", "metrics"], &page).await, "", "{page}");
    // What has not happened yet is a zero, so that the first time is seen to be one more.
    for sample in [
        r#"per_node_calls_total{method="NodeUnpublishVolume",code="OK"} 0"#,
        r#"per_node_api_calls_total{call="event_patch",end="ok"} 0"#,
        r#"per_node_sync_failures_total{why="forbidden"} 0"#,
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample} in {page}");
    }
}

#[tokio::test]
#[ignore = "needs Debian's prometheus"]
async fn every_alert_fires_when_it_must_and_not_when_it_must_not() {
    promtool(&["check", "rules", RULES]).await;
    promtool(&["test", "rules", CASES]).await;
}

#[tokio::test]
#[ignore = "needs Debian's prometheus"]
async fn every_panel_has_data_and_no_alert_stirs_until_the_plugin_is_gone() {
    let mut plugin = Plugin::start().await;
    let prometheus = Prometheus::start(plugin.address).await;
    every_query_has_data(&prometheus).await;
    let seen = prometheus.query("per_node_build_info").await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        (&seen[0]["metric"]["node"], &seen[0]["metric"]["pod"]),
        (&"node-1".into(), &"per-node-x".into())
    );
    nothing_is_wrong(&prometheus).await;

    plugin.driver.signal(Signal::SIGTERM);
    assert!(plugin.driver.ends().await.success(), "{}", plugin.driver.log());
    prometheus
        .until(async |prometheus| {
            let rules = prometheus.rules().await;
            let stirs =
                rules.iter().any(|rule| rule["name"] == "PerNodePluginDown" && rule["state"] == "pending");
            stirs.then_some(()).ok_or_else(|| "the alert of a plugin that is gone does not stir".to_owned())
        })
        .await;
}

/// A number that is none (no traffic divided by no traffic) is no data.
async fn every_query_has_data(prometheus: &Prometheus) {
    for Query { panel, expression } in queries() {
        prometheus
            .until(async |prometheus| {
                let samples = prometheus.query(&expression).await;
                let has_data = samples.iter().any(|sample| sample["value"][1] != "NaN");
                has_data.then_some(()).ok_or_else(|| format!("the panel {panel:?} has no data: {expression}"))
            })
            .await;
    }
}

/// Every rule was evaluated without an error, and no alert is even pending.
async fn nothing_is_wrong(prometheus: &Prometheus) {
    prometheus
        .until(async |prometheus| {
            let rules = prometheus.rules().await;
            assert_eq!(rules.iter().filter(|rule| rule["type"] == "alerting").count(), alerts().len());
            // A machine that is busy may miss a scrape, and the next one tells.
            let wrong = rules.iter().find(|rule| {
                rule["health"] != "ok" || rule["type"] == "alerting" && rule["state"] != "inactive"
            });
            wrong
                .map_or(Ok(()), |rule| Err(format!("a rule fails, or stirs though nothing is wrong: {rule}")))
        })
        .await;
}
