//! A cluster for the operator's tool on its own: volumes, nodes and the plugins' answers, all in one process.
//!
//! `cargo run --example fake-cluster -- --kubeconfig FILE [--nodes 1000] [--volumes 200] [--copies 20] [--late-ms 20]` writes a
//! kubeconfig, says so on one line, and serves until it is killed. Each plugin answers that late. `--mute N` nodes do not answer
//! at all; with `--lively` pods come and go.

#[path = "../kubectl/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "large_cluster.rs"]
mod large_cluster;
#[path = "objects_api.rs"]
#[allow(dead_code)]
mod objects_api;
#[path = "objects_exec.rs"]
#[allow(dead_code)]
mod objects_exec;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use large_cluster::Shape;
use objects_api::ObjectsApi;

/// A fake API server with many nodes.
#[derive(Parser)]
struct Arguments {
    /// Where the kubeconfig goes.
    #[arg(long)]
    kubeconfig: PathBuf,
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    #[arg(long, default_value_t = 200)]
    volumes: usize,
    /// Copies on each node.
    #[arg(long, default_value_t = 20)]
    copies: usize,
    /// Milliseconds until a plugin answers.
    #[arg(long, default_value_t = 20)]
    late_ms: u64,
    /// Nodes that do not answer.
    #[arg(long, default_value_t = 0)]
    mute: usize,
    /// Pods come and go.
    #[arg(long)]
    lively: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { kubeconfig, nodes, volumes, copies, late_ms, mute, lively } = Arguments::parse();
    let api = ObjectsApi::start().await;
    let late = Duration::from_millis(late_ms);
    large_cluster::fill(&api, Shape { nodes, volumes, copies, late, mute, is_lively: lively });
    std::fs::write(&kubeconfig, api.kubeconfig())?;
    println!("serving {nodes} nodes and {volumes} volumes; kubeconfig {}", kubeconfig.display());
    std::future::pending().await
}
