//! The command line: flags and their environment variables as they are typed, and the configuration they
//! make once checked. A wrong value is one line that names the flag. Nothing is looked up on the node here.

mod console;
mod ls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use thiserror::Error;

pub use console::{ConfirmFlags, TrashCommand, TrashFlags};
pub use ls::{LsFlags, LsFormat};

/// The longest driver name that CSI allows, in bytes.
const DRIVER_NAME_LENGTH_MAX: usize = 63;
/// The longest node id that CSI allows, in bytes.
const NODE_ID_LENGTH_MAX: usize = 256;
/// The shortest time between two ticks of the sweep, and the shortest window of an event series.
const DURATION_MIN: Duration = Duration::from_secs(1);
/// The longest of both: a year.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// One PersistentVolume, one directory on each node it visits: a CSI node plugin.
#[derive(Debug, Parser)]
#[command(name = "per-node", version, about, disable_help_subcommand = true)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve CSI calls on this node: what the DaemonSet runs
    Serve(Box<ServeFlags>),
    /// Show what removal waits for a person, and confirm it
    Confirm(ConfirmFlags),
    /// List this node's copies and who holds them, also while nothing serves
    Ls(LsFlags),
    /// See, restore and empty the copies of deleted volumes that are kept (--trash-for)
    Trash(TrashFlags),
    /// Show the driver at work, without a cluster and without root
    #[cfg(feature = "demo")]
    Demo(DemoFlags),
}

/// The flags of `serve` as typed.
#[derive(Debug, Clone, Args)]
pub struct ServeFlags {
    /// The CSI socket; by default plugins/DRIVER-NAME/csi.sock below the kubelet's directory
    #[arg(long, env = "CSI_ENDPOINT", value_name = "UNIX-URL")]
    pub endpoint: Option<String>,
    /// The same socket by its path on the host, where that differs
    #[arg(long, env = "PER_NODE_KUBELET_ENDPOINT", value_name = "UNIX-URL")]
    pub kubelet_endpoint: Option<String>,
    /// The node's name
    #[arg(long, env = "NODE_NAME", value_name = "NAME", default_value = "")]
    pub node_id: String,
    /// The driver's name, as PersistentVolumes give it in spec.csi.driver
    #[arg(long, env = "PER_NODE_DRIVER_NAME", value_name = "NAME", default_value = "per-node.liken.sh", value_parser = driver_name)]
    pub driver_name: String,
    /// The kubelet's root directory, at the same path here and on the host
    #[arg(long, env = "PER_NODE_KUBELET_DIR", value_name = "DIR", default_value = "/var/lib/kubelet", value_parser = absolute_path)]
    pub kubelet_dir: PathBuf,
    /// Where the kubelet looks for plugins; by default plugins_registry below its directory, empty for no
    /// registration
    #[arg(long, env = "PER_NODE_REGISTRATION_DIR", value_name = "DIR")]
    pub registration_dir: Option<String>,
    /// The directory that holds the copies
    #[arg(long, env = "PER_NODE_STORE", value_name = "DIR", default_value = "/var/lib/per-node", value_parser = absolute_path)]
    pub store: PathBuf,
    /// Start only where the store is a mount point of its own (a data disk that is mounted)
    #[arg(long, env = "PER_NODE_STORE_MOUNT_REQUIRED")]
    pub store_mount_required: bool,
    /// The mode of a new copy, octal
    #[arg(long, env = "PER_NODE_COPY_MODE", value_name = "MODE", default_value = "0777", value_parser = octal_mode)]
    pub copy_mode: u32,
    /// How often copies without a volume are looked for
    #[arg(long, env = "PER_NODE_SWEEP_EVERY", value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub sweep_every: Duration,
    /// Keep removed copies for so long, to be restored by `per-node trash`; by default they are deleted at once
    #[arg(long, env = "PER_NODE_TRASH_FOR", value_name = "DURATION", value_parser = duration)]
    pub trash_for: Option<Duration>,
    /// Remove nothing in a pass that would remove more copies than this; by default there is no limit
    #[arg(long, env = "PER_NODE_SWEEP_LIMIT", value_name = "COPIES")]
    pub sweep_limit: Option<u32>,
    /// How long after a refusal the same refusal is counted in the same event
    #[arg(long, env = "PER_NODE_EVENT_WINDOW", value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub event_window: Duration,
    /// Tell clients of CSI 1.13 what is wrong with a volume (NodeGetVolumeHealth, alpha)
    #[arg(long, env = "PER_NODE_VOLUME_HEALTH")]
    pub volume_health: bool,
    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, env = "PER_NODE_HTTP", value_name = "ADDRESS:PORT", default_value = "0.0.0.0:9808", value_parser = socket_address)]
    pub http: SocketAddr,
    /// Serve /copies there too, to those who know the UID of this pod: what `kubectl per-node` reads
    #[arg(long, env = "PER_NODE_HTTP_COPIES")]
    pub http_copies: bool,
    /// The UID of the plugin's own pod, which opens /copies
    #[arg(long, env = "POD_UID", value_name = "UID", default_value = "", hide_env_values = true)]
    pub pod_uid: String,
    /// The kubeconfig to reach the API server with; by default the pod's own service account
    #[arg(long, env = "PER_NODE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How log lines look
    #[arg(long, env = "PER_NODE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Whether the process keeps itself to the system calls that it needs; off for debugging alone
    #[arg(long, env = "PER_NODE_SECCOMP", value_name = "ON-OFF", default_value = "on")]
    pub seccomp: Seccomp,
    /// No API server at all: events go to the log, nothing is swept
    #[arg(long, env = "PER_NODE_STANDALONE")]
    pub standalone: bool,
}

