//! rules.yml as values: that the operator's object is the same, that every rule asks for metrics there are, and that every alert has
//! its cases.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::text;
use super::words::{metrics_in, metrics_of_the_reference};

/// The plain rule file.
pub const RULES: &str = "deploy/monitoring/rules.yml";
/// What promtool runs on it.
pub const CASES: &str = "tests/monitoring/alerts.yml";

/// A YAML file of one document.
pub fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The plugin's DaemonSet.
pub fn daemon_set() -> Value {
    yaml("deploy/base/daemon-set.yaml")
}

/// The items of a list that must not be empty.
pub fn items(list: &Value) -> &Vec<Value> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    assert!(!items.is_empty(), "an empty list");
    items
}

fn rules() -> Vec<Value> {
    items(&yaml(RULES)["groups"]).iter().flat_map(|group| items(&group["rules"]).clone()).collect()
}

/// The alerts, one with two severities twice.
pub fn alerts() -> Vec<Value> {
    rules().into_iter().filter(|rule| rule["alert"].is_string()).collect()
}

/// The alerts' names.
pub fn names() -> BTreeSet<String> {
    alerts().iter().map(|alert| alert["alert"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_operators_object_is_the_plain_rule_file() {
    let object = yaml("deploy/monitoring/prometheus-rule.yaml");
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("PrometheusRule"), &json!("monitoring.coreos.com/v1"))
    );
    assert_eq!(object["spec"], yaml(RULES), "run deploy/monitoring/generate");
}

#[test]
fn every_rule_asks_for_metrics_that_the_reference_has() {
    let known = metrics_of_the_reference();
    assert!(known.len() > 30, "{known:?}");
    for rule in rules() {
        let asked = metrics_in(rule["expr"].as_str().expect("a query"));
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {rule}");
    }
}

#[test]
fn every_alert_says_how_bad_it_is_and_what_it_means() {
    for alert in alerts() {
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["critical", "warning", "info"].contains(&severity), "{alert}");
        for annotation in ["summary", "description", "runbook_url"] {
            assert!(
                alert["annotations"][annotation].as_str().is_some_and(|text| text.len() > 10),
                "{annotation}: {alert}"
            );
        }
    }
}

/// A case is called like its alert; an expectation without samples says that it does not fire.
#[test]
fn every_alert_has_cases_in_which_it_fires_and_in_which_it_does_not() {
    let cases = yaml(CASES);
    for name in names() {
        let mine: Vec<_> =
            items(&cases["tests"]).iter().filter(|case| case["name"] == name.as_str()).collect();
        assert_eq!(mine.len(), 1, "one test of {name}");
        let expectations = items(&mine[0]["promql_expr_test"]);
        let asks = format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}");
        for expectation in expectations {
            assert!(
                expectation["expr"].as_str().is_some_and(|expr| expr.contains(&asks)),
                "{name}: {expectation}"
            );
        }
        let fires = expectations.iter().filter(|one| one["exp_samples"].is_array()).count();
        assert!(fires >= 1 && expectations.len() - fires >= 2, "{name}: before it fires, while, and after");
    }
}

#[test]
fn the_pod_monitor_finds_the_plugins_pods() {
    let monitor = yaml("deploy/monitoring/pod-monitor.yaml");
    let daemon_set = daemon_set();
    let pod = &daemon_set["spec"]["template"];
    assert_eq!(monitor["kind"], "PodMonitor");
    assert_eq!(monitor["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
    let endpoint = &items(&monitor["spec"]["podMetricsEndpoints"])[0];
    assert_eq!(endpoint["port"], pod["spec"]["containers"][0]["ports"][0]["name"]);
    assert_eq!(endpoint["path"], pod["metadata"]["annotations"]["prometheus.io/path"]);
    let job = monitor["spec"]["jobLabel"].as_str().expect("a label");
    assert_eq!(pod["metadata"]["labels"][job], "per-node", "what the alerts call the job");
}
