//! The copies that no PersistentVolume names, on the nodes on which something waits: what a confirmation gives up, as far as each
//! plugin's `/copies` tells it now. It is shown and not confirmed: the next pass judges each copy anew.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use per_node::proto::report::{Copy, NodeReport};

use super::Waiting;
use crate::api::Api;
use crate::human::size;
use crate::output;
use crate::plugins::{self, Plugin, Unheard};

/// Plugins that are asked at the same time.
const NODES_AT_ONCE: usize = 16;
/// Copies of one node that are told a line each.
const COPIES_TOLD_MAX: usize = 50;
/// How every answer begins, so that nobody takes it for a promise.
const BEGINS: &str = "what would go, as far as is known now";

/// What one plugin has told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orphans {
    /// By handle.
    copies: Vec<Copy>,
    /// Copies of which the plugin does not know whether a PersistentVolume names them.
    unknown: usize,
}

/// Of each node in `waiting`, in their order, what would go there: a line each, and one that says why where that is not known.
pub async fn lines(
    api: &Api,
    driver_name: &str,
    namespace: &str,
    waiting: &[Waiting],
    deadline: Duration,
) -> Vec<Vec<String>> {
    let plugins = match plugins::list(api, namespace).await {
        Ok(plugins) => plugins,
        Err(failure) => {
            let why = failure.to_string();
            return waiting.iter().map(|one| unheard(&one.target.node, &why)).collect();
        }
    };
    let of_each = waiting.iter().map(|one| {
        let mut of_node = plugins.iter().filter(|plugin| plugin.pod == one.target.pod);
        let plugin = of_node.next();
        async move {
            match plugin {
                Some(plugin) => match ask(api, driver_name, plugin, deadline).await {
                    Ok(orphans) => orphans.lines(),
                    Err(why) => unheard(&one.target.node, &why.to_string()),
                },
                None => unheard(&one.target.node, "its pod is there no more"),
            }
        }
    });
    let of_each: Vec<_> = of_each.collect();
    stream::iter(of_each).buffered(NODES_AT_ONCE).collect().await
}

async fn ask(api: &Api, driver_name: &str, plugin: &Plugin, deadline: Duration) -> Result<Orphans, Unheard> {
    let mut orphans = Orphans::default();
    plugin.ask(api, driver_name, None, deadline, |page| orphans.take(page)).await?;
    Ok(orphans)
}

/// The line for a node whose copies could not be read. What the caller lacks stands on standard error too, as everywhere.
fn unheard(node: &str, why: &str) -> Vec<String> {
    output::say(&format!("not seen: which copies would go on the node {node}: {why}"));
    vec![not_known(why)]
}

fn not_known(why: &str) -> String {
    format!("{BEGINS}: not read: {why}")
}

impl Orphans {
    fn take(&mut self, page: NodeReport) {
        for copy in page.copies {
            match copy.orphan {
                Some(true) => self.copies.push(copy),
                Some(false) => {}
                None => self.unknown += 1,
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unknown > 0 {
            let why = "its plugin has not read the PersistentVolumes";
            lines.push(not_known(&format!("of {} copies {why}", self.unknown)));
        }
        match self.copies.len() {
            0 if self.unknown > 0 => return lines,
            0 => lines.push(format!("{BEGINS}: nothing; each copy has a PersistentVolume")),
            count => lines.push(format!("{BEGINS}: {count} copies that no PersistentVolume names")),
        }
        lines.extend(self.copies.iter().take(COPIES_TOLD_MAX).map(line));
        if let Some(more @ 1..) = self.copies.len().checked_sub(COPIES_TOLD_MAX) {
            lines.push(format!("  and {more} more: kubectl per-node status | grep Orphan"));
        }
        lines
    }
}

/// The handle, its size, and whether somebody still has it.
fn line(copy: &Copy) -> String {
    let bytes = copy.bytes.map_or_else(|| "size not counted yet".to_owned(), size);
    let held = if copy.holders.is_empty() { "" } else { ", once its pod ends" };
    format!("  {} ({bytes}){held}", copy.handle)
}

#[cfg(test)]
mod tests {
    use per_node::proto::report::Holder;

    use super::*;

    fn copy(handle: &str, orphan: Option<bool>) -> Copy {
        Copy { handle: handle.to_owned(), orphan, ..Copy::default() }
    }

    fn told(copies: Vec<Copy>) -> Vec<String> {
        let mut orphans = Orphans::default();
        orphans.take(NodeReport { copies, ..NodeReport::default() });
        orphans.lines()
    }

    #[test]
    fn each_copy_without_a_persistent_volume_is_told_with_its_size() {
        let held = Copy { holders: vec![Holder::default()], bytes: Some(2048), ..copy("b", Some(true)) };
        let lines = told(vec![copy("a", Some(true)), held, copy("c", Some(false))]);
        assert_eq!(
            lines,
            [
                "what would go, as far as is known now: 2 copies that no PersistentVolume names",
                "  a (size not counted yet)",
                "  b (2.0Ki), once its pod ends",
            ]
        );
        assert!(
            told(vec![copy("c", Some(false))])[0].ends_with(": nothing; each copy has a PersistentVolume")
        );
    }

    #[test]
    fn what_the_plugin_does_not_know_is_not_called_nothing() {
        let lines = told(vec![copy("a", None)]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("not read: of 1 copies its plugin has not read"), "{lines:?}");
    }

    #[test]
    fn of_many_copies_the_rest_is_counted() {
        let lines = told((0..COPIES_TOLD_MAX + 3).map(|n| copy(&format!("c{n}"), Some(true))).collect());
        assert_eq!(lines.len(), COPIES_TOLD_MAX + 2);
        assert!(lines.last().is_some_and(|line| line.starts_with("  and 3 more: ")), "{lines:?}");
        let exactly = told((0..COPIES_TOLD_MAX).map(|n| copy(&format!("c{n}"), Some(true))).collect());
        assert_eq!(exactly.len(), COPIES_TOLD_MAX + 1);
    }
}
