//! The Grafana dashboard as values: its queries, as Grafana would send them, and that no metric is left out of sight.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rules::{RULES, items};
use super::text;
use super::words::{metrics_in, metrics_of_the_reference};

const DASHBOARD: &str = "deploy/monitoring/dashboard.json";

/// What Grafana puts in place of its variables: every job and instance, and a span of four scrapes and more.
const VARIABLES: [(&str, &str); 3] = [("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "10s")];

/// One query, and the panel it is of.
#[derive(Debug)]
pub struct Query {
    pub panel: String,
    pub expression: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&text(DASHBOARD)).expect("JSON")
}

fn panels() -> Vec<Value> {
    let dashboard = dashboard();
    let panels = items(&dashboard["panels"]).iter();
    panels.filter(|panel| panel["type"] != "row").cloned().collect()
}

/// Every query of every panel, and those by which the variables get their values.
pub fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for panel in panels() {
        let title = panel["title"].as_str().expect("a title");
        for target in items(&panel["targets"]) {
            queries.push(query(title, target["expr"].as_str().expect("a query")));
        }
    }
    for variable in items(&dashboard()["templating"]["list"]) {
        let Some(values) = variable["definition"].as_str() else { continue };
        let inside = values.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (expression, label) = inside.and_then(|inside| inside.rsplit_once(", ")).expect("label_values");
        queries.push(query(label, &format!("count by ({label}) ({expression})")));
    }
    queries
}

fn query(panel: &str, expression: &str) -> Query {
    let expression = VARIABLES
        .iter()
        .fold(expression.to_owned(), |expression, (name, value)| expression.replace(name, value));
    assert!(!expression.contains('$'), "a variable that nobody gives: {expression}");
    Query { panel: panel.to_owned(), expression }
}

#[test]
fn every_metric_of_the_reference_is_on_the_dashboard_or_in_a_rule() {
    let mut shown: BTreeSet<String> =
        queries().iter().flat_map(|query| metrics_in(&query.expression)).collect();
    shown.extend(metrics_in(&text(RULES)));
    let known = metrics_of_the_reference();
    assert_eq!(shown.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "metrics that are none");
    assert_eq!(
        known.difference(&shown).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "metrics that nobody sees"
    );
}

#[test]
fn every_panel_has_a_place_and_a_number_of_its_own() {
    let dashboard = dashboard();
    let all = items(&dashboard["panels"]);
    let numbers: BTreeSet<u64> = all.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(numbers.len(), all.len());
    let places: BTreeSet<(u64, u64)> = all
        .iter()
        .filter_map(|panel| Some((panel["gridPos"]["x"].as_u64()?, panel["gridPos"]["y"].as_u64()?)))
        .collect();
    assert_eq!(places.len(), all.len());
    for panel in all {
        let (x, w) = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["w"].as_u64());
        assert!(x.zip(w).is_some_and(|(x, w)| x + w <= 24), "{panel}");
    }
}
