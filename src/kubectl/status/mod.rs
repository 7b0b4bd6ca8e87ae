//! `status`: every volume of the driver, with its phase and claim.

mod volumes;

use serde::Serialize;

use crate::cli::{ReachFlags, StatusFlags};
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Cell, Format, Table, Tone};
use volumes::Volume;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    volumes: Vec<Volume>,
}

/// Shows it once.
pub async fn run(reach: &ReachFlags, flags: StatusFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let mut volumes = volumes::list(&api, &reach.driver_name).await?;
    if let Some(only) = &flags.volume {
        volumes.retain(|volume| volume.name == *only || volume.handle == *only);
    }
    match flags.output.format {
        Format::Json | Format::Yaml => output::print_object(&Answer { volumes }, flags.output.format)?,
        Format::Table | Format::Wide => {
            let mut table = Table::new(&["VOLUME", "HANDLE", "PHASE", "CLAIM"]);
            for Volume { name, handle, phase, claim } in volumes {
                table.row(vec![
                    name.into(),
                    handle.into(),
                    phase_cell(phase),
                    claim.unwrap_or_default().into(),
                ]);
            }
            output::print_table(&table)?;
        }
    }
    Ok(Exit::Complete)
}

/// A phase that keeps pods waiting is told by colour too.
fn phase_cell(phase: String) -> Cell {
    let tone = match phase.as_str() {
        "Bound" => Tone::Good,
        "Released" | "Terminating" => Tone::Warning,
        "Failed" => Tone::Fault,
        _ => Tone::Plain,
    };
    Cell::toned(phase, tone)
}
