//! `kubectl per-node trash`: removed copies that are kept (C26), listed, restored or deleted by `per-node trash` in the plugin's
//! pod on each node.
//!
//! What would be changed is shown first, and asked about. Whether it may be changed is the plugin's to decide: it restores over
//! no copy, and none that no PersistentVolume names.

mod flags;
mod kept;

pub use flags::TrashFlags;

use per_node::adapters::human::{size, span};
use per_node::proto::report::API_VERSION;
use serde::Serialize;

use crate::agree::{self, Agreement};
use crate::api::Api;
use crate::cli::{OutputFlags, ReachFlags};
use crate::connect::connect;
use crate::exec::{Target, each, said, targets};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format, Table};
use flags::{NodeFlags, TrashCommand};
use kept::{Kept, Trash, read};

/// The answer for programs; docs/kubectl.md describes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    kept: &'a [Kept],
    /// What the answer lacks, one sentence each.
    missing: &'a [String],
}

/// What is to be done with kept copies.
struct Change<'a> {
    /// The plugin's subcommand.
    words: Vec<&'a str>,
    /// Which of the kept copies; all where there is none.
    which: Option<&'a str>,
    question: &'static str,
}

/// One of the subcommands.
pub async fn run(reach: &ReachFlags, flags: TrashFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    match &flags.command {
        TrashCommand::Ls { which, output, nodes } => list(&api, which.as_deref(), output, nodes).await,
        TrashCommand::Restore { which, nodes, yes } => {
            let words = vec!["trash", "restore", which];
            let change = Change { words, which: Some(which), question: "Restore what is listed?" };
            carry_out(&api, &change, nodes, *yes).await
        }
        TrashCommand::Empty { which, all: _, nodes, yes } => {
            let word = which.as_deref().unwrap_or("--all");
            let question = "Delete what is listed, for good?";
            let change = Change { words: vec!["trash", "empty", word], which: which.as_deref(), question };
            carry_out(&api, &change, nodes, *yes).await
        }
    }
}

async fn list(
    api: &Api,
    which: Option<&str>,
    output: &OutputFlags,
    nodes: &NodeFlags,
) -> Result<Exit, Failure> {
    let targets = targets(api, &nodes.plugin.namespace, nodes.node.as_deref()).await?;
    let trash = read(api, &targets, nodes).await.only(which);
    match output.format {
        Format::Table | Format::Wide if trash.kept.is_empty() => output::print("no copies are kept\n")?,
        Format::Table | Format::Wide => output::print_table(&table(&trash.kept))?,
        format @ (Format::Json | Format::Yaml) => {
            let (kept, missing) = (&trash.kept, &trash.missing);
            output::print_object(&List { api_version: API_VERSION, kind: "Trash", kept, missing }, format)?;
        }
    }
    trash.say_missing();
    Ok(heard(&trash))
}

/// Shows what it is about, asks, and has each node that keeps some of it do it.
async fn carry_out(api: &Api, change: &Change<'_>, nodes: &NodeFlags, yes: bool) -> Result<Exit, Failure> {
    let all = targets(api, &nodes.plugin.namespace, nodes.node.as_deref()).await?;
    let trash = read(api, &all, nodes).await.only(change.which);
    trash.say_missing();
    if trash.kept.is_empty() {
        if let Some(which) = change.which.filter(|_| trash.missing.is_empty()) {
            return Err(Failure::Missing { why: format!("no node keeps a copy {which}") });
        }
        output::print("no copies are kept\n")?;
        return Ok(heard(&trash));
    }
    output::print_table(&table(&trash.kept))?;
    if let Some(entry) = change.which
        && trash.nodes().len() > 1
        && trash.kept.iter().any(|kept| kept.copy.entry == entry)
    {
        // Entries are numbered on each node by itself: what has one name on two nodes may be two things.
        output::say(&format!("more than one node has an entry {entry}: name the node with --node"));
        return Ok(Exit::Refused);
    }
    match agree::agree(change.question, yes)? {
        Agreement::Given => {}
        Agreement::Refused => return Ok(Exit::Refused),
    }
    let keeping = trash.nodes();
    let there: Vec<Target> =
        all.iter().filter(|target| keeping.contains(&target.node.as_str())).cloned().collect();
    let failed = tell(api, &there, change, nodes).await?;
    Ok(match failed {
        0 => heard(&trash),
        failed if failed == there.len() => Exit::Failed,
        _ => Exit::Partial,
    })
}

/// Has each node do it; answers on how many it failed.
async fn tell(api: &Api, there: &[Target], change: &Change<'_>, nodes: &NodeFlags) -> Result<usize, Failure> {
    let answers = each(api, there, &change.words, nodes.node_deadline).await;
    let mut failed = 0;
    for (target, answer) in there.iter().zip(answers) {
        match said(answer) {
            Ok(text) => {
                for line in text.lines() {
                    output::print(&format!("{}: {}\n", target.node, output::clean(line)))?;
                }
            }
            Err(why) => {
                failed += 1;
                output::say(&format!("the node {}: {why}", target.node));
            }
        }
    }
    Ok(failed)
}

fn table(kept: &[Kept]) -> Table {
    let mut table = Table::new(&["HANDLE", "NODE", "ENTRY", "REMOVED", "SIZE", "LEFT"]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for Kept { node, copy } in kept {
        table.row(vec![
            copy.handle.as_str().into(),
            node.as_str().into(),
            copy.entry.as_str().into(),
            copy.removed.as_str().into(),
            or_none(copy.bytes.map(size)).into(),
            or_none(copy.left_seconds.map(span)).into(),
        ]);
    }
    table
}

fn heard(trash: &Trash) -> Exit {
    match trash.missing.len() {
        0 => Exit::Complete,
        missing if missing == trash.asked => Exit::Failed,
        _ => Exit::Partial,
    }
}
