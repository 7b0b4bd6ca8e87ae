//! `kubectl per-node trash`: removed copies that are kept (C26), listed, restored or deleted by `per-node trash` in the plugin's
//! pod on each node.
//!
//! What would be changed is shown first, and asked about; then those entries are named, and nothing that came later is changed
//! with them. Whether it may be changed is the plugin's to decide: it restores over no copy, and none that no PersistentVolume
//! names.

mod flags;
mod kept;

pub use flags::TrashFlags;

use std::collections::BTreeSet;

use per_node::adapters::human::{size, span};
use per_node::domain::kept::EMPTIED_MAX;
use per_node::proto::report::API_VERSION;
use serde::Serialize;

use crate::agree::{self, Agreement};
use crate::api::Api;
use crate::cli::{OutputFlags, ReachFlags};
use crate::connect::connect;
use crate::exec::{self, Target, said, targets};
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
    missing: &'a [&'a String],
}

/// What is to be done with kept copies.
struct Change<'a> {
    does: Does,
    /// Which of the kept copies; all where there is none.
    which: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Restore,
    Empty,
}

impl Does {
    fn question(self) -> &'static str {
        match self {
            Self::Restore => "Restore what is listed?",
            Self::Empty => "Delete what is listed, for good?",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Empty => "empty",
        }
    }

    /// How many entries the plugin's subcommand takes at a time.
    fn at_a_time(self) -> usize {
        match self {
            Self::Restore => 1,
            Self::Empty => EMPTIED_MAX,
        }
    }
}

/// One of the subcommands.
pub async fn run(reach: &ReachFlags, flags: TrashFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    match &flags.command {
        TrashCommand::Ls { which, output, nodes } => list(&api, which.as_deref(), output, nodes).await,
        TrashCommand::Restore { which, nodes, yes } => {
            let change = Change { does: Does::Restore, which: Some(which) };
            carry_out(&api, &change, nodes, *yes).await
        }
        TrashCommand::Empty { which, all: _, nodes, yes } => {
            let change = Change { does: Does::Empty, which: which.as_deref() };
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
        Format::Table | Format::Wide if trash.kept.is_empty() => output::print(&nothing(&trash, which))?,
        Format::Table | Format::Wide => output::print_table(&table(&trash.kept))?,
        format @ (Format::Json | Format::Yaml) => {
            let missing: Vec<&String> = trash.missing.iter().chain(&trash.unasked).collect();
            let (kept, missing) = (&trash.kept, missing.as_slice());
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
        if let Some(which) = change.which.filter(|_| trash.missing.is_empty() && trash.unasked.is_none()) {
            return Err(Failure::Missing { why: format!("no node keeps a copy {which}") });
        }
        output::print(&nothing(&trash, change.which))?;
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
    if let Some(handle) = twice_on_a_node(&trash.kept).filter(|_| change.does == Does::Restore) {
        output::say(&format!(
            "a node keeps several copies of {handle}, and one can be its copy: name an entry"
        ));
        return Ok(Exit::Refused);
    }
    match agree::agree(change.does.question(), yes)? {
        Agreement::Given => {}
        Agreement::Refused => return Ok(Exit::Refused),
    }
    let runs = runs(&all, &trash.kept, change.does);
    let failed = tell(api, &runs, nodes).await?;
    Ok(match failed {
        0 => heard(&trash),
        failed if failed == runs.len() => Exit::Failed,
        _ => Exit::Partial,
    })
}

/// The subcommands that do it, by the entries that were shown: what has come into a trash since is left alone.
fn runs<'a>(all: &'a [Target], kept: &'a [Kept], does: Does) -> Vec<(&'a Target, Vec<&'a str>)> {
    let mut runs = Vec::new();
    for target in all {
        let of_node = kept.iter().filter(|kept| kept.node == target.node);
        let entries: Vec<&str> = of_node.map(|kept| kept.copy.entry.as_str()).collect();
        for some in entries.chunks(does.at_a_time()) {
            runs.push((target, [&["trash", does.word()], some].concat()));
        }
    }
    runs
}

/// A handle of which one node keeps more than one copy.
fn twice_on_a_node(kept: &[Kept]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    let twice = kept.iter().find(|kept| !seen.insert((&kept.node, &kept.copy.handle)));
    twice.map(|kept| kept.copy.handle.as_str())
}

/// Has each node do it; answers how many of the runs failed.
async fn tell(api: &Api, runs: &[(&Target, Vec<&str>)], nodes: &NodeFlags) -> Result<usize, Failure> {
    let answers = exec::all(api, runs, nodes.node_deadline).await;
    let mut failed = 0;
    for ((target, _), answer) in runs.iter().zip(answers) {
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

/// What is said where nothing is listed: of the nodes that were seen, and of what was asked for.
fn nothing(trash: &Trash, which: Option<&str>) -> String {
    let what = which.map_or_else(|| "copies are".to_owned(), |which| format!("copy {which} is"));
    match (trash.missing.len(), &trash.unasked) {
        (0, None) => format!("no {what} kept\n"),
        (missing, _) => format!("no {what} kept on the nodes that were seen ({})\n", trash.asked - missing),
    }
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
    match (trash.missing.len(), &trash.unasked) {
        (0, None) => Exit::Complete,
        (missing, _) if missing == trash.asked => Exit::Failed,
        (_, _) => Exit::Partial,
    }
}
