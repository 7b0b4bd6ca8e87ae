//! Every check of the table on facts built here: a cluster in which all is well, with one thing changed.

mod cluster;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::checks::{CLUSTER, NODE, examine};
use super::facts::{Facts, Heard, NodeFacts, Right};
use super::line::{Line, Verdict};
use super::report::Report;
use crate::installation;
use crate::seen::Seen;

const NOW: &str = "2026-11-30T06:00:00Z";

#[track_caller]
fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn node(name: &str) -> NodeFacts {
    NodeFacts {
        node: object(json!({
            "metadata": {
                "name": name, "labels": {"kubernetes.io/os": "linux"},
                "annotations": {"csi.volume.kubernetes.io/nodeid": json!({"per-node.liken.sh": name}).to_string()},
            },
            "status": {"nodeInfo": {
                "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "6.18.0-cloud",
                "kubeProxyVersion": "", "kubeletVersion": "v1.37.2", "machineID": "", "operatingSystem": "linux",
                "osImage": "", "systemUUID": "",
            }},
        })),
        csi_node: Seen::Is(object(json!({
            "metadata": {"name": name}, "spec": {"drivers": [{"name": "per-node.liken.sh", "nodeID": name}]},
        }))),
        plugin: Seen::Is(object(json!({
            "metadata": {"namespace": "per-node", "name": format!("per-node-{name}")},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }))),
        heard: heard(|_| {}),
    }
}

/// The word of a plugin that is well, changed.
fn heard(change: impl FnOnce(&mut Value)) -> Heard {
    let mut report = json!({
        "apiVersion": "per-node.liken.sh/v1", "kind": "NodeCopies", "driver": "per-node.liken.sh", "node": "n",
        "version": "0.1.0", "at": NOW,
        "sweep": {"synced": true, "live": true},
        "store": {"totalBytes": 1000, "availableBytes": 500, "totalInodes": 1000, "availableInodes": 900,
                  "measuredAt": NOW},
    });
    change(&mut report);
    Heard::Report(Box::new(object(report)), NOW.parse().expect("a time"))
}

fn rights(denied: &str) -> Seen<Vec<Right>> {
    let right = |(verb, resource, _): (String, String, Option<String>)| {
        let granted = format!("{verb} {resource}") != denied;
        Right { verb, resource, granted }
    };
    Seen::Is(installation::rights().into_iter().map(right).collect())
}

/// A cluster of three nodes in which all is well.
fn healthy() -> Facts {
    let mut daemon_set = installation::daemon_set();
    daemon_set.status = Some(object(json!({
        "currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 3,
    })));
    Facts {
        now: NOW.parse().expect("a time"),
        driver_name: "per-node.liken.sh".into(),
        plugin_namespace: "per-node".into(),
        csi_driver: Seen::Is(installation::csi_driver()),
        daemon_sets: Seen::Is(vec![daemon_set]),
        rights: rights(""),
        events: Seen::Is(()),
        failed_creates: Seen::Is(Vec::new()),
        nodes: ["n1", "n2", "n3"].map(|name| (name.to_owned(), node(name))).into(),
        unread: Vec::new(),
    }
}

fn n2(facts: &mut Facts) -> &mut NodeFacts {
    facts.nodes.get_mut("n2").expect("the node")
}

/// The lines that are not ok: exactly one, of this check; gives it back.
#[track_caller]
fn finds(facts: &Facts, verdict: Verdict, check: &str) -> Line {
    let mut lines = examine(facts);
    lines.retain(|line| line.verdict != Verdict::Ok);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = lines.remove(0);
    assert_eq!((line.verdict, line.check), (verdict, check), "{line:#?}");
    assert!(line.repair.as_ref().is_some_and(|repair| !repair.is_empty()), "{line:#?}");
    line
}

#[test]
fn a_cluster_in_which_all_is_well_has_a_line_for_every_check() {
    let lines = examine(&healthy());
    assert!(lines.iter().all(|line| line.verdict == Verdict::Ok && line.repair.is_none()), "{lines:#?}");
    let told: BTreeSet<&str> = lines.iter().map(|line| line.check).collect();
    let all: BTreeSet<&str> =
        CLUSTER.iter().map(|check| check.id).chain(NODE.iter().map(|check| check.id)).collect();
    assert_eq!(told, all);
    assert_eq!(lines.len(), CLUSTER.len() + 3 * NODE.len());
}

#[test]
fn what_could_not_be_read_is_no_fault() {
    let mut facts = healthy();
    facts.csi_driver = Seen::Unread;
    facts.daemon_sets = Seen::Unread;
    facts.rights = Seen::Unread;
    facts.events = Seen::Unread;
    for node in facts.nodes.values_mut() {
        node.csi_node = Seen::Unread;
        node.plugin = Seen::Unread;
        node.heard = Heard::Unasked;
    }
    assert!(examine(&facts).iter().all(|line| line.verdict == Verdict::Ok));
    facts.nodes = BTreeMap::new();
    assert_eq!(examine(&facts), []);
}

#[test]
fn faults_stand_first_with_their_repair_and_what_is_well_is_folded() {
    let mut facts = healthy();
    n2(&mut facts).plugin = Seen::Absent;
    n2(&mut facts).heard = Heard::Unasked;
    let report = Report::of(&facts);
    let text = report.table(false).render(false);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].starts_with("fault") && lines[1].contains("Plugin") && lines[1].contains("n2"),
        "{text}"
    );
    assert!(lines[2].trim_start().starts_with("repair: "), "{text}");
    assert!(text.contains("Kubelet") && text.contains("3 nodes   v1.37.2\n"), "{text}");
    assert!(text.contains("2 nodes   the plugin answers\n"), "{text}");
    assert!(report.has_faults() && report.summary().starts_with("1 faults, 0 warnings, "));
    let whole = report.table(true).render(false);
    assert_eq!(whole.lines().filter(|line| line.contains("v1.37.2")).count(), 3);
}

/// Each check has a line below that is not ok; a check that is added without one is found here.
#[test]
fn every_check_of_the_table_has_its_case_and_its_line_in_the_documentation() {
    let cases = [include_str!("cluster.rs"), include_str!("nodes.rs")].concat();
    let documented = include_str!("../../../../docs/kubectl.md");
    let ids = CLUSTER.iter().map(|check| check.id).chain(NODE.iter().map(|check| check.id));
    for id in ids {
        assert!(cases.contains(&format!("\"{id}\"")), "{id} has no case");
        assert!(documented.contains(&format!("| `{id}` |")), "{id} is not in docs/kubectl.md");
    }
}
