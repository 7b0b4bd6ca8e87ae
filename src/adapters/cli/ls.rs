//! The flags of `per-node ls`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::absolute_path;

#[derive(Debug, Clone, Args)]
pub struct LsFlags {
    /// Only the copy of this handle
    #[arg(value_name = "HANDLE")]
    pub handle: Option<String>,
    /// The directory that holds the copies
    #[arg(long, env = "PER_NODE_STORE", value_name = "DIR", default_value = "/var/lib/per-node", value_parser = absolute_path)]
    pub store: PathBuf,
    /// The kubelet's root directory
    #[arg(long, env = "PER_NODE_KUBELET_DIR", value_name = "DIR", default_value = "/var/lib/kubelet", value_parser = absolute_path)]
    pub kubelet_dir: PathBuf,
    /// The node's name, as it is written out; by default the host's
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_id: Option<String>,
    /// Count what each copy takes up, by a walk over it
    #[arg(long)]
    pub sizes: bool,
    /// How the answer is written
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    pub format: LsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LsFormat {
    Table,
    Json,
}
