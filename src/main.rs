//! The binary: reads the command line, wires adapters to the driver, and turns the end into an exit code. It
//! decides nothing about volumes.
//!
//! Exit codes: 0 as asked, 1 failed, 2 the command line is wrong.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod ls;
#[cfg(target_os = "linux")]
mod serve;
mod trash;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use per_node::adapters::cli::{self, Command, CommandLine, ConfirmFlags, LogFormat, LsFlags, ServeFlags};
use per_node::adapters::console::{self, Question};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The command line is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return explain(&error),
    };
    match line.command {
        Command::Serve(flags) => run_serve(*flags),
        Command::Confirm(flags) => run_confirm(&flags),
        Command::Ls(flags) => run_ls(&flags),
        Command::Trash(flags) => trash::run(&flags),
        #[cfg(feature = "demo")]
        Command::Demo(flags) => per_node::demo::run(&flags),
    }
}

/// Help and version are what was asked for; anything else is one line on standard error.
fn explain(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
        }
        _ => {
            eprintln!("per-node: {}", cli::one_line(error));
            ExitCode::from(USAGE)
        }
    }
}

fn run_serve(flags: ServeFlags) -> ExitCode {
    let config = match flags.config() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("per-node: {error}");
            return ExitCode::from(USAGE);
        }
    };
    log_to_stderr(config.log_format);
    #[cfg(target_os = "linux")]
    return finish(serve::run(config));
    #[cfg(not(target_os = "linux"))]
    {
        eprintln!("per-node: serve needs Linux; `per-node demo` runs here");
        ExitCode::FAILURE
    }
}

fn run_ls(flags: &LsFlags) -> ExitCode {
    #[cfg(target_os = "linux")]
    return finish(ls::run(flags));
    #[cfg(not(target_os = "linux"))]
    {
        eprintln!("per-node: ls of {} needs Linux", flags.store.display());
        ExitCode::FAILURE
    }
}

fn run_confirm(flags: &ConfirmFlags) -> ExitCode {
    ask(&flags.store, &if flags.show { Question::Show } else { Question::Confirm(flags.seen) })
}

/// Asks the serving process, and says what it said.
fn ask(store: &Path, question: &Question) -> ExitCode {
    match console::ask(store, question) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("per-node: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The end of a run; an error's whole chain is printed once, as one line.
#[cfg(target_os = "linux")]
fn finish(ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("per-node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `RUST_LOG` selects what is logged, by targets and levels; by default what an operator wants to know.
fn log_to_stderr(format: LogFormat) {
    let usual = || {
        // The client library's own report of each failed call is left out: the adapter tells of an outage once.
        let client = "kube_client::client::builder";
        Targets::new().with_default(LevelFilter::INFO).with_target(client, LevelFilter::OFF)
    };
    let asked = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let (filter, not_understood) = match asked.as_deref().map(str::parse::<Targets>) {
        Some(Ok(targets)) => (targets, None),
        Some(Err(error)) => (usual(), Some(error)),
        None => (usual(), None),
    };
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(is_terminal).with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    if let Some(error) = not_understood {
        tracing::warn!(%error, "RUST_LOG is not understood: what is logged is the default");
    }
}
