//! Every cause of the table on facts built here: a pod that waits and has nothing wrong, with one thing changed.

mod binding;
mod health;
mod node;
mod pods;
mod terminating;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Event;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::causes::{CAUSES, explain, runs};
use super::facts::{Answer, ClaimFacts, Facts, HolderFact, Place, Seen};
use super::finding::{Certainty, Finding};
use crate::installation;

const NOW: &str = "2026-11-30T06:00:00Z";

#[track_caller]
fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn pod_value(name: &str, uid: &str) -> Value {
    json!({
        "metadata": {"namespace": "ci", "name": name, "uid": uid, "labels": {"app": "build"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "cache"}}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                                   "state": {"waiting": {"reason": "ContainerCreating"}}}],
        },
    })
}

fn claim_value() -> Value {
    json!({
        "metadata": {"namespace": "ci", "name": "cache", "uid": "claim-uid"},
        "spec": {"storageClassName": "per-node", "accessModes": ["ReadWriteMany"], "volumeName": "cache",
                 "resources": {"requests": {"storage": "20Gi"}}},
        "status": {"phase": "Bound"},
    })
}

fn volume_value() -> Value {
    json!({
        "metadata": {"name": "cache", "uid": "pv-uid"},
        "spec": {
            "storageClassName": "per-node", "accessModes": ["ReadWriteMany"], "capacity": {"storage": "20Gi"},
            "claimRef": {"namespace": "ci", "name": "cache", "uid": "claim-uid"},
            "csi": {"driver": "per-node.liken.sh", "volumeHandle": "cache"},
        },
        "status": {"phase": "Bound"},
    })
}

