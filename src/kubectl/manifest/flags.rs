//! The command line of `manifest`.

use clap::Args;

use super::{Mode, Workload};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node manifest build-cache --size 20Gi -n ci | kubectl apply -f -
  kubectl per-node manifest ledger --size 2Gi --mode rwop --statefulset > ledger.yaml

Nothing is asked of the cluster. The volume, its handle, its claim and its workload have one name.")]
pub struct ManifestFlags {
    /// The name of the volume, its handle, its claim and its workload
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The capacity, as 20Gi: a hint, no size is enforced
    #[arg(long, value_name = "SIZE")]
    pub size: String,
    /// How many pods may mount it
    #[arg(long, value_enum, default_value = "rwx")]
    pub mode: Mode,
    /// The namespace of the claim and the workload; by default the context's
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub workload: WorkloadFlags,
}

/// At most one of them.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct WorkloadFlags {
    /// With a StatefulSet over the claim
    #[arg(long)]
    pub statefulset: bool,
    /// With a DaemonSet over the claim: a pod on each node
    #[arg(long)]
    pub daemonset: bool,
    /// With a Deployment over the claim
    #[arg(long)]
    pub deployment: bool,
}

impl WorkloadFlags {
    pub fn kind(&self) -> Option<Workload> {
        let kinds = [
            (self.statefulset, Workload::StatefulSet),
            (self.daemonset, Workload::DaemonSet),
            (self.deployment, Workload::Deployment),
        ];
        kinds.into_iter().find_map(|(asked, kind)| asked.then_some(kind))
    }
}
