//! The command line of `trash`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::{OutputFlags, PluginFlags};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node trash ls                                  removed copies that are kept, on every node
  kubectl per-node trash restore build-cache --node node-1   shows it, asks, restores
  kubectl per-node trash empty --all --yes                   deletes every kept copy now")]
pub struct TrashFlags {
    #[command(subcommand)]
    pub command: TrashCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TrashCommand {
    /// List the kept copies of all nodes
    #[command(after_help = "\
Examples:
  kubectl per-node trash ls
  kubectl per-node trash ls build-cache -o json")]
    Ls {
        /// Only those of this handle, or this entry
        #[arg(value_name = "HANDLE-OR-ENTRY", value_parser = crate::cli::name)]
        which: Option<String>,
        #[command(flatten)]
        output: OutputFlags,
        #[command(flatten)]
        nodes: NodeFlags,
    },
    /// Give a kept copy its place again, on each node that keeps one or on one node
    #[command(after_help = "\
Examples:
  kubectl per-node trash restore build-cache --node node-1

Make the PersistentVolume with that handle first, else the copy would go again; a copy that is there stays.")]
    Restore {
        /// The handle, or the entry as `ls` names it
        #[arg(value_name = "HANDLE-OR-ENTRY", value_parser = crate::cli::name)]
        which: String,
        #[command(flatten)]
        nodes: NodeFlags,
        /// Do not ask
        #[arg(short = 'y', long)]
        yes: bool,
    },
    /// Delete kept copies now, which nothing brings back
    #[command(after_help = "\
Examples:
  kubectl per-node trash empty build-cache --node node-1
  kubectl per-node trash empty --all")]
    Empty {
        /// The handle, or the entry as `ls` names it
        #[arg(value_name = "HANDLE-OR-ENTRY", value_parser = crate::cli::name, required_unless_present = "all")]
        which: Option<String>,
        /// Every kept copy
        #[arg(long, conflicts_with = "which")]
        all: bool,
        #[command(flatten)]
        nodes: NodeFlags,
        /// Do not ask
        #[arg(short = 'y', long)]
        yes: bool,
    },
}

/// Which nodes are asked.
#[derive(Debug, Clone, Args)]
pub struct NodeFlags {
    /// Only this node
    #[arg(long, value_name = "NODE", value_parser = crate::cli::name)]
    pub node: Option<String>,
    #[command(flatten)]
    pub plugin: PluginFlags,
    /// How long a node may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = crate::cli::span)]
    pub node_deadline: Duration,
}