#[cfg(feature = "demo")]
#[derive(Debug, Clone, Args)]
pub struct DemoFlags {
    /// Leave the service running afterwards and take calls from any CSI client
    #[arg(long)]
    pub serve: bool,
    /// Use the double of mounts that needs no privilege, even where real mounts are possible
    #[arg(long)]
    pub rootless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Seccomp {
    On,
    Off,
}

/// The configuration of `serve`: every default filled in, every value checked by itself.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// `unix://…` or a path, not yet checked as a socket's.
    pub endpoint: String,
    pub kubelet_endpoint: String,
    pub node_id: String,
    pub driver_name: String,
    pub kubelet_dir: PathBuf,
    pub registration_dir: Option<PathBuf>,
    pub store: PathBuf,
    pub store_mount_required: bool,
    pub copy_mode: u32,
    pub sweep_every: Duration,
    pub trash_for: Option<Duration>,
    pub sweep_limit: Option<u32>,
    pub event_window: Duration,
    pub volume_health: bool,
    pub http: SocketAddr,
    /// `None` without `--http-copies`.
    pub copies_key: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    pub log_format: LogFormat,
    pub seccomp: Seccomp,
    pub standalone: bool,
}

/// A flag's value that only shows to be wrong beside others.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlagError {
    #[error("--node-id is empty: set it or the environment variable NODE_NAME to the node's name")]
    NodeIdEmpty,
    #[error("--node-id has more than {NODE_ID_LENGTH_MAX} bytes")]
    NodeIdTooLong,
    #[error("--registration-dir {path:?} is not an absolute path")]
    RegistrationDirRelative { path: String },
    #[error(
        "--http-copies needs the UID of the plugin's own pod: set --pod-uid or the environment variable POD_UID"
    )]
    PodUidMissing,
    #[error("--kubeconfig has no effect with --standalone: give one of them")]
    KubeconfigStandalone,
}

