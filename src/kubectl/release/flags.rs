//! The command line of `release`.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node release build-cache         shows the patch and asks
  kubectl per-node release build-cache --yes   for a script")]
pub struct ReleaseFlags {
    /// The PersistentVolume
    #[arg(value_name = "VOLUME", value_parser = crate::cli::name)]
    pub name: String,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
}
