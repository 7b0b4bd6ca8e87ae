//! The answer as a table: a row for each copy, each volume without one, and each node that refused a volume it has no copy of.
//! Every row names its volume, so that `grep` finds it. Ages are counted from the node's own time.

use std::collections::BTreeMap;

use per_node::proto::report::Holder;

use super::answer::{ClusterStatus, CopyStatus, RefusalStatus, VolumeStatus};
use crate::human::{age, size};
use crate::output::{Cell, Table, Tone};

/// What is not there, or not known.
const NONE: &str = "-";

const COMPACT: [&str; 7] = ["VOLUME", "PHASE", "NODE", "SIZE", "HOLDER", "SINCE", "REFUSED"];
const WIDE: [&str; 13] = [
    "VOLUME",
    "HANDLE",
    "PHASE",
    "CLAIM",
    "CLAIM-PHASE",
    "NODE",
    "SIZE",
    "INODES",
    "MEASURED",
    "HOLDER",
    "SINCE",
    "REFUSED",
    "WHY",
];

/// One row: a volume on a node, or a volume alone.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub volume: &'a VolumeStatus,
    pub node: Option<&'a str>,
    pub copy: Option<&'a CopyStatus>,
    /// The latest refusal of this volume there.
    pub refusal: Option<&'a RefusalStatus>,
}

/// Every row, in the answer's order.
pub fn rows(status: &ClusterStatus) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for volume in &status.volumes {
        let mut nodes: BTreeMap<&str, Row<'_>> = BTreeMap::new();
        let row = |node| Row { volume, node: Some(node), copy: None, refusal: None };
        for copy in &volume.copies {
            nodes.entry(&copy.node).or_insert_with(|| row(&copy.node)).copy = Some(copy);
        }
        for refusal in &volume.refusals {
            let row = nodes.entry(&refusal.node).or_insert_with(|| row(&refusal.node));
            row.refusal.get_or_insert(refusal);
        }
        if nodes.is_empty() {
            rows.push(Row { volume, node: None, copy: None, refusal: None });
        }
        rows.extend(nodes.into_values());
    }
    rows
}

/// A table of `rows`.
pub fn table(rows: &[Row<'_>], wide: bool) -> Table {
    let mut table = Table::new(if wide { &WIDE } else { &COMPACT });
    for row in rows {
        table.row(if wide { row.wide() } else { row.compact() });
    }
    table
}

impl Row<'_> {
    /// What makes this row another one than that of a look before: everything but ages.
    pub fn key(&self) -> (String, Option<String>) {
        (self.volume.handle.clone(), self.node.map(str::to_owned))
    }

    /// What is compared between two looks.
    pub fn content(&self) -> String {
        let copy = self.copy.map(|copy| (copy.bytes, copy.inodes, &copy.holders, copy.leftover_mounts));
        let refusal = self.refusal.map(|refusal| (&refusal.message, refusal.count, &refusal.pod));
        format!("{:?} {copy:?} {refusal:?}", self.volume.persistent_volumes)
    }

    fn compact(&self) -> Vec<Cell> {
        vec![
            self.name(),
            self.phase(),
            self.node.unwrap_or(NONE).into(),
            self.size(),
            self.holder(),
            self.since(),
            self.refused(),
        ]
    }

    fn wide(&self) -> Vec<Cell> {
        let claim = self.volume.persistent_volumes.iter().find_map(|object| object.claim.as_ref());
        let inodes = self.copy.and_then(|copy| copy.inodes).map(|inodes| inodes.to_string());
        let measured = self.copy.and_then(|copy| age(&copy.told_at, copy.measured_at.as_deref()?));
        let handle = if self.volume.handle.is_empty() { NONE } else { self.volume.handle.as_str() };
        vec![
            self.name(),
            handle.into(),
            self.phase(),
            claim
                .map_or_else(|| NONE.to_owned(), |claim| format!("{}/{}", claim.namespace, claim.name))
                .into(),
            claim.and_then(|claim| claim.phase.clone()).unwrap_or_else(|| NONE.to_owned()).into(),
            self.node.unwrap_or(NONE).into(),
            self.size(),
            inodes.unwrap_or_else(|| NONE.to_owned()).into(),
            measured.unwrap_or_else(|| NONE.to_owned()).into(),
            self.holder(),
            self.since(),
            self.refused(),
            self.refusal.map_or(NONE, |refusal| refusal.message.as_str()).into(),
        ]
    }

    fn name(&self) -> Cell {
        let name = self.volume.name();
        if name.is_empty() { NONE.into() } else { name.into() }
    }

    /// A phase that keeps pods waiting is told by colour too.
    fn phase(&self) -> Cell {
        let mut phases: Vec<&str> =
            self.volume.persistent_volumes.iter().map(|object| object.phase.as_str()).collect();
        phases.dedup();
        if phases.is_empty() {
            return match self.volume.orphan {
                Some(true) => Cell::toned("Orphan", Tone::Warning),
                Some(false) | None => NONE.into(),
            };
        }
        let tone = match phases.as_slice() {
            ["Bound"] => Tone::Good,
            ["Failed"] => Tone::Fault,
            ["Released" | "Terminating"] => Tone::Warning,
            _ => Tone::Plain,
        };
        Cell::toned(phases.join(","), tone)
    }

    fn size(&self) -> Cell {
        let bytes = self.copy.and_then(|copy| copy.bytes);
        bytes.map_or_else(|| NONE.to_owned(), size).into()
    }

    /// The first pod, and how many others.
    fn holder(&self) -> Cell {
        let holders = self.copy.map(|copy| copy.holders.as_slice()).unwrap_or_default();
        let mut names: Vec<String> = holders.iter().map(holder_name).collect();
        names.dedup();
        match names.as_slice() {
            [] => match self.copy.map(|copy| copy.leftover_mounts) {
                Some(1..) => "(a mount)".into(),
                Some(0) | None => NONE.into(),
            },
            [one] => one.as_str().into(),
            [first, others @ ..] => format!("{first} +{}", others.len()).into(),
        }
    }

    fn since(&self) -> Cell {
        let since = self.copy.and_then(|copy| {
            let first = copy.holders.iter().filter_map(|holder| holder.since.as_deref()).min()?;
            age(&copy.told_at, first)
        });
        since.unwrap_or_else(|| NONE.to_owned()).into()
    }

    /// Who, how often, how long ago.
    fn refused(&self) -> Cell {
        let Some(refusal) = self.refusal else { return NONE.into() };
        let pod = match (&refusal.namespace, &refusal.pod) {
            (Some(namespace), Some(pod)) => format!("{namespace}/{pod}"),
            (_, _) => refusal.reason.clone(),
        };
        let ago = age(&refusal.told_at, &refusal.last).map(|ago| format!(" ({ago} ago)")).unwrap_or_default();
        Cell::toned(format!("{pod} x{}{ago}", refusal.count), Tone::Fault)
    }
}

/// The pod as the driver's own texts name it: by name, else by UID, else by the path of its mount.
fn holder_name(holder: &Holder) -> String {
    match (&holder.namespace, &holder.pod, &holder.uid) {
        (Some(namespace), Some(pod), _) => format!("{namespace}/{pod}"),
        (_, _, Some(uid)) => uid.clone(),
        (_, _, None) => holder.target.clone(),
    }
}