impl ServeFlags {
    /// Fills in the defaults that depend on other flags, and checks what remains.
    pub fn config(self) -> Result<ServeConfig, FlagError> {
        if self.node_id.is_empty() {
            return Err(FlagError::NodeIdEmpty);
        }
        if self.node_id.len() > NODE_ID_LENGTH_MAX {
            return Err(FlagError::NodeIdTooLong);
        }
        if self.standalone && self.kubeconfig.is_some() {
            return Err(FlagError::KubeconfigStandalone);
        }
        if self.http_copies && self.pod_uid.is_empty() {
            return Err(FlagError::PodUidMissing);
        }
        let registration_dir = match self.registration_dir {
            None => Some(self.kubelet_dir.join("plugins_registry")),
            Some(path) if path.is_empty() => None,
            Some(path) if Path::new(&path).is_absolute() => Some(PathBuf::from(path)),
            Some(path) => return Err(FlagError::RegistrationDirRelative { path }),
        };
        let default_endpoint = || {
            let socket = self.kubelet_dir.join("plugins").join(&self.driver_name).join("csi.sock");
            format!("unix://{}", socket.display())
        };
        let endpoint = self.endpoint.clone().unwrap_or_else(default_endpoint);
        Ok(ServeConfig {
            kubelet_endpoint: self.kubelet_endpoint.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            node_id: self.node_id,
            driver_name: self.driver_name,
            kubelet_dir: self.kubelet_dir,
            registration_dir,
            store: self.store,
            store_mount_required: self.store_mount_required,
            copy_mode: self.copy_mode,
            sweep_every: self.sweep_every,
            trash_for: self.trash_for,
            sweep_limit: self.sweep_limit,
            event_window: self.event_window,
            volume_health: self.volume_health,
            http: self.http,
            copies_key: self.http_copies.then_some(self.pod_uid),
            kubeconfig: self.kubeconfig,
            log_format: self.log_format,
            seccomp: self.seccomp,
            standalone: self.standalone,
        })
    }
}

/// The one line of a clap error that says what is wrong with which flag.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().trim_start_matches("error: ").to_owned()
}

fn driver_name(raw: &str) -> Result<String, String> {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = raw.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.');
    if raw.len() > DRIVER_NAME_LENGTH_MAX {
        return Err(format!("a driver's name has at most {DRIVER_NAME_LENGTH_MAX} bytes"));
    }
    if !inner || !edge(raw.chars().next()) || !edge(raw.chars().last()) {
        return Err("a driver's name has lower-case letters, digits, '-' and '.', with a letter or digit at both ends".into());
    }
    Ok(raw.to_owned())
}

fn absolute_path(raw: &str) -> Result<PathBuf, String> {
    let path = Path::new(raw);
    if !path.is_absolute() {
        return Err("the path is not absolute".into());
    }
    if path.components().any(|component| component == std::path::Component::ParentDir) {
        return Err("the path has a '..' component".into());
    }
    // One spelling: no doubled and no trailing slashes.
    Ok(path.components().collect())
}

fn octal_mode(raw: &str) -> Result<u32, String> {
    match u32::from_str_radix(raw, 8) {
        Ok(mode) if mode <= 0o7777 && !raw.starts_with('+') => Ok(mode),
        Ok(_) | Err(_) => Err("a mode is octal, from 0000 to 7777".into()),
    }
}

fn duration(raw: &str) -> Result<Duration, String> {
    let span =
        humantime::parse_duration(raw).map_err(|error| format!("{error}; write it as 90s, 10m or 1h30m"))?;
    if (DURATION_MIN..=DURATION_MAX).contains(&span) {
        Ok(span)
    } else {
        Err("a duration here lies between 1s and 365d".into())
    }
}

