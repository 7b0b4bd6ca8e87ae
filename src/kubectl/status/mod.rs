//! `status`: every volume's copies on every node, from the API server's objects and from each plugin's `/copies`.

pub mod answer;
pub mod gather;
mod rows;
mod volumes;
mod watch;

use answer::ClusterStatus;
use gather::Question;

use crate::api::Api;
use crate::cli::{ReachFlags, StatusFlags};
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// How many sentences of what is missing are written out; the JSON has them all.
const MISSING_TOLD_MAX: usize = 20;

/// Shows it once, or follows.
pub async fn run(reach: &ReachFlags, flags: StatusFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let question = Question {
        driver_name: reach.driver_name.clone(),
        namespace: flags.plugin.namespace.clone(),
        volume: flags.volume.clone(),
        node_deadline: flags.asking.node_deadline,
        parallel: flags.asking.parallel.get(),
        has_progress: true,
    };
    if flags.watch {
        return watch::follow(&api, &question, &flags).await;
    }
    once(&api, &question, reach, &flags).await
}

async fn once(
    api: &Api,
    question: &Question,
    reach: &ReachFlags,
    flags: &StatusFlags,
) -> Result<Exit, Failure> {
    let status = gather::gather(api, question).await?;
    if let Some(asked) =
        flags.volume.as_deref().filter(|_| status.volumes.is_empty() && status.missing.is_empty())
    {
        let why = format!("no PersistentVolume of {} and no copy is called {asked}", reach.driver_name);
        return Err(Failure::Missing { why });
    }
    match flags.output.format {
        Format::Json | Format::Yaml => output::print_object(&status, flags.output.format)?,
        Format::Table => output::print_table(&rows::table(&rows::rows(&status), false))?,
        Format::Wide => output::print_table(&rows::table(&rows::rows(&status), true))?,
    }
    tell(&status);
    Ok(exit(&status))
}

/// What is missing, and what plugins say of themselves.
fn tell(status: &ClusterStatus) {
    let notes =
        status.nodes.iter().flat_map(|node| node.notes.iter().map(|note| format!("{}: {note}", node.node)));
    for (lines, word) in [(status.missing.clone(), "missing"), (notes.collect(), "note")] {
        for line in lines.iter().take(MISSING_TOLD_MAX) {
            output::say(&format!("{word}: {line}"));
        }
        if let more @ 1.. = lines.len().saturating_sub(MISSING_TOLD_MAX) {
            output::say(&format!("{word}: and {more} more; -o json has them all"));
        }
    }
}

fn exit(status: &ClusterStatus) -> Exit {
    if status.missing.is_empty() { Exit::Complete } else { Exit::Partial }
}
