//! Each verb of each rule of the plugin's ClusterRole is needed: taken from the running cluster, something stops that a person can see, with
//! the reason in the plugin's log or on its metrics page; put back, it goes on by itself (C22, C30, C32).
//!
//! Nothing here takes a right that pods need to start: they need none.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde_json::{Value, json};

use crate::api::api;
use crate::case::{Case, run};
use crate::cluster::cluster;
use crate::manifest;
use crate::node::Node;
use crate::plugin;
use crate::wait::{TWO_TICKS_S, stays_true, wait_until};

fn set_rules(rules: &Value) {
    let patch = json!({"rules": rules}).to_string();
    cluster().kubectl(&["patch", "clusterrole", "per-node", "--type=merge", "--patch", &patch]);
}

/// Whether the plugin's account may use a verb, by the API server's own word.
fn may(verb: &str, resource: &str) -> bool {
    let account = "--as=system:serviceaccount:per-node:per-node";
    let output = cluster().kubectl_with(&["auth", "can-i", verb, resource, account], "");
    String::from_utf8_lossy(&output.stdout).trim() == "yes"
}

/// Takes a verb on a resource away, runs `body`, and gives it back whatever came of that.
fn without(verb: &str, resource: &str, body: impl FnOnce()) {
    let role = api().get("/apis/rbac.authorization.k8s.io/v1/clusterroles/per-node").expect("the role");
    let (kind, name) = resource.split_once('/').unwrap_or((resource, ""));
    let less = |rule: &Value| {
        let mut rule = rule.clone();
        if rule["resources"] == json!([kind]) && (name.is_empty() || rule["resourceNames"] == json!([name])) {
            rule["verbs"].as_array_mut().expect("verbs").retain(|one| one != verb);
        }
        (rule["verbs"] != json!([])).then_some(rule)
    };
    let before = role["rules"].clone();
    let after: Vec<Value> = before.as_array().expect("rules").iter().filter_map(less).collect();
    assert_ne!(before, json!(after), "the role has no such rule");

    set_rules(&json!(after));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        wait_until("the right to be gone", || !may(verb, resource));
        body();
    }));
    set_rules(&before);
    wait_until("the right to be back", || may(verb, resource));
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// A volume whose copy on a node nobody holds. Gives back its handle.
fn unheld_copy(case: &Case, node: &Node) -> String {
    let handle = case.bound_volume("v", "ReadWriteMany");
    case.running_pod("pod", node, &handle, "echo kept > /data/file");
    wait_until("the file", || node.read(&handle, "file").is_some());
    case.delete("pod", "pod");
    handle
}

/// A pod that holds a copy and one that is refused it.
fn holder_and_waiter(case: &Case, node: &Node) {
    let handle = case.bound_volume("v", "ReadWriteMany");
    case.running_pod("holder", node, &handle, "true");
    case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
}

/// The counts of the events that tell the waiter for whom it waits.
fn counts(case: &Case) -> Vec<u64> {
    let events = case.events("waiter", "PerNodeVolumeHeld");
    events.iter().map(|event| event["count"].as_u64().unwrap_or(1)).collect()
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c30_without_the_right_to_create_events_a_refusal_is_counted_and_told_later() {
    run("c30-no-create", |case| {
        let node = &case.cluster.first;
        let forbidden = r#"per_node_api_calls_total{call="event_create",end="forbidden"}"#;
        without("create", "events", || {
            holder_and_waiter(case, node);
            wait_until("the metric to say why", || node.plugin_metric(forbidden) > 0);
            wait_until("the log to say why", || {
                node.plugin_log().contains("events are not posted") && node.plugin_log().contains("403")
            });
            assert!(counts(case).is_empty(), "who posted it?");
            // The kubelet's own event still carries the plugin's answer.
            wait_until("the kubelet's event", || {
                let told = case.events("waiter", "FailedMount");
                told.iter()
                    .any(|event| event["message"].to_string().contains(&format!("{}/holder", case.name)))
            });
        });
        wait_until("the event, with what was counted meanwhile", || {
            counts(case).first().is_some_and(|count| *count >= 2)
        });
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c31_without_the_right_to_patch_events_the_count_stands_still_and_is_made_up_for() {
    run("c31-no-patch", |case| {
        let node = &case.cluster.first;
        let forbidden = r#"per_node_api_calls_total{call="event_patch",end="forbidden"}"#;
        without("patch", "events", || {
            holder_and_waiter(case, node);
            wait_until("the metric to say why", || node.plugin_metric(forbidden) > 0);
            assert_eq!(counts(case), [1]);
        });
        wait_until("the count to be made up for", || counts(case).first().is_some_and(|count| *count >= 3));
        assert_eq!(counts(case).len(), 1);
    });
}

/// A plugin that starts anew, since a watch that stands is not asked for its rights again.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_without_the_right_to_watch_volumes_nothing_is_swept() {
    run("c22-no-watch", |case| {
        let node = &case.cluster.first;
        let handle = unheld_copy(case, node);
        without("watch", "persistentvolumes", || {
            plugin::restart(node);
            case.delete_volume(&handle);
            wait_until("the log to say why", || {
                let log = node.plugin_log();
                let told = log.lines().find(|line| line.contains("nothing is swept"));
                told.is_some_and(|line| line.contains("403") && line.contains("ClusterRole"))
            });
            wait_until("its readiness to say so", || {
                let page = node.plugin_page("readyz");
                page.is_some_and(|page| page.contains("PersistentVolumes have not been read yet"))
            });
            stays_true("nothing is swept", TWO_TICKS_S, || node.read(&handle, "file").is_some());
            // Pods need none of it.
            let other = case.bound_volume("w", "ReadWriteMany");
            case.running_pod("other", node, &other, "true");
        });
        wait_until("the copy to go now", || !node.copy(&handle).exists());
    });
}

/// Takes a right away that each proof needs, from a plugin whose watch stands.
fn no_proof_without(case: &Case, verb: &str, resource: &str, call: &str, what: &str) {
    let node = &case.cluster.first;
    let handle = unheld_copy(case, node);
    let forbidden = format!(r#"per_node_api_calls_total{{call="{call}",end="forbidden"}}"#);
    without(verb, resource, || {
        case.delete_volume(&handle);
        wait_until("the metric to say why", || node.plugin_metric(&forbidden) > 0);
        wait_until("the log to say why", || {
            let log = node.plugin_log();
            log.lines().any(|line| {
                line.contains("nothing is removed without a complete answer") && line.contains(what)
            })
        });
        stays_true("nothing is swept", TWO_TICKS_S, || node.read(&handle, "file").is_some());
    });
    wait_until("the copy to go now", || !node.copy(&handle).exists());
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_without_the_right_to_list_volumes_nothing_is_swept() {
    run("c22-no-list", |case| {
        no_proof_without(case, "list", "persistentvolumes", "head", "to list and watch persistentvolumes");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c22_without_the_right_to_know_the_cluster_nothing_is_swept() {
    run("c22-no-cluster", |case| {
        no_proof_without(
            case,
            "get",
            "namespaces/kube-system",
            "namespace",
            "to get the namespace kube-system",
        );
    });
}
