//! What watches the plugin: where its values ask for it, the chart makes the PodMonitor, the rules and the dashboard that `kustomize
//! build deploy/monitoring` makes. Whether they are right is for tests/monitoring to say; here they are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::render::{INSTALLATIONS, objects, template, template_of};
use super::same_objects::{Identity, identity, pretty, take_labels_of_helm};
use super::tool::{chart, repository, run};

/// Everything that watches.
pub const ON: [&str; 3] =
    ["--set=podMonitor.create=true", "--set=prometheusRule.create=true", "--set=dashboard.create=true"];

const KINDS: [&str; 3] = ["PodMonitor", "PrometheusRule", "ConfigMap"];

/// What kustomize makes of deploy/monitoring.
pub fn by_kustomize() -> Vec<Value> {
    let directory = repository().join("deploy/monitoring");
    objects(&run("kustomize", ["build".as_ref(), directory.as_os_str()]).expect("it renders"))
}

/// What of the chart watches.
pub fn by_chart(namespace: &str, more: &[&str]) -> Vec<Value> {
    watching(&template(namespace, more).expect("the chart renders"))
}

fn watching(rendered: &str) -> Vec<Value> {
    let mut objects = objects(rendered);
    objects.retain(|object| KINDS.iter().any(|kind| object["kind"] == *kind));
    objects
}

fn by_identity(objects: Vec<Value>) -> BTreeMap<Identity, String> {
    objects.iter().map(|object| (identity(object), pretty(object))).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// A chart has only what is below its own directory.
#[test]
fn the_chart_has_rules_and_dashboard_as_they_are() {
    let copies = std::fs::read_dir(chart().join("files")).expect("the copies");
    let names: BTreeSet<_> = copies.map(|copy| copy.expect("a copy").file_name()).collect();
    assert_eq!(names, ["rules.yml", "dashboard.json"].map(Into::into).into());
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    for name in names {
        let (copy, source) =
            (chart().join("files").join(&name), repository().join("deploy/monitoring").join(&name));
        assert_eq!(read(&copy), read(&source), "run deploy/monitoring/generate");
    }
}

/// Field by field, from the chart as it lies here and from its package.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn chart_and_kustomize_watch_with_the_same_objects() {
    let directory = tempfile::tempdir().expect("a directory");
    let packed = directory.path().to_str().expect("a path of text");
    let source = chart();
    run("helm", ["package", source.to_str().expect("a path of text"), "--destination", packed])
        .expect("it packs");
    let mut packages = std::fs::read_dir(directory.path()).expect("the directory");
    let package = packages.next().expect("a package").expect("a package").path();
    let theirs = by_identity(by_kustomize());
    assert_eq!(theirs.len(), KINDS.len());
    for chart in [source, package] {
        let mut ours = watching(&template_of(&chart, "per-node", &ON).expect("it renders"));
        ours.iter_mut().for_each(take_labels_of_helm);
        let ours = by_identity(ours);
        assert!(ours.keys().eq(theirs.keys()), "{:?}", ours.keys());
        for (identity, object) in &ours {
            assert_eq!(object, &theirs[identity], "{}: {identity:?}", chart.display());
        }
    }
}

/// A cluster without the operator refuses its objects, so each is made where it is asked for and nowhere else.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn each_is_made_where_it_is_asked_for() {
    assert_eq!(by_chart("per-node", &[]), Vec::<Value>::new());
    for (value, kind) in ON.iter().zip(KINDS) {
        let made = by_chart("per-node", &[value]);
        assert_eq!(made.iter().map(|object| &object["kind"]).collect::<Vec<_>>(), [kind]);
    }
}

/// A PodMonitor without a `namespaceSelector` selects in its own namespace, where no second release can be.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn a_release_monitors_the_pods_of_its_own_namespace() {
    let mut namespaces = BTreeSet::new();
    for installation in INSTALLATIONS.iter().filter(|one| ["vanilla", "second-instance"].contains(&one.name))
    {
        let more = [&installation.values(), ON[0], "--set-json=podLabels={\"team\":\"storage\"}"];
        let rendered = objects(&template(installation.namespace, &more).expect("it renders"));
        let (monitor, daemon_set) = (of_kind(&rendered, "PodMonitor"), of_kind(&rendered, "DaemonSet"));
        assert_eq!(monitor["metadata"]["namespace"], daemon_set["metadata"]["namespace"]);
        assert_eq!(monitor["spec"]["namespaceSelector"], Value::Null);
        assert_eq!(monitor["spec"]["selector"], daemon_set["spec"]["selector"]);
        let port = &daemon_set["spec"]["template"]["spec"]["containers"][0]["ports"][0]["name"];
        assert_eq!(&monitor["spec"]["podMetricsEndpoints"][0]["port"], port);
        namespaces.insert(monitor["metadata"]["namespace"].to_string());
    }
    assert_eq!(namespaces.len(), 2);
}

/// Others select by labels: they are as the values say, also where the chart has one of that name.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn labels_and_interval_are_those_of_the_values() {
    let labels = |group: &str| {
        format!(
            "--set-json={group}.labels={{\"release\":\"prometheus\",\"app.kubernetes.io/instance\":\"mine\"}}"
        )
    };
    let labels = ["podMonitor", "prometheusRule", "dashboard"].map(labels);
    let mut more = ON.to_vec();
    more.extend(labels.iter().map(String::as_str));
    more.push("--set=podMonitor.interval=1m30s");
    let made = by_chart("per-node", &more);
    assert_eq!(made.len(), 3);
    for object in &made {
        let labels = &object["metadata"]["labels"];
        assert_eq!(
            (&labels["release"], &labels["app.kubernetes.io/instance"]),
            (&json!("prometheus"), &json!("mine"))
        );
        assert_eq!(labels["app.kubernetes.io/name"], "per-node");
    }
    assert_eq!(of_kind(&made, "ConfigMap")["metadata"]["labels"]["grafana_dashboard"], "1");
    let interval =
        |made: &[Value]| of_kind(made, "PodMonitor")["spec"]["podMetricsEndpoints"][0]["interval"].clone();
    assert_eq!(interval(&made), "1m30s");
    assert_eq!(interval(&by_chart("per-node", &[ON[0], "--set=podMonitor.interval="])), Value::Null);
}

#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn each_runbook_is_where_the_values_say() {
    for address in ["https://example.org/per-node", "https://example.org/per-node/"] {
        let made = by_chart("per-node", &[ON[1], &format!("--set=prometheusRule.runbooks={address}")]);
        let groups = made[0]["spec"]["groups"].as_array().expect("groups");
        let rules = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules"));
        let mut alerts = 0;
        for (alert, rule) in rules.filter_map(|rule| Some((rule["alert"].as_str()?, rule))) {
            let page = format!("https://example.org/per-node/docs/runbooks/{alert}.md");
            assert_eq!(rule["annotations"]["runbook_url"], page);
            alerts += 1;
        }
        assert!(alerts > 20, "{alerts} alerts");
    }
}