fn plugin_value() -> Value {
    json!({
        "metadata": {"namespace": "per-node", "name": "per-node-x", "uid": "plugin-uid"},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn node_value() -> Value {
    json!({"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A pod that waits, and nothing that could be the reason.
fn healthy() -> Facts {
    let claim = ClaimFacts {
        name: "cache".into(),
        claim: Seen::Is(object(claim_value())),
        volume: Seen::Is(object(volume_value())),
        candidates: Seen::Unasked,
    };
    let place = Place {
        name: "n1".into(),
        node: Seen::Is(object(node_value())),
        csi_node: Seen::Is(object(json!({
            "metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "per-node.liken.sh", "nodeID": "n1"}]},
        }))),
        plugin: Seen::Is(object(plugin_value())),
        answer: Seen::Is(Answer::default()),
        silence: None,
    };
    Facts {
        now: NOW.parse().expect("a time"),
        driver_name: "per-node.liken.sh".into(),
        plugin_namespace: "per-node".into(),
        pod: object(pod_value("build-1", "pod-uid")),
        claims: vec![claim],
        csi_driver: Seen::Is(installation::csi_driver()),
        place: Some(place),
        deployment: Seen::Absent,
        neighbours: Seen::Is(Vec::new()),
        health: Vec::new(),
        events: Seen::Is(Vec::new()),
        unread: Vec::new(),
    }
}

/// The same with its claim not bound: the volume is reserved for it.
fn pending() -> Facts {
    let mut facts = healthy();
    facts.place = None;
    let mut pod = pod_value("build-1", "pod-uid");
    pod["spec"]["nodeName"] = Value::Null;
    pod["status"]["conditions"] = json!([{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    }]);
    facts.pod = object(pod);
    let mut claim = claim_value();
    claim["status"]["phase"] = json!("Pending");
    claim["spec"]["volumeName"] = Value::Null;
    facts.claims[0].claim = Seen::Is(object(claim));
    let mut volume = volume_value();
    volume["spec"]["claimRef"]["uid"] = Value::Null;
    volume["status"]["phase"] = json!("Available");
    facts.claims[0].volume = Seen::Unasked;
    facts.claims[0].candidates = Seen::Is(vec![object(volume)]);
    facts
}

fn place(facts: &mut Facts) -> &mut Place {
    facts.place.as_mut().expect("a place")
}

/// Changes an object of the facts by its JSON.
#[track_caller]
fn change<T: DeserializeOwned + serde::Serialize>(seen: &mut Seen<T>, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::to_value(seen.is().expect("an object")).expect("JSON");
    change(&mut value);
    *seen = Seen::Is(object(value));
}

#[track_caller]
fn change_pod(facts: &mut Facts, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::to_value(&facts.pod).expect("JSON");
    change(&mut value);
    facts.pod = object(value);
}

/// An event on the pod, that many minutes old.
fn event(reason: &str, from: &str, message: &str, minutes_ago: i64) -> Event {
    let at = NOW.parse::<jiff::Timestamp>().expect("a time") - jiff::SignedDuration::from_mins(minutes_ago);
    object(json!({
        "metadata": {"namespace": "ci", "name": "e"}, "involvedObject": {"uid": "pod-uid"}, "type": "Warning",
        "reason": reason, "message": message, "count": 3, "lastTimestamp": at.to_string(),
        "source": {"component": from},
    }))
}

fn holder(name: &str, uid: &str, minutes: i64) -> HolderFact {
    let since = NOW.parse::<jiff::Timestamp>().expect("a time") - jiff::SignedDuration::from_mins(minutes);
    HolderFact { handle: "cache".into(), name: name.into(), uid: Some(uid.into()), since: Some(since) }
}

/// Exactly these causes are found, in this order; gives back the first finding.
#[track_caller]
fn finds(facts: &Facts, causes: &[&str]) -> Finding {
    let found = explain(facts);
    assert_eq!(found.iter().map(|one| one.cause).collect::<Vec<_>>(), causes, "{found:#?}");
    for finding in &found {
        let whole =
            !finding.sentence.is_empty() && !finding.evidence.is_empty() && !finding.remedy.is_empty();
        assert!(whole && finding.sentence.ends_with('.'), "{finding:#?}");
        assert!(!finding.sentence.contains('\n') && !finding.sentence.contains(".."), "{finding:#?}");
    }
    found.into_iter().next().expect("a finding")
}

#[test]
fn nothing_wrong_is_found_where_nothing_is() {
    assert_eq!(explain(&healthy()), []);
    assert!(!runs(&healthy()));
}

#[test]
fn a_pod_that_runs_has_notes_alone() {
    let mut facts = healthy();
    change_pod(&mut facts, |pod| {
        pod["status"]["phase"] = json!("Running");
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    });
    assert!(runs(&facts));
    place(&mut facts).plugin = Seen::Absent;
    assert_eq!(explain(&facts), []);
    change(&mut facts.claims[0].volume, |volume| volume["spec"]["accessModes"] = json!(["ReadWriteOnce"]));
    assert_eq!(finds(&facts, &["ReadWriteOnce"]).certainty, Certainty::Note);
}

#[test]
fn the_surest_finding_stands_first() {
    let mut facts = healthy();
    change(&mut facts.claims[0].volume, |volume| volume["spec"]["accessModes"] = json!(["ReadWriteOnce"]));
    facts.events = Seen::Is(vec![event("FailedMount", "kubelet", "no configmap", 1)]);
    place(&mut facts).plugin = Seen::Absent;
    finds(&facts, &["NoPluginOnNode", "KubeletEvent", "ReadWriteOnce"]);
}

#[test]
fn what_could_not_be_read_is_no_cause() {
    let mut facts = healthy();
    facts.csi_driver = Seen::Unread;
    facts.neighbours = Seen::Unread;
    facts.events = Seen::Unread;
    facts.deployment = Seen::Unread;
    facts.claims[0].claim = Seen::Unread;
    let place = place(&mut facts);
    place.node = Seen::Unread;
    place.csi_node = Seen::Unread;
    place.plugin = Seen::Unread;
    place.answer = Seen::Unread;
    assert_eq!(explain(&facts), []);
    facts.claims[0].volume = Seen::Unread;
    assert_eq!(explain(&facts), []);
}

#[test]
fn a_pod_without_a_volume_of_the_driver_does_not_wait_for_it() {
    let mut facts = healthy();
    change(&mut facts.claims[0].volume, |volume| volume["spec"]["csi"]["driver"] = json!("other.example"));
    facts.csi_driver = Seen::Absent;
    let place = place(&mut facts);
    place.plugin = Seen::Absent;
    place.csi_node = Seen::Absent;
    assert_eq!(explain(&facts), []);
}

/// Each cause has a case below; a cause that is added without one is found here.
#[test]
fn every_cause_of_the_table_has_its_case_and_its_line_in_the_documentation() {
    let cases = [
        include_str!("mod.rs"),
        include_str!("binding.rs"),
        include_str!("node.rs"),
        include_str!("pods.rs"),
        include_str!("terminating.rs"),
        include_str!("health.rs"),
    ]
    .concat();
    let documented = include_str!("../../../../docs/kubectl.md");
    let mut ids = BTreeSet::new();
    for cause in CAUSES {
        assert!(ids.insert(cause.id), "{} twice", cause.id);
        assert!(
            cases.contains(&format!("&[\"{}\"", cause.id)),
            "{} is the first finding of no case",
            cause.id
        );
        assert!(documented.contains(&format!("`{}`", cause.id)), "{} is not in docs/kubectl.md", cause.id);
    }
}
