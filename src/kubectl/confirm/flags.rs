//! The command line of `confirm`.

use std::time::Duration;

use clap::Args;

use crate::cli::PluginFlags;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node confirm --show           what waits, on which node, and which copies would go
  kubectl per-node confirm --node node-1    shows it, asks, confirms
  kubectl per-node confirm --yes            on every node on which something waits

Before you confirm after an etcd restore: create again the PersistentVolumes that the backup did not have.")]
pub struct ConfirmFlags {
    /// Only this node
    #[arg(long, value_name = "NODE", value_parser = crate::cli::name)]
    pub node: Option<String>,
    /// Only show what waits, and which copies would go
    #[arg(long, conflicts_with = "yes")]
    pub show: bool,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
    #[command(flatten)]
    pub plugin: PluginFlags,
    /// How long a node may take; confirming reads the API server
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = crate::cli::span)]
    pub node_deadline: Duration,
}
