//! `kubectl per-node confirm`: a person says that removals may go on where they wait (C22), by `per-node confirm` in the plugin's
//! pod on each such node.
//!
//! It shows first what waits where and which copies would go, as far as is known, and asks; then it confirms just what waited, and
//! not what came to wait since. It removes nothing: the next pass of each node does, with a proof of its own.

mod flags;
mod orphans;

pub use flags::ConfirmFlags;

use per_node::adapters::console::{SEEN, WAITS};

use crate::agree::{self, Agreement};
use crate::api::Api;
use crate::cli::ReachFlags;
use crate::connect::connect;
use crate::exec::{Target, all, each, said, targets};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Table};
use crate::plugins::nodes_without;

/// Something waits on a node.
struct Waiting {
    target: Target,
    /// Why, and the copies that it is about, a line each.
    what: String,
    /// The flag that confirms that and nothing else; `None` from a plugin that is older than it.
    seen: Option<String>,
}

/// Shows, asks, confirms.
pub async fn run(reach: &ReachFlags, flags: ConfirmFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let nodes = targets(&api, &flags.plugin.namespace, flags.node.as_deref()).await?;
    let (waiting, silent) = look(&api, &nodes, &flags).await;
    let is_whole = flags.node.is_some() || has_all(&api, &nodes).await;
    if waiting.is_empty() {
        output::print(&format!("nothing waits for a confirmation on {} nodes\n", nodes.len() - silent))?;
        return Ok(heard(silent, nodes.len(), is_whole));
    }
    let (namespace, deadline) = (&flags.plugin.namespace, flags.node_deadline);
    let orphans = orphans::lines(&api, &reach.driver_name, namespace, &waiting, deadline).await;
    output::print_table(&table(&waiting, &orphans))?;
    if flags.show {
        return Ok(Exit::Found);
    }
    let question = format!(
        "Confirm on {} nodes? It removes nothing by itself; the next pass does, each copy with a proof of its own.",
        waiting.len()
    );
    match agree::agree(&question, flags.yes)? {
        Agreement::Given => {}
        Agreement::Refused => return Ok(Exit::Refused),
    }
    let failed = confirm(&api, &waiting, &flags).await?;
    Ok(match (failed, silent) {
        (0, _) => heard(silent, nodes.len(), is_whole),
        (failed, _) if failed == waiting.len() => Exit::Failed,
        (_, _) => Exit::Partial,
    })
}

/// What waits where, and on how many nodes that could not be told.
async fn look(api: &Api, nodes: &[Target], flags: &ConfirmFlags) -> (Vec<Waiting>, usize) {
    let answers = each(api, nodes, &["confirm", "--show"], flags.node_deadline).await;
    let mut waiting = Vec::new();
    let mut silent = 0;
    for (target, answer) in nodes.iter().zip(answers) {
        match said(answer) {
            Ok(text) => waiting.extend(text.strip_prefix(WAITS).map(|what| {
                let (what, seen) = what.rsplit_once(&format!("\n{SEEN}")).unwrap_or((what, ""));
                let seen = Some(format!("--seen={seen}")).filter(|_| !seen.is_empty());
                Waiting { target: target.clone(), what: what.to_owned(), seen }
            })),
            Err(why) => {
                silent += 1;
                output::say(&format!("not seen: the node {}: {why}", target.node));
            }
        }
    }
    (waiting, silent)
}

/// Confirms on each node; answers on how many that failed.
async fn confirm(api: &Api, waiting: &[Waiting], flags: &ConfirmFlags) -> Result<usize, Failure> {
    let command = |one| ["confirm"].into_iter().chain(one).collect();
    let runs: Vec<(&Target, Vec<&str>)> =
        waiting.iter().map(|one| (&one.target, command(one.seen.as_deref()))).collect();
    let answers = all(api, &runs, flags.node_deadline).await;
    let mut failed = 0;
    for ((target, _), answer) in runs.iter().zip(answers) {
        match said(answer) {
            Ok(text) => {
                let first = text.lines().next().unwrap_or_default();
                output::print(&format!("{}: {}\n", target.node, output::clean(first)))?;
            }
            Err(why) => {
                failed += 1;
                output::say(&format!("the node {}: {why}", target.node));
            }
        }
    }
    Ok(failed)
}

/// What waits on each node, and below it what would go there.
fn table(waiting: &[Waiting], orphans: &[Vec<String>]) -> Table {
    let mut table = Table::new(&["NODE", "WAITS FOR"]);
    for (one, orphans) in waiting.iter().zip(orphans) {
        let mut lines = one.what.lines().chain(orphans.iter().map(String::as_str));
        table.row(vec![one.target.node.as_str().into(), lines.next().unwrap_or_default().into()]);
        for line in lines {
            table.row(vec!["".into(), line.into()]);
        }
    }
    table
}

/// Whether every node that could have a plugin has one; says where not.
async fn has_all(api: &Api, nodes: &[Target]) -> bool {
    let with = nodes.iter().map(|target| target.node.as_str());
    let unasked = nodes_without(api, with).await.unwrap_or_else(|failure| Some(failure.to_string()));
    if let Some(why) = &unasked {
        output::say(&format!("not seen: {why}"));
    }
    unasked.is_none()
}

fn heard(silent: usize, all: usize, is_whole: bool) -> Exit {
    match silent {
        0 if is_whole => Exit::Complete,
        silent if silent == all => Exit::Failed,
        _ => Exit::Partial,
    }
}
