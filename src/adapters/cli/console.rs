//! The command lines of `per-node confirm` and `per-node trash`, which ask the serving process.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LsFormat, absolute_path};
use crate::domain::handle::Handle;
use crate::domain::kept::EMPTIED_MAX;
use crate::domain::use_cases::confirm::Seen;

#[derive(Debug, Clone, Args)]
pub struct ConfirmFlags {
    /// The store of the serving process
    #[arg(long, env = "PER_NODE_STORE", value_name = "DIR", default_value = "/var/lib/per-node", value_parser = absolute_path)]
    pub store: PathBuf,
    /// Only show what waits
    #[arg(long)]
    pub show: bool,
    /// Confirm only if what waits is still what `--show` showed
    #[arg(long, value_name = "SEEN", value_parser = seen, conflicts_with = "show")]
    pub seen: Option<Seen>,
}

#[derive(Debug, Clone, Args)]
pub struct TrashFlags {
    /// The store
    #[arg(long, global = true, env = "PER_NODE_STORE", value_name = "DIR", default_value = "/var/lib/per-node", value_parser = absolute_path)]
    pub store: PathBuf,
    #[command(subcommand)]
    pub command: TrashCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TrashCommand {
    /// List the kept copies; reads the store, whether or not per-node runs
    Ls {
        /// How the answer is written
        #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
        format: LsFormat,
    },
    /// Give a kept copy its place again; the serving process does it
    Restore {
        /// The entry as `ls` names it, or the handle where one copy of it is kept
        #[arg(value_name = "HANDLE-OR-ENTRY", value_parser = kept_word)]
        which: String,
    },
    /// Delete kept copies now; the serving process does it
    Empty {
        /// The entry as `ls` names it, or the handle where one copy of it is kept
        #[arg(value_name = "HANDLE-OR-ENTRY", value_parser = kept_word, required_unless_present = "all", num_args = 1..=EMPTIED_MAX)]
        which: Vec<String>,
        /// Every kept copy
        #[arg(long, conflicts_with = "which")]
        all: bool,
    },
}

fn seen(raw: &str) -> Result<Seen, String> {
    Seen::parse(raw).ok_or_else(|| "not what `per-node confirm --show` ends with".to_owned())
}

/// An entry of the trash is spelt as a handle could be.
fn kept_word(raw: &str) -> Result<String, String> {
    Handle::parse(raw).map(|handle| handle.as_str().to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{Command, CommandLine};
    use super::*;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[test]
    fn c26_what_is_emptied_is_named_or_everything() {
        let trash =
            |words: &[&str]| match CommandLine::try_parse_from([&["per-node", "trash"], words].concat()) {
                Ok(CommandLine { command: Command::Trash(flags) }) => Ok(flags),
                Ok(_) => unreachable!("trash was typed"),
                Err(error) => Err(error.kind()),
            };
        let flags = trash(&["empty", "--all", "--store=/s"]).unwrap();
        assert_eq!(flags.store, PathBuf::from("/s"));
        assert!(matches!(flags.command, TrashCommand::Empty { which, all: true } if which.is_empty()));
        let empty = trash(&["empty", "t17", "data"]).unwrap().command;
        assert!(matches!(empty, TrashCommand::Empty { which, all: false } if which == ["t17", "data"]));
        assert_eq!(trash(&["empty"]).unwrap_err(), ErrorKind::MissingRequiredArgument);
        assert_eq!(trash(&["empty", "t17", "--all"]).unwrap_err(), ErrorKind::ArgumentConflict);
        assert_eq!(trash(&["restore", "../etc"]).unwrap_err(), ErrorKind::ValueValidation);
        let ls = trash(&["ls", "-o", "json"]).unwrap().command;
        assert!(matches!(ls, TrashCommand::Ls { format: LsFormat::Json }));
    }

    #[test]
    fn c26_the_brakes_are_off_unless_they_are_asked_for() {
        let config = |flags: &[&str]| match CommandLine::try_parse_from(
            [&["per-node", "serve", "--node-id=n"], flags].concat(),
        ) {
            Ok(CommandLine { command: Command::Serve(flags) }) => flags.config().unwrap(),
            other => unreachable!("serve was typed: {other:?}"),
        };
        let none = config(&[]);
        assert_eq!((none.trash_for, none.sweep_limit), (None, None));
        let both = config(&["--trash-for=3d", "--sweep-limit=0"]);
        assert_eq!(both.trash_for, Some(std::time::Duration::from_secs(3 * 24 * 3600)));
        assert_eq!(both.sweep_limit, Some(0));
    }
}
