//! The fake API server on its own, for measurements and for tests in other processes.
//!
//! `cargo run --example fake-api-server -- --volumes 100000 --kubeconfig FILE [--listen ADDRESS]` stores that many
//! PersistentVolumes of another driver, writes a kubeconfig, says so on one line, and serves until it is killed. Volumes are
//! made and deleted with POST and DELETE of `/api/v1/persistentvolumes`, and events read from `/api/v1/events`.

#[path = "api_routes.rs"]
mod api_routes;
#[path = "api_server.rs"]
#[allow(dead_code)]
mod api_server;
#[path = "api_store.rs"]
#[allow(dead_code)]
mod api_store;
#[path = "api_watch.rs"]
mod api_watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api_server::ApiServer;
use clap::Parser;

/// A fake API server with many PersistentVolumes of another driver.
#[derive(Parser)]
struct Arguments {
    /// How many PersistentVolumes of another driver there are.
    #[arg(long, default_value_t = 0)]
    volumes: u64,
    /// Where the kubeconfig goes.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The address it listens on.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Refuse streamed lists, as servers before 1.27 do.
    #[arg(long)]
    paged_only: bool,
    /// Seconds between two bookmarks of a watch.
    #[arg(long, default_value_t = 60)]
    bookmark_every_seconds: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let server = ApiServer::start_on(arguments.listen).await;
    server.behave(|behaviour| {
        behaviour.refuses_streamed_lists = arguments.paged_only;
        behaviour.bookmark_every = Duration::from_secs(arguments.bookmark_every_seconds);
    });
    server.store(|store| {
        for number in 0..arguments.volumes {
            store.create_volume(&format!("pvc-{number:08}"), "other.example", &format!("handle-{number:08}"));
        }
    });
    std::fs::write(&arguments.kubeconfig, server.kubeconfig())?;
    println!(
        "serving {} PersistentVolumes; kubeconfig {}",
        arguments.volumes,
        arguments.kubeconfig.display()
    );
    std::future::pending().await
}
