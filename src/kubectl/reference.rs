//! docs/reference/flags.md has every flag of this tool, as clap describes them.

use clap::CommandFactory as _;

use crate::cli::CommandLine;

#[path = "../../tests/support/flags_table.rs"]
mod flags_table;
#[path = "../../tests/support/generated.rs"]
mod generated;

#[test]
fn the_flags_of_the_reference_are_those_of_the_tool() {
    let made = flags_table::tables(&CommandLine::command(), "kubectl per-node");
    generated::agree("flags.md", "kubectl per-node", &made);
}
