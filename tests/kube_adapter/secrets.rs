//! C47: whatever happens, neither the token nor what a server wrote reaches a log.

use std::io;
use std::sync::{Arc, Mutex};

use per_node::ports::cluster::Cluster;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::*;
use crate::mock_api::{Expected, MockApi, Reply};

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn c47_neither_tokens_nor_bodies_are_logged_at_any_level() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let mut secret = volume("a", 5);
    secret["spec"]["csi"]["volumeAttributes"] = json!({ "password": "SECRET-PASSWORD" });
    let (push, reply) = Reply::pushed();
    push.line(&event("ADDED", &secret));
    push.line(&initial_events_end(20));
    push.text("{\"type\":\"ADDED\",\"object\":{\"SECRET-KEY\":\n");
    let api = MockApi::expecting([
        Expected::call(STREAMED, Reply::json(401, &status(401, "SECRET REASON"))),
        Expected::call(STREAMED, Reply::text(500, "SECRET-PAGE")),
        Expected::call(STREAMED, reply),
        Expected::call(STREAMED, Reply::text(200, "{\"SECRET-LINE\"")),
        Expected::call(STREAMED, Reply::json(403, &status(403, "Forbidden"))),
        Expected::call(STREAMED, Reply::never()),
    ])
    .await;
    let harness = Harness::of(&api).await;
    let watching = harness.watch();
    api.all_called().await;
    drop(watching);
    assert_eq!(harness.cluster.watch_health().highest.map(|revision| revision.0), Some(20));
    assert!(api.authorizations().iter().all(|sent| sent.as_deref() == Some(&format!("Bearer {TOKEN}"))));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).expect("text");
    assert!(text.contains("PersistentVolumes are not watched"), "the log was taken: {text}");
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains("SECRET")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    api.verify();
}
