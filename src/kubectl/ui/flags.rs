//! The flags of `ui`.

use std::time::Duration;

use clap::Args;

use crate::cli::{AskingFlags, PluginFlags};

/// The shortest time between two looks: however many tabs are open, the cluster is asked no more often.
const EVERY_MIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl per-node ui                    prints an address; open it in a browser on this machine
  kubectl per-node ui --open             opens the browser too
  kubectl per-node ui --port 8400        the same port each time, to forward it: ssh -L 8400:127.0.0.1:8400 HOST")]
pub struct UiFlags {
    #[command(flatten)]
    pub plugin: PluginFlags,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Open the browser of this desktop
    #[arg(long)]
    pub open: bool,
    /// How long to wait between two looks at the cluster; 2s or more
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = every)]
    pub every: Duration,
    #[command(flatten)]
    pub asking: AskingFlags,
}

fn every(text: &str) -> Result<Duration, String> {
    let every = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let least = humantime::format_duration(EVERY_MIN);
    if every < EVERY_MIN { Err(format!("{least} is the least")) } else { Ok(every) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_not_asked_more_often_than_the_least_time() {
        assert_eq!(every("1999ms"), Err("2s is the least".to_owned()));
        assert_eq!(every("2s"), Ok(EVERY_MIN));
        assert!(every("often").is_err());
    }
}
