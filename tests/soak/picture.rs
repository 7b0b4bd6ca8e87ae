//! Everything that a driver at rest has, in one picture, and how two of them differ.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use per_node::ports::records::Records;

use crate::node::{Driver, Node};

/// The watch, and what a read and a post leave open for the next ones. The client closes those some time later, so their
/// number is bounded instead of compared.
const API_CONNECTIONS_MAX: usize = 4;

/// What is there.
pub struct Picture {
    /// Everything that has a name, each kind with its word before it, and how often.
    things: BTreeMap<String, usize>,
    pub descriptors: usize,
    pub threads: usize,
    api_connections: usize,
    pub rss_kib: u64,
    pub rss_peak_kib: u64,
}

impl Picture {
    pub fn take(node: &Node, driver: &Driver) -> Picture {
        let mut things = BTreeMap::new();
        let mut see = |kind: &str, names: Vec<String>| {
            for name in names {
                *things.entry(format!("{kind} {name}")).or_default() += 1;
            }
        };
        see("mount", node.mounts());
        see("pod directory", names_in(&node.path("kubelet/pods")));
        see("copy", node.names("copies"));
        see("in the trash", node.names("trash"));
        let sized = |name: &String| {
            let found = fs::metadata(node.path("store/holds").join(name)).expect("a file");
            format!("{name} of {} bytes", found.size())
        };
        see("hold file", node.names("holds").iter().map(sized).collect());
        let records = node.records();
        let targets = records.targets();
        see("record", targets.iter().map(|record| format!("{record:?}")).collect());
        see("record in the trash", records.trash_records().iter().map(|one| format!("{one:?}")).collect());
        see("event series", vec![records.series().len().to_string()]);
        let (descriptors, api_connections) = descriptors(driver.id());
        see("descriptor", descriptors);
        let threads = names_in(format!("/proc/{}/task", driver.id()).as_ref()).len();
        Picture {
            descriptors: names_in(format!("/proc/{}/fd", driver.id()).as_ref()).len(),
            threads,
            api_connections,
            rss_kib: status_kib(driver.id(), "VmRSS:"),
            rss_peak_kib: status_kib(driver.id(), "VmHWM:"),
            things,
        }
    }

    /// Whether nothing came and nothing went.
    pub fn has_the_same(&self, other: &Picture) -> bool {
        self.things == other.things
    }

    /// What of this picture differs from an earlier one of the same driver. Empty where it is at rest as it was.
    pub fn difference(&self, before: &Picture, rss_growth_max_kib: u64) -> Vec<String> {
        let mut difference = Vec::new();
        let one_way = |sign: &str, from: &Picture, to: &Picture| {
            let more = from.things.iter().filter(|(thing, count)| to.things.get(*thing) < Some(*count));
            more.map(|(thing, _)| format!("{sign} {thing}")).collect::<Vec<_>>()
        };
        difference.extend(one_way("-", before, self));
        difference.extend(one_way("+", self, before));
        // A runtime that needs fewer threads than before has not lost any.
        if self.threads > before.threads {
            difference.push(format!("+ threads: {}, {} before", self.threads, before.threads));
        }
        if self.api_connections > API_CONNECTIONS_MAX {
            difference.push(format!("+ {} connections to the API server", self.api_connections));
        }
        if self.rss_kib > before.rss_kib + rss_growth_max_kib {
            difference.push(format!("+ resident memory: {} KiB, {} before", self.rss_kib, before.rss_kib));
        }
        difference
    }
}

fn names_in(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What the process has open, but for its connections over TCP, which are counted.
fn descriptors(process: u32) -> (Vec<String>, usize) {
    // LISTEN; a connection may be in any other state.
    const LISTENS: &str = "0A";
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp")).expect("the TCP sockets");
    let tcp: BTreeMap<&str, &str> = table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let state = fields.nth(3)?;
            Some((fields.nth(5)?, state))
        })
        .collect();
    let mut open = Vec::new();
    let mut connections = 0;
    let directory = format!("/proc/{process}/fd");
    for name in names_in(directory.as_ref()) {
        // One that was closed meanwhile is not there.
        let Ok(link) = fs::read_link(format!("{directory}/{name}")) else { continue };
        let link = link.display().to_string();
        let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        match inode.map(|inode| tcp.get(inode)) {
            None => open.push(link),
            Some(None) => open.push("a unix socket".to_owned()),
            Some(Some(&state)) if state == LISTENS => open.push("a TCP socket that listens".to_owned()),
            Some(Some(_)) => connections += 1,
        }
    }
    (open, connections)
}

fn status_kib(process: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next());
    value.expect("the field").parse().expect("a number")
}