fn socket_address(raw: &str) -> Result<SocketAddr, String> {
    raw.parse().map_err(|_| "give an IP address and a port, as 0.0.0.0:9808 or [::]:9808".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn serve(flags: &[&str]) -> Result<ServeFlags, clap::Error> {
        let line = CommandLine::try_parse_from([&["per-node", "serve", "--node-id=n"], flags].concat())?;
        match line.command {
            Command::Serve(flags) => Ok(*flags),
            Command::Confirm(_) | Command::Ls(_) | Command::Trash(_) => unreachable!("serve was typed"),
            #[cfg(feature = "demo")]
            Command::Demo(_) => unreachable!("serve was typed"),
        }
    }

    #[test]
    fn c44_defaults_follow_the_kubelet_directory() {
        let config = serve(&["--kubelet-dir=/data//kubelet/"]).unwrap().config().unwrap();
        assert_eq!(config.endpoint, "unix:///data/kubelet/plugins/per-node.liken.sh/csi.sock");
        assert_eq!(config.kubelet_endpoint, config.endpoint);
        assert_eq!(config.registration_dir, Some("/data/kubelet/plugins_registry".into()));
        assert_eq!(config.store, PathBuf::from("/var/lib/per-node"));
        assert_eq!(config.copy_mode, 0o777);
        assert_eq!(config.sweep_every, Duration::from_secs(600));
        assert_eq!(config.event_window, Duration::from_secs(600));
        assert_eq!(config.http, "0.0.0.0:9808".parse().unwrap());
        assert!(!config.standalone && !config.store_mount_required && config.kubeconfig.is_none());
        assert_eq!(config.seccomp, Seccomp::On);
    }

    #[test]
    fn c43_an_empty_registration_directory_turns_registration_off() {
        let config = serve(&["--registration-dir="]).unwrap().config().unwrap();
        assert_eq!(config.registration_dir, None);
        let error = serve(&["--registration-dir=x"]).unwrap().config().unwrap_err();
        assert!(error.to_string().contains("--registration-dir"));
    }

    #[test]
    fn c44_a_wrong_value_is_one_line_that_names_the_flag() {
        for (flag, value) in [
            ("--sweep-every", "soon"),
            ("--sweep-every", "0s"),
            ("--trash-for", "forever"),
            ("--trash-for", "0s"),
            ("--trash-for", "366d"),
            ("--sweep-limit", "-1"),
            ("--sweep-limit", "many"),
            ("--event-window", "-1m"),
            ("--event-window", "9999d"),
            ("--copy-mode", "0o777"),
            ("--copy-mode", "8"),
            ("--copy-mode", "17777"),
            ("--http", "9808"),
            ("--store", "var/lib"),
            ("--store", "/a/../b"),
            ("--kubelet-dir", ""),
            ("--driver-name", "UPPER"),
            ("--driver-name", ""),
            ("--driver-name", ".a"),
            ("--log-format", "xml"),
            ("--seccomp", "log"),
        ] {
            let error = serve(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue),
                "{flag}={value}: {error}"
            );
            let line = one_line(&error);
            assert!(line.contains(flag) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn c44_an_empty_node_id_is_named() {
        let mut flags = serve(&[]).unwrap();
        flags.node_id = String::new();
        let error = flags.clone().config().unwrap_err();
        assert!(error.to_string().contains("--node-id") && error.to_string().contains("NODE_NAME"));
        flags.node_id = "n".repeat(257);
        assert_eq!(flags.config().unwrap_err(), FlagError::NodeIdTooLong);
    }

    #[test]
    fn c45_copies_are_told_only_where_it_is_asked_for_and_never_without_a_key() {
        assert_eq!(serve(&["--pod-uid=u-1"]).unwrap().config().unwrap().copies_key, None);
        let config = serve(&["--http-copies", "--pod-uid=u-1"]).unwrap().config().unwrap();
        assert_eq!(config.copies_key.as_deref(), Some("u-1"));
        let mut flags = serve(&["--http-copies"]).unwrap();
        flags.pod_uid = String::new();
        let error = flags.config().unwrap_err().to_string();
        assert!(error.contains("--pod-uid") && error.contains("POD_UID"), "{error}");
    }

    #[test]
    fn c49_volume_health_is_told_only_where_it_is_asked_for() {
        assert!(!serve(&[]).unwrap().config().unwrap().volume_health);
        assert!(serve(&["--volume-health"]).unwrap().config().unwrap().volume_health);
    }

    #[test]
    fn every_flag_of_serve_has_an_environment_variable() {
        let command = <CommandLine as clap::CommandFactory>::command();
        let serve = command.find_subcommand("serve").unwrap();
        for flag in serve.get_arguments().filter(|flag| flag.get_id() != "help") {
            assert!(flag.get_env().is_some(), "{}", flag.get_id());
        }
    }
}
