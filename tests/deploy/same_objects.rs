//! The chart and the overlay of an installation make the same objects, field by field. What only one of them does is said here
//! and nowhere else: helm adds labels, and it is the overlay that makes the namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::render::{INSTALLATIONS, Installation, arguments, is_hook};
use super::tool::repository;

/// What helm adds to the labels of each object.
const OF_HELM: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// What tells one object from another: kind, namespace and name.
pub type Identity = (String, String, String);

pub fn identity(object: &Value) -> Identity {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

/// By identity, with the arguments sorted: only their set means anything.
fn by_identity(objects: Vec<Value>) -> BTreeMap<Identity, Value> {
    let count = objects.len();
    let mut map = BTreeMap::new();
    for mut object in objects {
        if object["kind"] == "DaemonSet" {
            let arguments = object.pointer_mut("/spec/template/spec/containers/0/args").expect("args");
            let flags = arguments.as_array_mut().expect("a list");
            flags.sort_by_key(|flag| flag.as_str().map(str::to_owned));
        }
        map.insert(identity(&object), object);
    }
    assert_eq!(map.len(), count, "two objects of one name");
    map
}

fn of_chart(installation: &Installation) -> BTreeMap<Identity, Value> {
    let mut objects = installation.by_chart();
    objects.retain(|object| !is_hook(object));
    objects.iter_mut().for_each(take_labels_of_helm);
    by_identity(objects)
}

/// Takes away what helm adds to the labels of each object, which has to be there.
pub fn take_labels_of_helm(object: &mut Value) {
    let labels = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut).expect("labels");
    for label in OF_HELM {
        assert!(labels.remove(label).is_some(), "no label {label}");
    }
}

fn of_overlay(installation: &Installation) -> BTreeMap<Identity, Value> {
    let mut objects = by_identity(installation.by_overlay());
    let name = ("Namespace".to_owned(), String::new(), installation.namespace.to_owned());
    let namespace = objects.remove(&name).expect("the overlay makes the namespace");
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "privileged");
    objects
}

#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn chart_and_overlay_make_the_same_objects() {
    for installation in &INSTALLATIONS {
        let (chart, overlay) = (of_chart(installation), of_overlay(installation));
        let names = |objects: &BTreeMap<Identity, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&chart), names(&overlay), "{}", installation.name);
        for (identity, object) in &chart {
            let (ours, theirs) = (pretty(object), pretty(&overlay[identity]));
            assert_eq!(ours, theirs, "{}: {identity:?}", installation.name);
        }
    }
}

/// As text with its keys in order, so that a difference is one of lines.
pub fn pretty(object: &Value) -> String {
    serde_json::to_string_pretty(object).expect("JSON")
}

#[test]
fn every_overlay_and_every_values_file_is_compared() {
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(repository().join(directory)).expect("the directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
    };
    let compared: BTreeSet<String> = INSTALLATIONS.iter().map(|one| one.name.to_owned()).collect();
    assert_eq!(names("deploy/overlays"), compared);
    assert_eq!(names("deploy/chart/values"), compared);
}

/// Several installations on one cluster share no object, no driver name and no store.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn c40_a_second_instance_shares_nothing_with_the_first() {
    let of = |name: &str| INSTALLATIONS.iter().find(|one| one.name == name).expect("an installation");
    let (first, second) = (of("vanilla"), of("second-instance"));
    for render in [Installation::by_chart, Installation::by_overlay] {
        let (first, second) = (render(first), render(second));
        let identities = |objects: &[Value]| objects.iter().map(identity).collect::<BTreeSet<_>>();
        let shared: Vec<_> = identities(&first).intersection(&identities(&second)).cloned().collect();
        assert!(shared.is_empty(), "{shared:?}");
        let binding = second.iter().find(|object| object["kind"] == "ClusterRoleBinding").expect("one");
        assert_eq!(binding["subjects"][0]["namespace"], "per-node-fast");
        let of = |objects: &[Value], flag: &str| {
            arguments(objects).into_iter().find_map(|one| one.strip_prefix(flag).map(str::to_owned))
        };
        let driver = second.iter().find(|object| object["kind"] == "CSIDriver").expect("one");
        assert_eq!(driver["metadata"]["name"].as_str(), of(&second, "--driver-name=").as_deref());
        assert_ne!(of(&first, "--store="), of(&second, "--store="));
    }
}
