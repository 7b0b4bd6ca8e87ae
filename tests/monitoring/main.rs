//! deploy/monitoring: that rules, runbooks and dashboard say what the driver tells, and nothing else; and, with Debian's `prometheus`,
//! that they work: every alert fires when it must, and every panel of the dashboard has data of a plugin that runs.
//!
//! What needs `prometheus` and `promtool` is ignored by default: `tests/monitoring/run` runs it. Where they are missing it fails; it
//! never skips.

#[path = "../support/api_routes.rs"]
mod api_routes;
#[allow(dead_code)]
#[path = "../support/api_server.rs"]
mod api_server;
#[allow(dead_code)]
#[path = "../support/api_store.rs"]
mod api_store;
#[path = "../support/api_watch.rs"]
mod api_watch;
mod dashboard;
#[allow(dead_code)]
#[path = "../process/host.rs"]
mod host;
mod live;
mod prometheus;
mod rules;
mod runbooks;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// A path in the repository.
fn in_tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The text of a file in the repository.
fn text(path: &str) -> String {
    fs::read_to_string(in_tree(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
