//! `kubectl per-node doctor`: the cluster and its nodes, checked for what the driver needs, each line with its repair.
//!
//! It reads the driver's objects, the nodes, and each plugin's word through the API server, and goes through a table of checks
//! that look at nothing else. It changes nothing: a repair is for a person to do.

mod checks;
mod cluster;
mod facts;
mod flags;
mod gather;
mod line;
mod node;
mod plugin;
mod report;

#[cfg(test)]
mod tests;

pub use flags::DoctorFlags;

use crate::cli::ReachFlags;
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use gather::{Asked, gather};
use report::Report;

/// Gathers, examines, prints.
pub async fn run(reach: &ReachFlags, flags: DoctorFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let asked = Asked {
        driver_name: &reach.driver_name,
        plugin_namespace: &flags.plugin.namespace,
        node: flags.node.as_deref(),
        node_deadline: flags.node_deadline,
    };
    let report = Report::of(&gather(&api, &asked).await?);
    if report.is_empty() {
        for why in report.unread() {
            output::say(&format!("not seen: {why}"));
        }
        return Ok(Exit::Failed);
    }
    match flags.output.format {
        format @ (Format::Table | Format::Wide) => {
            output::print_table(&report.table(format == Format::Wide || flags.node.is_some()))?;
            output::print(&format!("\n{}\n", report.summary()))?;
        }
        format @ (Format::Json | Format::Yaml) => output::print_object(&report, format)?,
    }
    for why in report.unread() {
        output::say(&format!("not seen: {why}"));
    }
    Ok(match (report.has_faults(), report.unread().is_empty()) {
        (true, _) => Exit::Found,
        (false, false) => Exit::Partial,
        (false, true) => Exit::Complete,
    })
}
