//! The command line of `doctor`.

use std::time::Duration;

use clap::Args;

use crate::cli::{OutputFlags, PluginFlags};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node doctor
  kubectl per-node doctor node-1
  kubectl per-node doctor -o json | jq -r '.lines[] | select(.verdict == \"fault\") | .repair'")]
pub struct DoctorFlags {
    /// Only this node, with every line; the cluster's own lines come with it
    #[arg(value_name = "NODE", value_parser = crate::cli::name)]
    pub node: Option<String>,
    #[command(flatten)]
    pub plugin: PluginFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// How long a node may take to answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = crate::cli::span)]
    pub node_deadline: Duration,
}
