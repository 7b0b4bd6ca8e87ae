//! What must not be read in any log (C47), whatever the log level.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::*;
use tracing_subscriber::fmt::MakeWriter;

use super::rig::{Rig, capability};

const SECRET: &str = "tell-no-one-5Y2mZ";

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("lock")).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn c47_no_secret_token_or_flag_is_logged_at_any_level() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_writer(log.clone()).with_max_level(tracing::Level::TRACE).finish();
    // For the whole process: what other tests log meanwhile has no secret either, and a subscriber of this thread
    // alone misses what another thread was the first to reach.
    tracing::subscriber::set_global_default(subscriber).expect("nobody else sets one");
    let rig = Rig::start_with_health().await;
    let secret = || [("csi.storage.k8s.io/serviceAccount.tokens".to_owned(), SECRET.to_owned())];
    for name in ["example-store", "Bad Handle"] {
        for flags in [&["ro"][..], &[SECRET]] {
            let mut request = rig.request(name, "u1");
            request.volume_capability = Some(capability(flags, Mode::MultiNodeMultiWriter));
            request.secrets = secret().into();
            request.publish_context = secret().into();
            request.volume_context.extend(secret());
            let _ = rig.publish(request).await;
        }
    }
    let mut node = rig.node().await;
    let stage = NodeStageVolumeRequest { secrets: secret().into(), ..Default::default() };
    let _ = node.node_stage_volume(stage).await;
    let expand = NodeExpandVolumeRequest { secrets: secret().into(), ..Default::default() };
    let _ = node.node_expand_volume(expand).await;
    let health = NodeGetStorageHealthRequest { secrets: secret().into() };
    let _ = node.node_get_storage_health(health).await;
    let health = NodeGetVolumeHealthRequest { volume_id: "example-store".to_owned(), ..Default::default() };
    let _ = node.node_get_volume_health(health).await;
    let text = log.text();
    assert!(text.contains("not done"), "the log is the driver's: {text}");
    assert!(!text.contains(SECRET));
    for event in rig.events().await {
        assert!(!event.message.contains(SECRET));
    }
}
