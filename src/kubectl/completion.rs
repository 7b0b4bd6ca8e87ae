//! Completion for shells: commands and flags. It asks no cluster.

use clap::CommandFactory;

use crate::cli::{CommandLine, CompletionFlags};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Prints the script.
pub fn run(flags: &CompletionFlags) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut CommandLine::command(), "kubectl-per_node", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Complete)
}
