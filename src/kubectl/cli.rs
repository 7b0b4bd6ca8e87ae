//! The command line: what every command has in common, and each command's own flags. Nothing is asked of a cluster here.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::exit::Exit;
use crate::output::Format;

/// The namespace that deploy/ installs into.
const PLUGIN_NAMESPACE: &str = "per-node";

const EXAMPLES: &str = "\
Examples:
  kubectl per-node status                       the copies of every volume, on every node
  kubectl per-node status build-cache -o wide   one volume, by its name or its handle
  kubectl per-node status -o json | jq .        for a script; the schema is in docs/kubectl.md
  kubectl per-node why build-1 -n ci            why a pod does not run
  kubectl per-node manifest build-cache --size 20Gi -n ci | kubectl apply -f -
  kubectl per-node ui --open                    the cluster in a browser

Exit codes: 0 complete, 1 failed, 2 wrong command line, 3 partial answer, 4 something is wrong and was shown, 5 refused";

/// See and mend the volumes of per-node: which node has which copy, how big, and who holds it.
#[derive(Debug, Parser)]
#[command(name = "kubectl-per_node", bin_name = "kubectl per-node", version, after_help = EXAMPLES)]
#[command(disable_help_subcommand = true)]
pub struct CommandLine {
    #[command(flatten)]
    pub reach: ReachFlags,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The cluster at one look: each volume's copies, their size, who holds them, and what was refused
    Status(StatusFlags),
    /// Why a pod does not run, with the one thing to do
    Why(crate::why::WhyFlags),
    /// The cluster and its nodes, checked for what the driver needs
    Doctor(crate::doctor::DoctorFlags),
    /// Print the objects of a volume, checked, for kubectl apply
    Manifest(crate::manifest::ManifestFlags),
    /// Make a Released volume bindable again; no copy is touched
    Release(crate::release::ReleaseFlags),
    /// Let removals go on that wait for a person, after it was shown what waits where
    Confirm(crate::confirm::ConfirmFlags),
    /// Removed copies that are kept: list them, restore them, delete them
    Trash(crate::trash::TrashFlags),
    /// The cluster to look at in a browser, served on this machine alone; changes nothing
    Ui(crate::ui::UiFlags),
    /// Print what a shell sources to complete commands and flags
    Completion(CompletionFlags),
}

/// Which API server, as whom; the same for every command.
#[derive(Debug, Clone, Args)]
pub struct ReachFlags {
    /// The kubeconfig, instead of $KUBECONFIG and ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of its current one
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The driver's name, where the plugin was given another
    #[arg(
        long,
        global = true,
        env = "PER_NODE_DRIVER_NAME",
        value_name = "NAME",
        default_value = crate::installation::DRIVER_NAME
    )]
    pub driver_name: String,
}

/// A name, which is never nothing.
pub fn name(raw: &str) -> Result<String, String> {
    if raw.is_empty() { Err("a name is missing".to_owned()) } else { Ok(raw.to_owned()) }
}

/// A time to wait, which is never none.
pub fn span(raw: &str) -> Result<Duration, String> {
    match humantime::parse_duration(raw) {
        Ok(Duration::ZERO) => Err("must be longer than that".to_owned()),
        read => read.map_err(|error| error.to_string()),
    }
}

/// Where the plugins run, in commands that ask about nothing else in a namespace.
#[derive(Debug, Clone, Args)]
pub struct PluginFlags {
    /// The namespace of the plugin's pods
    #[arg(
        short = 'n',
        long,
        visible_alias = "plugin-namespace",
        env = "PER_NODE_NAMESPACE",
        value_name = "NAME"
    )]
    #[arg(default_value = PLUGIN_NAMESPACE)]
    pub namespace: String,
}

/// The same in commands that are about pods or claims, whose own namespace has `-n`.
#[derive(Debug, Clone, Args)]
pub struct ObjectFlags {
    /// The namespace of the pod or claim; by default the context's
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The namespace of the plugin's pods
    #[arg(long, env = "PER_NODE_NAMESPACE", value_name = "NAME", default_value = PLUGIN_NAMESPACE)]
    pub plugin_namespace: String,
}

/// How the nodes are asked, in commands that ask all of them.
#[derive(Debug, Clone, Args)]
pub struct AskingFlags {
    /// How long a node may take to answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = span)]
    pub node_deadline: Duration,
    /// How many nodes are asked at a time
    #[arg(long, value_name = "NODES", default_value = "32")]
    pub parallel: NonZeroUsize,
}

/// How an answer is written.
#[derive(Debug, Clone, Args)]
pub struct OutputFlags {
    /// How the answer is written
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    pub format: Format,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node status
  kubectl per-node status build-cache -o wide
  kubectl per-node status -o json | jq '.volumes[] | select(.orphan) | .handle'
  kubectl per-node status --watch")]
pub struct StatusFlags {
    /// Only this volume: a PersistentVolume's name, or a handle
    #[arg(value_name = "VOLUME", value_parser = name)]
    pub volume: Option<String>,
    #[command(flatten)]
    pub plugin: PluginFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// Follow: look again and again, and show what has changed
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// How long to wait between two looks of --watch
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = span)]
    pub watch_every: Duration,
    #[command(flatten)]
    pub asking: AskingFlags,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  source <(kubectl per-node completion bash)
  kubectl per-node completion fish > ~/.config/fish/completions/kubectl-per_node.fish")]
pub struct CompletionFlags {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Help and version are what was asked for; anything else is a wrong command line.
pub fn explain(error: &clap::Error) -> Exit {
    // Whether it can be written changes nothing about what it means.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Complete,
        _ => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_name_is_never_nothing_and_a_time_never_none() {
        for words in [
            &["why", ""][..],
            &["release", ""],
            &["status", ""],
            &["doctor", ""],
            &["confirm", "--node", ""],
            &["trash", "restore", ""],
            &["status", "--watch-every", "0s"],
            &["status", "--node-deadline", "0s"],
        ] {
            let error =
                CommandLine::try_parse_from([&["kubectl-per_node"], words].concat()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{words:?}");
        }
    }

    #[test]
    fn every_command_has_examples() {
        let command = CommandLine::command();
        for sub in command.get_subcommands() {
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:\n  "), "{}", sub.get_name());
        }
    }

    #[test]
    fn the_plugins_namespace_is_the_one_that_deploy_uses() {
        let manifest = include_str!("../../deploy/base/namespace.yaml");
        assert!(manifest.contains(&format!("name: {PLUGIN_NAMESPACE}\n")));
    }
}
