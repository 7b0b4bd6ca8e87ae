//! `kubectl per-node why`: why a pod does not run, as far as its volumes of this driver have to do with it.
//!
//! It gathers once (the pod, its claims and volumes, the driver's objects, the events, the word of the node's plugin) and then
//! goes through a table of causes that look at nothing else. It changes nothing, and what the caller may not read it names.

mod causes;
mod claims;
mod driver;
mod facts;
mod finding;
mod flags;
mod gather;
mod health;
mod holding;
mod passed_on;
mod report;
mod terminating;
mod volumes;

#[cfg(test)]
mod tests;

pub use flags::WhyFlags;

use crate::cli::ReachFlags;
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use gather::{Asked, gather};
use report::Report;

/// Gathers, explains, prints.
pub async fn run(reach: &ReachFlags, flags: WhyFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let pod = ["pod/", "pods/", "po/"].iter().find_map(|kind| flags.pod.strip_prefix(kind));
    let asked = Asked {
        namespace: flags.object.namespace.as_deref().unwrap_or(api.namespace()),
        pod: pod.unwrap_or(&flags.pod),
        driver_name: &reach.driver_name,
        plugin_namespace: &flags.object.plugin_namespace,
        node_deadline: flags.node_deadline,
    };
    let report = Report::of(&gather(&api, &asked).await?);
    match flags.output.format {
        Format::Table | Format::Wide => output::print(&report.text())?,
        format @ (Format::Json | Format::Yaml) => output::print_object(&report, format)?,
    }
    for why in report.unread() {
        output::say(&format!("not seen: {why}"));
    }
    Ok(match (report.has_reasons(), report.unread().is_empty()) {
        (true, _) => Exit::Found,
        (false, false) => Exit::Partial,
        (false, true) => Exit::Complete,
    })
}
