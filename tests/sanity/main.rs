//! csi-sanity, the test suite that CSI drivers are judged by, against the binary: `per-node serve` as root, on real
//! mounts in a mount namespace of its own.
//!
//! Ignored by default, for it needs root, Go, and `unshare` and `nsenter`:
//! `cargo test --test sanity -- --ignored`. Where one of them is missing it fails; it never skips.
//!
//! The driver has no controller and never will. The specs that need a volume get one from the stub in
//! `controller.rs`; the two that look for a controller beside the node reach the driver through a proxy that has one.

mod controller;
mod plugin;
mod report;
mod tool;

use std::io::Write;

use plugin::Plugin;
use report::Report;

/// The specs under Identity Service and Node Service, less those whose capability the driver does not declare
/// (staging 5, expansion 4, volume health 2, storage health 1), less the two that need a controller at the node's own
/// endpoint.
const PASSED_DIRECT: usize = 16;

/// All that can run.
const PASSED_WITH_CONTROLLER: usize = 18;

/// The two of volume health come with `--volume-health`.
const PASSED_WITH_HEALTH: usize = PASSED_DIRECT + 2;

/// Why a spec may be skipped: the driver declares no such capability.
const UNDECLARED: [&str; 4] = [
    "NodeStageVolume not supported",
    "NodeUnstageVolume not supported",
    "NodeExpandVolume not supported",
    "NodeGetStorageHealth not supported",
];

/// The driver declares this one only where it is told to.
const NO_HEALTH: &str = "NodeGetVolumeHealth not supported";

/// The specs that look for a controller at the node's own endpoint.
const NO_CONTROLLER: &str = "Controller Service not provided: CreateVolume not supported";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, Go, unshare and nsenter"]
async fn c04_csi_sanity_passes_on_the_drivers_own_socket() {
    let plugin = Plugin::start(&[]).await;
    let stub = controller::serve_alone(&plugin.path("controller.sock")).await;
    let report = plugin.judge(plugin.socket(), &stub).await;
    verdict("on the driver's own socket", &report, &[NO_HEALTH, NO_CONTROLLER], PASSED_DIRECT);
    plugin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, Go, unshare and nsenter"]
async fn c04_csi_sanity_passes_with_a_controller_beside_the_node() {
    let plugin = Plugin::start(&[]).await;
    let proxy = controller::serve_before(plugin.socket(), &plugin.path("proxy.sock")).await;
    let report = plugin.judge(&proxy, &proxy).await;
    verdict("with a controller", &report, &[NO_HEALTH], PASSED_WITH_CONTROLLER);
    plugin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, Go, unshare and nsenter"]
async fn c49_csi_sanity_passes_with_volume_health() {
    let plugin = Plugin::start(&["--volume-health"]).await;
    let stub = controller::serve_alone(&plugin.path("controller.sock")).await;
    let report = plugin.judge(plugin.socket(), &stub).await;
    verdict("with volume health", &report, &[NO_CONTROLLER], PASSED_WITH_HEALTH);
    let about_health = report.passed.iter().filter(|spec| spec.contains("NodeGetVolumeHealth"));
    assert_eq!(about_health.count(), 2, "{:#?}", report.passed);
    plugin.stop().await;
}

/// Prints the count, past the test harness, which would keep it to itself, and judges. What may be skipped is what is
/// never declared, and what is `missing` here.
fn verdict(how: &str, report: &Report, missing: &[&str], expected: usize) {
    let line =
        format!("csi-sanity {how}: {} passed, {} skipped\n", report.passed.len(), report.skipped.len());
    std::io::stderr().write_all(line.as_bytes()).expect("stderr");
    assert!(report.failed.is_empty(), "failed: {:#?}\n{}", report.failed, report.transcript);
    for (spec, why) in &report.skipped {
        let is_expected = UNDECLARED.iter().chain(missing).any(|reason| reason == why);
        assert!(is_expected, "{spec} was skipped: {why}");
    }
    let passed = report.passed.len();
    assert_eq!(passed, expected, "these passed: {:#?}\n{}", report.passed, report.transcript);
}
