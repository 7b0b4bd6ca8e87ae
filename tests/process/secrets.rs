//! C47 on the real binary: whatever secrets, tokens and mount flags a request carries, and whatever the log's level and
//! format, neither its standard error nor its events show them, nor the API server's token.

use std::fs;

use per_node::proto::csi::volume_capability::{AccessType, MountVolume};
use per_node::proto::csi::{
    NodeExpandVolumeRequest, NodeGetStorageHealthRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
};

use super::api_server::ApiServer;
use super::api_store::Phase;
use super::host::{Host, eventually};

const MARKER: &str = "tell-no-one-Qm7xT";
const TOKEN: &str = "bearer-tell-no-one-9cVbK";
/// The key under which a kubelet sends service account tokens.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";

fn secret() -> (String, String) {
    (TOKENS.to_owned(), MARKER.to_owned())
}

/// Puts the marker wherever a publish may carry something that is nobody's business.
fn marked(mut request: NodePublishVolumeRequest, flags: &[&str]) -> NodePublishVolumeRequest {
    request.secrets = [secret(), (MARKER.to_owned(), "value".to_owned())].into();
    request.publish_context = [secret()].into();
    request.volume_context.extend([secret(), ("attribute".to_owned(), MARKER.to_owned())]);
    if let Some(capability) = &mut request.volume_capability {
        let mount_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        capability.access_type = Some(AccessType::Mount(MountVolume { mount_flags, ..Default::default() }));
    }
    request
}

#[tokio::test]
async fn c47_neither_standard_error_nor_an_event_shows_what_a_request_carried() {
    let levels = ["trace", "debug", "info", "warn", "error"].map(|level| (level, "text"));
    for (level, format) in levels.into_iter().chain([("trace", "json"), ("info", "json")]) {
        let api = ApiServer::start().await;
        api.behave(|behaviour| behaviour.token = Some(TOKEN.to_owned()));
        api.store(|store| {
            store.set_namespace("example", Some(Phase::Active));
            store.create_volume("pv", "per-node.liken.sh", "example-store")
        });
        let host = Host::start().await;
        fs::write(host.path("kubeconfig"), api.kubeconfig()).expect("write");
        let mut command = host.serve();
        command
            .env_remove("PER_NODE_STANDALONE")
            .env("PER_NODE_KUBECONFIG", host.path("kubeconfig"))
            .env("PER_NODE_VOLUME_HEALTH", "true")
            .env("RUST_LOG", level)
            .env("PER_NODE_LOG_FORMAT", format);
        let driver = host.spawn(command, "driver.log");
        host.is_served().await;
        let mut node = host.node().await;
        let flag = format!("password={MARKER}");
        // Published; held; a flag that is none; a handle that is none; a target elsewhere.
        for (handle, pod, flags) in [
            ("example-store", "u1", &["noexec"][..]),
            ("example-store", "u2", &["noexec"]),
            ("example-store", "u1", &[flag.as_str()]),
            ("other-store", "u3", &[flag.as_str()]),
            ("Bad Handle", "u4", &["ro"]),
        ] {
            let _ = node.node_publish_volume(marked(host.request(handle, pod), flags)).await;
        }
        let mut elsewhere = marked(host.request("other-store", "u5"), &[]);
        elsewhere.target_path = "/elsewhere".to_owned();
        node.node_publish_volume(elsewhere).await.expect_err("refused");
        let stage = NodeStageVolumeRequest { secrets: [secret()].into(), ..Default::default() };
        node.node_stage_volume(stage).await.expect_err("not served");
        let expand = NodeExpandVolumeRequest { secrets: [secret()].into(), ..Default::default() };
        node.node_expand_volume(expand).await.expect_err("not served");
        let health = NodeGetStorageHealthRequest { secrets: [secret()].into() };
        node.node_get_storage_health(health).await.expect_err("not served");
        // Held, two wrong flags or handles, a target elsewhere.
        eventually(|| api.events().len() >= 4).await;
        let log = driver.log();
        assert!(
            level == "error" || log.contains("not done"),
            "{level} {format}: the log is the driver's: {log}"
        );
        for secret in [MARKER, TOKEN] {
            let shown: Vec<&str> = log.lines().filter(|line| line.contains(secret)).collect();
            assert!(shown.is_empty(), "{level} {format}: {shown:#?}");
            assert!(!format!("{:?}", api.events()).contains(secret), "{level} {format}: {:?}", api.events());
        }
    }
}
