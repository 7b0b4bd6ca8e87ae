//! What `doctor` says: for a person a table with the repairs, for a program one object.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::checks::examine;
use super::facts::Facts;
use super::line::{Line, Verdict};
use crate::output::{Cell, Table, Tone};

/// Different texts of one check that are told beside one another.
const TEXTS_MAX: usize = 3;

/// The answer for programs; docs/kubectl.md describes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    api_version: &'static str,
    kind: &'static str,
    /// The nodes that were looked at.
    nodes: Vec<String>,
    lines: Vec<Line>,
    /// What could not be read, each with why.
    unread: Vec<String>,
}

impl Report {
    pub fn of(facts: &Facts) -> Self {
        Self {
            api_version: per_node::proto::report::API_VERSION,
            kind: "Doctor",
            nodes: facts.nodes.keys().cloned().collect(),
            lines: examine(facts),
            unread: facts.unread.clone(),
        }
    }

    pub fn has_faults(&self) -> bool {
        self.lines.iter().any(|line| line.verdict == Verdict::Fault)
    }

    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The faults first, then the warnings, each with its repair. `whole` shows every line; else those of the nodes that are
    /// well are one line for each check.
    pub fn table(&self, whole: bool) -> Table {
        let mut table = Table::new(&["VERDICT", "CHECK", "NODE", "SAYS"]);
        for verdict in [Verdict::Fault, Verdict::Warning] {
            for line in self.lines.iter().filter(|line| line.verdict == verdict) {
                row(
                    &mut table,
                    line.verdict,
                    line.check,
                    line.node.as_deref().unwrap_or_default(),
                    &line.says,
                );
                if let Some(repair) = &line.repair {
                    table.row(vec!["".into(), "".into(), "".into(), format!("repair: {repair}").into()]);
                }
            }
        }
        let well: Vec<&Line> = self.lines.iter().filter(|line| line.verdict == Verdict::Ok).collect();
        if whole {
            for line in well {
                row(
                    &mut table,
                    line.verdict,
                    line.check,
                    line.node.as_deref().unwrap_or_default(),
                    &line.says,
                );
            }
        } else {
            folded(&mut table, &well);
        }
        table
    }

    /// Whether nothing could be looked at.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many lines are what.
    pub fn summary(&self) -> String {
        let count = |verdict| self.lines.iter().filter(|line| line.verdict == verdict).count();
        format!(
            "{} faults, {} warnings, {} ok; {} nodes",
            count(Verdict::Fault),
            count(Verdict::Warning),
            count(Verdict::Ok),
            self.nodes.len()
        )
    }
}

/// What is well, a line for each check in the order in which they come.
fn folded(table: &mut Table, well: &[&Line]) {
    let mut order: Vec<&str> = Vec::new();
    let mut nodes: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for line in well {
        if line.node.is_none() {
            row(table, line.verdict, line.check, "", &line.says);
            continue;
        }
        if !order.contains(&line.check) {
            order.push(line.check);
        }
        let (count, texts) = nodes.entry(line.check).or_default();
        *count += 1;
        texts.insert(&line.says);
    }
    for check in order {
        let Some((count, texts)) = nodes.get(check) else { continue };
        let says = if texts.len() <= TEXTS_MAX {
            texts.iter().copied().collect::<Vec<_>>().join("; ")
        } else {
            format!("{} different, with -o wide", texts.len())
        };
        row(table, Verdict::Ok, check, &format!("{count} nodes"), &says);
    }
}

fn row(table: &mut Table, verdict: Verdict, check: &str, node: &str, says: &str) {
    let tone = match verdict {
        Verdict::Fault => Tone::Fault,
        Verdict::Warning => Tone::Warning,
        Verdict::Ok => Tone::Good,
    };
    table.row(vec![Cell::toned(verdict.word(), tone), check.into(), node.into(), says.into()]);
}
