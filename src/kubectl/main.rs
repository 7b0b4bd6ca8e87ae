//! `kubectl per-node`: what an operator sees of the driver, with kubectl's habits. A second binary of the same code base; the
//! plugin's own carries none of it.
//!
//! It asks the API server with the caller's own rights, and the plugins through it. It never talks to a node, and changes
//! nothing but where a command's name says so. docs/kubectl.md is its reference.

#![forbid(unsafe_code)]

mod agree;
mod api;
mod cli;
mod completion;
mod confirm;
mod connect;
mod csi_driver;
mod doctor;
mod event;
mod exec;
mod exit;
mod failure;
mod human;
mod installation;
mod manifest;
mod output;
mod plugins;
mod quantity;
#[cfg(test)]
mod reference;
mod release;
mod seen;
mod status;
mod trash;
mod ui;
mod why;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use cli::{Command, CommandLine};
use exit::Exit;
use failure::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if completion::is_asked_for(words.next().as_deref()) {
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        return ended(completion::answer(&words));
    }
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return cli::explain(&error).into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    ended(match runtime {
        Ok(runtime) => runtime.block_on(run(line)),
        Err(error) => Err(Failure::Local { what: "the runtime cannot start", why: error.to_string() }),
    })
}

/// What a shell is told.
fn ended(work: Result<Exit, Failure>) -> ExitCode {
    match work {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::say(&failure.to_string());
            failure.exit().into()
        }
    }
}

/// One command, until it has ended or is interrupted.
async fn run(line: CommandLine) -> Result<Exit, Failure> {
    let CommandLine { reach, command } = line;
    let work = async {
        match command {
            Command::Status(flags) => status::run(&reach, flags).await,
            Command::Why(flags) => why::run(&reach, flags).await,
            Command::Doctor(flags) => doctor::run(&reach, flags).await,
            Command::Confirm(flags) => confirm::run(&reach, flags).await,
            Command::Trash(flags) => trash::run(&reach, flags).await,
            Command::Manifest(flags) => manifest::run(&reach, flags),
            Command::Release(flags) => release::run(&reach, flags).await,
            Command::Ui(flags) => ui::run(&reach, flags).await,
            Command::Completion(flags) => completion::run(&flags),
        }
    };
    tokio::select! {
        ended = work => ended,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(|error| Failure::Local { what: "signals", why: error.to_string() })?;
            Ok(Exit::Interrupted)
        }
    }
}
