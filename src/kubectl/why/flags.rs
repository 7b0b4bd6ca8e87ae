//! The command line of `why`.

use std::time::Duration;

use clap::Args;

use crate::cli::{ObjectFlags, OutputFlags};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node why build-1 -n ci
  kubectl per-node why build-1 -n ci -o json | jq -r '.findings[].remedy'")]
pub struct WhyFlags {
    /// The pod, as `NAME` or `pod/NAME`
    #[arg(value_name = "POD", value_parser = crate::cli::name)]
    pub pod: String,
    #[command(flatten)]
    pub object: ObjectFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// How long the pod's node may take to answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = crate::cli::span)]
    pub node_deadline: Duration,
}
