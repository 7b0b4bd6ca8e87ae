//! A cluster for the operator's tool on its own: volumes, nodes and the plugins' answers, all in one process.
//!
//! `cargo run --example fake-cluster -- --kubeconfig FILE [--nodes 1000] [--volumes 200] [--copies 20] [--late-ms 20]` writes a
//! kubeconfig, says so on one line, and serves until it is killed. Each node has that many copies, some held, some orphans, and
//! one refusal; each plugin answers that late. `--mute N` nodes do not answer at all.

#[path = "../kubectl/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "objects_api.rs"]
#[allow(dead_code)]
mod objects_api;
#[path = "objects_exec.rs"]
#[allow(dead_code)]
mod objects_exec;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use cluster::{copy, holder, plugin, refusal, report, tells, volume};
use objects_api::{Backend, ObjectsApi};
use per_node::proto::report::NodeReport;

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
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let api = ObjectsApi::start().await;
    for number in 0..arguments.volumes {
        let phase = if number % 17 == 3 { "Released" } else { "Bound" };
        volume(&api, &format!("volume-{number:03}"), &format!("volume-{number:03}"), phase, Some("Bound"));
    }
    for number in 0..arguments.nodes {
        let name = format!("node-{number:04}");
        let backend = if number < arguments.mute {
            Backend::Hangs
        } else {
            late(tells(node(&arguments, &name, number)), arguments.late_ms)
        };
        plugin(&api, &name, "Running", backend);
    }
    std::fs::write(&arguments.kubeconfig, api.kubeconfig())?;
    let Arguments { nodes, volumes, kubeconfig, .. } = &arguments;
    println!("serving {nodes} nodes and {volumes} volumes; kubeconfig {}", kubeconfig.display());
    std::future::pending().await
}

/// What one node tells: its share of the volumes, a copy in seven held, and one that no volume names.
fn node(arguments: &Arguments, name: &str, number: usize) -> NodeReport {
    let handle = |at: usize| format!("volume-{:03}", (number * 7 + at) % arguments.volumes.max(1));
    let mut copies: Vec<_> = (0..arguments.copies)
        .map(|at| {
            let size = ((number * 31 + at * 17) % 4096) as u64 * (1 << 20);
            let mut copy = copy(&handle(at), size, size / 65_536 + 1);
            copy.holders = match at % 7 {
                0 => vec![holder(&format!("pod-{number}-{at}"), Some("2026-11-29T21:00:00Z"))],
                _ => Vec::new(),
            };
            copy
        })
        .collect();
    if number.is_multiple_of(50) {
        copies.push(copy(&format!("left-behind-{number}"), 1 << 30, 1000));
    }
    copies.sort_by(|a, b| a.handle.cmp(&b.handle));
    copies.dedup_by(|a, b| a.handle == b.handle);
    let mut report = report(name, copies);
    report.refusals = vec![refusal(&handle(0), &format!("late-{number}"), 3, "2026-11-30T02:59:00Z")];
    report
}

fn late(backend: Backend, late_ms: u64) -> Backend {
    match backend {
        Backend::Answer(answer) => Backend::Late(Duration::from_millis(late_ms), answer),
        other @ (Backend::Late(..) | Backend::Address(_) | Backend::Hangs | Backend::Refuses) => other,
    }
}
